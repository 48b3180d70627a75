//! The `trace-lab` command: the paper's experiments, rival methods on one's own logs, and speed comparisons.
//!
//! `cli` holds the flags, `commands` runs experiments and rival methods by the library of this package, `speed`
//! measures this software beside others, `failure` decides what an error means to the shell.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod failure;
mod interrupt;
mod output;
mod speed;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error),
    };
    match prepare(&cli).and_then(|()| run(&cli.command, cli.quiet)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

fn prepare(cli: &Cli) -> anyhow::Result<()> {
    if cli.no_tile_unit {
        trace_causal::allow_tile_unit(false);
    }
    let Some(threads) = cli.threads else { return Ok(()) };
    if !(1..=1024).contains(&threads) {
        return Err(Failure::usage(format!("--threads: {threads} is out of range; expected 1 to 1024")));
    }
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?)
}

fn run(command: &Command, quiet: bool) -> anyhow::Result<()> {
    match command {
        Command::Experiment(command) => {
            let (name, args) = command.parts();
            commands::experiment::run(name, args, quiet)
        }
        Command::Certainty(args) => commands::certainty::run(args, quiet),
        Command::Discover(args) => commands::discover::run(args, quiet),
        Command::Encoder(args) => commands::encoder::run(args, quiet),
        Command::Speed(args) => speed::run(args, quiet),
        Command::Scale(args) => speed::scale::run(args, quiet),
        Command::Read(args) => speed::read::run(args, quiet),
    }
}
