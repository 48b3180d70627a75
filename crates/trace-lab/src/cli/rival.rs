//! The flags of rival methods on one's own logs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trace_causal::{Memory, Particles};
use trace_lab::methods::MethodName;

/// The flags of `trace-lab discover`.
#[derive(Debug, Args)]
#[command(after_help = "TRACE itself is `trace discover`. `trace evaluate` and `trace report` read the results.\n\n\
                  Example:\n  trace-lab discover events.csv --method saliency --model model --out saliency.jsonl")]
pub struct DiscoverArgs {
    /// Event log: CSV, TSV, Parquet, XES, JSON Lines or plain text, also .gz and .zst; `-` for standard input
    #[arg(value_name = "LOG")]
    pub log: PathBuf,
    /// The method
    #[arg(long, value_enum)]
    pub method: MethodFlag,
    /// Model folder; for attention that of an encoder
    #[arg(long, value_name = "MODEL")]
    pub model: PathBuf,
    /// Result file to write, one JSON line per sequence
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Largest lag scored: a number, or all [default: the model's reach, or 16]
    #[arg(long, value_name = "M|all", value_parser = parse_memory, allow_negative_numbers = true)]
    pub memory: Option<Memory>,
    /// Events at the start that are neither causes nor effects
    #[arg(long, default_value_t = 0, value_name = "C", allow_negative_numbers = true)]
    pub context: usize,
    /// What a score must exceed [default: the method's own]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub threshold: Option<f64>,
    /// granger: replacements tried for each cause: auto, all or a number [default: auto]; shapley: orders sampled for
    /// each effect [default: 32]
    #[arg(long, value_name = "N", value_parser = parse_particles, allow_negative_numbers = true)]
    pub particles: Option<Particles>,
    /// Seed of the draws of granger, shapley and random [default: 7]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Only these sequences; may be given several times. Sequences of a plain text log are called by their line number
    #[arg(long = "case", value_name = "ID")]
    pub cases: Vec<String>,
    /// Write every scored pair, kept or not, so that a threshold can be moved later
    #[arg(long)]
    pub all_pairs: bool,
}

/// The rival methods by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodFlag {
    /// The difference between the effect's probabilities with the cause and without
    Granger,
    /// Shapley values, by sampled permutations
    Shapley,
    /// Input × gradient
    Saliency,
    /// Attention weights of an encoder trained by masking
    Attention,
    /// How often a type directly follows another in the log
    Bigram,
    /// The most frequent types cause everything
    Frequency,
    /// Every pair is an edge with the same small probability
    Random,
}

impl MethodFlag {
    /// The library's name.
    pub const fn name(self) -> MethodName {
        match self {
            Self::Granger => MethodName::Granger,
            Self::Shapley => MethodName::Shapley,
            Self::Saliency => MethodName::Saliency,
            Self::Attention => MethodName::Attention,
            Self::Bigram => MethodName::Bigram,
            Self::Frequency => MethodName::Frequency,
            Self::Random => MethodName::Random,
        }
    }
}

/// The flags of `trace-lab encoder`.
#[derive(Debug, Args)]
#[command(after_help = "An interrupted training goes on with the same command.\n\n\
                  Example:\n  trace-lab encoder events.csv --out bert --minutes 5")]
pub struct EncoderArgs {
    /// Event log, as for `discover`
    #[arg(value_name = "LOG")]
    pub log: PathBuf,
    /// Model folder to write
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// Train for this many minutes [default: until the held-out loss no longer falls]
    #[arg(long, value_name = "M", allow_negative_numbers = true, conflicts_with = "steps")]
    pub minutes: Option<f64>,
    /// Train for this many steps
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub steps: Option<u64>,
    /// Seed of the held-out split, the weights, the order and the masks
    #[arg(long, default_value_t = 7, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
}

fn parse_memory(text: &str) -> Result<Memory, String> {
    match text {
        "all" => Ok(Memory::All),
        _ => text.parse().map(Memory::Lags).map_err(|_| "expected all or a whole number".to_owned()),
    }
}

fn parse_particles(text: &str) -> Result<Particles, String> {
    match text {
        "auto" => Ok(Particles::Auto),
        "all" => Ok(Particles::All),
        _ => text.parse().map(Particles::Fixed).map_err(|_| "expected auto, all or a whole number".to_owned()),
    }
}
