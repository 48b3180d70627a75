//! Standard output and standard error that may be closed or full.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use anyhow::Context;
use serde::Serialize;

/// Writes text to standard output. A reader that has seen enough, such as `head`, is no error.
pub fn print(text: impl Display) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// Writes a value as JSON to standard output.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(serde_json::to_string_pretty(value)? + "\n")
}

/// Says something on standard error unless `--quiet`. If nobody can hear it, nothing is lost.
pub fn say(quiet: bool, message: impl Display) {
    if !quiet {
        let _ = writeln!(std::io::stderr(), "{message}");
    }
}
