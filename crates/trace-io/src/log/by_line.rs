//! Logs with one sequence per line, whatever the lines look like.

use trace_core::EventName;

use super::hints::SKIP_ROWS;
use super::names::Names;
use super::options::{BadRows, Format, LogOptions};
use super::report::Report;
use super::source::Source;
use super::{RawSequence, SequenceReader};
use crate::Error;
use crate::lines::Lines;

/// What a line looks like.
pub(super) trait Form: Send {
    /// The next sequence, if there is one.
    fn read(&self, lines: &mut Lines, names: &mut Names) -> Result<Option<RawSequence>, Error>;
}

/// A log that is read line by line.
pub(super) struct ByLine<F> {
    form: F,
    lines: Lines,
    names: Names,
    report: Report,
    bad_rows: BadRows,
}

impl<F: Form> ByLine<F> {
    pub(super) fn new(form: F, format: Format, source: Source, options: &LogOptions) -> Self {
        Self {
            form,
            report: Report::new(format, source.compression),
            lines: Lines::from_source(source),
            names: Names::default(),
            bad_rows: options.bad_rows,
        }
    }

    pub(super) fn into_names(self) -> Names {
        self.names
    }
}

impl<F: Form> SequenceReader for ByLine<F> {
    fn next_sequence(&mut self) -> Result<Option<RawSequence>, Error> {
        loop {
            match self.form.read(&mut self.lines, &mut self.names) {
                Ok(raw) => {
                    self.report.rows += u64::from(raw.is_some());
                    return Ok(raw);
                }
                Err(Error::Line { line, reason, .. }) if self.bad_rows == BadRows::Skip => {
                    self.report.rows += 1;
                    self.report.skipped.count += 1;
                    self.report.skipped.note(format!("line {line}: {reason}"));
                }
                Err(error @ Error::Line { .. }) => return Err(error.hint(SKIP_ROWS)),
                Err(error) => return Err(error),
            }
        }
    }

    fn name(&self) -> &str {
        &self.lines.file
    }

    fn event_name(&self, number: u32) -> EventName {
        self.names.name(number)
    }

    fn report(&self) -> Report {
        self.report.clone()
    }
}

/// The number of an event's name.
pub(super) fn intern(names: &mut Names, name: &str, file: &str, line: u64) -> Result<u32, Error> {
    names.intern(name).ok_or_else(|| Error::line(file, line, "more than 4 billion event types"))
}
