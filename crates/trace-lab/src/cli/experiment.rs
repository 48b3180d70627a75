//! The flags of the paper's experiments.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The paper's experiments.
#[derive(Debug, Subcommand)]
pub enum ExperimentCommand {
    /// Every method on the same backbone: the paper's first table
    Table1(ExperimentArgs),
    /// Accuracy over the size of the vocabulary
    Vocabulary(ExperimentArgs),
    /// Accuracy over the quality of the backbone
    Epsilon(ExperimentArgs),
    /// Accuracy and memory over the length of the sequence
    Length(ExperimentArgs),
    /// Accuracy over the memory of the process
    Memory(ExperimentArgs),
    /// Accuracy over the number of replacements
    Particles(ExperimentArgs),
    /// Accuracy over the threshold
    Threshold(ExperimentArgs),
    /// The best threshold over the size of the vocabulary
    ScalingLaw(ExperimentArgs),
    /// Accuracy where a share of events is replaced by random ones
    Noise(ExperimentArgs),
    /// Accuracy where a share of events is missing
    Drops(ExperimentArgs),
    /// Different backbones at equal data
    Backbones(ExperimentArgs),
    /// A vehicle fleet with named trouble codes
    Vehicle(ExperimentArgs),
    /// All experiments of the paper, and a page of results
    All(ExperimentArgs),
}

impl ExperimentCommand {
    /// The name of the experiment, or `all`, and its flags.
    pub const fn parts(&self) -> (&'static str, &ExperimentArgs) {
        match self {
            Self::Table1(args) => ("table1", args),
            Self::Vocabulary(args) => ("vocabulary", args),
            Self::Epsilon(args) => ("epsilon", args),
            Self::Length(args) => ("length", args),
            Self::Memory(args) => ("memory", args),
            Self::Particles(args) => ("particles", args),
            Self::Threshold(args) => ("threshold", args),
            Self::ScalingLaw(args) => ("scaling-law", args),
            Self::Noise(args) => ("noise", args),
            Self::Drops(args) => ("drops", args),
            Self::Backbones(args) => ("backbones", args),
            Self::Vehicle(args) => ("vehicle", args),
            Self::All(args) => ("all", args),
        }
    }
}

/// The flags of an experiment.
#[derive(Debug, Args)]
#[command(after_help = "What is finished is kept in the folder; the same command goes on where it stopped.\n\n\
                  Example:\n  trace-lab table1 --quick --out results")]
pub struct ExperimentArgs {
    /// Folder of results, and of the backbones that experiments share
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub out: PathBuf,
    /// Small: all experiments in some twenty minutes on two cores
    #[arg(long, conflicts_with_all = ["full", "mini"])]
    pub quick: bool,
    /// As large as the paper's: days on two cores
    #[arg(long, conflicts_with = "mini")]
    pub full: bool,
    /// Tiny, for tests
    #[arg(long, hide = true)]
    pub mini: bool,
    /// Processes, each with a backbone of its own, to take mean and spread over [default: by size]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seeds: Option<u64>,
    /// Events that backbones of the synthetic process are trained on [default: by size]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub events: Option<usize>,
    /// How much of what happens next the synthetic process settles, from 0 to 1 [default: 0.6]
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub redundancy: Option<f64>,
    /// Run only these parts of the experiment; a name that it does not have lists those it has
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub only: Vec<String>,
}
