//! The flags of `trace explain`.

use std::path::PathBuf;

use clap::Args;

use super::{LogArgs, MethodArgs, UnknownEvents};

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  trace simulate scm --vocabulary 60 --memory 3 --sequences 500 --truth none --out process\n  \
                  trace train process/events.jsonl --backbone ngram --out model\n  \
                  trace explain process/events.jsonl --model model --case s3 --at 20"
)]
pub struct ExplainArgs {
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
    #[arg(long, value_name = "POSITION|TYPE")]
    pub at: String,
    #[command(flatten)]
    pub method: MethodArgs,
    /// What is known beforehand about which types can cause which (TOML; docs/formats.md says how)
    #[arg(long, value_name = "FILE")]
    pub knowledge: Option<PathBuf>,
    /// How many chains to show
    #[arg(long, default_value_t = 5, value_name = "N", allow_negative_numbers = true)]
    pub chains: usize,
    /// What to do with events the model does not know
    #[arg(long, value_enum, default_value_t = UnknownEvents::Error)]
    pub unknown: UnknownEvents,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}
