//! The command line of TRACE: flags, progress bars and words.
//!
//! Everything that is computed is computed by [`trace_causal`]. `cli` holds the flags as typed and turns them into the
//! library's options, `commands` call the library and put what comes back into words, `failure` decides what an error
//! means to the shell. [`run`] is the whole program, so that a package in another language can ship it as its script.
#![forbid(unsafe_code)]

pub mod cli;
mod commands;
mod failure;
mod interrupt;
mod output;
mod progress;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use cli::Cli;
use failure::Failure;

/// Runs a command line, the first word of which is the program's name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    silence_decoder();
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error),
    };
    match prepare(&cli).and_then(|()| commands::run(&cli.command, cli.quiet)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// The Parquet decoder panics at some damaged files. The reader makes an error of it, which is all a user should see.
fn silence_decoder() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let decoder = |file: &str| file.contains("parquet") || file.contains("arrow");
        if !info.location().is_some_and(|location| decoder(location.file())) {
            default(info);
        }
    }));
}

fn prepare(cli: &Cli) -> Result<(), Failure> {
    if cli.no_tile_unit {
        trace_causal::allow_tile_unit(false);
    }
    let Some(threads) = cli.threads else { return Ok(()) };
    if !(1..=1024).contains(&threads) {
        return Err(Failure::usage(format!("--threads: {threads} is out of range; expected 1 to 1024")));
    }
    // A second command line in one program keeps the threads of the first: results do not depend on their number.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    Ok(())
}
