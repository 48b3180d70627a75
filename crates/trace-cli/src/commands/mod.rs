//! One module a command.

pub mod aggregate;
pub mod bench;
pub mod demo;
mod device;
pub mod discover;
pub mod evaluate;
pub mod export;
pub mod model;
pub mod report;
pub mod simulate;
pub mod train;

use std::path::{Path, PathBuf};

use trace_core::Vocabulary;
use trace_io::log::{self, EventLog, Unknown};
use trace_io::output::same_file;

use crate::failure::Failure;

/// Checks a threshold that decides anew.
fn check_threshold(threshold: Option<f64>) -> anyhow::Result<()> {
    match threshold.filter(|nats| !(nats.is_finite() && *nats >= 0.0)) {
        Some(nats) => {
            Err(Failure::usage(format!("--threshold: {nats} is not a strength; expected a number of nats, 0 or more")))
        }
        None => Ok(()),
    }
}

/// Refuses to write an output over an input.
fn keep_inputs<'p>(output: &Path, inputs: impl IntoIterator<Item = &'p PathBuf>) -> anyhow::Result<()> {
    match inputs.into_iter().find(|input| same_file(output, input)) {
        Some(_) => Err(Failure::usage(format!("{}: is read from, and would be written over", output.display()))),
        None => Ok(()),
    }
}

/// Reads a whole log.
fn read_log(path: &Path, vocabulary: &mut Vocabulary, unknown: Unknown) -> anyhow::Result<EventLog> {
    Ok(EventLog::read(log::open(path)?, vocabulary, unknown)?)
}
