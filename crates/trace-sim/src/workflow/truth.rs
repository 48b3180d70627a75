//! The truth of a workflow, from its exact conditionals.
//!
//! For a place `j < q ≤ j + memory` of a case, every type `r` is put in the place of the event at `j`, and everything else
//! stays as it was observed. An alternative counts by how plausible it was:
//!
//! ```text
//! π_jq(r) ∝ P(r | x_<j) · Π_{j<k<q} P(x_k | …, x_j := r, …)
//! c_jq(u → v) = ln P(v at q | x_j := u) − ln Σ_{r ∉ {u, v}} π(r) P(v at q | x_j := r) / Σ_{r ∉ {u, v}} π(r)
//! ```
//!
//! For the question `how`, alternatives are the other outcomes of `u`'s step, and `P(v)` is read as `P(v | v's step)`.
//!
//! A pair of types is *null* if `c` is 0 at every place of cases without noise where `u` could have stood. For `how` that
//! is exact, since outcomes depend on nothing but the rules. For `whether`, noise makes everything depend on everything a
//! little: what a step that is out of order would have led to has a weight of about the noise. Therefore 0 means at most
//! five times the noise there, and at most 0.1 nats. A place counts for `u` if the workflow, not only noise, could put `u`
//! there, and if `u` explains the events in between at least as well as the observed event does times twice the noise.
//!
//! Cost: `V` replays of `memory` events for each event of a case.

use std::collections::BTreeMap;

use rayon::prelude::*;
use trace_core::numerics::bernoulli_divergence;
use trace_core::{DEFAULT_THRESHOLD, DensityModel, EventId, EventScore, Position, Question, TruthClass};

use super::Workflow;
use super::process::{CompiledRule, Effect};
use super::scoring::score;

/// What contrasts of `whether` may be off by, in multiples of the noise, and at most.
const TOLERANCE: f64 = 5.0;
const MOST_TOLERANCE: f64 = 0.1;
/// What contrasts of `how` may be off by: rounding.
const ROUNDING: f64 = 1e-9;
/// Cases that are measured at a time.
const CASES_TOGETHER: usize = 8;
/// How much better than noise a type must explain what follows it, to count.
const BETTER_THAN_NOISE: f64 = 2.0;

/// What the classes of pairs are measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassOptions {
    /// Cases, sampled without noise.
    pub cases: usize,
    /// The largest lag.
    pub memory: usize,
    /// Seed of the cases.
    pub seed: u64,
}

impl ClassOptions {
    /// 200 cases, and all lags of the rules.
    pub fn new(workflow: &Workflow) -> Self {
        Self { cases: 200, memory: workflow.memory(), seed: 0 }
    }
}

/// The truth of one pair of event types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairTruth {
    /// Why the effect depends on the cause.
    pub class: TruthClass,
    /// The mean of `c` over the places where the cause stood before the effect; none where it never did. Above 0 the cause
    /// promotes the effect.
    pub log_ratio: Option<f64>,
    /// The places that decided about the class.
    pub places: usize,
}

/// The truth of all pairs of different types: cause, effect, question.
pub type Classes = BTreeMap<(EventId, EventId, Question), PairTruth>;

/// A true edge of one case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrueEdge {
    /// Position of the cause.
    pub cause: Position,
    /// Position of the effect.
    pub effect: Position,
    /// The mean Bernoulli divergence over plausible alternatives, in nats.
    pub strength: f64,
    /// What the edge answers.
    pub question: Question,
    /// Why it is one.
    pub class: TruthClass,
}

/// All alternatives at one pair of positions.
struct Place<'p> {
    workflow: &'p Workflow,
    events: &'p [EventId],
    cause: usize,
    effect: usize,
    /// The row of the cause's place.
    prior: &'p [f64],
    /// `π`, summing to 1.
    weights: &'p [f64],
    /// The row of the effect's place for each alternative.
    rows: &'p [f64],
}

/// The contrasts of one pair of types so far.
#[derive(Clone, Copy, Default)]
struct Contrasts {
    largest: f64,
    places: usize,
    sum: f64,
    observed: usize,
}

