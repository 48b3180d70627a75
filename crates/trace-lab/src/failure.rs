//! What an error means to the shell: 2 for bad input or usage, 1 for what went wrong inside, 130 for Ctrl-C.

use std::io::IsTerminal;
use std::process::ExitCode;

use trace_causal::ErrorKind;

use crate::output::{print, say};

/// An error that the command line itself finds.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The user asked for something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// The user pressed Ctrl-C; the message says what was kept.
    #[error("{0}")]
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

/// Prints the error and says how to exit.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let code = exit_code(error);
    let prefix = if code == 130 { "interrupted" } else { "error" };
    say(false, format_args!("{prefix}: {error:#}"));
    ExitCode::from(code)
}

fn exit_code(error: &anyhow::Error) -> u8 {
    match (error.downcast_ref::<Failure>(), error.downcast_ref::<trace_lab::Error>().map(trace_lab::Error::kind)) {
        (Some(Failure::Usage(_)), _) | (_, Some(ErrorKind::BadInput)) => 2,
        (Some(Failure::Interrupted(_)), _) | (_, Some(ErrorKind::Cancelled)) => 130,
        _ => 1,
    }
}

/// What the parser of flags has to say: help and version go to standard output, complaints to standard error.
pub fn usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let _ = error.print();
        return ExitCode::from(2);
    }
    let text = error.render();
    let shown = if std::io::stdout().is_terminal() { text.ansi().to_string() } else { text.to_string() };
    match print(shown) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}
