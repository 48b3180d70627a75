//! The flags of `trace simulate`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use trace_causal::{
    CASCADES, Cascade, FleetOptions, LogFormat, Particles, Preset, ScmOptions, TruthKind, WorkflowOptions,
    WorkflowSettings,
};

use super::parse::parse_draws;

/// `trace simulate`.
#[derive(Debug, Subcommand)]
pub enum SimulateCommand {
    /// The paper's nonlinear process; the folder is also a model, the perfect one
    Scm(ScmArgs),
    /// A vehicle fleet with named trouble codes and designed cascades; the folder is also a model, the perfect one
    Fleet(FleetArgs),
    /// A business or hospital workflow whose cases end; the folder is also a model, the perfect one
    Workflow(WorkflowArgs),
}

/// The flags of `trace simulate scm`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  trace simulate scm --vocabulary 200 --sequences 10 --out process\n  \
                  trace discover process/events.jsonl --model process --out results.jsonl")]
pub struct ScmArgs {
    /// Number of event types
    #[arg(long, default_value_t = 1000, value_name = "V", allow_negative_numbers = true)]
    pub vocabulary: usize,
    /// How many past events the process looks at
    #[arg(long, default_value_t = 6, value_name = "H", allow_negative_numbers = true)]
    pub memory: usize,
    /// Events in each sequence
    #[arg(long, default_value_t = 64, value_name = "L", allow_negative_numbers = true)]
    pub length: usize,
    /// Number of sequences
    #[arg(long, default_value_t = 100, value_name = "N", allow_negative_numbers = true)]
    pub sequences: usize,
    /// Shannon redundancy 1 − H/ln V of the process; 0 for one where nothing causes anything
    #[arg(long, default_value_t = 0.6, value_name = "R", allow_negative_numbers = true)]
    pub redundancy: f64,
    /// How fast influence fades with the lag: e^(−decay·(lag−1))
    #[arg(long, default_value_t = 1.0, value_name = "X", allow_negative_numbers = true)]
    pub decay: f64,
    /// The truth
    #[command(flatten)]
    pub truth: TruthArgs,
    /// Seed of the process and its sequences
    #[arg(long, default_value_t = 7, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
    /// Folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

impl ScmArgs {
    /// The library's options.
    pub const fn options(&self) -> ScmOptions {
        ScmOptions {
            vocabulary: self.vocabulary,
            memory: self.memory,
            length: self.length,
            sequences: self.sequences,
            redundancy: self.redundancy,
            decay: self.decay,
            truth: self.truth.truth.kind(),
            truth_draws: self.truth.truth_draws,
            seed: self.seed,
        }
    }
}

/// How the truth is measured.
#[derive(Debug, Args)]
pub struct TruthArgs {
    /// How the truth measures an effect
    ///
    /// It takes far longer than the events themselves: use `none` for logs that are only trained on.
    #[arg(long, value_enum, default_value_t = TruthFlag::Event)]
    pub truth: TruthFlag,
    /// Replacements the truth tries: a number, or all [default: all up to 2000 types, else 10]
    #[arg(long, value_name = "all|N", value_parser = parse_draws, allow_negative_numbers = true)]
    pub truth_draws: Option<Particles>,
}

/// What the truth compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TruthFlag {
    /// Whether the observed event happens
    Event,
    /// The whole next-event distribution
    Full,
    /// No truth
    None,
}

impl TruthFlag {
    const fn kind(self) -> TruthKind {
        match self {
            Self::Event => TruthKind::Event,
            Self::Full => TruthKind::Full,
            Self::None => TruthKind::None,
        }
    }
}

/// The flags of `trace simulate fleet`.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub struct FleetArgs {
    /// Number of event types
    #[arg(long, default_value_t = 300, value_name = "N", allow_negative_numbers = true)]
    pub types: usize,
    /// Number of vehicles
    #[arg(long, default_value_t = 1000, value_name = "N", allow_negative_numbers = true)]
    pub sequences: usize,
    /// Mean number of events per vehicle; lengths vary
    #[arg(long, default_value_t = 60, value_name = "L", allow_negative_numbers = true)]
    pub length: usize,
    /// Share of events that are recorded as random other ones
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", allow_negative_numbers = true)]
    pub noise: f64,
    /// Share of events that are not recorded
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", allow_negative_numbers = true)]
    pub drop: f64,
    /// Leave a cascade out; its events still happen, but cause nothing. May be given several times
    #[arg(long, value_name = "CASCADE")]
    pub without: Vec<String>,
    /// The truth
    #[command(flatten)]
    pub truth: TruthArgs,
    /// How the log is written
    #[arg(long, value_enum, default_value_t = LogFlag::Jsonl)]
    pub format: LogFlag,
    /// Seed of the vehicles; the design has none
    #[arg(long, default_value_t = 7, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
    /// Folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

