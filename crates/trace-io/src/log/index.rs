//! Rows of many cases, grouped: what long formats are read into.
//!
//! While rows come in, each takes 16 bytes (8 without times); grouping holds 12 more (4) until it is done, and 12
//! (4) are left in the end. A case's rows are sorted by time; rows of equal time stay in file order.

use std::cmp::Ordering;

use trace_core::EventName;

use super::names::{Names, Refused};
use super::report::Report;
use super::{RawSequence, SequenceReader};
use crate::Error;

/// What the one case of a log without cases is called.
pub(super) const SINGLE_CASE: &str = "log";

/// Rows as they come.
pub(super) struct Rows {
    file: String,
    case_names: Names,
    lines: Vec<u64>,
    event_names: Names,
    cases: Vec<u32>,
    events: Vec<u32>,
    times: Option<Vec<f64>>,
}

impl Rows {
    pub(super) fn new(file: &str, timed: bool) -> Self {
        Self {
            file: file.to_owned(),
            case_names: Names::default(),
            lines: Vec::new(),
            event_names: Names::default(),
            cases: Vec::new(),
            events: Vec::new(),
            times: timed.then(Vec::new),
        }
    }

    /// The number of a case, which is first seen on `line` if it is new.
    pub(super) fn case(&mut self, name: &str, line: u64) -> Result<u32, Error> {
        let number = self.case_names.intern(name).ok_or_else(|| self.too_many("cases"))?;
        if self.case_names.len() > self.lines.len() {
            self.lines.push(line);
        }
        Ok(number)
    }

    /// The number of an event type.
    pub(super) fn event(&mut self, name: &str) -> Result<u32, Error> {
        self.event_names.intern(name).ok_or_else(|| self.too_many("event types"))
    }

    /// The number of a step with its outcome; blank text is none.
    pub(super) fn step(&mut self, step: &str, outcome: &str) -> Result<u32, Error> {
        let outcome = Some(outcome).filter(|outcome| !outcome.trim().is_empty());
        self.event_names.intern_step(step, outcome).map_err(|refused| match refused {
            Refused::TooMany => self.too_many("event types"),
            Refused::Ambiguous(reason) => Error::file(&self.file, reason),
        })
    }

    fn too_many(&self, what: &str) -> Error {
        Error::file(&self.file, format!("more than 4 billion {what}"))
    }

    /// More rows; `times` is empty where the log has none.
    pub(super) fn extend(
        &mut self,
        cases: impl Iterator<Item = u32>,
        events: impl Iterator<Item = u32>,
        times: &[f64],
    ) {
        self.cases.extend(cases);
        self.events.extend(events);
        if let Some(all) = &mut self.times {
            all.extend_from_slice(times);
        }
    }

    /// Brings the rows of each case together, and each case into the order of its times.
    pub(super) fn group(mut self, mut report: Report) -> Index {
        let mut starts = vec![0usize; self.case_names.len() + 1];
        for case in &self.cases {
            starts[*case as usize + 1] += 1;
        }
        for case in 1..starts.len() {
            starts[case] += starts[case - 1];
        }
        if !self.cases.is_sorted() {
            let (events, times) = rayon::join(
                || scatter(&self.events, &self.cases, &starts),
                || self.times.as_ref().map(|times| scatter(times, &self.cases, &starts)),
            );
            (self.events, self.times) = (events, times);
        }
        drop(self.cases);
        if let Some(times) = &mut self.times {
            for case in starts.windows(2) {
                let range = case[0]..case[1];
                if !times[range.clone()].is_sorted() {
                    report.sorted_cases += 1;
                    sort(&mut times[range.clone()], &mut self.events[range]);
                }
            }
        }
        Index {
            file: self.file,
            case_names: self.case_names,
            lines: self.lines,
            starts,
            event_names: self.event_names,
            events: self.events,
            times: self.times,
            report,
        }
    }
}

/// Each value to the next free place of its case.
fn scatter<T: Copy + Default>(values: &[T], cases: &[u32], starts: &[usize]) -> Vec<T> {
    let mut next = starts.to_vec();
    let mut out = vec![T::default(); values.len()];
    for (value, case) in values.iter().zip(cases) {
        let place = &mut next[*case as usize];
        out[*place] = *value;
        *place += 1;
    }
    out
}

/// By time; what has the same time keeps its order.
pub(super) fn sort(times: &mut [f64], events: &mut [u32]) {
    let mut rows: Vec<(f64, u32)> = times.iter().copied().zip(events.iter().copied()).collect();
    rows.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
    for (index, (time, event)) in rows.into_iter().enumerate() {
        (times[index], events[index]) = (time, event);
    }
}

/// A log in memory, by case, in the order in which the cases appear.
pub(super) struct Index {
    file: String,
    case_names: Names,
    lines: Vec<u64>,
    /// Where each case begins, and the end of the last.
    starts: Vec<usize>,
    event_names: Names,
    events: Vec<u32>,
    times: Option<Vec<f64>>,
    report: Report,
}

/// One pass over an index.
pub(super) struct IndexPass<'i> {
    index: &'i Index,
    next: usize,
}

impl Index {
    pub(super) fn pass(&self) -> IndexPass<'_> {
        IndexPass { index: self, next: 0 }
    }

    pub(super) const fn event_names(&self) -> &Names {
        &self.event_names
    }
}

impl SequenceReader for IndexPass<'_> {
    fn next_sequence(&mut self) -> Result<Option<RawSequence>, Error> {
        let Some([from, to]) = self.index.starts.get(self.next..self.next + 2) else { return Ok(None) };
        let Some(name) = self.index.case_names.get(self.next as u32) else { return Ok(None) };
        let sequence = RawSequence {
            id: name.to_string(),
            events: self.index.events[*from..*to].to_vec(),
            times: self.index.times.as_ref().map(|times| times[*from..*to].to_vec()),
            ended: true,
            line: self.index.lines[self.next],
        };
        self.next += 1;
        Ok(Some(sequence))
    }

    fn name(&self) -> &str {
        &self.index.file
    }

    fn event_name(&self, number: u32) -> EventName {
        self.index.event_names.name(number)
    }

    fn report(&self) -> Report {
        self.index.report.clone()
    }
}
