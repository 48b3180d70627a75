//! The flags of commands that start from results.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::QuestionFlag;
use trace_causal::{EvidenceRule, ExportFormat, GraphKind};

/// The flags of `trace aggregate`.
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
    /// Expected share of kept pairs that are false, at most
    #[arg(long, default_value_t = EvidenceRule::default().fdr, value_name = "SHARE", allow_negative_numbers = true)]
    pub fdr: f64,
    /// The ratio of probabilities that a kept pair must exceed
    #[arg(long, default_value_t = EvidenceRule::default().least_ratio, value_name = "RATIO", allow_negative_numbers = true)]
    pub least_ratio: f64,
}

/// The flags of `trace compare`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  trace simulate fleet --sequences 300 --truth none --out a\n  \
                  trace simulate fleet --sequences 300 --truth none --seed 8 --without battery --out b\n  \
                  trace discover a/events.jsonl --model a --out a.jsonl --population a.json\n  \
                  trace discover b/events.jsonl --model b --out b.jsonl --population b.json\n  \
                  trace compare a.json b.json")]
pub struct CompareArgs {
    /// Population file of the first cohort
    pub a: PathBuf,
    /// Population file of the second cohort
    pub b: PathBuf,
    /// Expected share of false findings among those reported, at most
    #[arg(long, default_value_t = 0.05, value_name = "SHARE", allow_negative_numbers = true)]
    pub level: f64,
    /// Log ratios that differ by no more than this count as equal [default: 0 for one model, 0.3 for two]
    #[arg(long, value_name = "NATS", allow_negative_numbers = true)]
    pub margin: Option<f64>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Also write all pairs to this CSV file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The flags of `trace evaluate`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  trace simulate scm --vocabulary 200 --sequences 10 --out process\n  \
                  trace discover process/events.jsonl --model process --out results.jsonl --all-pairs\n  \
                  trace evaluate results.jsonl --truth process/truth.jsonl")]
pub struct EvaluateArgs {
    /// Result file, or population file
    pub results: PathBuf,
    /// True edges: JSON Lines for results; CSV with the columns cause and effect for a population
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
    /// Which question is scored, where events are outcomes of steps
    #[arg(long, value_enum, default_value_t = QuestionFlag::Whether)]
    pub question: QuestionFlag,
}

/// The flags of `trace export`.
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
    pub to: ExportFlag,
    /// Which graph of each result [default: sample]; a population file has one of its own
    #[arg(long, value_enum)]
    pub graph: Option<GraphFlag>,
    /// Decide anew by this threshold, in nats; needs results made with --all-pairs
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub threshold: Option<f64>,
    /// Decide over a population graph anew: expected share of kept pairs that are false, at most
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub fdr: Option<f64>,
    /// Decide over a population graph anew: the ratio of probabilities that a kept pair must exceed
    #[arg(long, value_name = "RATIO", allow_negative_numbers = true)]
    pub least_ratio: Option<f64>,
    /// Only these sequences; may be given several times
    #[arg(long = "case", value_name = "ID")]
    pub cases: Vec<String>,
    /// Pixels per unit of a PNG figure [default: 2]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub scale: Option<f32>,
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Formats of exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFlag {
    /// One JSON object per graph, one graph per line
    Json,
    /// One row per edge
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

impl ExportFlag {
    /// The library's option.
    pub const fn format(self) -> ExportFormat {
        match self {
            Self::Json => ExportFormat::Json,
            Self::Csv => ExportFormat::Csv,
            Self::Dot => ExportFormat::Dot,
            Self::Graphml => ExportFormat::Graphml,
            Self::Svg => ExportFormat::Svg,
            Self::Png => ExportFormat::Png,
        }
    }
}

/// Graphs of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFlag {
    /// Over positions
    Sample,
    /// Over event types
    Summary,
}

impl GraphFlag {
    /// The library's option.
    pub const fn kind(self) -> GraphKind {
        match self {
            Self::Sample => GraphKind::Sample,
            Self::Summary => GraphKind::Summary,
        }
    }
}

/// The flags of `trace report`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  trace simulate scm --vocabulary 60 --memory 3 --length 30 --sequences 20 --out process\n  \
                  trace discover process/events.jsonl --model process --out results.jsonl --all-pairs\n  \
                  trace report results.jsonl --out report.html"
)]
pub struct ReportArgs {
    /// Result file; made with --all-pairs, the page can lower the threshold too
    pub results: PathBuf,
    /// Page to write, one HTML file that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Population graph to show [default: the results merged]
    #[arg(long, value_name = "FILE")]
    pub population: Option<PathBuf>,
    /// Headline of the page
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Show only these sequences; may be given several times. All of them are merged
    #[arg(long = "case", value_name = "ID")]
    pub cases: Vec<String>,
    /// Sequences to show, in the order of the file [default: 200, fewer where they have very many pairs]
    #[arg(long, value_name = "N", conflicts_with = "cases", allow_negative_numbers = true)]
    pub max_sequences: Option<usize>,
}
