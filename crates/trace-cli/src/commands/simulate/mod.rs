//! `trace simulate`: sequences whose causal truth is known.

mod fleet;
mod scm;
mod truth;

use crate::cli::SimulateCommand;
use crate::failure::Failure;

/// Events in all, and in one sequence, that are taken for meant.
const MOST_EVENTS: usize = 10_000_000_000;
const LONGEST: usize = 10_000_000;
/// Events in memory at a time, in whole sequences.
const EVENTS_AT_A_TIME: usize = 1 << 16;

pub fn run(command: &SimulateCommand, quiet: bool) -> anyhow::Result<()> {
    match command {
        SimulateCommand::Scm(args) => scm::run(args, quiet),
        SimulateCommand::Fleet(args) => fleet::run(args, quiet),
    }
}

/// Checks `--sequences` and `--length`.
fn check_size(sequences: usize, length: usize) -> anyhow::Result<()> {
    if sequences == 0 || length == 0 {
        return Err(Failure::usage("--sequences and --length: expected at least 1"));
    }
    if length > LONGEST {
        return Err(Failure::usage(format!("--length: {length} is out of range; expected at most {LONGEST}")));
    }
    if sequences.checked_mul(length).is_none_or(|events| events > MOST_EVENTS) {
        return Err(Failure::usage(format!(
            "--sequences {sequences} of --length {length}: expected at most {MOST_EVENTS} events in all"
        )));
    }
    Ok(())
}
