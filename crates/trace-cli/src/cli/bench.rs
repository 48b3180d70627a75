//! The flags of `trace bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Bytes, parse_bytes};

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Training, inference and discovery beside PyTorch and the reference package
    Speed(SpeedArgs),
    /// One discovery with a large network of random weights
    Scale(ScaleArgs),
    /// Reading a large CSV log, beside Polars
    Read(ReadArgs),
    #[command(flatten)]
    Lab(LabCommand),
}

/// The paper's experiments.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Every method on the same backbone: the paper's first table
    Table1(LabArgs),
    /// Accuracy over the size of the vocabulary
    Vocabulary(LabArgs),
    /// Accuracy along training
    Epsilon(LabArgs),
    /// Accuracy and memory over the length of the sequence
    Length(LabArgs),
    /// Accuracy over the memory of the process
    Memory(LabArgs),
    /// Accuracy over the number of replacements
    Particles(LabArgs),
    /// Accuracy over the threshold
    Threshold(LabArgs),
    /// The best threshold over the size of the vocabulary
    ScalingLaw(LabArgs),
    /// Accuracy where a share of events is replaced by random ones
    Noise(LabArgs),
    /// Accuracy where a share of events is missing
    Drops(LabArgs),
    /// Different backbones at equal data
    Backbones(LabArgs),
    /// A vehicle fleet with named trouble codes
    Vehicle(LabArgs),
    /// All experiments of the paper, and a page of results
    All(LabArgs),
}

impl LabCommand {
    /// The name of the experiment, or `all`, and its flags.
    pub const fn parts(&self) -> (&'static str, &LabArgs) {
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

#[derive(Debug, Args)]
#[command(after_help = "What is finished is kept in the folder; the same command goes on where it stopped.\n\n\
                  Example:\n  trace bench table1 --quick --out results")]
pub struct LabArgs {
    /// Folder of results, and of the backbones that experiments share
    #[arg(long, value_name = "DIR", default_value = "bench-results")]
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
    /// Run these parts of the experiment alone; a name that it does not have lists those it has
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub only: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Makes a Python virtual environment and installs PyTorch, Transformers and seq2cause into it from the\n\
                  package index: only this and `trace bench read` use the network.\n\n\
                  Example:\n  trace bench speed --no-reference"
)]
pub struct SpeedArgs {
    /// Rounds of each measurement; the best counts
    #[arg(long, default_value_t = 3, value_name = "N", allow_negative_numbers = true)]
    pub rounds: usize,
    /// The virtual environment [default: one in the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub venv: Option<PathBuf>,
    /// Measure this program alone
    #[arg(long)]
    pub no_reference: bool,
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// One discovery, measured in this process
    #[arg(long, hide = true)]
    pub job: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  trace bench scale --length 64 --particles 8 --layers 2")]
pub struct ScaleArgs {
    /// Number of event types
    #[arg(long, default_value_t = 29_100, value_name = "V", allow_negative_numbers = true)]
    pub vocabulary: usize,
    /// Layers
    #[arg(long, default_value_t = 12, value_name = "N", allow_negative_numbers = true)]
    pub layers: usize,
    /// Numbers in a hidden row
    #[arg(long, default_value_t = 768, value_name = "D", allow_negative_numbers = true)]
    pub width: usize,
    /// Attention heads
    #[arg(long, default_value_t = 12, value_name = "N", allow_negative_numbers = true)]
    pub heads: usize,
    /// Numbers in the feed-forward layers
    #[arg(long, default_value_t = 2560, value_name = "F", allow_negative_numbers = true)]
    pub feed_forward: usize,
    /// Events in the sequence
    #[arg(long, default_value_t = 128, value_name = "L", allow_negative_numbers = true)]
    pub length: usize,
    /// Replacements tried for each cause
    #[arg(long, default_value_t = 64, value_name = "N", allow_negative_numbers = true)]
    pub particles: usize,
    /// Largest lag tested
    #[arg(long, default_value_t = 6, value_name = "M", allow_negative_numbers = true)]
    pub memory: usize,
    /// Events at the start that are neither causes nor effects: measures the causes after them alone
    #[arg(long, default_value_t = 0, value_name = "C", allow_negative_numbers = true)]
    pub context: usize,
    /// The most memory to use, such as 2GB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub max_memory: Option<Bytes>,
    /// Print JSON instead of a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Makes a Python virtual environment and installs Polars into it from the package index.\n\n\
                  Example:\n  trace bench read --rows 100000 --no-reference")]
pub struct ReadArgs {
    /// Rows to write and read
    #[arg(long, default_value_t = 5_000_000, value_name = "N", allow_negative_numbers = true)]
    pub rows: usize,
    /// Rounds of each measurement; the best counts
    #[arg(long, default_value_t = 5, value_name = "N", allow_negative_numbers = true)]
    pub rounds: usize,
    /// The virtual environment [default: one in the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub venv: Option<PathBuf>,
    /// Measure this program alone
    #[arg(long)]
    pub no_reference: bool,
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
