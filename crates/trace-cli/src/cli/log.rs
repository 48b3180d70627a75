//! The flags that say how a log is read, the same for every command that reads one.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use trace_causal::{BadRows, ColumnChoice, Format, LogOptions, Shaping, TimeUnit};

use super::parse::{parse_delimiter, parse_gap, parse_length};

/// `trace log`.
#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// What a log holds, what is read of it and what is dropped
    Info(LogInfoArgs),
}

/// The flags of `trace log info`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
                  printf 'case,event,time\\nv1,A,2024-05-31 17:30\\nv1,B,2024-05-31 17:31\\n' > log.csv\n  \
                  trace log info log.csv")]
pub struct LogInfoArgs {
    /// The log
    #[command(flatten)]
    pub log: LogArgs,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// A log and how to read it.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct LogArgs {
    /// Event log: CSV, TSV, Parquet, XES, JSON Lines or plain text, also .gz and .zst; `-` for standard input
    #[arg(value_name = "LOG")]
    pub path: PathBuf,
    /// Format of the log [default: by its name, or its first bytes]
    #[arg(long, value_enum, help_heading = "Log")]
    pub format: Option<FormatFlag>,
    /// Character that separates fields, or tab [default: the one of , ; tab | that fits the first rows]
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter, help_heading = "Log")]
    pub delimiter: Option<u8>,
    /// The first row is data; columns are called 1, 2, 3 …
    #[arg(long, help_heading = "Log")]
    pub no_header: bool,
    /// Column of the case; several are joined with + [default: by the usual names]
    #[arg(long, value_name = "NAME", help_heading = "Log")]
    pub case_column: Vec<String>,
    /// All rows are one case
    #[arg(long, conflicts_with = "case_column", help_heading = "Log")]
    pub single_case: bool,
    /// Column of the event; several are joined with + [default: by the usual names]
    #[arg(long, value_name = "NAME", help_heading = "Log")]
    pub event_column: Vec<String>,
    /// Column of the outcome: events are called step:outcome, and outcomes of one step are a family
    #[arg(long, value_name = "NAME", help_heading = "Log")]
    pub outcome_column: Option<String>,
    /// What separates step and outcome in the names of events, such as ":"; the last one in a name counts
    #[arg(long, value_name = "TEXT", conflicts_with = "outcome_column", help_heading = "Log")]
    pub family_separator: Option<String>,
    /// Column of the time; several are joined with a space [default: by the usual names, if there is one]
    #[arg(long, value_name = "NAME", help_heading = "Log")]
    pub time_column: Vec<String>,
    /// Ignore times and go by the order in the file
    #[arg(long, conflicts_with_all = ["time_column", "time_format", "time_unit", "gap"], help_heading = "Log")]
    pub no_time: bool,
    /// How times are written, such as "%d.%m.%Y %H:%M" [default: ISO 8601 and the like, or numbers]
    #[arg(long, value_name = "FORMAT", help_heading = "Log")]
    pub time_format: Option<String>,
    /// Unit of times that are numbers, which are then converted to seconds [default: they stay as they are]
    #[arg(long, value_enum, conflicts_with = "time_format", help_heading = "Log")]
    pub time_unit: Option<UnitFlag>,
    /// What to do with rows that cannot be read
    #[arg(long, value_enum, default_value_t = BadRowsFlag::Error, help_heading = "Log")]
    pub bad_rows: BadRowsFlag,
    /// Split a case where nothing happens for longer than this: 30m, 2h, 1d, or a plain number
    #[arg(long, value_name = "DURATION", value_parser = parse_gap, help_heading = "Log", allow_negative_numbers = true)]
    pub gap: Option<f64>,
    /// Fold types that occur less often than this into one, called (rare)
    #[arg(long, value_name = "N", help_heading = "Log", value_parser = clap::value_parser!(u64).range(1..))]
    pub min_count: Option<u64>,
    /// Merge consecutive repetitions of the same event into one
    #[arg(long, help_heading = "Log")]
    pub collapse: bool,
    /// Split cases that have more events than this
    #[arg(long, value_name = "N", help_heading = "Log", value_parser = parse_length)]
    pub max_length: Option<usize>,
    /// Cases are still running: their last event is not their end
    #[arg(long, help_heading = "Log")]
    pub open_cases: bool,
}

impl LogArgs {
    /// The library's options.
    pub fn options(&self) -> LogOptions {
        LogOptions {
            format: self.format.map(FormatFlag::format),
            delimiter: self.delimiter,
            no_header: self.no_header,
            columns: ColumnChoice {
                case: self.case_column.clone(),
                event: self.event_column.clone(),
                time: self.time_column.clone(),
                outcome: self.outcome_column.clone(),
                single_case: self.single_case,
                no_time: self.no_time,
            },
            family_separator: self.family_separator.clone(),
            time_format: self.time_format.clone(),
            time_unit: self.time_unit.map(UnitFlag::unit),
            bad_rows: match self.bad_rows {
                BadRowsFlag::Error => BadRows::Refuse,
                BadRowsFlag::Skip => BadRows::Skip,
            },
            shaping: Shaping {
                gap: self.gap,
                min_count: self.min_count,
                collapse: self.collapse,
                max_length: self.max_length,
                open_cases: self.open_cases,
            },
        }
    }
}

/// Formats of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatFlag {
    /// One row per event, fields separated by a character
    Csv,
    /// One row per event, fields separated by tabs
    Tsv,
    /// One row per event, in columns
    Parquet,
    /// The XML format of process mining
    Xes,
    /// One JSON object per sequence
    Jsonl,
    /// One sequence per line
    Text,
}

impl FormatFlag {
    const fn format(self) -> Format {
        match self {
            Self::Csv => Format::Csv,
            Self::Tsv => Format::Tsv,
            Self::Parquet => Format::Parquet,
            Self::Xes => Format::Xes,
            Self::Jsonl => Format::JsonLines,
            Self::Text => Format::Text,
        }
    }
}

/// Units of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnitFlag {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// Nanoseconds
    Ns,
}

impl UnitFlag {
    const fn unit(self) -> TimeUnit {
        match self {
            Self::S => TimeUnit::Seconds,
            Self::Ms => TimeUnit::Milliseconds,
            Self::Us => TimeUnit::Microseconds,
            Self::Ns => TimeUnit::Nanoseconds,
        }
    }
}

/// What to do with bad rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BadRowsFlag {
    /// Refuse the log
    Error,
    /// Leave them out and count them
    Skip,
}
