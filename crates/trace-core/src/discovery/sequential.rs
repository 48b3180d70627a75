//! A sequential test of one candidate edge: draws are taken until it is decided whether their mean exceeds a threshold.
//!
//! Draws `X_1, X_2, … ∈ [0, B]` with mean `μ` are put against the threshold `τ`. In units of the bound, with
//! `x_t = X_t / B` and `m = τ / B`, two gamblers bet a fraction `f` of what they could afford to lose, one against
//! `μ ≤ τ` and one against `μ ≥ τ` (Waudby-Smith & Ramdas 2023, *Estimating means of bounded random variables by
//! betting*):
//!
//! ```text
//! capital against μ ≤ τ:  Σ_k w_k Π_t ( 1 + f_k (x_t − m_t) / m_t )
//! capital against μ ≥ τ:  Σ_k w_k Π_t ( 1 + f_k (m_t − x_t) / (1 − m_t) )          decided when one reaches 1/α
//! ```
//!
//! While its hypothesis holds, a capital cannot grow in expectation, so that it *ever* reaches `1/α` with a chance of
//! at most `α = 1 − confidence` (Ville 1939): one may look after every draw and stop whenever one likes. Only one of the
//! two answers can be wrong for a given mean, so that each side has the whole `α`. No bet suits all draws: of strengths
//! most are near zero and a few are large. A mixture over fractions that halve from 0.98 down does not have to guess,
//! and costs no more than `ln(1/w_k)` against the best of them; half of it stays on the boldest, which settles the
//! common cases, "nothing happens" and "far above".
//!
//! `m_t` is what the hypothesis expects of the next draw. Independent draws: `m`. Draws without replacement from types
//! of weights `w_r` (all 1 for a uniform proposal), where each next type is drawn in proportion to the weights that are
//! left ([`draw_order`]; Shekhar et al. 2023, *Risk-limiting financial audits via weighted sampling without
//! replacement*):
//!
//! ```text
//! m_t = ( m Σ_all w_r − Σ_seen w_i x_i ) / ( Σ_all w_r − Σ_seen w_i )
//! ```
//!
//! **Which to take for weighted types.** Three schemes are valid. A uniform order with summands `N w_r X_r` has the bound
//! `N w_max B`, which for skewed frequencies is many times `B`, and the number of draws grows with it. Independent draws by
//! weight keep `B` but see heavy types again and again, and are never exact. Weighted draws without replacement keep `B`,
//! see the heavy types early and each of them once, and are exact at the end: take these wherever the weights are known
//! before the draws, and independent draws where types cannot be listed. Both are a [`Population`] here. Weights that are
//! known only after a type was scored (the plausible alternatives of a pair) fit neither; they need all types.
//!
//! Cost: `log₂(32 / m) + log₂(32 / (1 − m))` logarithms for each draw, about 18 of them for `m = 0.01`, and as many numbers
//! to keep. No test can be fast where a rare draw could decide: that `n` draws were all zero excludes a mean of `τ` only
//! once `(1 − τ/B)^n ≤ α`.

mod interval;
mod skewed;
#[cfg(test)]
mod tests;

use rand::{Rng, RngExt};

pub use self::interval::confidence_interval;
pub use self::skewed::skewed_std_error;
use crate::numerics::log_sum_exp;
use crate::{Error, EventId};

/// The boldest bet: as a share of what a gambler could lose at once without being ruined for good.
const BOLDEST: f64 = 0.98;
/// The most cautious bet is the best one for a mean this share of the threshold away from it.
const SMALLEST_GAP: f64 = 1.0 / 32.0;
/// However small the threshold is against the bound.
const MOST_BETS: usize = 24;
/// Weight that is left by rounding only, as a share of the total.
const ROUNDING: f64 = 1e-12;

/// On which side of the threshold the mean lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The mean exceeds the threshold.
    Above,
    /// It does not.
    Below,
}

