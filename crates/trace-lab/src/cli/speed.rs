//! The flags of speed comparisons.

use std::path::PathBuf;

use clap::Args;

/// The flags of `trace-lab speed`.
#[derive(Debug, Args)]
#[command(
    after_help = "Makes a Python virtual environment and installs PyTorch, Transformers and seq2cause into it from the\n\
                  package index: only this and `trace-lab read` use the network.\n\n\
                  Example:\n  trace-lab speed --no-reference"
)]
pub struct SpeedArgs {
    /// Rounds of each measurement; the best counts
    #[arg(long, default_value_t = 3, value_name = "N", allow_negative_numbers = true)]
    pub rounds: usize,
    /// The virtual environment [default: one in the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub venv: Option<PathBuf>,
    /// Measure this program alone
    #[arg(long)]
    pub no_reference: bool,
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// One discovery, measured in this process
    #[arg(long, hide = true)]
    pub job: Option<String>,
}

/// The flags of `trace-lab scale`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  trace-lab scale --length 64 --particles 8 --layers 2")]
pub struct ScaleArgs {
    /// Number of event types
    #[arg(long, default_value_t = 29_100, value_name = "V", allow_negative_numbers = true)]
    pub vocabulary: usize,
    /// Layers
    #[arg(long, default_value_t = 12, value_name = "N", allow_negative_numbers = true)]
    pub layers: usize,
    /// Numbers in a hidden row
    #[arg(long, default_value_t = 768, value_name = "D", allow_negative_numbers = true)]
    pub width: usize,
    /// Attention heads
    #[arg(long, default_value_t = 12, value_name = "N", allow_negative_numbers = true)]
    pub heads: usize,
    /// Numbers in the feed-forward layers
    #[arg(long, default_value_t = 2560, value_name = "F", allow_negative_numbers = true)]
    pub feed_forward: usize,
    /// Events in the sequence
    #[arg(long, default_value_t = 128, value_name = "L", allow_negative_numbers = true)]
    pub length: usize,
    /// Replacements tried for each cause
    #[arg(long, default_value_t = 64, value_name = "N", allow_negative_numbers = true)]
    pub particles: usize,
    /// Largest lag tested
    #[arg(long, default_value_t = 6, value_name = "M", allow_negative_numbers = true)]
    pub memory: usize,
    /// Events at the start that are neither causes nor effects: measures the causes after them alone
    #[arg(long, default_value_t = 0, value_name = "C", allow_negative_numbers = true)]
    pub context: usize,
    /// The most memory to use, such as 2GB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub ram_limit: Option<Bytes>,
    /// Print JSON instead of a line
    #[arg(long)]
    pub json: bool,
}

/// The flags of `trace-lab read`.
#[derive(Debug, Args)]
#[command(after_help = "Makes a Python virtual environment and installs Polars into it from the package index.\n\n\
                  Example:\n  trace-lab read --rows 100000 --no-reference")]
pub struct ReadArgs {
    /// Rows to write and read
    #[arg(long, default_value_t = 5_000_000, value_name = "N", allow_negative_numbers = true)]
    pub rows: usize,
    /// Rounds of each measurement; the best counts
    #[arg(long, default_value_t = 5, value_name = "N", allow_negative_numbers = true)]
    pub rounds: usize,
    /// The virtual environment [default: one in the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub venv: Option<PathBuf>,
    /// Measure this program alone
    #[arg(long)]
    pub no_reference: bool,
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
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
        "kib" => 1024.0,
        "mib" => 1_048_576.0,
        "gib" => 1_073_741_824.0,
        _ => return Err(expected()),
    };
    let bytes = number * unit;
    if (1.0..1e18).contains(&bytes) { Ok(Bytes(bytes as usize)) } else { Err(expected()) }
}
