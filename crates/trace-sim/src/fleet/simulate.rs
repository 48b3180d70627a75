//! Samples vehicles from the process, and the errors of a workshop's log.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, Gamma};
use rayon::prelude::*;
use trace_core::EventId;
use trace_core::random::{Purpose, Streams};
use trace_core::theory::Fitness;

use super::Fleet;
use crate::Error;

/// Mean hours from one event to the next: within a cascade, and in the background.
const HOURS_WITHIN: f64 = 0.2;
const HOURS_BETWEEN: f64 = 36.0;
/// Resolution of times per hour; no two events of a vehicle have the same time.
const TICKS_PER_HOUR: f64 = 10_000.0;
/// Shape of the gamma distribution of lengths: the standard deviation is 0.4 of the mean.
const LENGTH_SHAPE: f64 = 6.0;
/// The number of vehicles, and the events per vehicle, that the entropy is measured on.
const MEASURED: usize = 512;
const MEASURED_LENGTH: usize = 64;

/// One simulated vehicle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vehicle {
    /// What happened.
    pub events: Vec<EventId>,
    /// When, in hours.
    pub times: Vec<f64>,
}

/// An error in the log of a vehicle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The event was recorded as another event, drawn uniformly.
    Replaced,
    /// The event was not recorded.
    Dropped,
}

/// How a fleet's log is recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetLog {
    /// Mean number of events that happen to a vehicle; lengths vary around it.
    pub length: usize,
    /// Share of events that are recorded as random ones.
    pub noise: f64,
    /// Share of events that are not recorded.
    pub drop: f64,
    /// Seed of everything random.
    pub seed: u64,
}

impl FleetLog {
    /// Checks the options.
    pub fn check(&self) -> Result<(), Error> {
        if self.length < 2 {
            return Err(Error::spec("length", format!("{} is out of range; expected at least 2", self.length)));
        }
        for (name, share) in [("noise", self.noise), ("drop", self.drop)] {
            if !(0.0..1.0).contains(&share) {
                let reason = format!("{share} is out of range; expected a share from 0 to less than 1");
                return Err(Error::spec(name, reason));
            }
        }
        Ok(())
    }

    /// The true events of `count` vehicles with the indices from `first` on; each index has its own random streams.
    pub fn vehicles(&self, fleet: &Fleet, first: usize, count: usize) -> Vec<Vehicle> {
        (first..first + count).into_par_iter().map(|index| self.vehicle(fleet, index)).collect()
    }

    /// The true events of one vehicle.
    pub fn vehicle(&self, fleet: &Fleet, index: usize) -> Vehicle {
        let mut random = self.stream("fleet events", index);
        let length = self.draw_length(&mut random);
        let mut clock = self.stream("fleet times", index);
        let mut vehicle = Vehicle { events: Vec::with_capacity(length), times: Vec::with_capacity(length) };
        let mut ticks = 0.0;
        let mut effects = Vec::new();
        for q in 0..length {
            fleet.active(q, |position| vehicle.events[position], &mut effects);
            let (event, within) = fleet.draw(&effects, &mut random);
            // One draw per event of any type, so that times do not shift when events differ.
            let mean = if within { HOURS_WITHIN } else { HOURS_BETWEEN };
            let gap: f64 = Exp1.sample(&mut clock);
            let hours = mean * gap;
            ticks += (hours * TICKS_PER_HOUR).floor() + 1.0;
            vehicle.events.push(event);
            vehicle.times.push(ticks / TICKS_PER_HOUR);
        }
        vehicle
    }

    /// The recording error of each event of a vehicle. At least one event is always recorded.
    pub fn faults(&self, index: usize, length: usize) -> Vec<Option<Fault>> {
        let mut random = self.stream("fleet faults", index);
        let mut faults: Vec<Option<Fault>> = (0..length)
            .map(|_| {
                let (dropped, replaced) = (random.random::<f64>() < self.drop, random.random::<f64>() < self.noise);
                if dropped { Some(Fault::Dropped) } else { replaced.then_some(Fault::Replaced) }
            })
            .collect();
        if faults.iter().all(|fault| *fault == Some(Fault::Dropped))
            && let Some(first) = faults.first_mut()
        {
            *first = None;
        }
        faults
    }

    /// The recorded events of a vehicle with these faults.
    pub fn record(&self, fleet: &Fleet, index: usize, vehicle: &Vehicle, faults: &[Option<Fault>]) -> Vehicle {
        let mut random = self.stream("fleet noise", index);
        let mut recorded = Vehicle::default();
        for ((event, time), fault) in vehicle.events.iter().zip(&vehicle.times).zip(faults) {
            let other = EventId(random.random_range(0..fleet.background.len() as u32));
            match fault {
                Some(Fault::Dropped) => continue,
                Some(Fault::Replaced) => recorded.events.push(other),
                None => recorded.events.push(*event),
            }
            recorded.times.push(*time);
        }
        recorded
    }

    fn stream(&self, what: &str, index: usize) -> impl Rng + use<> {
        Streams::new(self.seed, what).stream(Purpose::Simulation, index as u32, (index as u64 >> 32) as u32)
    }

    /// A random length: at least 2, and from a quarter of the mean to three times the mean.
    fn draw_length(&self, random: &mut impl Rng) -> usize {
        let mean = self.length as f64;
        let drawn = Gamma::new(LENGTH_SHAPE, mean / LENGTH_SHAPE).map_or(mean, |lengths| lengths.sample(random));
        (drawn.round() as usize).clamp((self.length / 4).max(2), self.length.saturating_mul(3))
    }
}

impl Fleet {
    /// Draws one event; also returns whether a rule caused it.
    fn draw(&self, effects: &[(EventId, f64)], random: &mut impl Rng) -> (EventId, bool) {
        let mut point = random.random::<f64>();
        for (effect, added) in effects {
            if point < *added {
                return (*effect, true);
            }
            point -= added;
        }
        (self.table.draw(random), false)
    }

    /// Measures the entropy on newly sampled vehicles. It is a property of the process, so the seed is fixed.
    pub fn measure_entropy(&mut self) {
        let log = FleetLog { length: MEASURED_LENGTH, noise: 0.0, drop: 0.0, seed: 0 };
        let sums: Vec<(f64, usize)> = log
            .vehicles(self, 0, MEASURED)
            .par_iter()
            .map(|vehicle| {
                let mut effects = Vec::new();
                let entropy = |q| {
                    let added = self.active(q, |position| vehicle.events[position], &mut effects);
                    self.entropy(&effects, added)
                };
                ((0..vehicle.events.len()).map(entropy).sum(), vehicle.events.len())
            })
            .collect();
        let events: usize = sums.iter().map(|(_, count)| count).sum();
        let entropy = sums.iter().map(|(sum, _)| sum).sum::<f64>() / events as f64;
        self.fitness = Fitness { held_out_loss: Some(entropy), unigram_loss: None, entropy: Some(entropy) };
    }
}
