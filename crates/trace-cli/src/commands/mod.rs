//! One module a command.

pub mod aggregate;
pub mod bench;
pub mod compare;
pub mod demo;
mod device;
pub mod discover;
pub mod evaluate;
pub mod explain;
pub mod export;
pub mod log;
pub mod model;
pub mod report;
pub mod simulate;
pub mod train;

use std::path::{Path, PathBuf};

use trace_core::{Knowledge, Vocabulary};
use trace_io::knowledge;
use trace_io::output::same_file;

use crate::cli::Command;
use crate::failure::Failure;

/// Does what was asked for.
pub fn run(command: &Command, quiet: bool) -> anyhow::Result<()> {
    match command {
        Command::Demo(args) => demo::run(args, quiet),
        Command::Simulate(args) => simulate::run(args, quiet),
        Command::Train(args) => train::run(args, quiet),
        Command::Discover(args) => discover::run(args, quiet),
        Command::Explain(args) => explain::run(args, quiet),
        Command::Aggregate(args) => aggregate::run(args, quiet),
        Command::Compare(args) => compare::run(args),
        Command::Evaluate(args) => evaluate::run(args),
        Command::Export(args) => export::run(args),
        Command::Log(args) => log::run(args),
        Command::Report(args) => report::run(args, quiet),
        Command::Model(args) => model::run(args),
        Command::Bench(args) => bench::run(args, quiet),
    }
}

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

/// Reads prior knowledge, if there is any, with its hash.
fn read_knowledge(path: Option<&Path>, vocabulary: &Vocabulary) -> anyhow::Result<Option<(Knowledge, String)>> {
    Ok(path.map(|path| knowledge::read(path, vocabulary)).transpose()?)
}
