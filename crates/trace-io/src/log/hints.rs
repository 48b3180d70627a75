//! The options of a log by name, and what they help with.

use trace_core::{Hint, OptionName};

use crate::Error;

pub(super) const FORMAT: OptionName = OptionName("format");
pub(super) const DELIMITER: OptionName = OptionName("delimiter");
pub(super) const NO_HEADER: OptionName = OptionName("no_header");
pub(super) const CASE_COLUMN: OptionName = OptionName("case_column");
pub(super) const EVENT_COLUMN: OptionName = OptionName("event_column");
pub(super) const TIME_COLUMN: OptionName = OptionName("time_column");
pub(super) const OUTCOME_COLUMN: OptionName = OptionName("outcome_column");
pub(super) const FAMILY_SEPARATOR: OptionName = OptionName("family_separator");
pub(super) const SINGLE_CASE: OptionName = OptionName("single_case");
pub(super) const NO_TIME: OptionName = OptionName("no_time");
pub(super) const TIME_FORMAT: OptionName = OptionName("time_format");
pub(super) const TIME_UNIT: OptionName = OptionName("time_unit");
pub(super) const BAD_ROWS: OptionName = OptionName("bad_rows");
pub(super) const GAP: OptionName = OptionName("gap");
pub(super) const MAX_LENGTH: OptionName = OptionName("max_length");
pub(super) const UNKNOWN: OptionName = OptionName("unknown");

/// Every option that an error about a log can name. All are keys of [`LogOptions`](super::LogOptions) as data, except
/// `unknown`, which is [`Unknown`](super::Unknown).
pub const OPTIONS: [OptionName; 16] = [
    FORMAT,
    DELIMITER,
    NO_HEADER,
    CASE_COLUMN,
    EVENT_COLUMN,
    TIME_COLUMN,
    OUTCOME_COLUMN,
    FAMILY_SEPARATOR,
    SINGLE_CASE,
    NO_TIME,
    TIME_FORMAT,
    TIME_UNIT,
    BAD_ROWS,
    GAP,
    MAX_LENGTH,
    UNKNOWN,
];

pub(super) const SKIP_ROWS: Hint = Hint::with_value(BAD_ROWS, "skip", "leaves such rows out and counts them");
pub(super) const SKIP_UNKNOWN: Hint = Hint::with_value(UNKNOWN, "skip", "leaves such events out");
pub(super) const OTHER_FORMAT: Hint = Hint::new(FORMAT, "names another format");
pub(super) const OTHER_TIMES: Hint = Hint::new(TIME_FORMAT, "says how other times are written");
pub(super) const WITHOUT_TIMES: Hint = Hint::new(NO_TIME, "leaves times out and goes by the order in the file");
pub(super) const FROM_NANOSECONDS: Hint = Hint::with_value(TIME_UNIT, "ns", "makes seconds of it");

/// What is wrong with a row, a line or an event, before it is known where that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) reason: String,
    pub(super) hints: Vec<Hint>,
}

impl Fault {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hints: Vec::new() }
    }

    pub(super) fn hint(mut self, hint: Hint) -> Self {
        self.hints.push(hint);
        self
    }

    /// Puts the place before the reason.
    pub(super) fn at(self, place: impl std::fmt::Display) -> Self {
        Self { reason: format!("{place}: {}", self.reason), hints: self.hints }
    }

    /// As an error about a line.
    pub(super) fn on_line(self, file: &str, line: u64) -> Error {
        Error::line(file, line, self.reason).with_hints(self.hints)
    }
}
