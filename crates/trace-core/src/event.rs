//! The nouns of the input: event types, positions, lags and observed sequences.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// An event type: an index into the model's [`Vocabulary`](crate::Vocabulary).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventId(pub u32);

impl EventId {
    /// The id as an index into per-type tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A place in one sequence, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position(pub u32);

impl Position {
    /// The position as an index into the sequence.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The distance from a cause to its effect, in events; at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lag(pub u32);

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One observed sequence `s = (x_0 … x_{L-1})`, optionally with timestamps.
///
/// The id names the sequence in results and also keys its random streams, so that a sequence gets the same
/// result whether it is run alone, first or last.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSequence {
    /// The name of the sequence, unique within a log.
    pub id: String,
    /// What happened, in order.
    pub events: Vec<EventId>,
    /// When it happened, in any unit; as long as `events` and never decreasing.
    pub times: Option<Vec<f64>>,
    /// Whether the case ended after the last event. A case that is still running, and a piece that was cut off before
    /// the case's end, did not.
    pub ended: bool,
}

impl EventSequence {
    /// A sequence without timestamps, of a case that has not ended.
    pub fn new(id: impl Into<String>, events: Vec<EventId>) -> Self {
        Self { id: id.into(), events, times: None, ended: false }
    }

    /// The events, and the end after them where the case has ended and the end is asked for.
    pub fn with_end(&self, end: Option<EventId>) -> Cow<'_, [EventId]> {
        match end.filter(|_| self.ended) {
            Some(end) => Cow::Owned(self.events.iter().copied().chain([end]).collect()),
            None => Cow::Borrowed(&self.events),
        }
    }

    /// Whether the two positions carry the same timestamp, so that their order is only that of the file.
    pub fn tied(&self, a: Position, b: Position) -> bool {
        self.times
            .as_ref()
            .is_some_and(|times| matches!((times.get(a.index()), times.get(b.index())), (Some(x), Some(y)) if x == y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_need_equal_times() {
        let mut sequence = EventSequence::new("a", vec![EventId(0), EventId(1), EventId(2)]);
        assert!(!sequence.tied(Position(0), Position(1)));
        sequence.times = Some(vec![1.0, 1.0, 2.0]);
        assert!(sequence.tied(Position(0), Position(1)));
        assert!(!sequence.tied(Position(1), Position(2)));
        assert!(!sequence.tied(Position(2), Position(3)));
    }
}
