//! What an error means to the shell: 2 for bad input or usage, 1 for what went wrong inside, 130 for Ctrl-C.

use std::fmt;
use std::io::ErrorKind;
use std::process::ExitCode;

/// An error that the command line itself finds.
#[derive(Debug)]
pub enum Failure {
    /// The user asked for something that cannot be.
    Usage(String),
    /// The user pressed Ctrl-C; the message says what was kept.
    Interrupted(String),
}

impl Failure {
    /// A usage error.
    pub fn usage(message: impl Into<String>) -> anyhow::Error {
        Self::Usage(message.into()).into()
    }

    /// An interruption.
    pub fn interrupted(message: impl Into<String>) -> anyhow::Error {
        Self::Interrupted(message.into()).into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Interrupted(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}

/// Prints the error and says how to exit.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS; // whoever reads our output has seen enough
    }
    let code = exit_code(error);
    let prefix = if code == 130 { "interrupted" } else { "error" };
    eprintln!("{prefix}: {error:#}");
    ExitCode::from(code)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return match failure {
            Failure::Usage(_) => 2,
            Failure::Interrupted(_) => 130,
        };
    }
    if let Some(error) = error.downcast_ref::<trace_lab::Error>() {
        return match error {
            trace_lab::Error::Io { error, .. } => io_code(error.kind()),
            trace_lab::Error::Rows { .. } | trace_lab::Error::Mixed { .. } => 2,
            trace_lab::Error::Model(error) => model_code(error),
            _ => 1,
        };
    }
    if let Some(error) = error.downcast_ref::<trace_core::Error>() {
        return match error {
            trace_core::Error::Model(_) | trace_core::Error::NotFinite { .. } => 1,
            _ => 2,
        };
    }
    if let Some(error) = error.downcast_ref::<trace_models::Error>() {
        return model_code(error);
    }
    if let Some(error) = error.downcast_ref::<trace_io::Error>() {
        return match error {
            trace_io::Error::Io { error, .. } => io_code(error.kind()),
            _ => 2,
        };
    }
    1
}

fn model_code(error: &trace_models::Error) -> u8 {
    match error {
        trace_models::Error::Io { error, .. } => io_code(error.kind()),
        trace_models::Error::Corpus(inner) => match inner.downcast_ref() {
            Some(trace_io::Error::Io { error, .. }) => io_code(error.kind()),
            _ => 2,
        },
        _ => 2,
    }
}

/// A file that is missing, or not ours to read, is the user's to mend; a full disk is not.
fn io_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::NotFound
        | ErrorKind::AlreadyExists
        | ErrorKind::PermissionDenied
        | ErrorKind::IsADirectory
        | ErrorKind::NotADirectory
        | ErrorKind::InvalidInput
        | ErrorKind::InvalidData
        | ErrorKind::InvalidFilename
        | ErrorKind::ReadOnlyFilesystem => 2,
        _ => 1,
    }
}
