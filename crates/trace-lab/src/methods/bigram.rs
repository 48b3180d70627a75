//! Counting neighbors: how often one type directly follows another. Simple as it is, it beats or ties neural methods
//! on some logs, and so keeps everyone honest.

use rustc_hash::FxHashMap;
use trace_core::{Discovered, Error, EventId, EventSequence};

use super::{Method, MethodName, Span, graph, without_branches};

/// How often each type is directly followed by each other.
#[derive(Clone, Debug, Default)]
pub struct BigramCounts {
    pairs: FxHashMap<(EventId, EventId), u64>,
    causes: FxHashMap<EventId, u64>,
}

impl BigramCounts {
    /// Counts the neighbors of one more sequence.
    pub fn add(&mut self, events: &[EventId]) {
        for pair in events.windows(2) {
            *self.pairs.entry((pair[0], pair[1])).or_default() += 1;
            *self.causes.entry(pair[0]).or_default() += 1;
        }
    }

    /// The share of one type's successors that are of another type.
    pub fn share(&self, cause: EventId, effect: EventId) -> f64 {
        let count = self.pairs.get(&(cause, effect)).copied().unwrap_or(0);
        let all = self.causes.get(&cause).copied().unwrap_or(0);
        if all == 0 { 0.0 } else { count as f64 / all as f64 }
    }
}

/// The share of the cause's successors that are of the effect's type, for neighbors; no other pair is an edge.
#[derive(Clone, Debug)]
pub struct Bigram {
    /// Which pairs are scored.
    pub span: Span,
    /// What was counted.
    pub counts: BigramCounts,
    /// What a share must exceed.
    pub threshold: f64,
}

impl Bigram {
    /// A tenth of all successors.
    pub const THRESHOLD: f64 = 0.1;
}

impl Method for Bigram {
    fn name(&self) -> MethodName {
        MethodName::Bigram
    }

    fn threshold(&self) -> f64 {
        self.threshold
    }

    fn run(&self, sequence: &EventSequence) -> Result<Discovered, Error> {
        self.span.check(sequence)?;
        let events = &sequence.events;
        let scores: Vec<Vec<f64>> = self
            .span
            .effects(events.len())
            .map(|effect| {
                let mut scores = vec![0.0; self.span.lags(effect)];
                if let Some(neighbor) = scores.first_mut() {
                    *neighbor = self.counts.share(events[effect - 1], events[effect]);
                }
                scores
            })
            .collect();
        Ok(without_branches(graph(sequence, self.span, self.threshold, None, &scores)?))
    }
}
