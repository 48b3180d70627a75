//! What a log holds, for people and programs.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Serialize, Serializer};
use trace_core::EventName;

use super::RawSequence;
use super::report::Report;
use super::time::show_time;
use crate::Error;

/// How many of the most frequent types are named.
const FREQUENT: usize = 10;

/// Lengths of sequences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lengths {
    /// The shortest.
    pub min: usize,
    /// Half are no longer.
    pub median: f64,
    /// On average.
    pub mean: f64,
    /// The longest.
    pub max: usize,
}

/// What was read of a log and what was dropped. As data it is flat: what the reader did is among the other keys.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// What the log is called.
    #[serde(rename = "log")]
    pub name: String,
    /// What the reader did.
    #[serde(flatten)]
    pub report: Report,
    /// Sequences.
    pub cases: u64,
    /// Sequences after whose last event the case ended; the others are still running, or were cut off.
    pub ended_cases: u64,
    /// Events of all sequences.
    pub events: u64,
    /// Distinct types.
    #[serde(rename = "event_types")]
    pub types: u64,
    /// How long sequences are.
    pub lengths: Option<Lengths>,
    /// Sequences that have times.
    pub timed_cases: u64,
    /// Events at the same time as the one before them in their sequence.
    pub ties: u64,
    /// The first and the last time.
    #[serde(rename = "time_span")]
    pub span: Option<(f64, f64)>,
    /// The same as dates, where the log has dates.
    pub dates: Option<(String, String)>,
    /// The most frequent types and how often they occur.
    #[serde(rename = "most_frequent", serialize_with = "as_records")]
    pub frequent: Vec<(EventName, u64)>,
    /// Types that the model does not know and takes as rare, and their events.
    pub taken_as_rare: (u64, u64),
    /// Its steps, where its events are steps with outcomes.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Steps>,
}

/// How many steps a log has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Steps {
    /// All of them.
    pub steps: u64,
    /// Those with at least two outcomes.
    pub steps_with_outcomes: u64,
}

impl Summary {
    /// A log without sequences is an error.
    pub fn check(&self) -> Result<(), Error> {
        if self.cases > 0 {
            return Ok(());
        }
        let reason = match self.report.skipped.reasons.first() {
            Some(first) => {
                format!("holds no sequence: all {} rows were skipped, the first because of {first}", self.report.rows)
            }
            None => "holds no sequence; expected at least one".to_owned(),
        };
        Err(Error::file(&self.name, reason))
    }

    /// Whether the log has times and they are dates.
    pub const fn dated(&self) -> bool {
        self.report.dated && self.span.is_some()
    }

    /// In one line, without what did not happen.
    pub fn line(&self) -> String {
        let report = &self.report;
        let mut text = format!("{}: {} sequences, {} events, {} types", self.name, self.cases, self.events, self.types);
        let mut remark = |count: u64, what: &str| {
            if count > 0 {
                text += &format!("; {count} {what}");
            }
        };
        remark(self.ties, "events tied in time with the one before");
        remark(report.skipped.count, "rows skipped");
        let shaped = report.shaped;
        remark(shaped.folded_types, "rare types folded into one");
        remark(self.taken_as_rare.0, "types the model does not know taken as rare");
        remark(shaped.collapsed, "repeated events dropped");
        remark(shaped.gap_pieces, "more pieces from splitting at gaps");
        remark(shaped.length_pieces, "more pieces from splitting by length");
        if let Some(first) = report.skipped.reasons.first() {
            text += &format!(" (the first: {first})");
        }
        text
    }
}

/// One type and how often it occurs, as data.
#[derive(Serialize)]
struct Frequent {
    event: EventName,
    count: u64,
}

fn as_records<S: Serializer>(frequent: &[(EventName, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(frequent.iter().map(|(name, count)| Frequent { event: name.clone(), count: *count }))
}

/// What is added up while a log is read.
#[derive(Default)]
pub(super) struct Tally {
    lengths: Vec<u32>,
    ended: u64,
    counts: FxHashMap<u32, u64>,
    timed_cases: u64,
    ties: u64,
    span: Option<(f64, f64)>,
    folded: FxHashSet<u32>,
}

impl Tally {
    pub(super) fn add(&mut self, raw: &RawSequence) {
        self.lengths.push(u32::try_from(raw.events.len()).unwrap_or(u32::MAX));
        self.ended += u64::from(raw.ended && !raw.events.is_empty());
        for event in &raw.events {
            *self.counts.entry(*event).or_default() += 1;
        }
        let Some(times) = &raw.times else { return };
        self.timed_cases += 1;
        self.ties += times.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
        if let (Some(first), Some(last)) = (times.first(), times.last()) {
            let (least, most) = self.span.unwrap_or((*first, *last));
            self.span = Some((least.min(*first), most.max(*last)));
        }
    }

    /// A number is taken as rare by the vocabulary.
    pub(super) fn fold(&mut self, number: u32) {
        self.folded.insert(number);
    }

    pub(super) fn summary(&self, name: &str, report: Report, names: &dyn Fn(u32) -> EventName) -> Summary {
        let events: u64 = self.lengths.iter().map(|length| u64::from(*length)).sum();
        let mut frequent: Vec<(u32, u64)> = self.counts.iter().map(|(number, count)| (*number, *count)).collect();
        frequent.sort_unstable_by_key(|(number, count)| (u64::MAX - count, *number));
        let folded = self.folded.iter().map(|number| self.counts.get(number).copied().unwrap_or(0)).sum();
        let dates = self.span.filter(|_| report.dated);
        Summary {
            name: name.to_owned(),
            report,
            cases: self.lengths.len() as u64,
            ended_cases: self.ended,
            events,
            types: self.counts.len() as u64,
            lengths: lengths(&self.lengths, events),
            timed_cases: self.timed_cases,
            ties: self.ties,
            span: self.span,
            dates: dates.and_then(|(first, last)| Some((show_time(first)?, show_time(last)?))),
            frequent: frequent.iter().take(FREQUENT).map(|(number, count)| (names(*number), *count)).collect(),
            taken_as_rare: (self.folded.len() as u64, folded),
            steps: None,
        }
    }
}

fn lengths(all: &[u32], events: u64) -> Option<Lengths> {
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    let (min, max) = (*sorted.first()? as usize, *sorted.last()? as usize);
    let middle = |index: usize| f64::from(sorted[index]);
    let half = sorted.len() / 2;
    let median =
        if sorted.len().is_multiple_of(2) { f64::midpoint(middle(half - 1), middle(half)) } else { middle(half) };
    Some(Lengths { min, median, mean: events as f64 / sorted.len() as f64, max })
}
