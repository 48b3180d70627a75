//! Scoring one batch of particles for a group of causes.
//!
//! A *row* is a set of branches that part from the sequence at one position. The atomic intervention compares the
//! row of cause `j` (only `j` replaced) with the observed sequence. The staircase compares row `j` (everything from
//! `j` on replaced) with row `j + 1`, which keeps `j`; neighboring causes share their rows. In both, the lag of an
//! effect `q` in the row that starts at `s` is `q − s`, and an effect right at a row's start is as observed.

use std::sync::Arc;

use super::overlap::{Place, Room};
use super::posterior::{Outcomes, Posterior};
use super::proposal::{Proposal, Replacements};
use super::sequential::{Population, SequentialTest};
use super::settings::{Divergence, Intervention, Plan};
use super::statistics::{PairStatistics, Sample};
use crate::model::{Branches, Measure, Reading, Scores};
use crate::numerics::{bernoulli_divergence, divergence, log_sum_exp};
use crate::{EventId, Families, ModelError, Prior, Question};

/// A candidate cause and what is known of its effects so far.
#[derive(Debug)]
pub(super) struct Cause {
    pub(super) position: usize,
    /// One for each lag from 1.
    pub(super) pairs: Vec<PairState>,
    /// How the effect's step turns out, for each lag from 1; empty where that is not asked.
    pub(super) how: Vec<PairState>,
    /// What the outcomes of the cause's step say of those of the effects', where evidence is gathered.
    pub(super) outcomes: Vec<Outcomes>,
    /// What is known of each beforehand.
    pub(super) priors: Vec<Prior>,
    /// The largest lag still to be scored; 0 when all are decided.
    pub(super) open: usize,
    /// The model's log-distribution at the cause's position, where it has one and the history is as observed.
    pub(super) prediction: Option<Vec<f64>>,
    /// What could have stood there and what would have followed, where evidence is gathered.
    pub(super) posterior: Option<Posterior>,
}

/// What is known of one pair so far.
#[derive(Clone, Debug, Default)]
pub(super) struct PairState {
    pub(super) statistics: PairStatistics,
    pub(super) room: Room,
    /// Where decisions must be sure.
    pub(super) test: Option<SequentialTest>,
}

impl Cause {
    /// A cause with what is known of its effects at lags from 1 on.
    pub(super) fn new(position: usize, priors: Vec<Prior>) -> Self {
        let open = priors.iter().rposition(|prior| *prior != Prior::Excluded).map_or(0, |last| last + 1);
        let pairs = vec![PairState::default(); priors.len()];
        let (how, outcomes) = (Vec::new(), Vec::new());
        Self { position, pairs, how, outcomes, priors, open, prediction: None, posterior: None }
    }

    /// Whether prior knowledge keeps a lag from being tested.
    pub(super) fn excludes(&self, lag: usize) -> bool {
        self.priors[lag - 1] == Prior::Excluded
    }

    /// What is still to be scored of it.
    pub(super) const fn span(&self) -> Span {
        Span { position: self.position, open: self.open }
    }

    /// None of its lags.
    pub(super) const fn nothing(&self) -> Span {
        Span { position: self.position, open: 0 }
    }

    /// All of its lags.
    pub(super) const fn whole(&self) -> Span {
        Span { position: self.position, open: self.pairs.len() }
    }

