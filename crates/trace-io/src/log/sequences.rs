//! From a reader's names to the ids of a vocabulary, and the checks that all formats share.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use trace_core::{EventId, EventName, EventSequence, Vocabulary};
use twox_hash::XxHash3_64;

use super::hints::{FROM_NANOSECONDS, SKIP_ROWS, SKIP_UNKNOWN, WITHOUT_TIMES};
use super::summary::{Summary, Tally};
use super::time::{EXACT, not_finite};
use super::{Log, RARE, RawSequence, SequenceReader, shorten};
use crate::Error;

/// What to do with an event that the vocabulary does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unknown {
    /// Add it.
    Add,
    /// Refuse the log; `error` as data. A vocabulary that has [`RARE`] knows every event: what it lacks is that.
    #[default]
    #[serde(rename = "error")]
    Refuse,
    /// Leave the event out, unless the vocabulary has [`RARE`].
    Skip,
}

/// A log in memory.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    /// What to call it in messages.
    pub name: String,
    /// Its sequences, in order.
    pub sequences: Vec<EventSequence>,
    /// The line that each starts at.
    pub lines: Vec<u64>,
    /// The positions in the log of unknown events that were left out of each.
    pub skipped: Vec<Vec<u32>>,
    /// Whether times are dates, as seconds since 1970; [`show_time`](super::show_time) writes such a time.
    pub dated: bool,
}

/// One sequence with the ids of a vocabulary.
#[derive(Clone, Debug, PartialEq)]
pub struct Identified {
    /// The sequence.
    pub sequence: EventSequence,
    /// The line that it starts at.
    pub line: u64,
    /// The positions in the log of unknown events that were left out.
    pub skipped: Vec<u32>,
}

/// A log, one sequence at a time, so that it need not fit in memory.
pub struct Sequences<'l> {
    reader: Box<dyn SequenceReader + 'l>,
    unknown: Unknown,
    /// Line of each id; of the ids themselves a hash is kept, for they may be many.
    seen: FxHashMap<u64, u64>,
    /// The vocabulary's ids of the reader's numbers that occurred.
    ids: FxHashMap<u32, Option<EventId>>,
    tally: Tally,
}

impl<'l> Sequences<'l> {
    /// Reads from a reader.
    pub fn new(reader: Box<dyn SequenceReader + 'l>, unknown: Unknown) -> Self {
        let (seen, ids) = (FxHashMap::default(), FxHashMap::default());
        Self { reader, unknown, seen, ids, tally: Tally::default() }
    }

    /// What to call the log in messages.
    pub fn name(&self) -> &str {
        self.reader.name()
    }

    /// The next sequence; checks what all formats share. The vocabulary must be the same in all calls.
    pub fn next(&mut self, vocabulary: &mut Vocabulary) -> Result<Option<Identified>, Error> {
        let Some(raw) = self.reader.next_sequence()? else { return Ok(None) };
        if let Some(first) = self.seen.insert(XxHash3_64::oneshot(raw.id.as_bytes()), raw.line) {
            let reason = format!("id {:?} occurs twice; it stands on line {first} already", shorten(&raw.id));
            return Err(Error::line(self.name(), raw.line, reason));
        }
        check_times(self.name(), &raw)?;
        self.tally.add(&raw);
        self.identify(raw, vocabulary).map(Some)
    }

    fn identify(&mut self, raw: RawSequence, vocabulary: &mut Vocabulary) -> Result<Identified, Error> {
        let mut events: Vec<EventId> = Vec::with_capacity(raw.events.len());
        let mut skipped = Vec::new();
        for (position, number) in raw.events.iter().enumerate() {
            match self.id(*number, vocabulary) {
                Some(id) => events.push(id),
                None if self.unknown == Unknown::Skip => skipped.push(position as u32),
                None => {
                    let reason = format!(
                        "event {:?} at position {position} of sequence {:?} is not among the {} types the model knows",
                        shorten(&self.reader.event_name(*number).to_string()),
                        shorten(&raw.id),
                        vocabulary.len()
                    );
                    return Err(Error::line(self.reader.name(), raw.line, reason).hint(SKIP_UNKNOWN));
                }
            }
        }
        let times = match raw.times {
            Some(times) if !skipped.is_empty() => {
                let mut out = skipped.iter().peekable();
                let kept =
                    times.into_iter().enumerate().filter(|(at, _)| out.next_if(|s| **s as usize == *at).is_none());
                Some(kept.map(|(_, time)| time).collect())
            }
            times => times,
        };
        let sequence = EventSequence { id: raw.id, events, times, ended: raw.ended };
        Ok(Identified { sequence, line: raw.line, skipped })
    }

