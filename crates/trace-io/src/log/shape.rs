//! What is done to sequences after reading: split at gaps, fold rare types, collapse runs, split by length, leave open.

use std::collections::VecDeque;
use std::sync::Arc;

use trace_core::{EventName, Hint};

use super::hints::{GAP, TIME_COLUMN};
use super::options::{Format, Shaping};
use super::report::{Report, Shaped};
use super::sequences::check_times;
use super::{RARE, RawSequence, SequenceReader, shorten};
use crate::Error;

/// The number of folded types; no reader gives it to a name.
const RARE_NUMBER: u32 = u32::MAX;

/// Which of a reader's types are rare.
#[derive(Clone, Debug)]
pub(super) struct Rare {
    flags: Arc<Vec<bool>>,
    types: u64,
}

impl Rare {
    /// Counts every type of a log.
    pub(super) fn count(mut reader: Box<dyn SequenceReader + '_>, min_count: u64) -> Result<Self, Error> {
        let mut counts: Vec<u64> = Vec::new();
        while let Some(raw) = reader.next_sequence()? {
            for event in &raw.events {
                let index = *event as usize;
                if counts.len() <= index {
                    counts.resize(index + 1, 0);
                }
                counts[index] += 1;
            }
        }
        let flags: Vec<bool> = counts.iter().map(|count| *count < min_count).collect();
        let types = counts.iter().filter(|count| (1..min_count).contains(*count)).count() as u64;
        Ok(Self { flags: Arc::new(flags), types })
    }

    fn has(&self, number: u32) -> bool {
        self.flags.get(number as usize).copied().unwrap_or(true)
    }
}

/// A reader whose sequences are shaped.
pub(super) struct ShapedReader<'r> {
    inner: Box<dyn SequenceReader + 'r>,
    shaping: Shaping,
    rare: Option<Rare>,
    waiting: VecDeque<RawSequence>,
    shaped: Shaped,
}

impl<'r> ShapedReader<'r> {
    pub(super) fn new(inner: Box<dyn SequenceReader + 'r>, shaping: Shaping, rare: Option<Rare>) -> Self {
        let shaped = Shaped { folded_types: rare.as_ref().map_or(0, |rare| rare.types), ..Shaped::default() };
        Self { inner, shaping, rare, waiting: VecDeque::new(), shaped }
    }

    fn shape(&mut self, raw: RawSequence) -> Result<(), Error> {
        check_times(self.inner.name(), &raw)?;
        let id = raw.id.clone();
        let mut pieces = match self.shaping.gap {
            Some(gap) => split_at_gaps(&*self.inner, &raw, gap)?,
            None => vec![raw],
        };
        self.shaped.gap_pieces += pieces.len() as u64 - 1;
        for piece in &mut pieces {
            if let Some(rare) = &self.rare {
                for event in piece.events.iter_mut().filter(|event| rare.has(**event)) {
                    *event = RARE_NUMBER;
                    self.shaped.folded_events += 1;
                }
            }
            if self.shaping.collapse {
                self.shaped.collapsed += collapse(piece);
            }
        }
        if let Some(most) = self.shaping.max_length {
            let before = pieces.len();
            pieces = pieces.into_iter().flat_map(|piece| split_by_length(piece, most)).collect();
            self.shaped.length_pieces += (pieces.len() - before) as u64;
        }
        let count = pieces.len();
        for (number, mut piece) in (1..).zip(pieces) {
            if number > 1 {
                piece.id = format!("{id}#{number}");
            }
            // What was cut off goes on in the next piece.
            piece.ended &= number == count && !self.shaping.open_cases;
            self.waiting.push_back(piece);
        }
        Ok(())
    }
}

impl SequenceReader for ShapedReader<'_> {
    fn next_sequence(&mut self) -> Result<Option<RawSequence>, Error> {
        while self.waiting.is_empty() {
            match self.inner.next_sequence()? {
                Some(raw) => self.shape(raw)?,
                None => return Ok(None),
            }
        }
        Ok(self.waiting.pop_front())
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn event_name(&self, number: u32) -> EventName {
        if number == RARE_NUMBER { EventName::from(RARE) } else { self.inner.event_name(number) }
    }

    fn report(&self) -> Report {
        Report { shaped: self.shaped, ..self.inner.report() }
    }
}

fn split_at_gaps(reader: &dyn SequenceReader, raw: &RawSequence, gap: f64) -> Result<Vec<RawSequence>, Error> {
    let Some(times) = &raw.times else {
        let reason = format!("needs times, but sequence {:?} (line {}) has none", shorten(&raw.id), raw.line);
        let error = Error::option(reader.name(), GAP, reason);
        let named = !matches!(reader.report().format, Format::JsonLines | Format::Text);
        return Err(if named { error.hint(Hint::new(TIME_COLUMN, "names them")) } else { error });
    };
    let mut cuts: Vec<usize> = (1..times.len()).filter(|at| times[*at] - times[at - 1] > gap).collect();
    cuts.push(raw.events.len());
    Ok(cut(raw, &cuts))
}

fn split_by_length(raw: RawSequence, most: usize) -> Vec<RawSequence> {
    if raw.events.len() <= most {
        return vec![raw];
    }
    let mut cuts: Vec<usize> = (most..raw.events.len()).step_by(most).collect();
    cuts.push(raw.events.len());
    cut(&raw, &cuts)
}

fn cut(raw: &RawSequence, cuts: &[usize]) -> Vec<RawSequence> {
    let mut from = 0;
    cuts.iter()
        .map(|to| {
            let range = from..*to;
            from = *to;
            RawSequence {
                id: raw.id.clone(),
                events: raw.events[range.clone()].to_vec(),
                times: raw.times.as_ref().map(|times| times[range].to_vec()),
                ended: raw.ended,
                line: raw.line,
            }
        })
        .collect()
}

/// Of equal events in a row, the first stays; returns how many go.
fn collapse(raw: &mut RawSequence) -> u64 {
    let keep: Vec<bool> = (0..raw.events.len()).map(|at| at == 0 || raw.events[at] != raw.events[at - 1]).collect();
    let before = raw.events.len();
    let mut at = keep.iter();
    raw.events.retain(|_| at.next() == Some(&true));
    if let Some(times) = &mut raw.times {
        let mut at = keep.iter();
        times.retain(|_| at.next() == Some(&true));
    }
    (before - raw.events.len()) as u64
}
