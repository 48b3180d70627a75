//! JSON Lines: `{"id": "v1", "events": ["P0562", …], "times": [0.0, …]}`; ids and events may be whole numbers.

use serde::Deserialize;
use trace_core::EventName;

use super::{RawSequence, SequenceReader};
use crate::Error;
use crate::lines::Lines;
use crate::name::Name;

pub(super) struct JsonLines(pub(super) Lines);

#[derive(Deserialize)]
struct Record {
    id: Option<Name>,
    events: Vec<Name>,
    times: Option<Vec<f64>>,
}

impl SequenceReader for JsonLines {
    fn next_sequence(&mut self) -> Result<Option<RawSequence>, Error> {
        let expected = r#"a sequence like {"id": "v1", "events": ["A", "B"]}"#;
        let Some((line, record)) = self.0.next_json::<Record>(expected)? else { return Ok(None) };
        let events: Vec<EventName> = record.events.into_iter().map(|name| name.0).collect();
        let id = record.id.map_or_else(|| line.to_string(), |id| id.0.to_string());
        Ok(Some(RawSequence { id, events, times: record.times, line }))
    }

    fn name(&self) -> &str {
        &self.0.file
    }
}
