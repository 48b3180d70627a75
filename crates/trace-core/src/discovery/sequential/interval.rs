//! The means that a [`SequentialTest`](super::SequentialTest) would not have refuted.
//!
//! ```text
//! interval = { μ : neither capital against μ ever reached 2/α }          α = 1 − confidence, halved between the sides
//! ```
//!
//! Each factor of a capital is monotone in `μ`, so that both ends are found by bisection. The interval holds the mean at
//! all times at once with the given confidence, and more draws never widen it. Cost: `40 · 2 · 16` logarithms for each
//! draw.

use super::{Decision, Gambler, Population, Seen, check};
use crate::Error;

/// Bets on each side: down to a fraction of 3e-5, whatever the mean.
const BETS: usize = 16;
const HALVINGS: usize = 40;

/// A confidence interval of the mean of draws in `0 ..= bound`, valid at any stopping time. Each draw comes with its weight,
/// which only a [`Population::Weighted`] has (1 elsewhere). In it the mean is that of the whole population.
pub fn confidence_interval(
    draws: &[(f64, f64)],
    bound: f64,
    confidence: f64,
    population: Population,
) -> Result<(f64, f64), Error> {
    check(bound, confidence, population)?;
    let needed = (2.0 / (1.0 - confidence)).ln();
    let refuted = |mean: f64, side: Decision| {
        let mut seen = Seen::new(mean, population);
        let mut gambler = Gambler::new(BETS);
        draws.iter().any(|(draw, weight)| {
            let draw = (draw / bound).clamp(0.0, 1.0);
            if let Some(expected) = seen.expected() {
                gambler.bet(match side {
                    Decision::Above => (draw - expected) / expected,
                    Decision::Below => (expected - draw) / (1.0 - expected),
                });
            }
            seen.push(draw, *weight);
            seen.certain() == Some(side) || gambler.reaches(needed)
        })
    };
    // The largest mean that is too low, and the smallest that is too high.
    let (low, _) = bisect(|mean| refuted(mean, Decision::Above));
    let (_, high) = bisect(|mean| !refuted(mean, Decision::Below));
    Ok((low * bound, high * bound))
}

/// Where a condition that holds below some share stops to hold.
fn bisect(holds: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high)
}
