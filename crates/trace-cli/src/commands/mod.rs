//! One module a command.

pub mod aggregate;
pub mod demo;
pub mod discover;
pub mod evaluate;
pub mod export;
pub mod model;
pub mod simulate;
pub mod train;

use std::path::Path;

use trace_core::Vocabulary;
use trace_io::log::{self, EventLog, Unknown};

/// Reads a whole log.
fn read_log(path: &Path, vocabulary: &mut Vocabulary, unknown: Unknown) -> anyhow::Result<EventLog> {
    let mut reader = log::open(path)?;
    Ok(EventLog::read(&mut *reader, vocabulary, unknown)?)
}
