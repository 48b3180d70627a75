//! Plain text: one sequence a line, events separated by white space; a sequence is called by its line number.

use trace_core::EventName;

use super::names::Names;
use super::options::{BadRows, Format, LogOptions};
use super::report::Report;
use super::source::Source;
use super::{RawSequence, SequenceReader};
use crate::Error;
use crate::lines::Lines;

pub(super) struct PlainText {
    lines: Lines,
    names: Names,
    report: Report,
    bad_rows: BadRows,
}

impl PlainText {
    pub(super) fn new(source: Source, options: &LogOptions) -> Self {
        Self {
            report: Report::new(Format::Text, source.compression),
            lines: Lines::from_source(source),
            names: Names::default(),
            bad_rows: options.bad_rows,
        }
    }

    pub(super) fn into_names(self) -> Names {
        self.names
    }

    fn read(&mut self) -> Result<Option<RawSequence>, Error> {
        let Some((line, text)) = self.lines.next_line()? else { return Ok(None) };
        let mut events = Vec::new();
        for name in text.split_whitespace() {
            let number = self.names.intern(name);
            events.push(number.ok_or_else(|| Error::line(&self.lines.file, line, "more than 4 billion event types"))?);
        }
        Ok(Some(RawSequence { id: line.to_string(), events, times: None, line }))
    }
}

impl SequenceReader for PlainText {
    fn next_sequence(&mut self) -> Result<Option<RawSequence>, Error> {
        loop {
            match self.read() {
                Ok(raw) => {
                    self.report.rows += u64::from(raw.is_some());
                    return Ok(raw);
                }
                Err(Error::Line { line, reason, .. }) if self.bad_rows == BadRows::Skip => {
                    self.report.rows += 1;
                    self.report.skipped.count += 1;
                    self.report.skipped.note(format!("line {line}: {reason}"));
                }
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
