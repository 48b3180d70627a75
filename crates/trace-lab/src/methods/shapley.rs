//! Shapley value sampling: the average difference that an event makes to the log-probability of a later one when the
//! events before it are put in place one after another, in random order.
//!
//! The players are the events within reach of the effect; everything earlier stays as observed. Cost for an effect with
//! `m` players and `N` orders: `N · m` branches of `m` positions.

use rand::RngExt;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use trace_core::random::{Purpose, Streams};
use trace_core::{Branches, DensityModel, Discovered, Error, EventId, EventSequence, Measure, Reading, Scores};

use super::{Kind, Method, Span, graph};

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
    /// How many orders are sampled for each effect.
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
    /// The best on sequences of the laboratory that no result is reported on.
    pub const THRESHOLD: f64 = 0.5;

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
        let mut random = Streams::new(self.seed, &sequence.id).stream(Purpose::Guess, effect as u32, 1);
        let size = self.model.vocabulary_size() as u32;
        let mut order: Vec<usize> = (0..players).collect();
        let (mut replacements, mut orders) = (Vec::new(), Vec::new());
        for _ in 0..self.orders {
            order.shuffle(&mut random);
            let mut present: Vec<EventId> = (0..players)
                .map(|_| match self.absent {
                    Absent::Drawn => EventId(random.random_range(0..size)),
                    Absent::Type(event) => event,
                })
                .collect();
            // The last player completes what was observed, which is known.
            for player in &order {
                replacements.extend_from_slice(&present);
                present[*player] = observed[*player];
            }
            orders.extend_from_slice(&order);
        }
        let batch = [Branches::new(start, players, players, &replacements)];
        let mut scores = Scores::default();
        scores.lay_out(&batch, Measure::Event, self.model.vocabulary_size());
        reading.score(&batch, &mut scores)?;
        let mut values = vec![0.0; players];
        for (number, order) in orders.chunks_exact(players).enumerate() {
            for (step, player) in order.iter().enumerate() {
                let without = scores.event(0, number * players + step, players).log_p;
                let with = if step + 1 < players {
                    scores.event(0, number * players + step + 1, players).log_p
                } else {
                    reading.observed()[effect].log_p
                };
                values[*player] += (with - without) / self.orders as f64;
            }
        }
        values.reverse();
        Ok((values, (self.orders * players * players) as u64))
    }
}

impl Method for Shapley<'_> {
    fn kind(&self) -> Kind {
        Kind::Shapley
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
        Ok(Discovered { graph, branch_positions })
    }
}
