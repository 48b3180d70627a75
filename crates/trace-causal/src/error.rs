//! What can go wrong, as values that every door renders in its own words.

use std::io::ErrorKind as IoKind;
use std::path::PathBuf;

use trace_core::{Hint, OptionName};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option is out of its range, or does not go with something else.
    #[error("{}: {reason}", option.0)]
    Option {
        /// Which.
        option: OptionName,
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// What was asked for cannot be, whatever the options.
    #[error("{reason}")]
    Request {
        /// What is wrong and what would be right.
        reason: String,
        /// What would help.
        hints: Vec<Hint>,
    },
    /// The run was cancelled.
    #[error("cancelled: {0}")]
    Cancelled(Kept),
    /// A run failed after it had finished some sequences, which are kept.
    #[error("{kept}: {error}")]
    Unfinished {
        /// What is kept.
        kept: Kept,
        /// Why it failed.
        error: Box<Error>,
    },
    /// A sequence could not be tested.
    #[error("{log}: line {line}: sequence {id:?}: {error}")]
    Sequence {
        /// The log.
        log: String,
        /// Where the sequence starts in it.
        line: u64,
        /// The sequence.
        id: String,
        /// What is wrong.
        error: trace_core::Error,
    },
    /// A log cannot be trained on.
    #[error("{log}: {error}")]
    Training {
        /// The log.
        log: String,
        /// What is wrong.
        error: trace_models::Error,
    },
    /// The method failed.
    #[error(transparent)]
    Method(#[from] trace_core::Error),
    /// A model could not be made, saved or opened.
    #[error(transparent)]
    Model(#[from] trace_models::Error),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] trace_io::Error),
    /// A figure could not be drawn.
    #[error(transparent)]
    Figure(#[from] trace_report::figure::Error),
}

/// What is kept of a run that did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kept {
    /// Nothing.
    Nothing,
    /// Results of some sequences, from which a run with `resume` goes on.
    Sequences {
        /// How many are finished.
        done: usize,
        /// Of how many.
        total: usize,
        /// Where they are.
        place: PathBuf,
    },
    /// A checkpoint of a training, from which a run with `resume` goes on.
    Steps {
        /// How many are done.
        done: u64,
        /// Where the checkpoint is.
        place: PathBuf,
    },
}

impl std::fmt::Display for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing was written"),
            Self::Sequences { done, total, place } => {
                write!(f, "{done} of {total} sequences are finished and kept in {}", place.display())
            }
            Self::Steps { done, place } => write!(f, "{done} steps are kept in {}", place.display()),
        }
    }
}

/// Whose it is to mend an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The user's: bad input or options.
    BadInput,
    /// Nobody's: the run was cancelled.
    Cancelled,
    /// Something went wrong inside, or the machine is at fault.
    Internal,
}

impl Error {
    /// An option is at fault.
    pub fn option(name: &'static str, reason: impl Into<String>) -> Self {
        Self::Option { option: OptionName(name), reason: reason.into() }
    }

    /// The request is at fault.
    pub fn request(reason: impl Into<String>) -> Self {
        Self::Request { reason: reason.into(), hints: Vec::new() }
    }

    /// The same with an option that would help.
    #[must_use]
    pub fn hint(mut self, option: &'static str, value: Option<&'static str>, effect: &'static str) -> Self {
        if let Self::Request { hints, .. } = &mut self {
            let option = OptionName(option);
            hints
                .push(value.map_or_else(|| Hint::new(option, effect), |value| Hint::with_value(option, value, effect)));
        }
        self
    }

    /// What would help, where anything is known to.
    pub fn hints(&self) -> &[Hint] {
        match self {
            Self::Request { hints, .. } => hints,
            Self::File(error) => error.hints(),
            Self::Training { error, .. } | Self::Model(error) => inner(error).map_or(&[], trace_io::Error::hints),
            Self::Unfinished { error, .. } => error.hints(),
            _ => &[],
        }
    }

    /// Whose it is to mend it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Cancelled(_) => ErrorKind::Cancelled,
            Self::Unfinished { error, .. } => error.kind(),
            Self::Sequence { error, .. } | Self::Method(error) => match error {
                trace_core::Error::Model(_) | trace_core::Error::NotFinite { .. } => ErrorKind::Internal,
                _ => ErrorKind::BadInput,
            },
            Self::Training { error, .. } | Self::Model(error) => match (error, inner(error)) {
                (trace_models::Error::Io { error, .. }, _) | (_, Some(trace_io::Error::Io { error, .. })) => {
                    io_kind(error.kind())
                }
                _ => ErrorKind::BadInput,
            },
            Self::File(trace_io::Error::Io { error, .. }) => io_kind(error.kind()),
            Self::Option { .. }
            | Self::Request { .. }
            | Self::File(_)
            | Self::Figure(trace_report::figure::Error::Size { .. }) => ErrorKind::BadInput,
            Self::Figure(_) => ErrorKind::Internal,
        }
    }
}

/// The fault of a log that a model was being trained on.
fn inner(error: &trace_models::Error) -> Option<&trace_io::Error> {
    match error {
        trace_models::Error::Corpus(inner) => inner.downcast_ref(),
        _ => None,
    }
}

/// A file that is missing or cannot be opened is the user's to mend; a full disk is not.
const fn io_kind(kind: IoKind) -> ErrorKind {
    match kind {
        IoKind::NotFound
        | IoKind::AlreadyExists
        | IoKind::PermissionDenied
        | IoKind::IsADirectory
        | IoKind::NotADirectory
        | IoKind::InvalidInput
        | IoKind::InvalidData
        | IoKind::InvalidFilename
        | IoKind::ReadOnlyFilesystem => ErrorKind::BadInput,
        _ => ErrorKind::Internal,
    }
}
