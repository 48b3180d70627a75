//! Simulating: sequences whose causal truth is known, in a folder that is also a model, the perfect one.

mod fleet;
mod scm;
mod truth;
mod workflow;

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

pub use self::fleet::{FleetOptions, LogFormat, simulate_fleet};
pub use self::scm::{ScmOptions, simulate_scm};
pub use self::truth::TruthKind;
pub use self::workflow::{WorkflowOptions, simulate_workflow};
use crate::Error;

/// Events in all, and in one sequence, that are taken for meant.
const MOST_EVENTS: usize = 10_000_000_000;
const LONGEST: usize = 10_000_000;
/// Events in memory at a time, in whole sequences.
const EVENTS_AT_A_TIME: usize = 1 << 16;

/// What was simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulation {
    /// Sequences.
    pub sequences: usize,
    /// Their events.
    pub events: usize,
    /// Event types.
    pub types: usize,
    /// True edges, where the truth was measured.
    pub edges: usize,
    /// Pairs of types that the process was designed to have.
    pub designed_pairs: usize,
    /// Entropy of the process, in nats per event.
    pub entropy: f64,
}

/// Checks how many sequences of which length are asked for.
fn check_size(sequences: usize, length: usize) -> Result<(), Error> {
    for (name, value) in [("sequences", sequences), ("length", length)] {
        if value == 0 {
            return Err(Error::option(name, "0 is out of range; expected at least 1"));
        }
    }
    if length > LONGEST {
        return Err(Error::option("length", format!("{length} is out of range; expected at most {LONGEST}")));
    }
    if sequences.checked_mul(length).is_none_or(|events| events > MOST_EVENTS) {
        let reason = format!("{sequences} of length {length}: expected at most {MOST_EVENTS} events in all");
        return Err(Error::option("sequences", reason));
    }
    Ok(())
}

/// A file of the folder that is being filled.
fn create(folder: &Path, name: &str) -> Result<BufWriter<File>, trace_io::Error> {
    let path = folder.join(name);
    File::create(&path).map(BufWriter::new).map_err(trace_io::Error::io(path))
}