impl Contrasts {
    fn add(&mut self, contrast: f64, observed: bool) {
        self.largest = self.largest.max(contrast.abs());
        self.places += 1;
        if observed {
            self.sum += contrast;
            self.observed += 1;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.largest = self.largest.max(other.largest);
        self.places += other.places;
        self.sum += other.sum;
        self.observed += other.observed;
    }
}

impl Workflow {
    /// The class of every pair of different types: of all for `whether`, of those whose steps have outcomes for `how`.
    pub fn classes(&self, options: &ClassOptions) -> Classes {
        let size = self.types();
        let without_noise = self.without_noise();
        let fresh = || [vec![Contrasts::default(); size * size], vec![Contrasts::default(); size * size]];
        let mut sums = fresh();
        // A few cases at a time, for memory's sake, and summed in their order, so that threads do not matter.
        for first in (0..options.cases).step_by(CASES_TOGETHER) {
            let last = options.cases.min(first + CASES_TOGETHER);
            let tables: Vec<_> = (first..last)
                .into_par_iter()
                .map(|index| {
                    let events = without_noise.case(options.seed, index).events;
                    let mut tables = fresh();
                    self.visit_places(&events, options.memory, |place| {
                        place.whether(&mut tables[0]);
                        place.how(&mut tables[1]);
                    });
                    tables
                })
                .collect();
            for table in &tables {
                for (sum, contrasts) in sums.iter_mut().flatten().zip(table.iter().flatten()) {
                    sum.merge(contrasts);
                }
            }
        }
        let mut classes = Classes::new();
        for (question, which) in [(Question::Whether, 0), (Question::How, 1)] {
            for pair in (0..size * size).filter(|pair| self.asks(question, pair / size, pair % size)) {
                let (cause, effect) = (pair / size, pair % size);
                let all = &sums[which][pair];
                let truth = PairTruth {
                    class: self.class(question, cause, effect, all.largest),
                    log_ratio: (all.observed > 0).then(|| all.sum / all.observed as f64),
                    places: all.places,
                };
                classes.insert((EventId(cause as u32), EventId(effect as u32), question), truth);
            }
        }
        classes
    }

    /// The true edges of one case up to a lag: pairs whose strength exceeds [`DEFAULT_THRESHOLD`].
    pub fn true_edges(&self, events: &[EventId], memory: usize) -> Vec<TrueEdge> {
        let mut edges = Vec::new();
        self.visit_places(events, memory, |place| {
            let (x, y) = (place.observed(place.cause), place.observed(place.effect));
            for question in [Question::Whether, Question::How] {
                let asked = question == Question::Whether || (self.has_outcomes(x) && self.has_outcomes(y));
                let Some(strength) = asked.then(|| place.strength(question)).flatten() else { continue };
                if strength > DEFAULT_THRESHOLD {
                    let designed = question == Question::How || place.is_designed();
                    edges.push(TrueEdge {
                        cause: Position(place.cause as u32),
                        effect: Position(place.effect as u32),
                        strength,
                        question,
                        class: if designed { TruthClass::Designed } else { TruthClass::Order },
                    });
                }
            }
        });
        edges
    }

    fn has_outcomes(&self, event: usize) -> bool {
        self.steps[self.step_of[event]].types().len() > 1
    }

    /// Whether a question can be asked of a pair of types.
    fn asks(&self, question: Question, cause: usize, effect: usize) -> bool {
        cause != effect && (question == Question::Whether || (self.has_outcomes(cause) && self.has_outcomes(effect)))
    }

    fn class(&self, question: Question, cause: usize, effect: usize, largest: f64) -> TruthClass {
        let tolerance = match question {
            Question::Whether => (TOLERANCE * self.noise).min(MOST_TOLERANCE),
            Question::How => ROUNDING,
        };
        if largest <= tolerance {
            return TruthClass::Null;
        }
        let links = |rule: &CompiledRule| match question {
            Question::Whether => rule.cause == cause && rule.reaches(self, effect),
            // Odds are relative: a rule for one outcome of a step changes the others too, and for the others of the cause.
            Question::How => match rule.effect {
                Effect::Step(_) => false,
                Effect::Outcome(outcome) => {
                    self.step_of[rule.cause] == self.step_of[cause] && self.step_of[outcome] == self.step_of[effect]
                }
            },
        };
        if self.rules.iter().any(links) { TruthClass::Designed } else { TruthClass::Order }
    }

    /// Visits all pairs of positions up to a lag with all alternatives.
    fn visit_places(&self, events: &[EventId], memory: usize, mut visit: impl FnMut(&Place<'_>)) {
        let (size, columns) = (self.types(), self.row_size());
        let (mut masses, mut prior, mut rows) = (Vec::new(), vec![0.0; columns], vec![0.0; size * columns]);
        let mut replay = self.replay();
        for cause in 0..events.len() {
            self.probabilities(&replay, &mut masses, &mut prior);
            let mut weights = prior[..size].to_vec();
            let mut branches = vec![replay.clone(); size];
            for (r, branch) in branches.iter_mut().enumerate() {
                self.push(branch, EventId(r as u32));
            }
            for effect in cause + 1..events.len().min(cause + memory + 1) {
                for (branch, row) in branches.iter().zip(rows.chunks_exact_mut(columns)) {
                    self.probabilities(branch, &mut masses, row);
                }
                let total: f64 = weights.iter().sum();
                for weight in &mut weights {
                    *weight /= total;
                }
                visit(&Place { workflow: self, events, cause, effect, prior: &prior, weights: &weights, rows: &rows });
                let next = events[effect];
                for (r, branch) in branches.iter_mut().enumerate() {
                    weights[r] *= rows[r * columns + next.index()];
                    self.push(branch, next);
                }
            }
            self.push(&mut replay, events[cause]);
        }
    }
}

impl CompiledRule {
    /// Whether the effect is this event, or its step.
    fn reaches(&self, workflow: &Workflow, event: usize) -> bool {
        match self.effect {
            Effect::Step(step) => workflow.step_of[event] == step,
            Effect::Outcome(outcome) => outcome == event,
        }
    }
}

impl Place<'_> {
    fn observed(&self, position: usize) -> usize {
        self.events[position].index()
    }

