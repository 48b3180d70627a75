//! The flags, as typed. Names and meanings are those of the library's options and of the JSON keys.

mod discover;
mod log;
mod parse;
mod results;
mod simulate;
mod train;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use discover::{DiscoverArgs, ExplainArgs, MethodArgs, QuestionFlag};
pub use log::{LogArgs, LogCommand, LogInfoArgs};
pub use results::{AggregateArgs, CompareArgs, EvaluateArgs, ExportArgs, GraphFlag, ReportArgs};
pub use simulate::{FleetArgs, ScmArgs, SimulateCommand, WorkflowArgs};
pub use train::{BackboneFlag, TrainArgs};

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
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    /// Worker threads [default: all cores]; results do not depend on it
    #[arg(long, global = true, help_heading = "General", value_name = "T", allow_negative_numbers = true)]
    pub threads: Option<usize>,
    /// Do not use the processor's tile unit (AMX): slower, but the same digits as on a processor without one
    #[arg(long, global = true, help_heading = "General")]
    pub no_tile_unit: bool,
    /// No progress and no remarks on standard error
    #[arg(long, short, global = true, help_heading = "General")]
    pub quiet: bool,
}

/// One command per variant.
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
    /// Say why one event of one sequence happened: its causes, and theirs, back to the roots
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
}

/// The flags of `trace demo`.
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

/// `trace model`.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// What a model is and how far it can be trusted
    Info(ModelInfoArgs),
}

/// The flags of `trace model info`.
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
