//! Samples cases.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1};
use rayon::prelude::*;
use trace_core::random::{Purpose, Streams};
use trace_core::theory::Fitness;
use trace_core::{DensityModel, EventId};

use super::Workflow;

/// Mean hours from one event to the next, and the resolution of times. Only tied events have equal times.
const HOURS_BETWEEN: f64 = 1.0;
const TICKS_PER_HOUR: f64 = 10_000.0;
/// The number of cases that the entropy is measured on.
const MEASURED: usize = 512;

/// One simulated case, which has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    /// What was booked, in the order of booking.
    pub events: Vec<EventId>,
    /// When, in hours. Steps that are booked with the event before them have its time.
    pub times: Vec<f64>,
}

impl Workflow {
    /// Cases with the indices from `first` on; each index has its own random streams.
    pub fn cases(&self, seed: u64, first: usize, count: usize) -> Vec<Case> {
        (first..first + count).into_par_iter().map(|index| self.case(seed, index)).collect()
    }

    /// One case. It has at least one event: an end before that is drawn again.
    pub fn case(&self, seed: u64, index: usize) -> Case {
        let stream = |what: &str| {
            Streams::new(seed, what).stream(Purpose::Simulation, index as u32, (index as u64 >> 32) as u32)
        };
        let (mut random, mut clock) = (stream("workflow events"), stream("workflow times"));
        let (mut replay, mut masses, mut row) = (self.replay(), Vec::new(), vec![0.0; self.row_size()]);
        let (mut case, mut ticks) = (Case::default(), 0.0);
        loop {
            self.probabilities(&replay, &mut masses, &mut row);
            let drawn = draw(&row, &mut random);
            let Some(step) = self.step_of.get(drawn) else {
                if case.events.is_empty() {
                    continue;
                }
                return case;
            };
            let gap: f64 = Exp1.sample(&mut clock);
            if case.events.is_empty() || !self.steps[*step].tied {
                ticks += (HOURS_BETWEEN * gap * TICKS_PER_HOUR).floor() + 1.0;
            }
            let event = EventId(drawn as u32);
            self.push(&mut replay, event);
            case.events.push(event);
            case.times.push(ticks / TICKS_PER_HOUR);
        }
    }

    /// Measures the entropy, in nats per event, the end of a case counted as one. It is a property of the process, so the
    /// seed is fixed.
    pub fn measure_entropy(&mut self) {
        let sums: Vec<(f64, usize)> = self
            .cases(0, 0, MEASURED)
            .par_iter()
            .map(|case| {
                let (mut replay, mut masses, mut row) = (self.replay(), Vec::new(), vec![0.0; self.row_size()]);
                let mut sum = 0.0;
                for event in case.events.iter().copied().chain(self.end()) {
                    self.probabilities(&replay, &mut masses, &mut row);
                    sum -= row.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>();
                    self.push(&mut replay, event);
                }
                (sum, case.events.len() + 1)
            })
            .collect();
        let places: usize = sums.iter().map(|(_, count)| count).sum();
        let entropy = sums.iter().map(|(sum, _)| sum).sum::<f64>() / places as f64;
        self.fitness = Fitness { held_out_loss: Some(entropy), unigram_loss: None, entropy: Some(entropy) };
    }
}

/// Draws a column of a row of probabilities.
fn draw(row: &[f64], random: &mut impl Rng) -> usize {
    let mut point = random.random::<f64>() * row.iter().sum::<f64>();
    for (column, probability) in row.iter().enumerate() {
        if point < *probability {
            return column;
        }
        point -= probability;
    }
    // Rounding left a rest: the last column that is possible.
    row.iter().rposition(|probability| *probability > 0.0).unwrap_or(0)
}
