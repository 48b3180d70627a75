//! `trace`: what caused what in an event sequence?
//!
//! The binary is thin: `cli` holds the flags as typed, `commands` turn them into calls of the libraries, `failure`
//! decides what an error means to the shell.

mod cli;
mod commands;
mod failure;
mod interrupt;
mod progress;
mod table;

use std::process::ExitCode;

use clap::Parser;

use cli::Cli;
use failure::Failure;

fn main() -> ExitCode {
    silence_decoder();
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// The Parquet decoder panics at some damaged files. The reader makes an error of it, which is all a user should see.
fn silence_decoder() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let decoder = |file: &str| file.contains("parquet") || file.contains("arrow");
        if !info.location().is_some_and(|location| decoder(location.file())) {
            usual(info);
        }
    }));
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    if cli.no_tile_unit {
        trace_models::allow_tile_unit(false);
    }
    if let Some(threads) = cli.threads {
        if !(1..=1024).contains(&threads) {
            return Err(Failure::usage(format!("--threads: {threads} is out of range; expected 1 to 1024")));
        }
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    commands::run(&cli.command, cli.quiet)
}
