//! The process as a density model: branches share the computation of the events that they do not replace.
//!
//! For the branches of one start `j` and one effect `q = j + k`, the logits have a part that no branch changes (the
//! bias and the events of the window before `j` and after the replaced ones) and the part of the replaced events. The
//! first part is computed once; each branch adds its sparse rows of `W` and its part of the hidden sums, and one matrix
//! product computes the logits of a chunk of branches from their hidden layers. Cost per branch and lag: about `64 V`
//! multiply-adds and `V` exponentials. Memory: one chunk of rows.

use std::ops::Range;

use rayon::prelude::*;
use trace_core::theory::Fitness;
use trace_core::{Branches, DensityModel, EntryMut, EventId, EventScore, Measure, ModelError, Reading, Scores};
use trace_kernels::f64::{dot, exponentiate, log_sum_exp, normalize, score_row};

use super::{HIDDEN, Process};

impl DensityModel for Process {
    fn vocabulary_size(&self) -> usize {
        self.size
    }

    fn backbone(&self) -> &'static str {
        "scm"
    }

    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        for (q, row) in positions.zip(rows.chunks_exact_mut(self.size)) {
            self.logits(events, q, 1.0, row);
            normalize(row);
        }
        Ok(())
    }

    fn read<'a>(&'a self, events: &[EventId]) -> Result<Box<dyn Reading + 'a>, ModelError> {
        let observed = (0..events.len())
            .into_par_iter()
            .map_init(
                || vec![0.0; self.size],
                |row, q| {
                    self.logits(events, q, 1.0, row);
                    score_row(row, events[q].index())
                },
            )
            .collect();
        Ok(Box::new(ProcessReading { process: self, events: events.to_vec(), observed }))
    }

    fn reach(&self) -> Option<usize> {
        Some(self.memory)
    }

    fn fitness(&self) -> Fitness {
        self.fitness
    }
}

struct ProcessReading<'a> {
    process: &'a Process,
    events: Vec<EventId>,
    observed: Vec<EventScore>,
}

/// Branches whose logits are computed together. Each chunk reads all of `W2` once, which matters more than keeping the
/// rows in the cache: 64 was faster than 8, 16 and 32, both at V = 1000 and at V = 29,100.
const CHUNK: usize = 64;

impl Reading for ProcessReading<'_> {
    fn observed(&self) -> &[EventScore] {
        &self.observed
    }

    fn distribution(&self, position: usize, row: &mut [f64]) -> Result<(), ModelError> {
        self.process.forward(&self.events, position..position + 1, row)
    }

    fn score(&self, batch: &[Branches<'_>], scores: &mut Scores) -> Result<(), ModelError> {
        let measure = scores.measure();
        let most = batch.iter().map(Branches::count).max().unwrap_or(0).clamp(1, CHUNK);
        let mut scratch = Scratch::new(self.process.size, most, measure);
        for (branches, mut entry) in batch.iter().zip(scores.entries_mut()) {
            for lag in 1..=branches.horizon() {
                if self.replaced(branches, lag).is_empty() {
                    self.copy_observed(branches, lag, measure, &mut entry, &mut scratch);
                } else {
                    self.score_lag(branches, lag, measure, &mut entry, &mut scratch);
                }
            }
        }
        Ok(())
    }
}

/// Buffers of one call.
struct Scratch {
    /// The logits that all branches share.
    base: Vec<f64>,
    /// The observed distribution: probabilities, and their negative entropy.
    original: Vec<f64>,
    negative_entropy: f64,
    rows: Vec<f64>,
    hidden: Vec<f64>,
}

impl Scratch {
    fn new(size: usize, branches: usize, measure: Measure) -> Self {
        Self {
            base: vec![0.0; size],
            original: vec![0.0; if measure == Measure::Divergence { size } else { 0 }],
            negative_entropy: 0.0,
            rows: vec![0.0; branches * size],
            hidden: vec![0.0; branches * HIDDEN],
        }
    }
}

