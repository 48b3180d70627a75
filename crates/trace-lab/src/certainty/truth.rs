//! The contrast that evidence tests, by the exact conditionals of a process.
//!
//! At each place `j < q` every type `r` is put in the place of `x_j`, weighted by how plausible it was there: `π_jq(r)`.
//! What evidence would add up to is then known without looking at what happened (names as in `trace_core::evidence`):
//!
//! ```text
//! E[R] = π(u) (P(v | u) − p⁰(v))        W = (1 − π(v)) π⁰(u) (1 − π⁰(u)) p⁰(v)        ratio = 1 + Σ E[R] / Σ W
//! ```

use rayon::prelude::*;
use trace_core::{
    Branches, DensityModel, Error as CoreError, EventId, EventSequence, Measure, ModelError, Position, Scores,
};

/// Types less plausible than this say nothing.
const LEAST_WEIGHT: f64 = 1e-7;
/// A contrast counts as one where the cause is at least this plausible.
const PLAUSIBLE: f64 = 1e-3;
/// Sequences that are measured at a time.
const TOGETHER: usize = 16;

/// What the places of many sequences say of one pair of types.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contrast {
    /// `Σ E[R]`
    residual: f64,
    /// `Σ W`
    weight: f64,
    /// The largest logarithm of a ratio, of either sign, where the cause is plausible.
    pub(super) largest: f64,
}

impl Contrast {
    /// How many times as likely the cause makes the effect; none where it never stands before it.
    pub(super) fn ratio(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| 1.0 + self.residual / self.weight)
    }

    fn merge(&mut self, other: &Self) {
        self.residual += other.residual;
        self.weight += other.weight;
        self.largest = self.largest.max(other.largest);
    }
}

/// The contrasts of all pairs of types.
#[derive(Clone, Debug)]
pub(super) struct Contrasts {
    types: usize,
    pairs: Vec<Contrast>,
}

impl Contrasts {
    /// Measures all pairs on these sequences; tied places say nothing.
    pub(super) fn measure(
        process: &dyn DensityModel,
        sequences: &[EventSequence],
        memory: usize,
    ) -> Result<Self, CoreError> {
        let types = process.vocabulary_size();
        let mut all = Self { types, pairs: vec![Contrast::default(); types * types] };
        // Added up in their order, so that threads do not matter.
        for sequences in sequences.chunks(TOGETHER) {
            let parts = sequences
                .par_iter()
                .map(|sequence| {
                    let mut part = Self { types, pairs: vec![Contrast::default(); types * types] };
                    part.add(process, sequence, memory)?;
                    Ok(part)
                })
                .collect::<Result<Vec<Self>, ModelError>>()?;
            for part in parts {
                all.pairs.iter_mut().zip(&part.pairs).for_each(|(sum, part)| sum.merge(part));
            }
        }
        Ok(all)
    }

    /// The contrast of a pair.
    pub(super) fn of(&self, cause: usize, effect: usize) -> &Contrast {
        &self.pairs[cause * self.types + effect]
    }

    fn add(&mut self, process: &dyn DensityModel, sequence: &EventSequence, memory: usize) -> Result<(), ModelError> {
        let events = &sequence.events;
        let replacements: Vec<EventId> = (0..self.types as u32).map(EventId).collect();
        let reading = process.read(events)?;
        let (mut scores, mut row) = (Scores::default(), vec![0.0; process.row_size()]);
        for cause in 0..events.len().saturating_sub(1) {
            let horizon = memory.min(events.len() - 1 - cause);
            let branches = [Branches::new(cause, horizon, 1, &replacements)];
            scores.lay_out(&branches, Measure::Distribution, row.len());
            reading.score(&branches, &mut scores)?;
            reading.distribution(cause, &mut row)?;
            let mut logs = row[..self.types].to_vec();
            for lag in 1..=horizon {
                let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = logs.iter().map(|log| (log - high).exp()).sum();
                let weights: Vec<f64> = logs.iter().map(|log| (log - high).exp() / total).collect();
                let at = |position: usize| Position(position as u32);
                if !sequence.tied(at(cause), at(cause + lag)) {
                    self.place(&weights, |replacement| scores.distribution(0, replacement, lag));
                }
                for (replacement, log) in logs.iter_mut().enumerate() {
                    *log += scores.event(0, replacement, lag).log_p;
                }
            }
        }
        Ok(())
    }

    /// Adds one place: how plausible each type was, and what follows it.
    fn place<'r>(&mut self, weights: &[f64], following: impl Fn(usize) -> &'r [f64]) {
        let types = self.types;
        let plausible: Vec<usize> = (0..types).filter(|r| weights[*r] > LEAST_WEIGHT).collect();
        let rows: Vec<Vec<f64>> =
            plausible.iter().map(|r| following(*r)[..types].iter().map(|log| log.exp()).collect()).collect();
        let (mut sums, mut own) = (vec![0.0; types], vec![0.0; types]);
        for (r, row) in plausible.iter().zip(&rows) {
            sums.iter_mut().zip(row).for_each(|(sum, p)| *sum += weights[*r] * p);
            own[*r] = weights[*r] * row[*r];
        }
        for (u, row) in plausible.iter().zip(&rows) {
            for v in (0..types).filter(|v| v != u) {
                let rest = 1.0 - weights[v];
                let (share, p) = (weights[*u] / rest, (sums[v] - own[v]) / rest);
                if rest < LEAST_WEIGHT || share >= 1.0 || p <= 0.0 {
                    continue;
                }
                let pair = &mut self.pairs[u * types + v];
                pair.residual += weights[*u] * (row[v] - p);
                pair.weight += rest * share * (1.0 - share) * p;
                let others = (p - share * row[v]) / (1.0 - share);
                if weights[*u] >= PLAUSIBLE && others > 0.0 && row[v] > 0.0 {
                    pair.largest = pair.largest.max((row[v] / others).ln().abs());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    /// The second of three types makes the third four times as likely next.
    struct Pushed;

    impl DensityModel for Pushed {
        fn vocabulary_size(&self) -> usize {
            3
        }

        fn backbone(&self) -> &'static str {
            "pushed"
        }

        fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
            for (q, row) in positions.zip(rows.chunks_exact_mut(3)) {
                let p: f64 = if q > 0 && events[q - 1].0 == 1 { 0.8 } else { 0.2 };
                row.copy_from_slice(&[(0.5 * (1.0 - p)).ln(), (0.5 * (1.0 - p)).ln(), p.ln()]);
            }
            Ok(())
        }
    }

    #[test]
    fn ratios_of_a_known_process() {
        let sequence = EventSequence::new("a", [0, 1, 0, 0].map(EventId).to_vec());
        let contrasts = Contrasts::measure(&Pushed, &[sequence], 1).unwrap();
        // Of the alternatives to the third type, both are as plausible: 1 + (0.8 − 0.5) / (0.5 · 0.5).
        let ratio = contrasts.of(1, 2).ratio().unwrap();
        assert!((ratio - (1.0 + 0.3 * 0.5 / (0.25 * 0.5))).abs() < 1e-9, "{ratio}");
        assert!((contrasts.of(1, 2).largest - 4f64.ln()).abs() < 1e-9);
        assert!(contrasts.of(0, 2).ratio().unwrap() < 1.0);
    }
}