impl FleetArgs {
    /// The library's options.
    pub fn options(&self) -> FleetOptions {
        FleetOptions {
            types: self.types,
            sequences: self.sequences,
            length: self.length,
            noise: self.noise,
            drop: self.drop,
            without: self.without.clone(),
            truth: self.truth.truth.kind(),
            truth_draws: self.truth.truth_draws,
            format: match self.format {
                LogFlag::Jsonl => LogFormat::Jsonl,
                LogFlag::Csv => LogFormat::Csv,
            },
            seed: self.seed,
        }
    }
}

/// Formats that logs are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFlag {
    /// events.jsonl, one vehicle per line
    Jsonl,
    /// events.csv, one event per row
    Csv,
}

/// The flags of `trace simulate workflow`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  trace simulate workflow --preset hospital --out hospital\n  \
                  trace discover hospital/events.jsonl --model hospital --out results.jsonl --population p.json\n  \
                  trace evaluate p.json --truth hospital/truth-pairs.csv")]
pub struct WorkflowArgs {
    /// A workflow that comes with the program
    #[arg(long, value_enum, default_value_t = PresetFlag::Hospital)]
    pub preset: PresetFlag,
    /// A workflow of one's own: a TOML file of blocks, outcomes and dependencies
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    pub spec: Option<PathBuf>,
    /// Number of cases
    #[arg(long, default_value_t = 1000, value_name = "N", allow_negative_numbers = true)]
    pub sequences: usize,
    /// Probability that any step happens at a place, whatever the workflow says
    #[arg(long, default_value_t = 0.02, value_name = "SHARE", allow_negative_numbers = true)]
    pub noise: f64,
    /// How regular cases are: 0 makes all choices even, 0.5 leaves them as written, at 1 the most frequent path dominates
    #[arg(long, default_value_t = 0.5, value_name = "R", allow_negative_numbers = true)]
    pub regularity: f64,
    /// Leave all designed dependencies out; the steps stay
    #[arg(long)]
    pub null: bool,
    /// The largest lag of the truth [default: the longest window of a dependency, and at least 16]
    #[arg(long, value_name = "M", allow_negative_numbers = true)]
    pub memory: Option<usize>,
    /// Do not measure the true edges of each case: for logs that are only trained on
    #[arg(long)]
    pub no_truth: bool,
    /// Seed of the cases; the workflow has none
    #[arg(long, default_value_t = 7, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
    /// Folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

impl WorkflowArgs {
    /// The library's options.
    pub fn options(&self) -> WorkflowOptions {
        WorkflowOptions {
            preset: self.preset.preset(),
            spec: self.spec.clone(),
            sequences: self.sequences,
            settings: WorkflowSettings { noise: self.noise, regularity: self.regularity, null: self.null },
            memory: self.memory,
            truth: !self.no_truth,
            seed: self.seed,
        }
    }
}

/// Workflows that come with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PresetFlag {
    /// Emergency patients: triage, tests in any order, wards, return visits
    Hospital,
    /// Loan applications: checks, offers, rework, late and tied bookings
    Business,
    /// Requests to ten services, each ok, slow or 5xx; a callee is logged before its caller
    Services,
    /// Five of seven tests in random order, none twice; nothing is designed
    LabTests,
}

impl PresetFlag {
    const fn preset(self) -> Preset {
        match self {
            Self::Hospital => Preset::Hospital,
            Self::Business => Preset::Business,
            Self::Services => Preset::Services,
            Self::LabTests => Preset::LabTests,
        }
    }
}

fn after_help() -> String {
    let widest = CASCADES.iter().map(|cascade| cascade.name.len()).max().unwrap_or(0);
    let cascade = |cascade: &Cascade| format!("  {:widest$}  {}", cascade.name, cascade.story);
    let cascades: Vec<String> = CASCADES.iter().map(cascade).collect();
    let cascades = cascades.join("\n");
    format!(
        "Cascades:\n{cascades}\n\n\
         Example:\n  trace simulate fleet --sequences 200 --out fleet\n  \
         trace discover fleet/events.jsonl --model fleet --out results.jsonl --population population.json\n  \
         trace evaluate results.jsonl --truth fleet/truth.jsonl\n  \
         trace evaluate population.json --truth fleet/graph.csv"
    )
}