    /// Takes in what one replacement says of the effect at a lag. The event itself and the effect's own type are no
    /// alternatives, nor is what belongs to their steps.
    pub(super) fn take(
        &mut self,
        plan: &Plan,
        families: Option<&Families>,
        events: &[EventId],
        lag: usize,
        draw: &Draw<'_>,
    ) {
        let step = |event: EventId| families.map_or(event, |families| families.representative(event));
        let own = events[self.position];
        let (cause, effect) = (step(own), step(events[self.position + lag]));
        let PairState { statistics, room, test } = &mut self.pairs[lag - 1];
        let prediction = self.prediction.as_ref().map(|row| row[draw.event.index()]);
        if draw.event == own {
            return;
        }
        if let (Some(prediction), Some(posterior)) = (prediction, &mut self.posterior) {
            posterior.add(families, lag, draw.event, prediction + draw.between, draw.row);
        }
        let replacement = step(draw.event);
        if replacement == cause || replacement == effect {
            room.taken(prediction.unwrap_or(f64::NEG_INFINITY), draw.between);
            return;
        }
        if let Some(prediction) = prediction {
            let importance = match plan.proposal {
                // Enumerated weights are the proposal's own; what is drawn has it in how often it is drawn.
                _ if draw.enumerated => prediction,
                Proposal::Uniform => prediction,
                Proposal::Unigram => prediction - draw.log_proposal,
                Proposal::Model | Proposal::Plausible => 0.0,
            };
            room.alternative(importance, draw.between);
        }
        let weight = if draw.enumerated { draw.log_proposal } else { 0.0 };
        let likelihood = if plan.proposal == Proposal::Plausible { draw.between } else { 0.0 };
        statistics.push(&draw.sample, weight + likelihood);
        if let Some(confidence) = plan.confidence.filter(|_| !draw.enumerated) {
            if test.is_none() {
                let is_alternative = |event: EventId| step(event) != cause && step(event) != effect;
                let left = draw.population(plan.proposal, self.prediction.as_deref(), is_alternative);
                let bound = statistics.largest();
                // Strengths are bounded, and something is left to draw from: the test can be made.
                *test = SequentialTest::new(plan.threshold, bound, confidence, left).ok();
            }
            if let Some(test) = test {
                let weight = draw.weight(plan.proposal, self.prediction.as_deref(), draw.event);
                test.push_weighted(draw.sample.strength, weight);
            }
        }
    }

    /// Takes in what another outcome of the cause's step says of the outcome of the effect's.
    pub(super) fn take_outcome(
        &mut self,
        plan: &Plan,
        families: &Families,
        effect: EventId,
        lag: usize,
        draw: &Draw<'_>,
    ) {
        let Some(prediction) = self.prediction.as_ref().map(|row| row[draw.event.index()]) else { return };
        let PairState { statistics, room, .. } = &mut self.how[lag - 1];
        room.alternative(prediction, draw.between);
        let weight = match plan.proposal {
            Proposal::Uniform => 0.0,
            Proposal::Unigram => draw.log_proposal,
            Proposal::Model => prediction,
            Proposal::Plausible => prediction + draw.between,
        };
        statistics.push(&draw.sample, weight);
        if let Some(outcomes) = self.outcomes.get_mut(lag - 1) {
            outcomes.add(families, effect, draw.event, prediction + draw.between, draw.row);
        }
    }

    /// How much room there was for anything else; `None` where the model does not predict the cause.
    pub(super) fn overlap(
        &self,
        families: Option<&Families>,
        events: &[EventId],
        reading: &dyn Reading,
        lag: usize,
        enumerated: bool,
    ) -> Option<f64> {
        let row = self.prediction.as_ref()?;
        let (cause, effect) = (events[self.position], events[self.position + lag]);
        let between = reading.observed()[self.position + 1..self.position + lag].iter().map(|score| score.log_p).sum();
        // What belongs to the two steps and is not the event itself. The end of a case is no type.
        let step = |event: EventId| families.map_or(vec![event].into(), |families| families.step_of(event));
        let mut taken: Vec<EventId> = step(cause).iter().chain(step(effect).iter()).copied().collect();
        taken.sort_unstable();
        taken.dedup();
        taken.retain(|event| *event != cause && event.index() < row.len());
        let taken = log_sum_exp(taken.iter().map(|event| row[event.index()]));
        let place = Place { cause: row[cause.index()], taken, between };
        Some(self.pairs[lag - 1].room.overlap(place, enumerated))
    }

