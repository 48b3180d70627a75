//! Which event types of a log are outcomes of the same step.

use trace_core::{EventId, Families, Vocabulary};

use super::source::Source;
use super::xes::Xes;
use super::{Held, Log, OUTCOME_SIGN, SequenceReader};
use crate::Error;

impl Log {
    /// The steps of event types, where the log was opened as one whose events are steps with outcomes: by a column of
    /// outcomes, where each type keeps the step and outcome that it was read from, or by a separator in the names. Types
    /// of the vocabulary that a log with a column of outcomes lacks are steps of their own.
    pub fn families(&self, vocabulary: &Vocabulary) -> Result<Option<Families>, Error> {
        if let Some(separator) = &self.options.family_separator {
            let names = (0..vocabulary.len()).map(|id| vocabulary.name(EventId(id as u32)).to_string());
            let names: Vec<String> = names.collect();
            return Ok(Some(Families::of_separator(names.iter().map(String::as_str), separator)));
        }
        if self.options.columns.outcome.is_none() {
            return Ok(None);
        }
        let read;
        let names = match &self.held {
            Held::Index(index) => index.event_names(),
            Held::Memory { names, .. } => names,
            // A file that is read anew each time has its names once all of it was read. Only XES has attributes.
            Held::Nothing => {
                let mut reader = Xes::new(Source::open(&self.path)?, &self.options)?;
                while reader.next_sequence()?.is_some() {}
                read = reader.into_names();
                &read
            }
        };
        let parts = |name: &str| names.step_length(name).map(|length| (length, OUTCOME_SIGN.len_utf8()));
        Ok(Some(Families::of_vocabulary(vocabulary, parts)))
    }
}