    fn row(&self, alternative: usize) -> &[f64] {
        let columns = self.prior.len();
        &self.rows[alternative * columns..][..columns]
    }

    /// Adds the contrasts of all pairs for which the place counts.
    fn whether(&self, table: &mut [Contrasts]) {
        let (size, noise) = (self.workflow.types(), self.workflow.noise);
        let (x, y) = (self.observed(self.cause), self.observed(self.effect));
        let mut sums = vec![0.0; size];
        for (r, weight) in self.weights.iter().enumerate() {
            sums.iter_mut().zip(self.row(r)).for_each(|(sum, p)| *sum += weight * p);
        }
        let likelihood = |r: usize| self.weights[r] / self.prior[r];
        for u in 0..size {
            let by_workflow = self.prior[u] >= BETTER_THAN_NOISE * self.workflow.noise_of(u, self.prior);
            if !by_workflow || likelihood(u) < BETTER_THAN_NOISE * noise * likelihood(x) {
                continue;
            }
            let row = self.row(u);
            for v in (0..size).filter(|v| *v != u) {
                let rest = 1.0 - self.weights[u] - self.weights[v];
                let mean = sums[v] - self.weights[u] * row[v] - self.weights[v] * self.row(v)[v];
                if rest > 0.0 && mean > 0.0 {
                    table[u * size + v].add(row[v].ln() - (mean / rest).ln(), u == x && v == y);
                }
            }
        }
    }

    /// The same for outcomes of steps.
    fn how(&self, table: &mut [Contrasts]) {
        let (workflow, size) = (self.workflow, self.workflow.types());
        let (x, y) = (self.observed(self.cause), self.observed(self.effect));
        let of_cause = workflow.steps[workflow.step_of[x]].types();
        let of_effect = workflow.steps[workflow.step_of[y]].types();
        if of_cause.len() < 2 || of_effect.len() < 2 {
            return;
        }
        for u in of_cause.clone() {
            for v in of_effect.clone().filter(|v| *v != u) {
                let mut mean = (0.0, 0.0);
                for r in of_cause.clone().filter(|r| *r != u && *r != v) {
                    mean.0 += self.weights[r] * self.share(r, v);
                    mean.1 += self.weights[r];
                }
                if mean.1 > 0.0 {
                    let contrast = (self.share(u, v) * mean.1 / mean.0).ln();
                    table[u * size + v].add(contrast, u == x && v == y);
                }
            }
        }
    }

    /// The probability of an outcome given its step, for an alternative.
    fn share(&self, alternative: usize, event: usize) -> f64 {
        let row = self.row(alternative);
        row[event] / row[self.workflow.steps[self.workflow.step_of[event]].types()].iter().sum::<f64>()
    }

    /// How much the observed event depends on the cause; none where there is no alternative.
    fn strength(&self, question: Question) -> Option<f64> {
        let (x, y) = (self.observed(self.cause), self.observed(self.effect));
        let scored = |r: usize| -> EventScore {
            match question {
                Question::Whether => score(self.row(r), y),
                Question::How => {
                    let types = self.workflow.steps[self.workflow.step_of[y]].types();
                    score(&self.row(r)[types.clone()], y - types.start)
                }
            }
        };
        let alternatives = match question {
            Question::Whether => 0..self.workflow.types(),
            Question::How => self.workflow.steps[self.workflow.step_of[x]].types(),
        };
        let observed = scored(x);
        let (mut sum, mut total) = (0.0, 0.0);
        for r in alternatives.filter(|r| *r != x && *r != y) {
            sum += self.weights[r] * bernoulli_divergence(scored(r), observed);
            total += self.weights[r];
        }
        (total > 0.0).then(|| sum / total)
    }

    /// Whether a rule links the two events here: it is within its window, and no later event of the cause's step ends it.
    fn is_designed(&self) -> bool {
        let (x, y) = (self.observed(self.cause), self.observed(self.effect));
        let workflow = self.workflow;
        let latest = |step: usize| {
            let between = &self.events[self.cause + 1..self.effect];
            between.iter().all(|event| workflow.step_of[event.index()] != step)
        };
        workflow.rules.iter().any(|rule| {
            rule.cause == x
                && rule.reaches(workflow, y)
                && self.effect - self.cause <= rule.within
                && latest(workflow.step_of[x])
        })
    }
}
