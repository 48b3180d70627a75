//! How much room there was for anything else than what happened.
//!
//! With `π_jq(r) ∝ P(r | x_{<j}) · w_r` over all types, where `w_r = Π_{j<k<q} P(x_k | …, x_j := r, …)`, and with `x` at
//! the cause and `y` at the effect:
//!
//! ```text
//! overlap(j → q) = 1 − π_jq(x) − π_jq(y)          1 − π_jq(x) where x = y
//! ```
//!
//! Where types are enumerated this is exact. Where they are drawn from `Q`, the alternatives' part of the sum is
//! `(1 − P(x) − P(y)) · Σ v_r w_r / Σ v_r` with `v_r = P(r) / Q(r)`, and `w_y` is taken to be the same mean. Cost: one
//! exponential per alternative.

use crate::numerics::log_add_exp;

/// Below this share of room for anything else, a log cannot say what would have happened otherwise.
pub const LEAST_OVERLAP: f64 = 0.01;

/// The posterior's sums for one pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// `log Σ v_r w_r` over alternatives.
    others: f64,
    /// `log Σ v_r` over alternatives.
    importance: f64,
    /// `log Σ P(r) w_r` over what is no alternative but for the event itself, as far as it was tried.
    taken: f64,
}

impl Default for Room {
    fn default() -> Self {
        let none = f64::NEG_INFINITY;
        Self { others: none, importance: none, taken: none }
    }
}

/// What the model says of the cause's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// `log P(x | x_{<j})`.
    pub(super) cause: f64,
    /// The logarithm of the probability of all else that is no alternative: the effect's type, or what belongs to the
    /// steps of either.
    pub(super) taken: f64,
    /// `log w_x`.
    pub(super) between: f64,
}

impl Room {
    /// Adds an alternative with `log v_r` and `log w_r`.
    pub(super) fn alternative(&mut self, importance: f64, between: f64) {
        self.importance = log_add_exp(self.importance, importance);
        self.others = log_add_exp(self.others, importance + between);
    }

    /// Adds a type that is no alternative, such as the effect's own, with `log P(y)` and `log w_y`.
    pub(super) fn taken(&mut self, prediction: f64, between: f64) {
        self.taken = log_add_exp(self.taken, prediction + between);
    }

    /// The overlap, exact where all types were tried.
    pub(super) fn overlap(&self, place: Place, enumerated: bool) -> f64 {
        let (others, taken) = if enumerated {
            (self.others, self.taken)
        } else {
            let mean = self.others - self.importance;
            let left = 1.0 - place.cause.exp() - place.taken.exp();
            let none = f64::NEG_INFINITY;
            if mean.is_nan() || left <= 0.0 { (none, none) } else { (left.ln() + mean, place.taken + mean) }
        };
        let total = log_add_exp(log_add_exp(others, taken), place.cause + place.between);
        if others == f64::NEG_INFINITY { 0.0 } else { (others - total).exp().clamp(0.0, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enumerated_and_drawn_rooms_agree_where_draws_are_many() {
        // Five types: x = 0, y = 1, alternatives 2, 3, 4.
        let p = [0.4, 0.1, 0.3, 0.15, 0.05f64];
        let w = [0.5, 0.02, 0.1, 0.6, 0.02f64];
        let total: f64 = p.iter().zip(w).map(|(p, w)| p * w).sum();
        let expected = (2..5).map(|r| p[r] * w[r]).sum::<f64>() / total;
        let place = Place { cause: p[0].ln(), taken: p[1].ln(), between: w[0].ln() };
        let mut all = Room::default();
        for r in 2..5 {
            all.alternative(p[r].ln(), w[r].ln());
        }
        all.taken(p[1].ln(), w[1].ln());
        assert!((all.overlap(place, true) - expected).abs() < 1e-12);
        // Drawn uniformly, each alternative equally often: the same but for what the effect's type would have done.
        let drawn = all.overlap(place, false);
        let mean = (2..5).map(|r| p[r] * w[r]).sum::<f64>() / 0.5;
        assert!((drawn - 0.5 * mean / (0.6 * mean + 0.4 * 0.5)).abs() < 1e-12);
    }

    #[test]
    fn without_an_alternative_there_is_no_room() {
        let place = Place { cause: 0.0, taken: f64::NEG_INFINITY, between: -3.0 };
        assert_eq!(Room::default().overlap(place, true), 0.0);
        assert_eq!(Room::default().overlap(place, false), 0.0);
    }
}
