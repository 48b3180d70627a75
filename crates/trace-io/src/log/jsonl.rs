//! JSON Lines: `{"id": "v1", "events": ["P0562", …], "times": [0.0, …]}`; ids and events may be whole numbers.

use serde::Deserialize;
use trace_core::EventName;

use super::names::Names;
use super::options::{BadRows, Format, LogOptions};
use super::report::Report;
use super::sequences::check_times;
use super::source::Source;
use super::{RawSequence, SequenceReader};
use crate::Error;
use crate::lines::Lines;
use crate::name::Name;

pub(super) struct JsonLines {
    lines: Lines,
    names: Names,
    report: Report,
    bad_rows: BadRows,
    /// What makes a second.
    per_second: f64,
    no_time: bool,
}

#[derive(Deserialize)]
struct Record {
    id: Option<Name>,
    events: Vec<Name>,
    times: Option<Vec<f64>>,
}

impl JsonLines {
    pub(super) fn new(source: Source, options: &LogOptions) -> Self {
        Self {
            report: Report::new(Format::JsonLines, source.compression),
            lines: Lines::from_source(source),
            names: Names::default(),
            bad_rows: options.bad_rows,
            per_second: options.time_unit.map_or(1.0, |unit| unit.per_second() as f64),
            no_time: options.columns.no_time,
        }
    }

    pub(super) fn into_names(self) -> Names {
        self.names
    }

    fn read(&mut self) -> Result<Option<RawSequence>, Error> {
        let expected = r#"a sequence like {"id": "v1", "events": ["A", "B"]}"#;
        let Some((line, record)) = self.lines.next_json::<Record>(expected)? else { return Ok(None) };
        let mut events = Vec::with_capacity(record.events.len());
        for event in &record.events {
            let number = match &event.0 {
                EventName::Text(text) => self.names.intern(text),
                EventName::Number(number) => self.names.intern(&number.to_string()),
            };
            let number =
                number.ok_or_else(|| Error::line(&self.lines.file, line, "more than 4 billion event types"))?;
            events.push(number);
        }
        let id = record.id.map_or_else(|| line.to_string(), |id| id.0.to_string());
        let times = record.times.filter(|_| !self.no_time);
        let times = times.map(|times| times.into_iter().map(|time| time / self.per_second).collect());
        let raw = RawSequence { id, events, times, line };
        check_times(&self.lines.file, &raw)?;
        Ok(Some(raw))
    }
}

impl SequenceReader for JsonLines {
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
