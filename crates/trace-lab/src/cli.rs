//! The flags, as typed.

mod certainty;
mod experiment;
mod rival;
mod speed;

use clap::{Parser, Subcommand};

pub use certainty::CertaintyArgs;
pub use experiment::{ExperimentArgs, ExperimentCommand};
pub use rival::{DiscoverArgs, EncoderArgs, MethodFlag};
pub use speed::{ReadArgs, ScaleArgs, SpeedArgs};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "trace-lab", version, max_term_width = 100)]
#[command(about = "The laboratory of TRACE: the paper's experiments, rival methods, speed comparisons.")]
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
    #[command(flatten)]
    Experiment(ExperimentCommand),
    /// Whether the population graph errs as rarely as it says
    Certainty(CertaintyArgs),
    /// Score the pairs of every sequence of a log by a rival method
    Discover(DiscoverArgs),
    /// Train the masked encoder (BERT) that `discover --method attention` needs
    Encoder(EncoderArgs),
    /// Training, inference and discovery beside PyTorch and the reference package
    Speed(SpeedArgs),
    /// One discovery with a large network of random weights
    Scale(ScaleArgs),
    /// Reading a large CSV log, beside Polars
    Read(ReadArgs),
}
