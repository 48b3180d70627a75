//! What can go wrong with files.

use std::io;
use std::path::Path;

/// Why a file could not be read or written. Every message names the file, and the line where there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[error("{file}: {error}")]
    Io {
        /// The file.
        file: String,
        /// What the system said.
        error: io::Error,
    },
    /// A line is not what it should be.
    #[error("{file}: line {line}: {reason}")]
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What was expected and what was found.
        reason: String,
    },
    /// The file as a whole is not what it should be.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// What was expected and what was found.
        reason: String,
    },
}

impl Error {
    /// For `map_err` on file operations.
    pub fn io(file: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { file: file.as_ref().display().to_string(), error }
    }

    pub(crate) fn line(file: &str, line: u64, reason: impl Into<String>) -> Self {
        Self::Line { file: file.to_owned(), line, reason: reason.into() }
    }

    /// The file as a whole is at fault.
    pub fn file(file: impl AsRef<Path>, reason: impl Into<String>) -> Self {
        Self::File { file: file.as_ref().display().to_string(), reason: reason.into() }
    }
}
