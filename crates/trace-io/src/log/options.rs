//! How a log is to be read: what the format does not say by itself.

use std::fmt;

/// The formats of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One row an event; fields separated by a comma or another sign.
    Csv,
    /// One row an event; fields separated by tabs.
    Tsv,
    /// One row an event, in columns.
    Parquet,
    /// The XML of process mining.
    Xes,
    /// One JSON object a sequence.
    JsonLines,
    /// One sequence a line.
    Text,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Csv => "CSV",
            Self::Tsv => "TSV",
            Self::Parquet => "Parquet",
            Self::Xes => "XES",
            Self::JsonLines => "JSON Lines",
            Self::Text => "plain text",
        })
    }
}

/// The unit of times that are plain numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// 1 s.
    Seconds,
    /// 1e-3 s.
    Milliseconds,
    /// 1e-6 s.
    Microseconds,
    /// 1e-9 s.
    Nanoseconds,
}

impl TimeUnit {
    /// How many make a second.
    pub const fn per_second(self) -> i64 {
        match self {
            Self::Seconds => 1,
            Self::Milliseconds => 1_000,
            Self::Microseconds => 1_000_000,
            Self::Nanoseconds => 1_000_000_000,
        }
    }
}

/// What to do with a row that is not what it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadRows {
    /// Refuse the log.
    #[default]
    Refuse,
    /// Leave the row out and count it.
    Skip,
}

/// Which columns, or XES attributes, mean what. Where nothing is named, the usual names are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnChoice {
    /// Of the case; several are joined with `+`.
    pub case: Vec<String>,
    /// Of the event; several are joined with `+`.
    pub event: Vec<String>,
    /// Of the time; several are joined with a space.
    pub time: Vec<String>,
    /// All rows are one case.
    pub single_case: bool,
    /// The order of rows is the only time there is.
    pub no_time: bool,
}

impl ColumnChoice {
    /// Whether anything is chosen, which only a format with columns can have.
    pub fn any(&self) -> bool {
        self.single_case || self.no_time || !(self.case.is_empty() && self.event.is_empty() && self.time.is_empty())
    }
}

/// What is done to sequences after reading, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shaping {
    /// Split a case where consecutive times are further apart than this, in seconds (or the unit of the log's numbers).
    pub gap: Option<f64>,
    /// Types that occur less often in the whole log become [`RARE`](super::RARE).
    pub min_count: Option<u64>,
    /// Runs of the same event become one event.
    pub collapse: bool,
    /// Split what is longer than this.
    pub max_length: Option<usize>,
}

/// Everything that can be said about a log besides its path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogOptions {
    /// The format, if its name and first bytes are not to decide.
    pub format: Option<Format>,
    /// What separates fields of CSV, if its first lines are not to decide.
    pub delimiter: Option<u8>,
    /// CSV without a header: columns are called by their number, from 1.
    pub no_header: bool,
    /// Which columns mean what.
    pub columns: ColumnChoice,
    /// How times are written, in the notation of `strftime`, if not in a common way.
    pub time_format: Option<String>,
    /// The unit of times that are numbers; they stay as they are without it.
    pub time_unit: Option<TimeUnit>,
    /// What to do with bad rows.
    pub bad_rows: BadRows,
    /// What to do after reading.
    pub shaping: Shaping,
}
