//! Where replacement events come from.
//!
//! Draws are keyed by position and particle: particle `l` replaces position `i` by the same event wherever it does
//! so, which is what lets the staircase compare two rows and lets adaptive rounds continue where the last one
//! stopped. A uniform proposal draws without replacement (a random permutation of the types, read from the front),
//! which removes part of the Monte-Carlo error and all of it after `V` draws.

use std::sync::{Arc, OnceLock};

use rand::{Rng, RngExt};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::sequential::draw_order;
use crate::random::{Purpose, Streams};
use crate::{Error, EventId, ModelError};

/// What replacement events are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proposal {
    /// Every type alike: the paper's choice, and that of its ground truth.
    Uniform,
    /// Training frequencies: on real logs most types are rare, and a uniform draw is one the model hardly knows.
    Unigram,
    /// The model's own prediction at that position, `P_θ(· | x_{<j})`.
    Model,
    /// The model's belief about what else could have stood there, given everything before *and the events between*
    /// cause and effect: `π_jq(r) ∝ P(r | x_{<j}) · Π_{j<k<q} P(x_k | …, x_j := r, …)`.
    Plausible,
}

impl Proposal {
    /// Whether alternatives come from the model's prediction at the cause.
    pub(crate) const fn asks_model(self) -> bool {
        matches!(self, Self::Model | Self::Plausible)
    }
}

/// Draws types in proportion to their weights.
#[derive(Clone, Debug)]
pub struct CumulativeTable(Vec<f64>);

impl CumulativeTable {
    /// A table of these weights; `None` unless they are finite, not negative and sum to something positive.
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut total = 0.0;
        let mut sums = Vec::new();
        for weight in weights {
            if !(weight >= 0.0 && weight.is_finite()) {
                return None;
            }
            total += weight;
            sums.push(total);
        }
        (total > 0.0 && total.is_finite()).then_some(Self(sums))
    }

    /// One draw.
    pub fn draw(&self, random: &mut impl Rng) -> EventId {
        let total = self.0.last().copied().unwrap_or_default();
        let point = random.random::<f64>() * total;
        // The first type whose running sum lies beyond the point; types of weight 0 have an empty interval.
        let mut index = self.0.partition_point(|sum| *sum <= point);
        if index == self.0.len() {
            // `point` rounded up to the total: the last type that has any weight.
            index = self.0.partition_point(|sum| *sum < total);
        }
        EventId(index as u32)
    }
}

/// The first `count` entries of random permutations of `0 .. size`, one after another.
fn draw_without_replacement(random: &mut impl Rng, size: usize, count: usize) -> Vec<EventId> {
    let mut drawn = Vec::with_capacity(count);
    let mut moved: FxHashMap<u32, u32> = FxHashMap::default(); // Fisher–Yates on an array that is never written out
    while drawn.len() < count {
        let step = (drawn.len() % size) as u32;
        if step == 0 {
            moved.clear();
        }
        let pick = random.random_range(step..size as u32);
        let value = moved.get(&pick).copied().unwrap_or(pick);
        let front = moved.get(&step).copied().unwrap_or(step);
        moved.insert(pick, front);
        drawn.push(EventId(value));
    }
    drawn
}

/// The replacements of one position: by draws, or every type with its weight.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Replacements {
    pub(crate) events: Vec<EventId>,
    /// The logarithm of each event's weight when the proposal is enumerated.
    pub(crate) log_weights: Option<Vec<f64>>,
}

/// The replacements of every position of one sequence, made when first asked for.
pub(crate) struct Draws {
    streams: Streams,
    size: usize,
    row_size: usize,
    amount: Amount,
    source: Source,
    /// The observed events, where none of them is drawn at its own position.
    observed: Option<Vec<EventId>>,
    /// Whether a type is drawn at most once also where types have weights.
    once: bool,
    cells: Vec<OnceLock<Arc<Replacements>>>,
    shared: OnceLock<Arc<Replacements>>,
}

/// How many replacements a position gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Draw(usize),
    Enumerate,
}

#[derive(Clone, Debug)]
enum Source {
    Uniform,
    Unigram { frequencies: Vec<f64> },
    Model,
}

impl Draws {
    /// Draws for a sequence of `length` events over `size` types, of a model whose rows
    /// have `row_size` numbers. `frequencies` are needed for `Unigram` only. What
    /// `observed` has at a position is not drawn there; it is listed all the same where types are enumerated.
    pub(crate) fn new(
        streams: Streams,
        length: usize,
        (size, row_size): (usize, usize),
        amount: Amount,
        proposal: Proposal,
        frequencies: Option<&[f64]>,
        observed: Option<&[EventId]>,
    ) -> Result<Self, Error> {
        let source = match proposal {
            Proposal::Uniform => Source::Uniform,
            Proposal::Model | Proposal::Plausible => Source::Model,
            Proposal::Unigram => Source::Unigram { frequencies: unigram_weights(frequencies, size)?.to_vec() },
        };
        let cells = (0..length).map(|_| OnceLock::new()).collect();
        let observed = observed.map(<[EventId]>::to_vec);
        Ok(Self { streams, size, row_size, amount, source, observed, once: false, cells, shared: OnceLock::new() })
    }