    /// The vocabulary's id of a reader's number.
    fn id(&mut self, number: u32, vocabulary: &mut Vocabulary) -> Option<EventId> {
        if let Some(id) = self.ids.get(&number) {
            return *id;
        }
        let name = self.reader.event_name(number);
        let id = match self.unknown {
            Unknown::Add => vocabulary.intern(&name),
            Unknown::Refuse | Unknown::Skip => {
                let known = vocabulary.id(&name);
                let rare = || vocabulary.has_names().then(|| vocabulary.id(&EventName::from(RARE))).flatten();
                let folded = if known.is_none() { rare() } else { None };
                if folded.is_some() {
                    self.tally.fold(number);
                }
                known.or(folded)
            }
        };
        self.ids.insert(number, id);
        id
    }

    /// What was read so far; all of the log once there is no next sequence.
    pub fn summary(&self) -> Summary {
        let names = |number: u32| self.reader.event_name(number);
        self.tally.summary(self.reader.name(), self.reader.report(), &names)
    }
}

impl EventLog {
    /// Reads a whole log, and says what was read.
    pub fn read(log: &Log, vocabulary: &mut Vocabulary, unknown: Unknown) -> Result<(Self, Summary), Error> {
        Self::read_pass(log.pass()?, vocabulary, unknown)
    }

    /// The same from one reading of a log.
    pub fn read_pass(
        pass: Box<dyn SequenceReader + '_>,
        vocabulary: &mut Vocabulary,
        unknown: Unknown,
    ) -> Result<(Self, Summary), Error> {
        let mut sequences = Sequences::new(pass, unknown);
        let mut read = Self { name: sequences.name().to_owned(), ..Self::default() };
        while let Some(Identified { sequence, line, skipped }) = sequences.next(vocabulary)? {
            read.sequences.push(sequence);
            read.lines.push(line);
            read.skipped.push(skipped);
        }
        let summary = sequences.summary();
        summary.check()?;
        read.dated = summary.dated();
        Ok((read, summary))
    }

    /// Keeps the sequences for which `keep` says so.
    pub fn retain(&mut self, keep: impl FnMut(&EventSequence) -> bool) {
        let flags: Vec<bool> = self.sequences.iter().map(keep).collect();
        let mut at = flags.iter();
        self.sequences.retain(|_| at.next() == Some(&true));
        let mut at = flags.iter();
        self.lines.retain(|_| at.next() == Some(&true));
        let mut at = flags.iter();
        self.skipped.retain(|_| at.next() == Some(&true));
    }

    /// The number of events of all sequences.
    pub fn events(&self) -> usize {
        self.sequences.iter().map(|sequence| sequence.events.len()).sum()
    }
}

/// Times must be finite and exact, as many as events, and must not decrease.
pub(super) fn check_times(file: &str, raw: &RawSequence) -> Result<(), Error> {
    let Some(times) = &raw.times else { return Ok(()) };
    let id = || shorten(&raw.id);
    let fault = |reason: String| Error::line(file, raw.line, reason);
    if let Some(time) = times.iter().find(|time| time.is_nan() || time.abs() > EXACT) {
        return Err(match not_finite(*time) {
            Some(wrong) => wrong.at(format_args!("sequence {:?}", id())).hint(SKIP_ROWS).on_line(file, raw.line),
            None => {
                fault(format!("time {time} of sequence {:?} is too large to be exact", id())).hint(FROM_NANOSECONDS)
            }
        });
    }
    if times.len() != raw.events.len() {
        return Err(fault(format!("{} times for {} events in sequence {:?}", times.len(), raw.events.len(), id())));
    }
    match times.windows(2).position(|pair| pair[1] < pair[0]) {
        Some(at) => {
            let reason = format!(
                "times of sequence {:?} must not decrease, but position {} has {} after {}",
                id(),
                at + 1,
                times[at + 1],
                times[at]
            );
            Err(fault(reason).hint(WITHOUT_TIMES))
        }
        None => Ok(()),
    }
}
