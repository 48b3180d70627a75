//! The flags of `trace simulate fleet`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use trace_core::Particles;
use trace_models::fleet::{CASCADES, Cascade};

use super::{TruthKind, parse_draws};

#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub struct FleetArgs {
    /// Number of event types
    #[arg(long, default_value_t = 300, value_name = "N", allow_negative_numbers = true)]
    pub types: usize,
    /// Number of vehicles
    #[arg(long, default_value_t = 1000, value_name = "N", allow_negative_numbers = true)]
    pub sequences: usize,
    /// Mean number of events of a vehicle; lengths vary
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
    /// How the truth measures an effect
    ///
    /// It takes far longer than the events themselves: `none` for logs that are only trained on.
    #[arg(long, value_enum, default_value_t = TruthKind::Event)]
    pub truth: TruthKind,
    /// Replacements the truth tries: a number, or all [default: all up to 2000 types, else 10]
    #[arg(long, value_name = "all|N", value_parser = parse_draws, allow_negative_numbers = true)]
    pub truth_draws: Option<Particles>,
    /// How the log is written
    #[arg(long, value_enum, default_value_t = LogFormat::Jsonl)]
    pub format: LogFormat,
    /// Seed of the vehicles; the design has none
    #[arg(long, default_value_t = 7, value_name = "S", allow_negative_numbers = true)]
    pub seed: u64,
    /// Folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// events.jsonl, a vehicle a line
    Jsonl,
    /// events.csv, an event a row
    Csv,
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
