//! What could have stood at one cause, and what would have followed.
//!
//! For each lag `k`, with `q = j + k` and `π` the posterior over all types of [`Proposal::Plausible`](super::Proposal):
//!
//! ```text
//! π(r)      S(v) = Σ_r π(r) P(v at q | x_j := r)      D(v) = P(v at q | x_j := v)
//! π⁰(u) = π(u) / (1 − π(v))                           p⁰(v) = (S(v) − π(v) D(v)) / (1 − π(v))
//! ```
//!
//! and from these, for each listed pair of types `u → v` and where `x_j ≠ v`,
//!
//! ```text
//! R += (1[x_j = u] − π⁰(u)) (1[x_q = v] − p⁰(v))       W += π⁰(u) (1 − π⁰(u)) p⁰(v)
//! V += π⁰(u) (1 − π⁰(u)) p⁰(v) (1 − p⁰(v))
//! ```
//!
//! A pair of a type with itself is not restricted: there `π⁰ = π` and `p⁰ = S`. Where event types have families, all
//! that is of steps: their members' probabilities are summed, and the first member stands for the step.
//!
//! The question *how* ([`Outcomes`]) is asked among the outcomes of one step: `π` over those of the cause's step alone,
//! `p⁰(v)` as the mean of `P(v) / P(v's step)`, and no restriction.
//!
//! Rows are added up branch by branch: `m × 3V` numbers for a cause, never `N × m × V`. Replacements of less than
//! [`LEAST_WEIGHT`] of the largest weight, and types `u` of less than that much of `π`, are left out; each factor of `R`
//! has mean zero by itself where `u` does nothing to `v`, so that this costs power and no validity.

use super::Prior;
use crate::evidence::{PairList, SequenceEvidence};
use crate::{EventId, Families, Knowledge, Lag, Question};

/// Weights below this share of the largest are taken for nothing.
const LEAST_WEIGHT: f64 = 1e-5;

/// The posterior of one cause, for each lag.
#[derive(Debug)]
pub(super) struct Posterior {
    lags: Vec<AtLag>,
}

/// Sums in units of `e^unit`.
#[derive(Clone, Debug)]
struct AtLag {
    unit: f64,
    /// `π`, not normalized.
    weights: Vec<f64>,
    /// `S`, not normalized.
    following: Vec<f64>,
    /// `π(v) D(v)`, not normalized.
    own: Vec<f64>,
}

/// One place: a cause and an effect, as observed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    pub(super) cause: EventId,
    pub(super) effect: EventId,
    pub(super) lag: usize,
    /// Whether the cause's type stands nowhere between the two.
    pub(super) nearest: bool,
}

impl Posterior {
    /// Nothing known yet of `lags` lags of `types` types, with rows of `row_size` numbers.
    pub(super) fn new(lags: usize, types: usize, row_size: usize) -> Self {
        let empty = AtLag {
            unit: f64::NEG_INFINITY,
            weights: vec![0.0; types],
            following: vec![0.0; row_size],
            own: vec![0.0; row_size],
        };
        Self { lags: vec![empty; lags] }
    }

    /// Adds one type with the logarithm of its weight and the log-distribution that follows it.
    pub(super) fn add(
        &mut self,
        families: Option<&Families>,
        lag: usize,
        event: EventId,
        log_weight: f64,
        row: &[f64],
    ) {
        let at = &mut self.lags[lag - 1];
        if log_weight > at.unit {
            let shrink = (at.unit - log_weight).exp();
            let sums = at.weights.iter_mut().chain(&mut at.following).chain(&mut at.own);
            sums.for_each(|value| *value *= shrink);
            at.unit = log_weight;
        }
        let weight = (log_weight - at.unit).exp();
        // Not `<`, so that a NaN shows.
        if weight <= LEAST_WEIGHT {
            return;
        }
        let step = families.map_or(event, |families| families.representative(event));
        at.weights[step.index()] += weight;
        for (sum, log_p) in at.following.iter_mut().zip(row) {
            *sum += weight * log_p.exp();
        }
        let members = families.map_or(std::slice::from_ref(&event), |families| families.members(event));
        at.own[step.index()] += weight * members.iter().map(|member| row[member.index()].exp()).sum::<f64>();
    }

