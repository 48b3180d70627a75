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
//! A pair of a type with itself is not restricted: there `π⁰ = π` and `p⁰ = S`.
//!
//! Rows are added up branch by branch: `m × 3V` numbers for a cause, never `N × m × V`. Replacements of less than
//! [`LEAST_WEIGHT`] of the largest weight, and types `u` of less than that much of `π`, are left out; each factor of `R`
//! has mean zero by itself where `u` does nothing to `v`, so that this costs power and no validity.

use super::Prior;
use crate::evidence::{PairList, SequenceEvidence};
use crate::{EventId, Knowledge, Lag};

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
    /// `D`.
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
    pub(super) fn add(&mut self, lag: usize, event: EventId, log_weight: f64, row: &[f64]) {
        let at = &mut self.lags[lag - 1];
        if log_weight > at.unit {
            let shrink = (at.unit - log_weight).exp();
            at.weights.iter_mut().chain(&mut at.following).for_each(|value| *value *= shrink);
            at.unit = log_weight;
        }
        let weight = (log_weight - at.unit).exp();
        // Not `<`, so that a NaN shows.
        if weight <= LEAST_WEIGHT {
            return;
        }
        at.weights[event.index()] += weight;
        for (sum, log_p) in at.following.iter_mut().zip(row) {
            *sum += weight * log_p.exp();
        }
        at.own[event.index()] = row[event.index()].exp();
    }

    /// Adds what the place says of every listed pair.
    pub(super) fn contribute(
        &mut self,
        observed: Observed,
        list: &PairList,
        knowledge: Option<&Knowledge>,
        sums: &mut SequenceEvidence,
    ) {
        let Observed { cause, effect, lag, nearest } = observed;
        let AtLag { weights, following, own, .. } = &mut self.lags[lag - 1];
        let total: f64 = weights.iter().sum();
        weights.iter_mut().chain(following.iter_mut()).for_each(|value| *value /= total);
        // Per effect type: 1 / (1 − π(v)), p⁰(v), and the second factor of R.
        let types = weights.len();
        let effects: Vec<(f64, f64, f64)> = (0..following.len())
            .map(|v| {
                let weight = if v < types { weights[v] } else { 0.0 };
                let rest = 1.0 - weight;
                let restricted = ((following[v] - weight * own[v]) / rest).clamp(0.0, 1.0);
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
