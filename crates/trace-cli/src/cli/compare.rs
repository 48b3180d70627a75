//! The flags of `trace compare`.

use std::path::PathBuf;

use clap::Args;

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
