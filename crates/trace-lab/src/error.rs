//! What can go wrong in the laboratory.

use std::path::PathBuf;

/// Why an experiment has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
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
    /// A model could not be made or opened.
    #[error(transparent)]
    Model(#[from] trace_models::Error),
    /// A method failed.
    #[error(transparent)]
    Method(#[from] trace_core::Error),
    /// A figure could not be drawn or a table written.
    #[error("{0}")]
    Output(String),
}

impl Error {
    /// Wraps a failure at a path.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { path, error }
    }
}
