//! Errors of models and their folders.

use std::io;
use std::path::{Path, PathBuf};

/// Why a model could not be made, saved or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option of a model to be made is out of its range.
    #[error("{name}: {reason}")]
    Spec {
        /// The option's name.
        name: &'static str,
        /// What is wrong with it, and what is expected.
        reason: String,
    },
    /// A corpus could not be read.
    #[error("{0}")]
    Corpus(Box<dyn std::error::Error + Send + Sync>),
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A file of a model folder is invalid.
    #[error("{}: {reason}", path.display())]
    Folder {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        reason: String,
    },
    /// A tensor of a model folder is invalid.
    #[error("{}: tensor {tensor}: {reason}", path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// What was expected and what was found.
        reason: String,
    },
}

impl Error {
    /// An option is out of its range.
    pub fn spec(name: &'static str, reason: impl Into<String>) -> Self {
        Self::Spec { name, reason: reason.into() }
    }

    /// A file of a folder is invalid.
    pub fn folder(path: &Path, reason: impl Into<String>) -> Self {
        Self::Folder { path: path.to_owned(), reason: reason.into() }
    }

    /// For `map_err` on file operations.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }
}