    /// The same with every type drawn at most once, in proportion to the weights that are left.
    pub(crate) fn once(self, once: bool) -> Self {
        Self { once, ..self }
    }

    /// The replacements of a position. `predict` writes the model's log-distribution there, and is called only when
    /// the proposal is the model's own.
    pub(crate) fn at(
        &self,
        position: usize,
        predict: impl FnOnce(&mut [f64]) -> Result<(), ModelError>,
    ) -> Result<Arc<Replacements>, ModelError> {
        // What does not depend on the position is kept once.
        let cell = match (&self.amount, &self.source) {
            (Amount::Enumerate, Source::Uniform | Source::Unigram { .. }) => &self.shared,
            _ => &self.cells[position],
        };
        if let Some(known) = cell.get() {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(self.make(position, predict)?);
        // Two threads may both have made it; they made the same.
        Ok(Arc::clone(cell.get_or_init(|| made)))
    }

    fn make(
        &self,
        position: usize,
        predict: impl FnOnce(&mut [f64]) -> Result<(), ModelError>,
    ) -> Result<Replacements, ModelError> {
        let weights = match &self.source {
            Source::Uniform => None,
            Source::Unigram { frequencies } => Some(frequencies.clone()),
            Source::Model => {
                let mut row = vec![0.0; self.row_size];
                predict(&mut row)?;
                row.truncate(self.size);
                for value in &mut row {
                    *value = value.exp();
                }
                // Also when nothing is drawn: a NaN would otherwise pass for a type that cannot occur.
                model_table(row.iter().copied())?;
                Some(row)
            }
        };
        match self.amount {
            Amount::Enumerate => {
                let weight = |event: usize| weights.as_ref().map_or(1.0, |w| w[event]);
                let (events, weights) = (0..self.size)
                    .filter(|event| weight(*event) > 0.0)
                    .map(|event| (EventId(event as u32), weight(event).ln()))
                    .unzip();
                Ok(Replacements { events, log_weights: Some(weights) })
            }
            Amount::Draw(count) => {
                let mut random = self.streams.stream(Purpose::Replacement, position as u32, 0);
                Ok(Replacements { events: self.draw(position, count, weights, &mut random), log_weights: None })
            }
        }
    }

    /// Draws that leave out the observed event, where that is asked for and anything else is left.
    fn draw(&self, position: usize, count: usize, weights: Option<Vec<f64>>, random: &mut impl Rng) -> Vec<EventId> {
        let observed = self.observed.as_ref().map(|events| events[position]);
        let Some(mut weights) = weights else {
            let Some(own) = observed else { return draw_without_replacement(random, self.size, count) };
            let drawn = draw_without_replacement(random, self.size - 1, count);
            return drawn.into_iter().map(|event| EventId(event.0 + u32::from(event >= own))).collect();
        };
        if let Some(own) = observed {
            weights[own.index()] = 0.0;
        }
        if self.once {
            let mut order = draw_order(&weights, random);
            order.truncate(count);
            return order;
        }
        // Where the model leaves nothing but the observed event, there is no alternative to draw.
        let Some(table) = CumulativeTable::new(weights) else { return Vec::new() };
        (0..count).map(|_| table.draw(random)).collect()
    }

    /// One draw from the model's prediction in a history that belongs to one particle.
    pub(crate) fn one_from_model(
        &self,
        position: usize,
        particle: usize,
        log_row: &[f64],
    ) -> Result<EventId, ModelError> {
        let table = model_table(log_row.iter().map(|value| value.exp()))?;
        // Particle 0 of this purpose is the stream of whole positions.
        Ok(table.draw(&mut self.streams.stream(Purpose::Replacement, position as u32, particle as u32 + 1)))
    }
}

/// A model's event frequencies, which must be weights of its types.
pub(super) fn unigram_weights(frequencies: Option<&[f64]>, size: usize) -> Result<&[f64], Error> {
    let weights = frequencies.ok_or_else(|| {
        let reason = "unigram needs event frequencies, which this model does not have; use uniform or model";
        Error::setting("proposal", reason)
    })?;
    if weights.len() == size && CumulativeTable::new(weights.iter().copied()).is_some() {
        Ok(weights)
    } else {
        let reason =
            "unigram needs one frequency for each event type, not negative and not all zero; this model's are not";
        Err(Error::setting("proposal", reason))
    }
}

/// A table of a model's prediction, which must be a distribution.
pub(crate) fn model_table(weights: impl IntoIterator<Item = f64>) -> Result<CumulativeTable, ModelError> {
    CumulativeTable::new(weights).ok_or_else(|| ModelError::new("its prediction is not a distribution"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(proposal: Proposal, amount: Amount, frequencies: Option<&[f64]>) -> Draws {
        Draws::new(Streams::new(1, "s"), 4, (10, 10), amount, proposal, frequencies, None).unwrap()
    }

    #[test]
    fn uniform_draws_are_permutations() {
        let made = draws(Proposal::Uniform, Amount::Draw(25), None).at(2, |_| unreachable!()).unwrap();
        for block in [&made.events[..10], &made.events[10..20]] {
            let mut sorted: Vec<u32> = block.iter().map(|e| e.0).collect();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
        }
        let more = draws(Proposal::Uniform, Amount::Draw(40), None).at(2, |_| unreachable!()).unwrap();
        assert_eq!(made.events, more.events[..25], "a longer run starts with the same draws");
        let elsewhere = draws(Proposal::Uniform, Amount::Draw(25), None).at(3, |_| unreachable!()).unwrap();
        assert_ne!(made.events, elsewhere.events);
    }

    #[test]
    fn weighted_draws_follow_their_weights() {
        let weights = [0.0, 3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let made = draws(Proposal::Unigram, Amount::Draw(4000), Some(&weights)).at(0, |_| unreachable!()).unwrap();
        let ones = made.events.iter().filter(|e| e.0 == 1).count();
        assert!(made.events.iter().all(|e| e.0 == 1 || e.0 == 2));
        assert!((2850..3150).contains(&ones), "{ones}");
    }

    #[test]
    fn what_was_observed_is_not_drawn() {
        let observed = [3, 0, 9, 5].map(EventId);
        let mut weights = [1.0; 10];
        weights[5] = 50.0;
        for proposal in [Proposal::Uniform, Proposal::Unigram] {
            let draws = Draws::new(
                Streams::new(1, "s"),
                4,
                (10, 10),
                Amount::Draw(36),
                proposal,
                Some(&weights),
                Some(&observed),
            );
            for (position, own) in observed.iter().enumerate() {
                let made = draws.as_ref().unwrap().at(position, |_| unreachable!()).unwrap();
                assert!(made.events.len() == 36 && !made.events.contains(own), "{proposal:?} {made:?}");
            }
        }
        // Nothing else can occur: there is nothing to draw.
        let only =
            Draws::new(Streams::new(1, "s"), 4, (10, 10), Amount::Draw(8), Proposal::Model, None, Some(&observed));
        let made = only.unwrap().at(1, |row| {
            row.fill(f64::NEG_INFINITY);
            row[0] = 0.0;
            Ok(())
        });
        assert_eq!(made.unwrap().events, []);
    }

    #[test]
    fn enumeration_lists_types_that_can_occur() {
        let mut weights = [0.0; 10];
        (weights[4], weights[7]) = (2.0, 6.0);
        let made = draws(Proposal::Unigram, Amount::Enumerate, Some(&weights)).at(1, |_| unreachable!()).unwrap();
        assert_eq!(made.events, [EventId(4), EventId(7)]);
        assert_eq!(made.log_weights, Some(vec![2f64.ln(), 6f64.ln()]));
        let by_model = draws(Proposal::Model, Amount::Enumerate, None);
        let made = by_model
            .at(1, |row| {
                row.fill(f64::NEG_INFINITY);
                row[3] = 0.0;
                Ok(())
            })
            .unwrap();
        assert_eq!((made.events.as_slice(), made.log_weights.as_deref()), (&[EventId(3)][..], Some(&[0.0][..])));
    }

    #[test]
    fn frequencies_that_are_no_weights_are_an_error_not_a_uniform_guess() {
        for frequencies in [None, Some(&[1.0; 9][..]), Some(&[0.0; 10][..]), Some(&[f64::NAN; 10][..])] {
            let made =
                Draws::new(Streams::new(1, "s"), 4, (10, 10), Amount::Enumerate, Proposal::Unigram, frequencies, None);
            assert!(matches!(made, Err(Error::Setting { name: "proposal", .. })));
        }
    }

    #[test]
    fn tables_refuse_what_is_no_weight() {
        assert!(CumulativeTable::new([0.0, 0.0]).is_none());
        assert!(CumulativeTable::new([1.0, f64::NAN]).is_none());
        assert!(CumulativeTable::new([1.0, -1.0]).is_none());
        assert!(CumulativeTable::new([]).is_none());
    }
}
