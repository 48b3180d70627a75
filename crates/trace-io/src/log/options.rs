//! How a log is to be read: what the format does not say by itself.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The formats of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One row per event; fields separated by a comma or another sign.
    Csv,
    /// One row per event; fields separated by tabs.
    Tsv,
    /// One row per event, in columns.
    Parquet,
    /// The XML of process mining.
    Xes,
    /// One JSON object per sequence, one per line; `jsonl` as data.
    #[serde(rename = "jsonl")]
    JsonLines,
    /// One sequence per line.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeUnit {
    /// 1 s.
    #[serde(rename = "s")]
    Seconds,
    /// 1e-3 s.
    #[serde(rename = "ms")]
    Milliseconds,
    /// 1e-6 s.
    #[serde(rename = "us")]
    Microseconds,
    /// 1e-9 s.
    #[serde(rename = "ns")]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BadRows {
    /// Refuse the log; `error` as data.
    #[default]
    #[serde(rename = "error")]
    Refuse,
    /// Leave the row out and count it.
    Skip,
}

/// Which columns, or XES attributes, mean what. Where nothing is named, the usual names are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ColumnChoice {
    /// Of the case; several are joined with `+`.
    #[serde(rename = "case_column")]
    pub case: Vec<String>,
    /// Of the event; several are joined with `+`.
    #[serde(rename = "event_column")]
    pub event: Vec<String>,
    /// Of the time; several are joined with a space.
    #[serde(rename = "time_column")]
    pub time: Vec<String>,
    /// Of the outcome, which is joined to the event with [`OUTCOME_SIGN`](super::OUTCOME_SIGN); the event is then the step.
    #[serde(rename = "outcome_column")]
    pub outcome: Option<String>,
    /// All rows are one case.
    pub single_case: bool,
    /// The order of rows is the only time there is.
    pub no_time: bool,
}

impl ColumnChoice {
    /// Whether anything is chosen, which only a format with columns can have.
    pub fn any(&self) -> bool {
        let named = !(self.case.is_empty() && self.event.is_empty() && self.time.is_empty());
        self.single_case || self.no_time || named || self.outcome.is_some()
    }
}

/// What is done to sequences after reading, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shaping {
    /// Split a case where consecutive times are further apart than this, in seconds (or the unit of the log's numbers).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    /// Types that occur less often in the whole log become [`RARE`](super::RARE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_count: Option<u64>,
    /// Runs of the same event become one event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub collapse: bool,
    /// Split what is longer than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<usize>,
    /// All cases are still running: the last event of a case says nothing about its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open_cases: bool,
}

/// Everything that can be said about a log besides its path. As data it is flat, and every key is the name of an option
/// as every door has it: `{"case_column": ["vehicle"], "time_unit": "ms", "gap": 3600}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogOptions {
    /// The format, if its name and first bytes are not to decide.
    pub format: Option<Format>,
    /// What separates fields of CSV, if its first lines are not to decide: an ASCII character.
    #[serde(with = "character")]
    pub delimiter: Option<u8>,
    /// CSV without a header: columns are called by their number, from 1.
    pub no_header: bool,
    /// Which columns mean what.
    #[serde(flatten)]
    pub columns: ColumnChoice,
    /// What separates the step and the outcome in the names of events: the last one in a name counts.
    pub family_separator: Option<String>,
    /// How times are written, in the notation of `strftime`, if not in a common way.
    pub time_format: Option<String>,
    /// The unit of times that are numbers; they stay as they are without it.
    pub time_unit: Option<TimeUnit>,
    /// What to do with bad rows.
    pub bad_rows: BadRows,
    /// What to do after reading.
    #[serde(flatten)]
    pub shaping: Shaping,
}

/// A byte as the ASCII character that it is.
mod character {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(byte: &Option<u8>, serializer: S) -> Result<S::Ok, S::Error> {
        byte.map(char::from).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
        let ascii = |c: char| {
            u8::try_from(c).ok().filter(u8::is_ascii).ok_or_else(|| D::Error::custom("expected an ASCII character"))
        };
        Option::<char>::deserialize(deserializer)?.map(ascii).transpose()
    }
}
