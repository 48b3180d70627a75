//! What an error means to the shell: 2 for bad input or usage, 1 for what went wrong inside, 130 for Ctrl-C.

use std::io::ErrorKind as IoKind;
use std::process::ExitCode;

use trace_causal::{Error, ErrorKind, Hint, Kept, OptionName};

use crate::output::{print, say};

/// Why a command has no result.
#[derive(Debug)]
pub enum Failure {
    /// The user asked for something that cannot be.
    Usage(String),
    /// The user pressed Ctrl-C between two steps; the message says what was kept.
    Interrupted(String),
    /// Standard output could not be written to.
    Output(std::io::Error),
    /// The library has no result.
    Library(Error),
}

impl Failure {
    /// A usage error.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Interrupted(_) => 130,
            Self::Output(_) => 1,
            Self::Library(error) => match error.kind() {
                ErrorKind::BadInput => 2,
                ErrorKind::Cancelled => 130,
                ErrorKind::Internal => 1,
            },
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Usage(message) | Self::Interrupted(message) => message.clone(),
            Self::Output(error) => format!("standard output: {error}"),
            Self::Library(error) => words(error),
        }
    }

    /// A reader that has seen enough of an export is no error.
    fn is_closed_pipe(&self) -> bool {
        let Self::Library(Error::File(trace_io::Error::Io { error, .. })) = self else { return false };
        error.kind() == IoKind::BrokenPipe
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<trace_io::Error> for Failure {
    fn from(error: trace_io::Error) -> Self {
        Self::Library(error.into())
    }
}

/// What a model complains of that no flag sets.
const NOT_FLAGS: [&str; 3] = ["events", "weights", "network"];

/// An option as a flag.
pub fn flag(option: OptionName) -> String {
    format!("--{}", option.0.replace('_', "-"))
}

/// An error in the words of the command line.
fn words(error: &Error) -> String {
    let mut text = match error {
        Error::Option { option, reason } => format!("{}: {reason}", flag(*option)),
        Error::Cancelled(kept) => return keeps(kept),
        Error::Unfinished { kept, error } => format!("{}: {}", keeps(kept), words(error)),
        Error::File(trace_io::Error::Option { file, option, reason, .. }) => {
            format!("{file}: {}: {reason}", flag(*option))
        }
        Error::File(error) => error.message(),
        Error::Method(trace_causal::MethodError::Setting { name, reason }) if *name != "model" => {
            format!("{}: {reason}", flag(OptionName(name)))
        }
        Error::Model(trace_causal::ModelsError::Spec { name, reason }) if !NOT_FLAGS.contains(name) => {
            format!("{}: {reason}", flag(OptionName(name)))
        }
        error => error.to_string(),
    };
    if let Error::Unfinished { .. } = error {
        return text; // the hints are in it
    }
    let hints: Vec<String> = error.hints().iter().map(hint).collect();
    if !hints.is_empty() {
        text += &format!(" ({})", hints.join(", "));
    }
    text
}

fn hint(hint: &Hint) -> String {
    let value = hint.value.as_ref().map_or(String::new(), |value| format!(" {value}"));
    format!("{}{value} {}", flag(hint.option), hint.effect)
}

fn keeps(kept: &Kept) -> String {
    match kept {
        Kept::Sequences { .. } | Kept::Steps { .. } => format!("{kept}; --resume continues"),
        kept => kept.to_string(),
    }
}

/// Prints the error and says how to exit.
pub fn report(failure: &Failure) -> ExitCode {
    if failure.is_closed_pipe() {
        return ExitCode::SUCCESS;
    }
    let code = failure.exit_code();
    let prefix = if code == 130 { "interrupted" } else { "error" };
    say(false, format_args!("{prefix}: {}", failure.message()));
    ExitCode::from(code)
}

/// What the parser of flags has to say: help and version go to standard output, complaints to standard error.
pub fn usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let _ = error.print();
        return ExitCode::from(2);
    }
    let text = error.render().ansi().to_string();
    let plain = error.render().to_string();
    let shown = if std::io::IsTerminal::is_terminal(&std::io::stdout()) { text } else { plain };
    match print(&shown) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure),
    }
}