    /// The same among the outcomes of the cause's step.
    pub(super) fn overlap_of_outcomes(&self, events: &[EventId], reading: &dyn Reading, lag: usize) -> Option<f64> {
        let row = self.prediction.as_ref()?;
        let between = reading.observed()[self.position + 1..self.position + lag].iter().map(|score| score.log_p).sum();
        let place = Place { cause: row[events[self.position].index()], taken: f64::NEG_INFINITY, between };
        Some(self.how[lag - 1].room.overlap(place, true))
    }
}

/// What one replacement says of one effect.
pub(super) struct Draw<'d> {
    /// The replacement.
    pub(super) event: EventId,
    /// The logarithm of its proposal weight; of its frequency where it was drawn by that.
    pub(super) log_proposal: f64,
    /// Whether every type is gone through with its weight.
    pub(super) enumerated: bool,
    /// The logarithm of the probability of the events between, given the replacement.
    pub(super) between: f64,
    pub(super) sample: Sample,
    /// The log-distribution at the effect, where rows are asked for.
    pub(super) row: &'d [f64],
    /// The logarithm of each type's share where draws follow frequencies.
    pub(super) log_frequencies: Option<&'d [f64]>,
    /// The number of event types.
    pub(super) types: usize,
}

impl Draw<'_> {
    /// The weight that a type is drawn by.
    fn weight(&self, proposal: Proposal, prediction: Option<&[f64]>, event: EventId) -> f64 {
        let log_weight = match proposal {
            Proposal::Uniform => None,
            Proposal::Unigram => self.log_frequencies.map(|logs| logs[event.index()]),
            Proposal::Model | Proposal::Plausible => prediction.map(|row| row[event.index()]),
        };
        log_weight.map_or(1.0, f64::exp)
    }

    /// What alternatives are drawn from, each of them once.
    fn population(
        &self,
        proposal: Proposal,
        prediction: Option<&[f64]>,
        is_alternative: impl Fn(EventId) -> bool,
    ) -> Population {
        let all = (0..self.types).map(|event| EventId(event as u32)).filter(|event| is_alternative(*event));
        match proposal {
            Proposal::Uniform => Population::Finite(all.count()),
            _ => Population::Weighted(all.map(|event| self.weight(proposal, prediction, event)).sum()),
        }
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
    /// Log-probabilities of the events between, for each branch.
    between: Vec<f64>,
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

    /// The logarithm of a branch's weight where types are enumerated.
    pub(super) fn log_weight(&self, branch: usize) -> Option<f64> {
        self.of.log_weights.as_ref().map(|weights| weights[self.from + branch])
    }
}

/// What a batch needs to know.
pub(super) struct Batch<'b> {
    pub(super) plan: &'b Plan,
    pub(super) reading: &'b dyn Reading,
    /// The number of event types.
    pub(super) types: usize,
    pub(super) row_size: usize,
    pub(super) tokens: &'b Tokens<'b>,
    /// Whether each draw comes with the whole distribution at the effect.
    pub(super) with_rows: bool,
    /// The logarithm of each type's share where draws follow frequencies.
    pub(super) log_frequencies: Option<&'b [f64]>,
    /// How effects are read where event types have families; needs rows.
    pub(super) families: Option<(&'b Families, Question)>,
    /// The observed events.
    pub(super) events: &'b [EventId],
}

/// The largest number of scores, or of log-probabilities where distributions are compared, that a batch holds.
const BUDGET: usize = 1 << 22;
/// Branches of one row in a batch.
const BRANCHES_PER_ROW: usize = 256;

/// How many particles may be scored at a time in bounded memory.
pub(super) fn particles_per_batch(plan: &Plan, spans: &[Span], row_size: usize, with_rows: bool) -> usize {
    let lags: usize = rows(plan, spans).iter().map(|row| row.horizon).sum();
    let numbers = if measure(plan, with_rows) == Measure::Distribution { lags * row_size } else { lags };
    (BUDGET / numbers.max(1)).clamp(1, BRANCHES_PER_ROW)
}

