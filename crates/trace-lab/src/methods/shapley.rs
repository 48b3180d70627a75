//! Shapley value sampling: the average difference that an event makes to the log-probability of a later one when the
//! events before it are put in place one after another, in random order.
//!
//! The players are the events within reach of the effect; everything earlier stays as observed. Cost for an effect with
//! `m` players and `N` orders: `N · m` branches of `m` positions.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rayon::prelude::*;
use trace_core::random::Purpose;
use trace_core::{Branches, DensityModel, Discovered, Error, EventId, EventSequence, Measure, Reading, Scores};

use super::{Method, MethodName, Span, graph, guesses};

/// What stands in the place of an event that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// A draw, uniform over all types, of its own for each order and position.
    Drawn,
    /// Always this type.
    Type(EventId),
}

/// The size of the Shapley value, from sampled orders.
#[derive(Clone, Copy)]
pub struct Shapley<'m> {
    /// Which pairs are scored.
    pub span: Span,
    /// The model.
    pub model: &'m dyn DensityModel,
    /// How many orders are sampled for each effect; all of them, once each, where there are no more than that.
    pub orders: usize,
    /// What stands for an absent event.
    pub absent: Absent,
    /// What the size of a value must exceed, in nats.
    pub threshold: f64,
    /// Seed of orders and draws.
    pub seed: u64,
}

impl Shapley<'_> {
    /// Orders sampled, unless asked otherwise.
    pub const ORDERS: usize = 32;
    /// The best of `trace-lab table1 --quick` on the sequences that choose thresholds; other models want others.
    pub const THRESHOLD: f64 = 3.9;

    /// The value of each player of one effect, nearest first, and the number of positions scored.
    pub fn values(
        &self,
        sequence: &EventSequence,
        reading: &dyn Reading,
        effect: usize,
    ) -> Result<(Vec<f64>, u64), Error> {
        let players = self.span.lags(effect);
        let start = effect - players;
        let observed = &sequence.events[start..effect];
        let mut random = guesses(self.seed, &sequence.id).stream(Purpose::Simulation, effect as u32, 1);
        let size = self.model.vocabulary_size() as u32;
        let orders = orders(players, self.orders, &mut random);
        let mut replacements = Vec::new();
        for order in &orders {
            let mut present: Vec<EventId> = (0..players)
                .map(|_| match self.absent {
                    Absent::Drawn => EventId(random.random_range(0..size)),
                    Absent::Type(event) => event,
                })
                .collect();
            // The last player completes what was observed, which is known.
            for player in order {
                replacements.extend_from_slice(&present);
                present[*player] = observed[*player];
            }
        }
        let batch = [Branches::new(start, players, players, &replacements)];
        let mut scores = Scores::default();
        scores.lay_out(&batch, Measure::Event, self.model.row_size());
        reading.score(&batch, &mut scores)?;
        let mut values = vec![0.0; players];
        for (number, order) in orders.iter().enumerate() {
            for (step, player) in order.iter().enumerate() {
                let without = scores.event(0, number * players + step, players).log_p;
                let with = if step + 1 < players {
                    scores.event(0, number * players + step + 1, players).log_p
                } else {
                    reading.observed()[effect].log_p
                };
                values[*player] += (with - without) / orders.len() as f64;
            }
        }
        values.reverse();
        Ok((values, (orders.len() * players * players) as u64))
    }
}

/// Random orders of the players, or all orders if there are no more than asked for.
fn orders(players: usize, most: usize, random: &mut impl Rng) -> Vec<Vec<usize>> {
    let all = (1..=players).try_fold(1usize, usize::checked_mul);
    if all.is_some_and(|all| all <= most) {
        // Each player in each place of each order of those before.
        let insert = |orders: Vec<Vec<usize>>, player: usize| {
            let places = |order: Vec<usize>| {
                (0..=order.len()).map(move |place| {
                    let mut longer = order.clone();
                    longer.insert(place, player);
                    longer
                })
            };
            orders.into_iter().flat_map(places).collect()
        };
        return (0..players).fold(vec![Vec::new()], insert);
    }
    let mut order: Vec<usize> = (0..players).collect();
    let mut next = || {
        order.shuffle(random);
        order.clone()
    };
    (0..most).map(|_| next()).collect()
}

impl Method for Shapley<'_> {
    fn name(&self) -> MethodName {
        MethodName::Shapley
    }

    fn threshold(&self) -> f64 {
        self.threshold
    }

    fn run(&self, sequence: &EventSequence) -> Result<Discovered, Error> {
        self.span.check(sequence)?;
        let reading = self.model.read(&sequence.events)?;
        let values = self
            .span
            .effects(sequence.events.len())
            .into_par_iter()
            .map(|effect| self.values(sequence, &*reading, effect))
            .collect::<Result<Vec<_>, Error>>()?;
        let branch_positions = values.iter().map(|(_, work)| work).sum();
        let sizes: Vec<Vec<f64>> =
            values.into_iter().map(|(values, _)| values.into_iter().map(f64::abs).collect()).collect();
        let graph = graph(sequence, self.span, self.threshold, Some(reading.observed()), &sizes)?;
        Ok(Discovered { graph, branch_positions, evidence: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_players_go_through_every_order_once() {
        let mut random = guesses(1, "orders").stream(Purpose::Simulation, 0, 0);
        let mut all = orders(4, 24, &mut random);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 24);
        assert!(all.iter().all(|order| (0..4).all(|player| order.contains(&player))));
        assert_eq!(orders(4, 23, &mut random).len(), 23);
    }
}
