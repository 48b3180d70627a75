//! The flags of `trace discover`, and those of the method that other commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trace_causal::{
    DEFAULT_CHAINS, Divergence, EvidenceRule, History, Intervention, Memory, Particles, Proposal, Question, Settings,
    Shard, Threshold, Unknown,
};

use super::LogArgs;
use super::parse::{Bytes, parse_bytes, parse_memory, parse_particles, parse_shard, parse_threshold};

/// The flags of `trace discover`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  trace simulate scm --vocabulary 200 --memory 2 --sequences 500 --truth none --out process\n  \
                  trace train process/events.jsonl --out model\n  \
                  trace discover process/events.jsonl --model model --out results.jsonl --population population.json"
)]
pub struct DiscoverArgs {
    /// The log
    #[command(flatten)]
    pub log: LogArgs,
    /// Model folder
    #[arg(long, value_name = "MODEL")]
    pub model: PathBuf,
    /// Result file to write, one JSON line per sequence
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Only these sequences; may be given several times. Sequences of a plain text log are called by their line number
    #[arg(long = "case", value_name = "ID")]
    pub cases: Vec<String>,
    /// The method
    #[command(flatten)]
    pub method: MethodArgs,
    /// What is known beforehand about which types can cause which (TOML; see docs/guide/knowledge.md)
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
    /// Expected share of kept pairs of the population graph that are false, at most
    #[arg(long, default_value_t = EvidenceRule::default().fdr, value_name = "SHARE", allow_negative_numbers = true)]
    pub fdr: f64,
    /// The ratio of probabilities that a kept pair of the population graph must exceed
    #[arg(long, default_value_t = EvidenceRule::default().least_ratio, value_name = "RATIO", allow_negative_numbers = true)]
    pub least_ratio: f64,
    /// Only this many sequences, chosen at random: a first look at a large log
    #[arg(long, value_name = "N")]
    pub sample: Option<usize>,
    /// Only one part of the sequences, such as 3/64; `trace aggregate` merges the population graphs of all parts
    #[arg(long, value_name = "K/N", value_parser = parse_shard)]
    pub shard: Option<Shard>,
    /// What to do with events the model does not know
    #[arg(long, value_enum, default_value_t = UnknownEvents::Error)]
    pub unknown: UnknownEvents,
    /// Where a network runs: cpu, or cuda, cuda:1, metal in a build with that feature
    #[arg(long, default_value = "cpu", value_name = "DEVICE")]
    pub device: String,
    /// The most memory that a network may use, such as 2GB; may change last digits [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub ram_limit: Option<Bytes>,
    /// Continue an interrupted run
    #[arg(long)]
    pub resume: bool,
}

/// What to do with events that the model does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnknownEvents {
    /// Refuse the log
    Error,
    /// Leave them out and count them
    Skip,
}

impl UnknownEvents {
    /// The library's option.
    pub const fn unknown(self) -> Unknown {
        match self {
            Self::Error => Unknown::Refuse,
            Self::Skip => Unknown::Skip,
        }
    }
}

/// The settings of the method.
#[derive(Debug, Args)]
pub struct MethodArgs {
    /// Which positions are replaced
    #[arg(long, value_enum, default_value_t = InterventionFlag::Atomic)]
    pub intervention: InterventionFlag,
    /// What replacements are drawn from [default: plausible]
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
    /// How sure the decision over a single pair must be, such as 0.99: draws go on until it is [default: the fast rule]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub confidence: Option<f64>,
    /// Where events are outcomes of steps: whether a step happens, or how it turns out [default: both]
    #[arg(long, value_enum)]
    pub question: Option<QuestionFlag>,
    /// Also ask what led to the end of a case
    #[arg(long)]
    pub end: bool,
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
                ProposalFlag::Plausible => Proposal::Plausible,
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
            confidence: self.confidence,
            question: self.question.map(QuestionFlag::question),
            end: self.end,
            seed: self.seed,
        }
    }
}

/// Which positions are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InterventionFlag {
    /// Only the cause; what lies between stays as observed
    Atomic,
    /// The paper's: everything after the cause as well, in both branches
    Staircase,
}

/// What replacements are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProposalFlag {
    /// Every type alike
    Uniform,
    /// Training frequencies
    Unigram,
    /// The model's own prediction
    Model,
    /// What else could have stood there, given the past and the events between
    Plausible,
}

/// What is asked where events are outcomes of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QuestionFlag {
    /// Whether the effect's step happens, had another step stood at the cause
    Whether,
    /// How the effect's step turns out, had the cause's step turned out otherwise
    How,
}

impl QuestionFlag {
    /// The library's question.
    pub const fn question(self) -> Question {
        match self {
            Self::Whether => Question::Whether,
            Self::How => Question::How,
        }
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DivergenceFlag {
    /// Whether the observed event happens
    Event,
    /// The whole next-event distribution
    Full,
}

/// What comes before the candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HistoryFlag {
    /// As it was
    Observed,
    /// Resampled from the model for each particle
    Sampled,
}

/// The flags of `trace explain`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  trace simulate scm --vocabulary 60 --memory 3 --sequences 500 --truth none --out process\n  \
                  trace train process/events.jsonl --backbone ngram --out model\n  \
                  trace explain process/events.jsonl --model model --case s3 --at 20"
)]
pub struct ExplainArgs {
    /// The log
    #[command(flatten)]
    pub log: LogArgs,
    /// Model folder
    #[arg(long, value_name = "MODEL")]
    pub model: PathBuf,
    /// The sequence; may be left out where the log has only one
    #[arg(long, value_name = "ID")]
    pub case: Option<String>,
    /// The event to explain: its position, counted from 0, or its type, of which the last occurrence is meant. A type
    /// that looks like a number is written type:12
    #[arg(long, value_name = "POSITION|TYPE", required_unless_present = "at_end", conflicts_with = "at_end")]
    pub at: Option<String>,
    /// Explain the end of the case
    #[arg(long)]
    pub at_end: bool,
    /// The method
    #[command(flatten)]
    pub method: MethodArgs,
    /// What is known beforehand about which types can cause which (TOML; see docs/guide/knowledge.md)
    #[arg(long, value_name = "FILE")]
    pub knowledge: Option<PathBuf>,
    /// How many chains to show
    #[arg(long, default_value_t = DEFAULT_CHAINS, value_name = "N", allow_negative_numbers = true)]
    pub chains: usize,
    /// What to do with events the model does not know
    #[arg(long, value_enum, default_value_t = UnknownEvents::Error)]
    pub unknown: UnknownEvents,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}
