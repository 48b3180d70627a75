//! The flags of `trace discover`, and those of the method that other commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trace_core::{Divergence, History, Intervention, Memory, Particles, Proposal, Settings, Threshold};
use trace_lab::methods::Kind;

use super::{Bytes, LogArgs, parse_bytes, parse_memory, parse_particles, parse_threshold};

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  trace simulate scm --vocabulary 200 --memory 2 --sequences 500 --truth none --out process\n  \
                  trace train process/events.jsonl --out model\n  \
                  trace discover process/events.jsonl --model model --out results.jsonl --population population.json"
)]
pub struct DiscoverArgs {
    #[command(flatten)]
    pub log: LogArgs,
    /// Model folder
    #[arg(long, value_name = "MODEL")]
    pub model: PathBuf,
    /// Result file to write, one JSON line a sequence
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Only these sequences; may be given several times. Sequences of a plain text log are called by their line number
    #[arg(long = "case", value_name = "ID")]
    pub cases: Vec<String>,
    /// Our own method, or one to compare it with (docs/methods.md); attention needs a model trained with --backbone bert
    #[arg(long = "method", value_enum, default_value_t = MethodFlag::Trace, value_name = "NAME")]
    pub kind: MethodFlag,
    #[command(flatten)]
    pub method: MethodArgs,
    /// What is known beforehand about which types can cause which (TOML; docs/formats.md says how)
    #[arg(long, value_name = "FILE")]
    pub knowledge: Option<PathBuf>,
    /// Write every tested pair, kept or not, so that a threshold can be moved later
    #[arg(long)]
    pub all_pairs: bool,
    /// Keep summary edges from a type to itself
    #[arg(long)]
    pub self_loops: bool,
    /// Also merge all tested pairs into this population graph
    #[arg(long, value_name = "FILE")]
    pub population: Option<PathBuf>,
    /// What to do with events the model does not know
    #[arg(long, value_enum, default_value_t = UnknownEvents::Error)]
    pub unknown: UnknownEvents,
    /// Where a network runs: cpu, or cuda, cuda:1, metal in a build with that feature
    #[arg(long, default_value = "cpu", value_name = "DEVICE")]
    pub device: String,
    /// The most memory that a network may use, such as 2GB; may change last digits [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub max_memory: Option<Bytes>,
    /// Continue an interrupted run
    #[arg(long)]
    pub resume: bool,
}

/// Methods by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodFlag {
    /// Replace one event, keep the others, compare what follows
    Trace,
    /// The paper's construction, which also replaces what lies between cause and effect
    Staircase,
    /// The difference between the effect's probabilities with the cause and without
    Granger,
    /// Shapley values, by sampled orders
    Shapley,
    /// Input × gradient; needs a network
    Saliency,
    /// Attention weights of a masked model
    Attention,
    /// How often a type directly follows another in the log
    Bigram,
    /// The most frequent types cause everything
    Frequency,
    /// Guesses
    Random,
}

impl MethodFlag {
    /// The laboratory's name for it.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Trace => Kind::Trace,
            Self::Staircase => Kind::Staircase,
            Self::Granger => Kind::Granger,
            Self::Shapley => Kind::Shapley,
            Self::Saliency => Kind::Saliency,
            Self::Attention => Kind::Attention,
            Self::Bigram => Kind::Bigram,
            Self::Frequency => Kind::Frequency,
            Self::Random => Kind::Random,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnknownEvents {
    /// Refuse the log
    Error,
    /// Leave them out and count them
    Skip,
}

/// The settings of the method.
#[derive(Debug, Args)]
pub struct MethodArgs {
    /// Which positions are replaced
    #[arg(long, value_enum, default_value_t = InterventionFlag::Atomic)]
    pub intervention: InterventionFlag,
    /// What replacements are drawn from [default: unigram where the model has frequencies, else uniform]
    #[arg(long, value_enum)]
    pub proposal: Option<ProposalFlag>,
    /// What is compared
    #[arg(long, value_enum, default_value_t = DivergenceFlag::Event)]
    pub divergence: DivergenceFlag,
    /// What the model is told of the context
    #[arg(long, value_enum, default_value_t = HistoryFlag::Observed)]
    pub history: HistoryFlag,
    /// Replacements tried for each cause: auto, all, or a number
    #[arg(long, default_value = "auto", value_name = "auto|all|N", value_parser = parse_particles, allow_negative_numbers = true)]
    pub particles: Particles,
    /// Largest lag tested: a number, or all [default: the model's reach, or 16]
    #[arg(long, value_name = "M|all", value_parser = parse_memory, allow_negative_numbers = true)]
    pub memory: Option<Memory>,
    /// Events at the start that are neither causes nor effects
    #[arg(long, default_value_t = 0, value_name = "C", allow_negative_numbers = true)]
    pub context: usize,
    /// What a strength must exceed: nats, scaling-law or bound [default: 0.05; scaling-law for the staircase]
    #[arg(long, value_name = "X|RULE", value_parser = parse_threshold, allow_negative_numbers = true)]
    pub threshold: Option<Threshold>,
    /// Seed of all random draws
    #[arg(long, default_value_t = 7, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
}

impl MethodArgs {
    /// The library's settings.
    pub fn settings(&self) -> Settings {
        Settings {
            intervention: match self.intervention {
                InterventionFlag::Atomic => Intervention::Atomic,
                InterventionFlag::Staircase => Intervention::Staircase,
            },
            proposal: self.proposal.map(|proposal| match proposal {
                ProposalFlag::Uniform => Proposal::Uniform,
                ProposalFlag::Unigram => Proposal::Unigram,
                ProposalFlag::Model => Proposal::Model,
            }),
            divergence: match self.divergence {
                DivergenceFlag::Event => Divergence::Event,
                DivergenceFlag::Full => Divergence::Full,
            },
            history: match self.history {
                HistoryFlag::Observed => History::Observed,
                HistoryFlag::Sampled => History::Sampled,
            },
            particles: self.particles,
            memory: self.memory,
            context: self.context,
            threshold: self.threshold,
            seed: self.seed,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InterventionFlag {
    /// Only the cause; what lies between stays as observed
    Atomic,
    /// The paper's: everything after the cause as well, in both branches
    Staircase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProposalFlag {
    /// Every type alike
    Uniform,
    /// Training frequencies
    Unigram,
    /// The model's own prediction
    Model,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DivergenceFlag {
    /// Whether the observed event happens
    Event,
    /// The whole next-event distribution
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HistoryFlag {
    /// As it was
    Observed,
    /// Resampled from the model for each particle
    Sampled,
}