fn measure(plan: &Plan, with_rows: bool) -> Measure {
    if with_rows {
        return Measure::Distribution;
    }
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
    /// Scores the batch's particles and hands `sink` one draw for each span (by its index), lag and particle of the
    /// batch; particles of a pair come in order. Spans are in order of their positions. Returns the number of branch
    /// positions that were scored.
    pub(super) fn score(
        &self,
        spans: &[Span],
        buffers: &mut Buffers,
        sink: &mut dyn FnMut(usize, usize, &Draw<'_>),
    ) -> Result<u64, ModelError> {
        let rows = rows(self.plan, spans);
        let tokens = self.row_tokens(&rows)?;
        let batch: Vec<Branches<'_>> = rows
            .iter()
            .zip(&tokens)
            .map(|(row, tokens)| Branches::new(row.start, row.horizon, self.width(row), tokens))
            .collect();
        buffers.scores.lay_out(&batch, self.measure(), self.row_size);
        self.reading.score(&batch, &mut buffers.scores)?;
        let entry_of = |start: usize| rows.binary_search_by_key(&start, |row| row.start).unwrap_or(usize::MAX);
        for (index, span) in spans.iter().enumerate().filter(|(_, span)| span.open > 0) {
            let slice = (self.tokens)(span.position)?;
            let entries = (entry_of(span.position), entry_of(span.position + 1));
            let Buffers { scores, row, between } = buffers;
            between.clear();
            between.resize(slice.events().len(), 0.0);
            for lag in 1..=span.open {
                let effect = span.position + lag;
                self.observed_row(effect, lag, row)?;
                for (branch, event) in slice.events().iter().enumerate() {
                    let sample = self.sample(scores, row, effect, entries, lag, branch);
                    let enumerated = slice.log_weight(branch);
                    let frequency = || self.log_frequencies.map_or(0.0, |logs| logs[event.index()]);
                    let draw = Draw {
                        event: *event,
                        log_proposal: enumerated.unwrap_or_else(frequency),
                        enumerated: enumerated.is_some(),
                        between: between[branch],
                        sample,
                        row: if self.with_rows { scores.distribution(entries.0, branch, lag) } else { &[] },
                        log_frequencies: self.log_frequencies,
                        types: self.types,
                    };
                    sink(index, lag, &draw);
                    between[branch] += scores.event(entries.0, branch, lag).log_p;
                }
            }
        }
        Ok(batch.iter().map(|branches| (branches.count() * branches.horizon()) as u64).sum())
    }

    fn measure(&self) -> Measure {
        measure(self.plan, self.with_rows)
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

    /// Whether a branch is compared with what was observed rather than with another branch.
    fn as_observed(&self, lag: usize) -> bool {
        self.plan.intervention == Intervention::Atomic || lag == 1
    }

    /// The observed distribution, where rows are compared with it.
    fn observed_row(&self, effect: usize, lag: usize, row: &mut Vec<f64>) -> Result<(), ModelError> {
        let compared = self.plan.divergence == Divergence::Full && self.measure() == Measure::Distribution;
        if (compared || self.families.is_some()) && self.as_observed(lag) {
            row.resize(self.row_size, 0.0);
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
        if let Some((families, question)) = self.families {
            let event = self.events[effect];
            let kept = families.score(question, observed_row, event);
            let replaced = families.score(question, scores.distribution(entry, branch, lag), event);
            return Sample { strength: bernoulli_divergence(replaced, kept), kept, replaced };
        }
        let replaced = scores.event(entry, branch, lag);
        let as_observed = self.as_observed(lag);
        let kept = if as_observed { self.reading.observed()[effect] } else { scores.event(next, branch, lag - 1) };
        let strength = match (self.plan.divergence, self.measure()) {
            (Divergence::Event, _) => bernoulli_divergence(replaced, kept),
            (Divergence::Full, Measure::Distribution) => {
                let kept = if as_observed { observed_row } else { scores.distribution(next, branch, lag - 1) };
                divergence(kept, scores.distribution(entry, branch, lag))
            }
            (Divergence::Full, _) => scores.divergence(entry, branch, lag),
        };
        Sample { strength, kept, replaced }
    }
}
