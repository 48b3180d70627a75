//! Scoring one batch of particles for a group of causes.
//!
//! A *row* is a set of branches that part from the sequence at one position. The atomic intervention compares the
//! row of cause `j` (only `j` replaced) with the observed sequence. The staircase compares row `j` (everything from
//! `j` on replaced) with row `j + 1`, which keeps `j`; neighboring causes share their rows. In both, the lag of an
//! effect `q` in the row that starts at `s` is `q − s`, and an effect right at a row's start is as observed.

use std::sync::Arc;

use super::proposal::Replacements;
use super::settings::{Divergence, Intervention, Plan};
use super::statistics::{PairStatistics, Sample};
use crate::model::{Branches, Measure, Reading, Scores};
use crate::numerics::{bernoulli_divergence, divergence};
use crate::{EventId, ModelError, Verdict};

/// A candidate cause and what is known of its effects so far.
#[derive(Debug)]
pub(super) struct Cause {
    pub(super) position: usize,
    /// One for each lag from 1.
    pub(super) pairs: Vec<PairStatistics>,
    /// What is known of each beforehand.
    pub(super) verdicts: Vec<Verdict>,
    /// The largest lag still to be scored; 0 when all are decided.
    pub(super) open: usize,
}

impl Cause {
    /// A cause with what is known of its effects at lags from 1 on.
    pub(super) fn new(position: usize, verdicts: Vec<Verdict>) -> Self {
        let open = verdicts.iter().rposition(|verdict| *verdict != Verdict::Excluded).map_or(0, |last| last + 1);
        Self { position, pairs: vec![PairStatistics::default(); verdicts.len()], verdicts, open }
    }

    /// Whether prior knowledge keeps a lag from being tested.
    pub(super) fn excludes(&self, lag: usize) -> bool {
        self.verdicts[lag - 1] == Verdict::Excluded
    }

    /// What is still to be scored of it.
    pub(super) const fn span(&self) -> Span {
        Span { position: self.position, open: self.open }
    }
}

/// Lags `1 ..= open` after a position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    position: usize,
    open: usize,
}

/// Buffers that rounds reuse.
#[derive(Default)]
pub(super) struct Buffers {
    scores: Scores,
    row: Vec<f64>,
}

/// One row to score: where it starts and how far.
#[derive(Clone, Copy)]
struct Row {
    start: usize,
    horizon: usize,
}

/// Replacement events of a position for the particles of this batch.
pub(super) type Tokens<'t> = dyn Fn(usize) -> Result<TokenSlice, ModelError> + 't;

/// A part of a position's replacements.
pub(super) struct TokenSlice {
    pub(super) of: Arc<Replacements>,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl TokenSlice {
    pub(super) fn events(&self) -> &[EventId] {
        &self.of.events[self.from..self.to]
    }

    pub(super) fn weight(&self, branch: usize) -> f64 {
        self.of.weights.as_ref().map_or(1.0, |weights| weights[self.from + branch])
    }
}

/// What a batch needs to know.
pub(super) struct Batch<'b> {
    pub(super) plan: &'b Plan,
    pub(super) reading: &'b dyn Reading,
    pub(super) vocabulary_size: usize,
    pub(super) tokens: &'b Tokens<'b>,
}

/// The largest number of scores, or of log-probabilities where distributions are compared, that a batch holds.
const BUDGET: usize = 1 << 22;
/// Branches of one row in a batch.
const BRANCHES_PER_ROW: usize = 256;

/// How many particles may be scored at a time in bounded memory.
pub(super) fn particles_per_batch(plan: &Plan, spans: &[Span], vocabulary_size: usize) -> usize {
    let lags: usize = rows(plan, spans).iter().map(|row| row.horizon).sum();
    let numbers = if measure(plan) == Measure::Distribution { lags * vocabulary_size } else { lags };
    (BUDGET / numbers.max(1)).clamp(1, BRANCHES_PER_ROW)
}

fn measure(plan: &Plan) -> Measure {
    match (plan.divergence, plan.intervention) {
        (Divergence::Event, _) => Measure::Event,
        (Divergence::Full, Intervention::Atomic) => Measure::Divergence,
        // Both branches of the staircase vary, so the model cannot compare with the observed distribution.
        (Divergence::Full, Intervention::Staircase) => Measure::Distribution,
    }
}

