//! The flags, as typed. Names and meanings are those of the library's settings and of the JSON keys.

mod bench;
mod compare;
mod discover;
mod explain;
mod fleet;
mod log;
mod report;

use std::path::PathBuf;

pub use bench::{BenchCommand, LabArgs, ReadArgs, ScaleArgs, SpeedArgs};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use compare::CompareArgs;
pub use discover::{DiscoverArgs, DivergenceFlag, HistoryFlag, InterventionFlag, MethodArgs, UnknownEvents};
pub use explain::ExplainArgs;
pub use fleet::{FleetArgs, LogFormat};
pub use log::{LogArgs, LogCommand, LogInfoArgs};
pub use report::ReportArgs;
use trace_core::{Memory, Particles, Threshold};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "trace", version, max_term_width = 100)]
#[command(about = "What caused what in an event sequence? Causal discovery with autoregressive models.")]
#[command(after_help = "Start with:\n  trace demo\nand then, on a log of your own:\n  \
                  trace log info events.csv\n  \
                  trace train events.csv --out model\n  \
                  trace discover events.csv --model model --out results.jsonl --all-pairs --population population.json\n  \
                  trace report results.jsonl --population population.json --out report.html")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Worker threads [default: all cores]; results do not depend on it
    #[arg(long, global = true, help_heading = "General", value_name = "T", allow_negative_numbers = true)]
    pub threads: Option<usize>,
    /// Multiply on the vector units alone, for the very numbers of a processor without a tile unit (AMX); slower
    #[arg(long, global = true, help_heading = "General")]
    pub no_tile_unit: bool,
    /// No progress and no remarks on standard error
    #[arg(long, short, global = true, help_heading = "General")]
    pub quiet: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// The whole story with no input: simulate, train, discover, compare with the truth, explain, report
    Demo(DemoArgs),
    /// Make sequences whose causal truth is known
    #[command(subcommand)]
    Simulate(SimulateCommand),
    /// Train a model on an event log
    Train(TrainArgs),
    /// Find the causal graph of every sequence of a log
    Discover(DiscoverArgs),
    /// Why one event of one sequence happened: its causes, and theirs, back to the roots
    Explain(ExplainArgs),
    /// Merge results of many sequences into one graph over event types
    Aggregate(AggregateArgs),
    /// Say which edges differ between the population graphs of two cohorts
    Compare(CompareArgs),
    /// Score found edges against true ones
    Evaluate(EvaluateArgs),
    /// Write graphs for other tools
    Export(ExportArgs),
    /// Look at logs
    #[command(subcommand)]
    Log(LogCommand),
    /// Write one interactive page
    Report(ReportArgs),
    /// Look at models
    #[command(subcommand)]
    Model(ModelCommand),
    /// Measure this machine
    #[command(subcommand)]
    Bench(BenchCommand),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  trace demo --out demo")]
pub struct DemoArgs {
    /// Folder for the logs, the model, the results and the report; that of an earlier demo is replaced
    #[arg(long, value_name = "DIR", default_value = "trace-demo")]
    pub out: PathBuf,
    /// Vehicles to train on
    #[arg(long, default_value_t = 20_000, value_name = "N", allow_negative_numbers = true)]
    pub vehicles: usize,
    /// Seed of everything random
    #[arg(long, default_value_t = 7, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
}

