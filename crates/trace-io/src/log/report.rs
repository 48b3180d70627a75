//! What a reader did with a log.

use serde::Serialize;

use super::columns::Columns;
use super::options::Format;
use super::source::Compression;

/// How many reasons of skipped rows are kept.
pub(super) const SHOWN_REASONS: usize = 5;

/// Rows that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SkippedRows {
    /// How many.
    #[serde(rename = "skipped_rows")]
    pub count: u64,
    /// Why the first of them were, with their places.
    #[serde(rename = "skipped_reasons")]
    pub reasons: Vec<String>,
}

impl SkippedRows {
    /// Keeps a reason, if it is one of the first.
    pub(super) fn note(&mut self, reason: String) {
        if self.reasons.len() < SHOWN_REASONS {
            self.reasons.push(reason);
        }
    }
}

/// What shaping did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Shaped {
    /// Types that became rare.
    pub folded_types: u64,
    /// Events of those types.
    pub folded_events: u64,
    /// Events that repeated the one before and were dropped.
    #[serde(rename = "collapsed_events")]
    pub collapsed: u64,
    /// Pieces that gaps made in addition.
    pub gap_pieces: u64,
    /// Pieces that the largest length made in addition.
    pub length_pieces: u64,
}

/// What a reader did. As data it is flat: what was skipped and shaped is among the other keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The format read.
    pub format: Format,
    /// How it was compressed.
    pub compression: Option<Compression>,
    /// What separated fields.
    pub delimiter: Option<char>,
    /// The columns or attributes used for the case; none if all rows were one.
    pub case_columns: Vec<String>,
    /// Those used for the event.
    pub event_columns: Vec<String>,
    /// Those used for the time; none if there were no times.
    pub time_columns: Vec<String>,
    /// The one used for the outcome, where events have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome_column: Option<String>,
    /// Whether times are dates, as seconds since 1970.
    pub dated: bool,
    /// Rows, lines or events read, also those left out.
    pub rows: u64,
    /// Those left out.
    #[serde(flatten)]
    pub skipped: SkippedRows,
    /// Cases whose rows were not in the order of their times.
    pub sorted_cases: u64,
    /// What was done after reading.
    #[serde(flatten)]
    pub shaped: Shaped,
}

impl Report {
    pub(super) fn new(format: Format, compression: Option<Compression>) -> Self {
        Self {
            format,
            compression,
            delimiter: None,
            case_columns: Vec::new(),
            event_columns: Vec::new(),
            time_columns: Vec::new(),
            outcome_column: None,
            dated: false,
            rows: 0,
            skipped: SkippedRows::default(),
            sorted_cases: 0,
            shaped: Shaped::default(),
        }
    }

    pub(super) fn set_columns(&mut self, header: &[String], columns: &Columns) {
        let names = |numbers: &[usize]| numbers.iter().filter_map(|column| header.get(*column).cloned()).collect();
        self.case_columns = names(&columns.case);
        self.event_columns = names(&columns.event);
        self.time_columns = names(&columns.time);
        self.outcome_column = columns.outcome.and_then(|column| header.get(column).cloned());
    }
}
