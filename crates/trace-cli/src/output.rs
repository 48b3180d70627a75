//! Standard output and standard error that may be closed or full.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Writes text to standard output. A reader that has seen enough, such as `head`, is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::Output(error)),
        Ok(()) => Ok(()),
    }
}

/// Writes a value as JSON to standard output.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Output(error.into()))?;
    print(&(text + "\n"))
}

/// Says something on standard error unless `--quiet`. If nobody can hear it, nothing is lost.
pub fn say(quiet: bool, message: impl Display) {
    if !quiet {
        let _ = writeln!(std::io::stderr(), "{message}");
    }
}