#[derive(Debug, Subcommand)]
pub enum SimulateCommand {
    /// The paper's nonlinear process; the folder is also a model, the perfect one
    Scm(ScmArgs),
    /// A vehicle fleet with named trouble codes and designed cascades; the folder is also a model, the perfect one
    Fleet(FleetArgs),
}

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
    /// How the truth measures an effect
    ///
    /// It takes far longer than the events themselves: `none` for logs that are only trained on.
    #[arg(long, value_enum, default_value_t = TruthKind::Event)]
    pub truth: TruthKind,
    /// Replacements the truth tries: a number, or all [default: all up to 2000 types, else 10]
    #[arg(long, value_name = "all|N", value_parser = parse_draws, allow_negative_numbers = true)]
    pub truth_draws: Option<Particles>,
    /// Seed of the process and its sequences
    #[arg(long, default_value_t = 7, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
    /// Folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TruthKind {
    /// Whether the observed event happens
    Event,
    /// The whole next-event distribution
    Full,
    /// No truth
    None,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  trace simulate scm --vocabulary 200 --memory 2 --sequences 500 --truth none --out process\n  \
                  trace train process/events.jsonl --out model"
)]
pub struct TrainArgs {
    #[command(flatten)]
    pub log: LogArgs,
    /// Model folder to write
    #[arg(long, value_name = "MODEL")]
    pub out: PathBuf,
    /// Architecture
    #[arg(long, value_enum, default_value_t = Backbone::Llama)]
    pub backbone: Backbone,
    /// Size of the network [default: auto, by the number of events and types]
    #[arg(long, value_enum, help_heading = "Network")]
    pub size: Option<Size>,
    /// Layers [default: by --size]
    #[arg(long, value_name = "N", help_heading = "Network", allow_negative_numbers = true)]
    pub layers: Option<usize>,
    /// Numbers in a hidden row [default: by --size]
    #[arg(long, value_name = "D", help_heading = "Network", allow_negative_numbers = true)]
    pub width: Option<usize>,
    /// Attention heads, of llama and bert [default: by --size]
    #[arg(long, value_name = "N", help_heading = "Network", allow_negative_numbers = true)]
    pub heads: Option<usize>,
    /// Numbers in a head, of llama; heads need not share the width out between them [default: width / heads]
    #[arg(long, value_name = "D", help_heading = "Network", allow_negative_numbers = true)]
    pub head_width: Option<usize>,
    /// Numbers in the feed-forward layers, of llama and bert [default: by --size]
    #[arg(long, value_name = "F", help_heading = "Network", allow_negative_numbers = true)]
    pub feed_forward: Option<usize>,
    /// Train for this many steps; the result is then the same bits on any number of threads
    #[arg(long, value_name = "N", help_heading = "Network", conflicts_with = "minutes", allow_negative_numbers = true)]
    pub steps: Option<u64>,
    /// Train for this many minutes [default: until the held-out loss no longer falls, at most 10 million events]
    #[arg(long, value_name = "M", help_heading = "Network", allow_negative_numbers = true)]
    pub minutes: Option<f64>,
    /// Sequences a step [default: as many as have about 1000 events]
    #[arg(long, value_name = "N", help_heading = "Network", allow_negative_numbers = true)]
    pub batch: Option<usize>,
    /// Events of a sequence read at once; longer ones are cut [default: the longest sequence, at most 256]
    #[arg(long, value_name = "L", help_heading = "Network", allow_negative_numbers = true)]
    pub length: Option<usize>,
    /// Largest learning rate [default: 0.003, and less for a bert wider than 64]
    #[arg(long, value_name = "R", help_heading = "Network", allow_negative_numbers = true)]
    pub learning_rate: Option<f32>,
    /// How the learning rate falls to zero [default: linear]
    #[arg(long, value_enum, help_heading = "Network")]
    pub schedule: Option<ScheduleFlag>,
    /// How fast weights of hidden matrices shrink that nothing holds up [default: 0.1]
    #[arg(long, value_name = "X", help_heading = "Network", allow_negative_numbers = true)]
    pub weight_decay: Option<f32>,
    /// How weights follow their gradients [default: adamw]
    #[arg(long, value_enum, help_heading = "Network")]
    pub optimiser: Option<OptimiserFlag>,
    /// Seconds between checkpoints that --resume continues from [default: 30]
    #[arg(long, value_name = "S", help_heading = "Network", allow_negative_numbers = true)]
    pub checkpoint_seconds: Option<f64>,
    /// Continue an interrupted run
    #[arg(long, help_heading = "Network")]
    pub resume: bool,
    /// Events an n-gram spans: a number, or auto for the lowest held-out loss [default: auto]
    #[arg(long, value_name = "auto|N", value_parser = parse_order, allow_negative_numbers = true)]
    pub order: Option<Order>,
    /// Share of sequences to measure the fit on instead of training on them
    #[arg(long, default_value_t = 0.1, value_name = "SHARE", allow_negative_numbers = true)]
    pub held_out: f64,
    /// The simulated process that made the log, to compare the fit with its entropy
    #[arg(long, value_name = "DIR")]
    pub process: Option<PathBuf>,
    /// Seed of the held-out split, the weights and the order of training
    #[arg(long, default_value_t = 7, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backbone {
    /// Transformer with rotary positions
    Llama,
    /// Selective state-space model
    Mamba,
    /// Gated recurrent units
    Gru,
    /// Long short-term memory
    Lstm,
    /// Interpolated Kneser–Ney counts: for small logs, and in no time
    Ngram,
    /// Masked Transformer: predicts no next event, serves --method attention only
    Bert,
}