/// What draws come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Population {
    /// Independent draws: with replacement, or from something that cannot be listed. Draws by weight are equal draws here.
    Independent,
    /// So many types of equal weight, each drawn at most once.
    Finite(usize),
    /// Types of this total weight, each drawn at most once, in proportion to the weights that are left.
    Weighted(f64),
}

/// A test that may be stopped at any time, and is wrong with a chance of at most `1 − confidence` whenever it has decided.
///
/// ```
/// use trace_core::sequential::{Decision, Population, SequentialTest};
///
/// let mut test = SequentialTest::new(0.05, 2.0, 0.99, Population::Independent)?;
/// while test.decision().is_none() {
///     test.push(0.4);
/// }
/// assert_eq!(test.decision(), Some(Decision::Above));
/// assert!(test.draws() < 10);
/// # Ok::<(), trace_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SequentialTest {
    bound: f64,
    seen: Seen,
    /// The capital that refutes a hypothesis, as a logarithm.
    needed: f64,
    not_above: Gambler,
    not_below: Gambler,
    decision: Option<Decision>,
}

impl SequentialTest {
    /// A test of draws in `0 ..= bound` against `threshold`.
    pub fn new(threshold: f64, bound: f64, confidence: f64, population: Population) -> Result<Self, Error> {
        if !(threshold >= 0.0 && threshold.is_finite()) {
            return Err(Error::setting("threshold", format!("{threshold} is not a strength; expected 0 or more nats")));
        }
        check(bound, confidence, population)?;
        let mean = threshold / bound;
        let mut test = Self {
            bound,
            seen: Seen::new(mean, population),
            needed: -(1.0 - confidence).ln(),
            not_above: Gambler::new(bets(mean)),
            not_below: Gambler::new(bets(1.0 - mean)),
            decision: None,
        };
        test.decision = test.seen.certain();
        Ok(test)
    }

    /// Takes the next draw; of a [`Population::Weighted`] one of weight 1.
    pub fn push(&mut self, draw: f64) {
        self.push_weighted(draw, 1.0);
    }

    /// Takes the next draw of a [`Population::Weighted`], with its weight. Draws of the other populations have weight 1,
    /// whatever is given.
    ///
    /// Draws that leave `0 ..= bound` by rounding are moved into it. A draw that is not a number keeps the test from
    /// deciding, and so do draws beyond the population.
    pub fn push_weighted(&mut self, draw: f64, weight: f64) {
        let draw = (draw / self.bound).clamp(0.0, 1.0);
        if let Some(expected) = self.seen.expected() {
            self.not_above.bet((draw - expected) / expected);
            self.not_below.bet((expected - draw) / (1.0 - expected));
        }
        self.seen.push(draw, weight);
        // What is certain replaces what was likely.
        self.decision = self.seen.certain().or(self.decision).or_else(|| {
            if self.not_above.reaches(self.needed) {
                Some(Decision::Above)
            } else {
                self.not_below.reaches(self.needed).then_some(Decision::Below)
            }
        });
    }

    /// What is decided, if anything is yet. It stays, unless all of a population turns out otherwise.
    pub const fn decision(&self) -> Option<Decision> {
        self.decision
    }

    /// How many draws were taken.
    pub const fn draws(&self) -> usize {
        self.seen.draws
    }
}

/// The types in an order of weighted draws without replacement; types of weight 0 are left out.
///
/// Each next type comes in proportion to its share of the weight that is left: sorting by `E / w` with independent
/// standard exponential `E` does that (Efraimidis & Spirakis 2006). Cost: `V log V`.
pub fn draw_order(weights: &[f64], random: &mut impl Rng) -> Vec<EventId> {
    let mut keys: Vec<(f64, u32)> = Vec::with_capacity(weights.len());
    for (index, weight) in weights.iter().enumerate() {
        let exponential = -(1.0 - random.random::<f64>()).ln();
        if *weight > 0.0 {
            keys.push((exponential / weight, index as u32));
        }
    }
    keys.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    keys.into_iter().map(|(_, index)| EventId(index)).collect()
}

