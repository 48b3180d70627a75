//! How long what an event says about the next one stays true.
//!
//! ```text
//! A_k(u, v) = ln (C_k(u, v) + 1) / (E_k(u, v) + 1)
//! echo_k    = ( Σ A_k A'_1 + Σ A'_k A_1 ) / 2 Σ A_1 A'_1
//! ```
//!
//! `C_k(u, v)` counts how often `v` came `k` events after `u` in one half of the sequences, `E_k` is what it would be if the two
//! had nothing to do with each other, and a dash marks the other half: what is chance in one is not in the other. What
//! `u` does to `v` by way of the events between is hardly correlated with what it does at once, and drops out; what lasts for
//! whole sequences is taken off. Logarithms of small counts understate strong influences more than weak ones, which a power
//! makes up for.
//!
//! Cost: a pass over the first [`EVENTS`] events for each of [`LAGS`] lags, and as many tables of at most [`TYPES`]² numbers.

use rayon::prelude::*;

use super::corpus::{Corpus, Survey};
use super::sample::Sample;
use crate::Error;

/// Events looked at.
const EVENTS: usize = 1 << 20;
/// The most frequent types, which alone are looked at.
const TYPES: usize = 512;
/// Lags looked at.
const LAGS: usize = 32;
/// The last lags, whose mean is taken for what lasts: types that keep company in whole sequences, not echoes.
const FAR: usize = 8;
/// The power.
const SHARPER: f64 = 1.5;
/// The share from which on an echo counts as heard.
const HEARD: f64 = 0.2;
/// The correlation of the two halves from which on there is anything to measure.
const CLEAR: f64 = 0.05;

/// How much of what an event says about the one right after it, it also says about the one 2, 3, … events later; not less than is
/// usual, as what an earlier event says may be something else altogether.
#[derive(Clone, Debug, PartialEq)]
pub struct Echo {
    shares: Vec<f64>,
}

impl Default for Echo {
    /// The usual: half of it, a quarter, and so on.
    fn default() -> Self {
        Self { shares: (1..9).map(|lag| 0.5f64.powi(lag)).collect() }
    }
}

impl Echo {
    /// Of what is trained on.
    pub fn measure(corpus: &dyn Corpus, survey: &Survey) -> Result<Self, Error> {
        let Sample { halves, types } = Sample::read(corpus, survey, TYPES, EVENTS)?;
        let at = |lag: usize| halves.each_ref().map(|half| associations(half, types.len(), lag));
        let [one, other] = at(1);
        let alike = product(&one, &other);
        if alike <= CLEAR * (product(&one, &one) * product(&other, &other)).sqrt() {
            return Ok(Self::default());
        }
        let likeness = |lag: usize| {
            let [this, that] = at(lag);
            (product(&this, &other) + product(&that, &one)) / (2.0 * alike)
        };
        let likeness: Vec<f64> = (2..=LAGS).into_par_iter().map(likeness).collect();
        let far = &likeness[likeness.len() - FAR..];
        let lasting = (far.iter().sum::<f64>() / FAR as f64).clamp(0.0, 0.9);
        let share = |likeness: &f64| ((likeness - lasting) / (1.0 - lasting)).clamp(0.0, 1.0).powf(SHARPER);
        let usual = Self::default().shares.into_iter().chain(std::iter::repeat(0.0));
        Ok(Self { shares: likeness.iter().map(share).zip(usual).map(|(share, usual)| share.max(usual)).collect() })
    }

    /// How many events back it is heard; at least one, the last event itself.
    pub fn reach(&self) -> usize {
        self.shares.iter().rposition(|share| *share >= HEARD).map_or(1, |place| place + 2)
    }

    /// Whether it is heard no further back than usual.
    pub(crate) fn is_usual(&self) -> bool {
        self.reach() <= Self::default().reach()
    }

    /// Of an event that another one has followed, that two have followed, and so on.
    pub(crate) fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Of all earlier events together.
    pub(crate) fn total(&self) -> f64 {
        self.shares.iter().sum()
    }
}

/// `A_k` of one half.
fn associations(sequences: &[Vec<u16>], types: usize, lag: usize) -> Vec<f32> {
    let mut counts = vec![0u32; types * types];
    let (mut before, mut after, mut total) = (vec![0u32; types], vec![0u32; types], 0u32);
    for sequence in sequences {
        for (u, v) in sequence.iter().zip(sequence.iter().skip(lag)) {
            if *u != Sample::OTHER && *v != Sample::OTHER {
                counts[*u as usize * types + *v as usize] += 1;
                before[*u as usize] += 1;
                after[*v as usize] += 1;
                total += 1;
            }
        }
    }
    let mut table = Vec::with_capacity(counts.len());
    for (row, before) in counts.chunks_exact(types).zip(before) {
        let rate = before as f32 / total.max(1) as f32;
        table.extend(
            row.iter().zip(&after).map(|(count, after)| ((*count as f32 + 1.0) / (rate * *after as f32 + 1.0)).ln()),
        );
    }
    table
}

fn product(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(a, b)| f64::from(a * b)).sum()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use trace_core::EventId;

    use super::*;

    /// Sequences in which each event is, with the given probabilities, the successor of the one 1, 2, … events earlier.
    fn sequences(follows: &[f64]) -> Vec<Vec<EventId>> {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut one = || {
            let mut events: Vec<EventId> = Vec::new();
            for at in 0..40 {
                let mut chance: f64 = random.random();
                let mut event = EventId(random.random_range(0..30));
                for (lag, share) in follows.iter().enumerate().filter(|(lag, _)| *lag < at) {
                    if (0.0..*share).contains(&chance) {
                        event = EventId((events[at - 1 - lag].0 * 7 + 3) % 30);
                    }
                    chance -= share;
                }
                events.push(event);
            }
            events
        };
        (0..1500).map(|_| one()).collect()
    }

    fn measured(corpus: &Vec<Vec<EventId>>) -> Echo {
        let survey = Survey::new(corpus, 30, 0.1, 1).expect("a corpus");
        Echo::measure(corpus, &survey).expect("a corpus")
    }

    #[test]
    fn an_echo_lasts_as_long_as_the_process_remembers() {
        let short = measured(&sequences(&[0.6]));
        let long = measured(&sequences(&[0.15, 0.15, 0.15, 0.15]));
        let usual = Echo::default();
        let (one, all) = (short.shares(), long.shares());
        assert_eq!((&one[..8], one.len()), (usual.shares(), LAGS - 1));
        assert!(one[8..].iter().all(|share| *share < 0.1), "{one:?}");
        assert!(all[..3].iter().all(|share| *share > 0.7) && all[3..].iter().all(|share| *share < 0.2), "{all:?}");
        assert!(short.total() < 1.5 && long.total() > 2.0);
        assert_eq!((usual.reach(), short.reach(), long.reach()), (3, 3, 4));
        assert!(measured(&sequences(&[0.07; 12])).reach() >= 10);
    }

    #[test]
    fn events_that_say_nothing_have_the_usual_echo() {
        assert_eq!(measured(&sequences(&[])), Echo::default());
        assert_eq!(measured(&vec![vec![EventId(3)], vec![EventId(4)]]), Echo::default());
    }
}