impl Backbone {
    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Mamba => "mamba",
            Self::Gru => "gru",
            Self::Lstm => "lstm",
            Self::Ngram => "ngram",
            Self::Bert => "bert",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// By the number of events and types
    #[default]
    Auto,
    /// 2 layers, width 64
    Tiny,
    /// 2 layers, width 128
    Small,
    /// 1 layer, width 512: the best fit per minute on large logs
    Base,
    /// 4 layers, width 512
    Large,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OptimiserFlag {
    /// AdamW for everything
    #[default]
    Adamw,
    /// Orthogonal steps for hidden matrices, AdamW for the rest
    Muon,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ScheduleFlag {
    /// In a straight line
    #[default]
    Linear,
    /// Slowly, then fast, then slowly
    Cosine,
}

/// `--order`: a number, or the best by held-out loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order(pub Option<usize>);

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  trace simulate scm --vocabulary 200 --sequences 50 --truth none --out process\n  \
                  trace discover process/events.jsonl --model process --out results.jsonl --all-pairs\n  \
                  trace aggregate results.jsonl --out population.json")]
pub struct AggregateArgs {
    /// Result files made with --all-pairs, or population files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Population file to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  trace simulate scm --vocabulary 200 --sequences 10 --out process\n  \
                  trace discover process/events.jsonl --model process --out results.jsonl --all-pairs\n  \
                  trace evaluate results.jsonl --truth process/truth.jsonl")]
pub struct EvaluateArgs {
    /// Result file, or population file
    pub results: PathBuf,
    /// True edges: JSON Lines for results; CSV with cause and effect for a population
    #[arg(long, value_name = "FILE")]
    pub truth: PathBuf,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Decide anew by this threshold, in nats; needs results made with --all-pairs
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub threshold: Option<f64>,
    /// Count pairs of a type with itself in the summary
    #[arg(long)]
    pub self_loops: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  trace simulate scm --vocabulary 60 --memory 2 --length 16 --sequences 3 --out process\n  \
                  trace discover process/events.jsonl --model process --out results.jsonl\n  \
                  trace export results.jsonl --to dot --case s0 --out s0.dot\n  \
                  trace export results.jsonl --to svg --case s0 --out s0.svg"
)]
pub struct ExportArgs {
    /// Result file, or population file
    pub results: PathBuf,
    /// Format
    #[arg(long, value_enum)]
    pub to: ExportFormat,
    /// Which graph of each result [default: sample]; a population file has one of its own
    #[arg(long, value_enum)]
    pub graph: Option<GraphKind>,
    /// Decide anew by this threshold, in nats; needs results made with --all-pairs
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub threshold: Option<f64>,
    /// Only these sequences; may be given several times
    #[arg(long = "case", value_name = "ID")]
    pub cases: Vec<String>,
    /// Pixels for each unit of a PNG figure [default: 2]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub scale: Option<f32>,
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object a graph and line
    Json,
    /// One row an edge
    Csv,
    /// Graphviz
    Dot,
    /// XML for Gephi, yEd, NetworkX and others
    Graphml,
    /// A figure of one graph, for papers
    Svg,
    /// The same as pixels
    Png,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphKind {
    /// Over positions
    Sample,
    /// Over event types
    Summary,
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// What a model is and how far it can be trusted
    Info(ModelInfoArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  trace simulate scm --vocabulary 200 --sequences 20 --truth none --out process\n  \
                  trace model info process")]
pub struct ModelInfoArgs {
    /// Model folder
    pub model: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub usize);

fn parse_bytes(text: &str) -> Result<Bytes, String> {
    let expected = || "expected a size such as 500MB, 2GB or 1.5GiB".to_owned();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| expected())?;
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1_048_576.0,
        "gib" => 1_073_741_824.0,
        "tib" => 1_099_511_627_776.0,
        _ => return Err(expected()),
    };
    let bytes = number * unit;
    if (1.0..1e18).contains(&bytes) { Ok(Bytes(bytes as usize)) } else { Err(expected()) }
}

fn parse_count(text: &str, words: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("expected {words} or a whole number"))
}

fn parse_particles(text: &str) -> Result<Particles, String> {
    match text {
        "auto" => Ok(Particles::Auto),
        "all" => Ok(Particles::All),
        _ => parse_count(text, "auto, all").map(Particles::Fixed),
    }
}

fn parse_draws(text: &str) -> Result<Particles, String> {
    if text == "all" { Ok(Particles::All) } else { parse_count(text, "all").map(Particles::Fixed) }
}

fn parse_memory(text: &str) -> Result<Memory, String> {
    if text == "all" { Ok(Memory::All) } else { parse_count(text, "all").map(Memory::Lags) }
}

fn parse_order(text: &str) -> Result<Order, String> {
    if text == "auto" { Ok(Order(None)) } else { parse_count(text, "auto").map(|order| Order(Some(order))) }
}

fn parse_threshold(text: &str) -> Result<Threshold, String> {
    match text {
        "scaling-law" => Ok(Threshold::ScalingLaw),
        "bound" => Ok(Threshold::Bound),
        _ => {
            text.parse().map(Threshold::Fixed).map_err(|_| "expected a number of nats, scaling-law or bound".to_owned())
        }
    }
}