/// The rows that the open pairs of consecutive causes need, in order of their start.
fn rows(plan: &Plan, spans: &[Span]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::with_capacity(spans.len() + 1);
    let mut need = |start: usize, horizon: usize| {
        if horizon == 0 {
            return;
        }
        match rows.last_mut() {
            Some(last) if last.start == start => last.horizon = last.horizon.max(horizon),
            _ => rows.push(Row { start, horizon }),
        }
    };
    for span in spans {
        need(span.position, span.open);
        if plan.intervention == Intervention::Staircase {
            need(span.position + 1, span.open.saturating_sub(1));
        }
    }
    rows
}

impl Batch<'_> {
    /// Scores the batch's particles and hands `sink` one sample for each span (by its index), lag and particle of the
    /// batch, with the particle's weight; particles of a pair come in order. Spans are in order of their positions.
    /// Returns the number of branch positions that were scored.
    pub(super) fn score(
        &self,
        spans: &[Span],
        buffers: &mut Buffers,
        sink: &mut dyn FnMut(usize, usize, &Sample, f64),
    ) -> Result<u64, ModelError> {
        let rows = rows(self.plan, spans);
        let tokens = self.row_tokens(&rows)?;
        let batch: Vec<Branches<'_>> = rows
            .iter()
            .zip(&tokens)
            .map(|(row, tokens)| Branches::new(row.start, row.horizon, self.width(row), tokens))
            .collect();
        buffers.scores.lay_out(&batch, measure(self.plan), self.vocabulary_size);
        self.reading.score(&batch, &mut buffers.scores)?;
        let entry_of = |start: usize| rows.binary_search_by_key(&start, |row| row.start).unwrap_or(usize::MAX);
        for (index, span) in spans.iter().enumerate().filter(|(_, span)| span.open > 0) {
            let slice = (self.tokens)(span.position)?;
            let entry = entry_of(span.position);
            let next = entry_of(span.position + 1);
            for lag in 1..=span.open {
                self.observed_row(span.position + lag, lag, &mut buffers.row)?;
                for branch in 0..slice.events().len() {
                    let effect = span.position + lag;
                    let sample = self.sample(&buffers.scores, &buffers.row, effect, (entry, next), lag, branch);
                    sink(index, lag, &sample, slice.weight(branch));
                }
            }
        }
        Ok(batch.iter().map(|branches| (branches.count() * branches.horizon()) as u64).sum())
    }

    fn width(&self, row: &Row) -> usize {
        match self.plan.intervention {
            Intervention::Atomic => 1,
            Intervention::Staircase => row.horizon,
        }
    }

    /// The replacements of each row, branch by branch.
    fn row_tokens(&self, rows: &[Row]) -> Result<Vec<Vec<EventId>>, ModelError> {
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            let width = self.width(row);
            let mut tokens = Vec::new();
            for offset in 0..width {
                let slice = (self.tokens)(row.start + offset)?;
                let events = slice.events();
                tokens.resize(events.len() * width, EventId(0));
                for (branch, event) in events.iter().enumerate() {
                    tokens[branch * width + offset] = *event;
                }
            }
            all.push(tokens);
        }
        Ok(all)
    }

    /// The observed distribution that the staircase compares with at lag 1, where nothing lies in between.
    fn observed_row(&self, effect: usize, lag: usize, row: &mut Vec<f64>) -> Result<(), ModelError> {
        if measure(self.plan) == Measure::Distribution && lag == 1 {
            row.resize(self.vocabulary_size, 0.0);
            self.reading.distribution(effect, row)?;
        }
        Ok(())
    }

    fn sample(
        &self,
        scores: &Scores,
        observed_row: &[f64],
        effect: usize,
        (entry, next): (usize, usize),
        lag: usize,
        branch: usize,
    ) -> Sample {
        let replaced = scores.event(entry, branch, lag);
        let as_observed = self.plan.intervention == Intervention::Atomic || lag == 1;
        let kept = if as_observed { self.reading.observed()[effect] } else { scores.event(next, branch, lag - 1) };
        let strength = match measure(self.plan) {
            Measure::Event => bernoulli_divergence(replaced, kept),
            Measure::Divergence => scores.divergence(entry, branch, lag),
            Measure::Distribution => {
                let kept = if as_observed { observed_row } else { scores.distribution(next, branch, lag - 1) };
                divergence(kept, scores.distribution(entry, branch, lag))
            }
        };
        Sample { strength, kept, replaced }
    }
}
