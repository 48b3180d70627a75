//! What can go wrong with files.

use std::fmt;
use std::io;
use std::path::Path;

use trace_core::{Hint, OptionName};

/// Why a file could not be read or written. Every message names the file, and the line where there is one.
///
/// As text it is the [`message`](Self::message) and then the [`hints`](Self::hints), with options by their names. A
/// door that writes options in another way puts the two together by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    Io {
        /// The file.
        file: String,
        /// What the system said.
        error: io::Error,
    },
    /// A line is not what it should be.
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What was expected and what was found.
        reason: String,
        /// What would help.
        hints: Vec<Hint>,
    },
    /// The file as a whole is not what it should be.
    File {
        /// The file.
        file: String,
        /// What was expected and what was found.
        reason: String,
        /// What would help.
        hints: Vec<Hint>,
    },
    /// An option does not fit the file, or has no meaning at all.
    Option {
        /// The file.
        file: String,
        /// The option.
        option: OptionName,
        /// What is wrong with it, to follow its name: `means nothing to a log in XES`.
        reason: String,
        /// What would help.
        hints: Vec<Hint>,
    },
}

impl Error {
    /// For `map_err` on file operations.
    pub fn io(file: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { file: file.as_ref().display().to_string(), error }
    }

    /// A line, counted from 1, is at fault.
    pub fn at_line(file: impl AsRef<Path>, line: u64, reason: impl Into<String>) -> Self {
        let file = file.as_ref().display().to_string();
        Self::Line { file, line, reason: reason.into(), hints: Vec::new() }
    }

    pub(crate) fn line(file: &str, line: u64, reason: impl Into<String>) -> Self {
        Self::at_line(file, line, reason)
    }

    /// The file as a whole is at fault.
    pub fn file(file: impl AsRef<Path>, reason: impl Into<String>) -> Self {
        Self::File { file: file.as_ref().display().to_string(), reason: reason.into(), hints: Vec::new() }
    }

    /// An option is at fault; the reason follows its name.
    pub fn option(file: impl AsRef<Path>, option: OptionName, reason: impl Into<String>) -> Self {
        let file = file.as_ref().display().to_string();
        Self::Option { file, option, reason: reason.into(), hints: Vec::new() }
    }

    /// Adds what would help. What the system refused, no option helps with.
    #[must_use]
    pub fn hint(self, hint: Hint) -> Self {
        self.with_hints([hint])
    }

    /// Adds several.
    #[must_use]
    pub fn with_hints(mut self, more: impl IntoIterator<Item = Hint>) -> Self {
        match &mut self {
            Self::Io { .. } => {}
            Self::Line { hints, .. } | Self::File { hints, .. } | Self::Option { hints, .. } => hints.extend(more),
        }
        self
    }

    /// What would help.
    pub fn hints(&self) -> &[Hint] {
        match self {
            Self::Io { .. } => &[],
            Self::Line { hints, .. } | Self::File { hints, .. } | Self::Option { hints, .. } => hints,
        }
    }

    /// What is wrong, without the hints.
    pub fn message(&self) -> String {
        match self {
            Self::Io { file, error } => format!("{file}: {error}"),
            Self::Line { file, line, reason, .. } => format!("{file}: line {line}: {reason}"),
            Self::File { file, reason, .. } => format!("{file}: {reason}"),
            Self::Option { file, option, reason, .. } => format!("{file}: the option {option} {reason}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        self.hints().iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_can_write_options_in_its_own_way() {
        let column = OptionName("time_column");
        let error = Error::at_line("log.csv", 1, "no column looks like the time").hint(Hint::new(column, "names it"));
        assert_eq!(error.message(), "log.csv: line 1: no column looks like the time");
        assert_eq!(error.to_string(), format!("{}; the option time_column names it", error.message()));
        let flags: Vec<String> = error.hints().iter().map(|hint| hint.option.0.replace('_', "-")).collect();
        assert_eq!(flags, ["time-column"]);
        let error = Error::option("log.txt", column, "means nothing to a log in plain text");
        assert_eq!(error.to_string(), "log.txt: the option time_column means nothing to a log in plain text");
    }
}
