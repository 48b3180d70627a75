//! Plain text: one sequence a line, events separated by white space; a sequence is called by its line number.

use trace_core::EventName;

use super::{RawSequence, SequenceReader};
use crate::Error;
use crate::lines::Lines;

pub(super) struct PlainText(pub(super) Lines);

impl SequenceReader for PlainText {
    fn next_sequence(&mut self) -> Result<Option<RawSequence>, Error> {
        Ok(self.0.next_line()?.map(|(line, text)| {
            let events = text.split_whitespace().map(EventName::from).collect();
            RawSequence { id: line.to_string(), events, times: None, line }
        }))
    }

    fn name(&self) -> &str {
        &self.0.file
    }
}