impl ProcessReading<'_> {
    /// The replaced positions that the effect at this lag depends on.
    fn replaced(&self, branches: &Branches<'_>, lag: usize) -> Range<usize> {
        let effect = branches.start() + lag;
        if effect < self.process.memory {
            return 0..0; // the first events are uniform
        }
        let from = branches.start().max(effect - self.process.memory);
        from..(branches.start() + branches.width()).min(effect)
    }

    /// Copies the observed scores for an effect that depends on no replaced event.
    fn copy_observed(
        &self,
        branches: &Branches<'_>,
        lag: usize,
        measure: Measure,
        entry: &mut EntryMut<'_>,
        scratch: &mut Scratch,
    ) {
        let effect = branches.start() + lag;
        let size = self.process.size;
        if measure == Measure::Distribution {
            self.process.logits(&self.events, effect, 1.0, &mut scratch.base);
            normalize(&mut scratch.base);
        }
        for branch in 0..branches.count() {
            let at = branch * branches.horizon() + lag - 1;
            entry.events[at] = self.observed[effect];
            match measure {
                Measure::Event => {}
                Measure::Divergence => entry.divergences[at] = 0.0,
                Measure::Distribution => {
                    entry.distributions[at * size..][..size].copy_from_slice(&scratch.base);
                }
            }
        }
    }

    fn score_lag(
        &self,
        branches: &Branches<'_>,
        lag: usize,
        measure: Measure,
        entry: &mut EntryMut<'_>,
        scratch: &mut Scratch,
    ) {
        let process = self.process;
        let size = process.size;
        let effect = branches.start() + lag;
        let target = self.events[effect].index();
        let replaced = self.replaced(branches, lag);
        let fixed = || {
            (effect - process.memory..replaced.start)
                .chain(replaced.end..effect)
                .map(|position| (effect - position, self.events[position]))
        };
        scratch.base.copy_from_slice(&process.bias);
        process.add_linear(fixed(), 1.0, &mut scratch.base);
        let mut base_hidden = [0.0; HIDDEN];
        process.add_hidden(fixed(), &mut base_hidden);
        if measure == Measure::Divergence {
            self.read_original(effect, scratch);
        }
        for first in (0..branches.count()).step_by(CHUNK) {
            let count = CHUNK.min(branches.count() - first);
            let rows = &mut scratch.rows[..count * size];
            let hidden = &mut scratch.hidden[..count * HIDDEN];
            for (offset, (row, sums)) in rows.chunks_exact_mut(size).zip(hidden.as_chunks_mut().0).enumerate() {
                let events = branches.replacement(first + offset);
                let own = || replaced.clone().map(|position| (effect - position, events[position - branches.start()]));
                row.copy_from_slice(&scratch.base);
                process.add_linear(own(), 1.0, row);
                *sums = base_hidden;
                process.add_hidden(own(), sums);
            }
            process.add_output(hidden, rows);
            for (offset, row) in rows.chunks_exact_mut(size).enumerate() {
                let at = (first + offset) * branches.horizon() + lag - 1;
                entry.events[at] = score_row(row, target);
                match measure {
                    Measure::Event => {}
                    Measure::Divergence => {
                        // Σ p (log p − log q) with log q = logit − log-sum
                        let cross = dot(&scratch.original, row) - log_sum_exp(row);
                        let divergence = scratch.negative_entropy - cross;
                        // A negative value is rounding error; a NaN must stay.
                        entry.divergences[at] = if divergence < 0.0 { 0.0 } else { divergence };
                    }
                    Measure::Distribution => {
                        normalize(row);
                        entry.distributions[at * size..][..size].copy_from_slice(row);
                    }
                }
            }
        }
    }

    fn read_original(&self, effect: usize, scratch: &mut Scratch) {
        let process = self.process;
        let logits = &mut scratch.rows[..process.size];
        process.logits(&self.events, effect, 1.0, logits);
        let original = &mut scratch.original;
        original.copy_from_slice(logits);
        let (high, total) = exponentiate(original);
        for weight in original.iter_mut() {
            *weight /= total;
        }
        scratch.negative_entropy = dot(original, logits) - high - total.ln();
    }
}