fn check(bound: f64, confidence: f64, population: Population) -> Result<(), Error> {
    if !(bound > 0.0 && bound.is_finite()) {
        return Err(Error::setting("bound", format!("{bound} bounds no draws; expected a finite number above 0")));
    }
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(Error::setting(
            "confidence",
            format!("{confidence} is out of range; expected a share between 0 and 1"),
        ));
    }
    match population {
        Population::Finite(0) => Err(Error::setting("population", "0 types leave nothing to draw from")),
        Population::Weighted(total) if !(total > 0.0 && total.is_finite()) => {
            Err(Error::setting("population", format!("{total} is no total weight; expected a finite number above 0")))
        }
        _ => Ok(()),
    }
}

/// The draws so far, as far as the hypothesis of a mean needs them; all in units of the bound.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The mean of the hypothesis.
    mean: f64,
    population: Population,
    draws: usize,
    weight: f64,
    sum: f64,
}

impl Seen {
    const fn new(mean: f64, population: Population) -> Self {
        Self { mean, population, draws: 0, weight: 0.0, sum: 0.0 }
    }

    const fn total(&self) -> Option<f64> {
        match self.population {
            Population::Independent => None,
            Population::Finite(size) => Some(size as f64),
            Population::Weighted(total) => Some(total),
        }
    }

    /// The weight of what was not drawn yet, with nothing for what rounding left.
    fn left(&self, total: f64) -> f64 {
        let left = total - self.weight;
        if left <= total * ROUNDING { 0.0 } else { left }
    }

    /// What the next draw's mean would be if the hypothesis were true, where there is anything to bet on.
    fn expected(&self) -> Option<f64> {
        let expected = match self.total() {
            None => self.mean,
            Some(total) => (total * self.mean - self.sum) / self.left(total),
        };
        (expected > 0.0 && expected < 1.0).then_some(expected)
    }

    fn push(&mut self, draw: f64, weight: f64) {
        let weight = if matches!(self.population, Population::Weighted(_)) { weight } else { 1.0 };
        self.draws += 1;
        self.weight += weight;
        self.sum += weight * draw;
    }

    /// What follows from the bounds alone, whatever is still to be drawn.
    fn certain(&self) -> Option<Decision> {
        let Some(total) = self.total() else {
            return match self.mean {
                mean if mean >= 1.0 => Some(Decision::Below),
                mean if mean <= 0.0 && self.sum > 0.0 => Some(Decision::Above),
                _ => None,
            };
        };
        let needed = total * self.mean;
        if self.sum > needed {
            Some(Decision::Above)
        } else if self.sum + self.left(total) <= needed {
            Some(Decision::Below)
        } else {
            None
        }
    }
}

/// How many fractions, each half of the one before, a bet against this mean (in units of the bound) needs.
fn bets(mean: f64) -> usize {
    let halvings = (1.0 / (SMALLEST_GAP * mean.max(f64::MIN_POSITIVE))).log2().ceil();
    (halvings.max(1.0) as usize).clamp(1, MOST_BETS)
}

/// One side's capital: a mixture of fixed fractions, as logarithms.
#[derive(Clone, Debug)]
struct Gambler(Vec<f64>);

impl Gambler {
    fn new(bets: usize) -> Self {
        let others = (bets.max(2) - 1) as f64;
        let boldest = if bets < 2 { 0.0 } else { 0.5f64.ln() };
        Self((0..bets).map(|bet| if bet == 0 { boldest } else { -(2.0 * others).ln() }).collect())
    }

    /// `gain ≥ −1` is what a bet of everything would win.
    fn bet(&mut self, gain: f64) {
        let mut fraction = BOLDEST;
        for capital in &mut self.0 {
            *capital += (fraction * gain).ln_1p();
            fraction *= 0.5;
        }
    }

    /// Whether the capital is at least this much.
    fn reaches(&self, needed: f64) -> bool {
        let richest = self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // All bets together are worth no more than the richest one so many times.
        let most = richest + (self.0.len() as f64).ln();
        most >= needed && log_sum_exp(self.0.iter().copied()) >= needed
    }
}
