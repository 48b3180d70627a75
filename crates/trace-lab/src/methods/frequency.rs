//! The most frequent types cause everything that follows them.

use trace_core::{Discovered, Error, EventSequence};

use super::{Method, MethodName, Span, graph, without_branches};

/// The share of each type among all events, as a score of every edge from it.
#[derive(Clone, Debug)]
pub struct Frequency {
    span: Span,
    shares: Vec<f64>,
    threshold: f64,
}

impl Frequency {
    /// How many types are causes, unless a threshold says otherwise.
    pub const CAUSES: usize = 10;

    /// From the number of occurrences of each type. Without a threshold, the [`Self::CAUSES`] most frequent types are
    /// causes.
    pub fn new(span: Span, counts: &[f64], threshold: Option<f64>) -> Self {
        let total: f64 = counts.iter().sum();
        let shares: Vec<f64> = counts.iter().map(|count| count / total.max(f64::MIN_POSITIVE)).collect();
        let threshold = threshold.unwrap_or_else(|| {
            let mut sorted = shares.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            sorted.get(Self::CAUSES).copied().unwrap_or(0.0)
        });
        Self { span, shares, threshold }
    }
}

impl Method for Frequency {
    fn name(&self) -> MethodName {
        MethodName::Frequency
    }

    fn threshold(&self) -> f64 {
        self.threshold
    }

    fn run(&self, sequence: &EventSequence) -> Result<Discovered, Error> {
        self.span.check(sequence)?;
        let share = |position: usize| {
            let event = sequence.events[position];
            let vocabulary = self.shares.len();
            self.shares.get(event.index()).copied().ok_or(Error::UnknownEvent { event: event.0, position, vocabulary })
        };
        let effects = self.span.effects(sequence.events.len());
        let scores = effects
            .map(|effect| (1..=self.span.lags(effect)).map(|lag| share(effect - lag)).collect())
            .collect::<Result<Vec<Vec<f64>>, Error>>()?;
        Ok(without_branches(graph(sequence, self.span, self.threshold, None, &scores)?))
    }
}
