//! JSON Lines: `{"id": "v1", "events": ["P0562", …], "times": [0.0, …]}`; ids and events may be whole numbers, and
//! `"open": true` marks a case that is still running.

use serde::Deserialize;
use trace_core::EventName;

use super::by_line::{Form, intern};
use super::hints::WITHOUT_TIMES;
use super::names::Names;
use super::options::LogOptions;
use super::sequences::check_times;
use super::{RawSequence, shorten};
use crate::Error;
use crate::lines::Lines;

pub(super) struct JsonLines {
    /// What makes a second.
    per_second: f64,
    no_time: bool,
}

#[derive(Deserialize)]
struct Record {
    id: Option<EventName>,
    events: Vec<EventName>,
    /// Some programs write null for a time that is missing.
    times: Option<Vec<Option<f64>>>,
    /// Whether the case is still running.
    open: Option<bool>,
}

impl JsonLines {
    pub(super) fn new(options: &LogOptions) -> Self {
        Self {
            per_second: options.time_unit.map_or(1.0, |unit| unit.per_second() as f64),
            no_time: options.columns.no_time,
        }
    }
}

impl Form for JsonLines {
    fn read(&self, lines: &mut Lines, names: &mut Names) -> Result<Option<RawSequence>, Error> {
        let expected = r#"a sequence like {"id": "v1", "events": ["A", "B"]}"#;
        let Some((line, record)) = lines.next_json::<Record>(expected)? else { return Ok(None) };
        let mut events = Vec::with_capacity(record.events.len());
        for event in &record.events {
            events.push(match event {
                EventName::Text(text) => intern(names, text, &lines.file, line)?,
                EventName::Number(number) => intern(names, &number.to_string(), &lines.file, line)?,
            });
        }
        let id = record.id.map_or_else(|| line.to_string(), |id| id.to_string());
        let times = match record.times.filter(|_| !self.no_time) {
            Some(times) => {
                let missing = |at: usize| {
                    let reason =
                        format!("time at position {at} of sequence {:?} is null; expected a number", shorten(&id));
                    Error::line(&lines.file, line, reason).hint(WITHOUT_TIMES)
                };
                let seconds = |(at, time): (usize, Option<f64>)| Ok(time.ok_or_else(|| missing(at))? / self.per_second);
                Some(times.into_iter().enumerate().map(seconds).collect::<Result<_, Error>>()?)
            }
            None => None,
        };
        let raw = RawSequence { id, events, times, ended: record.open != Some(true), line };
        check_times(&lines.file, &raw)?;
        Ok(Some(raw))
    }
}
