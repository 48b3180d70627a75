//! Event logs.
//!
//! A *reader* turns one format into [`RawSequence`]s; [`EventLog::read`] gives them ids from a vocabulary and checks
//! what all formats share: ids that occur once, times that do not decrease, events that are known. A new format is
//! one more file with one more reader, and an arm in [`open`].

mod jsonl;
mod text;

use std::path::Path;

use rustc_hash::FxHashMap;
use trace_core::{EventId, EventName, EventSequence, Vocabulary};
use twox_hash::XxHash3_64;

use crate::Error;
use crate::lines::Lines;

/// One sequence as a log has it.
#[derive(Clone, Debug, PartialEq)]
pub struct RawSequence {
    /// Its name.
    pub id: String,
    /// What happened, in order.
    pub events: Vec<EventName>,
    /// When, where the log says so; as long as `events`.
    pub times: Option<Vec<f64>>,
    /// Where it starts in the file.
    pub line: u64,
}

/// Reads one format.
pub trait SequenceReader {
    /// The next sequence of the log.
    fn next_sequence(&mut self) -> Result<Option<RawSequence>, Error>;
    /// What to call the log in messages.
    fn name(&self) -> &str;
}

/// Opens a log by its extension, or by its first byte where that says nothing; `-` is standard input.
pub fn open(path: &Path) -> Result<Box<dyn SequenceReader>, Error> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let mut lines = Lines::open(path)?;
    match extension.as_str() {
        "jsonl" | "ndjson" | "json" => Ok(Box::new(jsonl::JsonLines(lines))),
        "txt" => Ok(Box::new(text::PlainText(lines))),
        "csv" | "tsv" | "parquet" | "xes" | "gz" | "zst" => Err(Error::file(
            path,
            format!(
                ".{extension} logs are not read by this version; expected JSON Lines (.jsonl) or plain text (.txt)"
            ),
        )),
        _ => match lines.peek()? {
            Some(b'{') => Ok(Box::new(jsonl::JsonLines(lines))),
            _ => Ok(Box::new(text::PlainText(lines))),
        },
    }
}

/// What to do with an event that the vocabulary does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Add it.
    Add,
    /// Refuse the log.
    Refuse,
    /// Leave the event out.
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

/// A log, a sequence at a time, so that it need not fit in memory.
pub struct Sequences {
    reader: Box<dyn SequenceReader>,
    unknown: Unknown,
    /// Line of each id; of the ids themselves a hash is kept, for they may be many.
    seen: FxHashMap<u64, u64>,
}

impl Sequences {
    /// Reads from a reader.
    pub fn new(reader: Box<dyn SequenceReader>, unknown: Unknown) -> Self {
        Self { reader, unknown, seen: FxHashMap::default() }
    }

    /// What to call the log in messages.
    pub fn name(&self) -> &str {
        self.reader.name()
    }

    /// The next sequence; checks what all formats share.
    pub fn next(&mut self, vocabulary: &mut Vocabulary) -> Result<Option<Identified>, Error> {
        let Some(raw) = self.reader.next_sequence()? else { return Ok(None) };
        if let Some(first) = self.seen.insert(XxHash3_64::oneshot(raw.id.as_bytes()), raw.line) {
            let reason = format!("id {:?} occurs twice; it stands on line {first} already", shorten(&raw.id));
            return Err(Error::line(self.name(), raw.line, reason));
        }
        identify(self.reader.name(), raw, vocabulary, self.unknown).map(Some)
    }
}

fn identify(file: &str, raw: RawSequence, vocabulary: &mut Vocabulary, unknown: Unknown) -> Result<Identified, Error> {
    check_times(file, &raw)?;
    let mut events: Vec<EventId> = Vec::with_capacity(raw.events.len());
    let mut skipped = Vec::new();
    let mut times = raw.times.as_ref().map(|_| Vec::with_capacity(raw.events.len()));
    for (position, name) in raw.events.iter().enumerate() {
        let id = if unknown == Unknown::Add { vocabulary.intern(name) } else { vocabulary.id(name) };
        match (id, unknown) {
            (Some(id), _) => {
                events.push(id);
                if let (Some(kept), Some(all)) = (&mut times, &raw.times) {
                    kept.push(all[position]);
                }
            }
            (None, Unknown::Skip) => skipped.push(position as u32),
            (None, _) => {
                let reason = format!(
                    "event {:?} at position {position} of sequence {:?} is not among the {} types the model knows \
                     (unknown: skip leaves such events out)",
                    shorten(&name.to_string()),
                    shorten(&raw.id),
                    vocabulary.len()
                );
                return Err(Error::line(file, raw.line, reason));
            }
        }
    }
    Ok(Identified { sequence: EventSequence { id: raw.id, events, times }, line: raw.line, skipped })
}

impl EventLog {
    /// Reads a whole log.
    pub fn read(reader: Box<dyn SequenceReader>, vocabulary: &mut Vocabulary, unknown: Unknown) -> Result<Self, Error> {
        let mut sequences = Sequences::new(reader, unknown);
        let mut log = Self { name: sequences.name().to_owned(), ..Self::default() };
        while let Some(Identified { sequence, line, skipped }) = sequences.next(vocabulary)? {
            log.sequences.push(sequence);
            log.lines.push(line);
            log.skipped.push(skipped);
        }
        if log.sequences.is_empty() {
            return Err(Error::file(&log.name, "holds no sequence; expected at least one"));
        }
        Ok(log)
    }

    /// Keeps the sequences for which `keep` says so.
    pub fn retain(&mut self, keep: impl Fn(&EventSequence) -> bool) {
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

/// A name short enough for a message.
fn shorten(name: &str) -> String {
    if name.chars().count() <= 60 { name.to_owned() } else { name.chars().take(59).chain(['…']).collect() }
}

/// Whole numbers up to here have no neighbours that look the same.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn check_times(file: &str, raw: &RawSequence) -> Result<(), Error> {
    let Some(times) = &raw.times else { return Ok(()) };
    let fault = |reason: String| Err(Error::line(file, raw.line, reason));
    if let Some(time) = times.iter().find(|time| time.abs() > EXACT) {
        return fault(format!(
            "time {time} of sequence {:?} is too large to be exact; use a coarser unit, or count from a later start",
            shorten(&raw.id)
        ));
    }
    if times.len() != raw.events.len() {
        return fault(format!("{} times for {} events in sequence {:?}", times.len(), raw.events.len(), raw.id));
    }
    match times.windows(2).position(|pair| pair[1] < pair[0]) {
        Some(at) => fault(format!(
            "times of sequence {:?} must not decrease, but position {} has {} after {}",
            raw.id,
            at + 1,
            times[at + 1],
            times[at]
        )),
        None => Ok(()),
    }
}