    /// Adds what the place says of every listed pair.
    pub(super) fn contribute(
        &mut self,
        observed: Observed,
        families: Option<&Families>,
        list: &PairList,
        knowledge: Option<&Knowledge>,
        sums: &mut SequenceEvidence,
    ) {
        let Observed { cause, effect, lag, nearest } = observed;
        let AtLag { weights, following, own, .. } = &mut self.lags[lag - 1];
        if let Some(families) = families {
            for event in (0..weights.len()).map(|event| EventId(event as u32)) {
                let step = families.representative(event);
                if step != event {
                    following[step.index()] += std::mem::take(&mut following[event.index()]);
                }
            }
        }
        let total: f64 = weights.iter().sum();
        weights.iter_mut().chain(following.iter_mut()).chain(own.iter_mut()).for_each(|value| *value /= total);
        // Per effect type: 1 / (1 − π(v)), p⁰(v), and the second factor of R.
        let types = weights.len();
        let effects: Vec<(f64, f64, f64)> = (0..following.len())
            .map(|v| {
                let weight = if v < types { weights[v] } else { 0.0 };
                let rest = 1.0 - weight;
                let restricted = ((following[v] - own[v]) / rest).clamp(0.0, 1.0);
                let p = if rest > LEAST_WEIGHT { restricted } else { following[v] };
                (1.0 / rest.max(LEAST_WEIGHT), p, f64::from(u8::from(v == effect.index())) - p)
            })
            .collect();
        let excluded = |u: EventId, v: EventId| {
            knowledge.is_some_and(|known| known.prior(u, v, Lag(lag as u32)) == Prior::Excluded)
        };
        for (u, weight) in weights.iter().enumerate() {
            let u = EventId(u as u32);
            if *weight <= LEAST_WEIGHT && u != cause {
                continue;
            }
            let here = f64::from(u8::from(u == cause));
            let (first, row) = list.effects_of(u);
            for (index, v) in (first..).zip(row) {
                if (*v == cause && u != *v) || excluded(u, *v) {
                    continue;
                }
                let (inverse, p, residual) = effects[v.index()];
                let (share, p, residual) = if u == *v {
                    let p = following[v.index()];
                    (*weight, p, f64::from(u8::from(*v == effect)) - p)
                } else {
                    ((*weight * inverse).min(1.0), p, residual)
                };
                let spread = share * (1.0 - share) * p;
                let place = sums.at(index);
                place.residual += (here - share) * residual;
                place.weight += spread;
                place.variance += spread * (1.0 - p);
                if u == cause && nearest {
                    place.expected += p;
                    place.observed += f64::from(u8::from(*v == effect));
                }
            }
        }
    }
}

/// What the outcomes of one step say of the outcomes of a later one.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcomes {
    /// Each outcome of the cause's step with the logarithm of its weight, and the probabilities of the outcomes of the
    /// effect's step given that step.
    of_cause: Vec<(EventId, f64, Vec<f64>)>,
}

impl Outcomes {
    /// Adds one outcome of the cause's step.
    pub(super) fn add(&mut self, families: &Families, effect: EventId, event: EventId, log_weight: f64, row: &[f64]) {
        let members = families.members(effect);
        let given = members.iter().map(|v| families.score(Question::How, row, *v).probability()).collect();
        self.of_cause.push((event, log_weight, given));
    }

    /// Adds what the place says of every listed pair of outcomes.
    pub(super) fn contribute(
        &self,
        observed: Observed,
        families: &Families,
        list: &PairList,
        sums: &mut SequenceEvidence,
    ) {
        let Observed { cause, effect, nearest, .. } = observed;
        let most = self.of_cause.iter().map(|outcome| outcome.1).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = self.of_cause.iter().map(|outcome| (outcome.1 - most).exp()).collect();
        let total: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
        let members = families.members(effect);
        let following: Vec<f64> = (0..members.len())
            .map(|v| self.of_cause.iter().zip(&shares).map(|((_, _, given), share)| share * given[v]).sum())
            .collect();
        let one = |holds: bool| f64::from(u8::from(holds));
        for ((u, _, _), share) in self.of_cause.iter().zip(&shares) {
            let (first, row) = list.effects_of(*u);
            for (v, p) in members.iter().zip(&following) {
                let Ok(at) = row.binary_search(v) else { continue };
                let spread = share * (1.0 - share) * p;
                let place = sums.at(first + at);
                place.residual += (one(*u == cause) - share) * (one(*v == effect) - p);
                place.weight += spread;
                place.variance += spread * (1.0 - p);
                if *u == cause && nearest {
                    place.expected += p;
                    place.observed += one(*v == effect);
                }
            }
        }
    }
}
