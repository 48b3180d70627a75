//! One module per command: calls of the library, and words for what comes back.

mod compare;
mod demo;
mod discover;
mod evaluate;
mod log;
mod model;
mod results;
mod simulate;
pub mod train;

use crate::cli::Command;
use crate::failure::Failure;

/// Does what was asked for.
pub fn run(command: &Command, quiet: bool) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => demo::run(args, quiet),
        Command::Simulate(args) => simulate::run(args, quiet),
        Command::Train(args) => train::run(args, quiet),
        Command::Discover(args) => discover::run(args, quiet),
        Command::Explain(args) => discover::explain(args, quiet),
        Command::Aggregate(args) => results::aggregate(args, quiet),
        Command::Compare(args) => compare::run(args),
        Command::Evaluate(args) => evaluate::run(args),
        Command::Export(args) => results::export(args),
        Command::Log(args) => log::run(args),
        Command::Report(args) => results::report(args, quiet),
        Command::Model(args) => model::run(args),
    }
}
