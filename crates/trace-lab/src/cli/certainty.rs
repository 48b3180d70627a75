//! The flags of `certainty`.

use std::path::PathBuf;

use clap::Args;

/// The flags of `certainty`.
#[derive(Debug, Args)]
#[command(after_help = "What is finished is kept in the folder; the same command goes on where it stopped. Seeds of \
                  1000 and up are for development and never reported.\n\n\
                  Examples:\n  trace-lab certainty --seeds 20\n  \
                  trace-lab certainty --first-seed 1000 --seeds 2 --sizes 50 500 --dump --out dev\n  \
                  trace-lab certainty --only hospital/network fleet-null --out part")]
pub struct CertaintyArgs {
    /// Folder of results, and of the models they were made with
    #[arg(long, value_name = "DIR", default_value = "research/results/certainty")]
    pub out: PathBuf,
    /// Small: models of fewer sequences, and logs of at most 500
    #[arg(long, conflicts_with = "mini")]
    pub quick: bool,
    /// Tiny, for tests
    #[arg(long, hide = true)]
    pub mini: bool,
    /// How many seeds, each with sequences and models of its own [default: 20; with --quick 2]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seeds: Option<u64>,
    /// The first of them
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    pub first_seed: u64,
    /// Sequences of a log: some of 50, 500 and 5000 [default: all; with --quick 50 and 500]
    #[arg(long, value_name = "N", num_args = 1.., value_parser = ["50", "500", "5000"])]
    pub sizes: Vec<String>,
    /// Run only these parts: a log, a model or a size, or several joined by `/`
    #[arg(long, value_name = "CELL", num_args = 1..)]
    pub only: Vec<String>,
    /// Also write one JSON line for every pair of types, with all sums of its evidence, into DIR/dump
    #[arg(long)]
    pub dump: bool,
}
