//! What can go wrong in the laboratory.

use std::path::{Path, PathBuf};

use trace_causal::ErrorKind;

/// Why an experiment has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder holds something else.
    #[error("{}: holds results of another size or version; expected an empty folder or the same settings", path.display())]
    Mixed {
        /// The record that says so.
        path: PathBuf,
    },
    /// A file of the results folder is not what this version writes.
    #[error("{}: line {line}: {reason}", path.display())]
    Rows {
        /// Which.
        path: PathBuf,
        /// Where.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The run was asked to stop; what is finished is kept.
    #[error("stopped; what is finished is kept")]
    Interrupted,
    /// A figure could not be drawn or a table written.
    #[error("{0}")]
    Output(String),
    /// A model could not be trained or opened, a file not read or written, or a method failed.
    #[error(transparent)]
    Library(trace_causal::Error),
}

impl Error {
    /// For `map_err` on file operations.
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        move |error| trace_io::Error::io(path)(error).into()
    }

    /// Whose it is to mend it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Mixed { .. } | Self::Rows { .. } => ErrorKind::BadInput,
            Self::Interrupted => ErrorKind::Cancelled,
            Self::Output(_) => ErrorKind::Internal,
            Self::Library(error) => error.kind(),
        }
    }
}

impl From<trace_causal::Error> for Error {
    fn from(error: trace_causal::Error) -> Self {
        match error.kind() {
            ErrorKind::Cancelled => Self::Interrupted,
            _ => Self::Library(error),
        }
    }
}

impl From<trace_io::Error> for Error {
    fn from(error: trace_io::Error) -> Self {
        Self::Library(error.into())
    }
}

impl From<trace_models::Error> for Error {
    fn from(error: trace_models::Error) -> Self {
        Self::Library(error.into())
    }
}

impl From<trace_core::Error> for Error {
    fn from(error: trace_core::Error) -> Self {
        Self::Library(error.into())
    }
}
