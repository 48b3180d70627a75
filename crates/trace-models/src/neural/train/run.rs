//! The training loop.
//!
//! ```text
//! rate(f) = peak · min(f / warm-up, fall(f))            f: the share of steps, or of minutes, that is over
//! ```
//!
//! where `fall` is `1 − f` or `(1 + cos π f) / 2` ([`Schedule`]).
//!
//! The held-out loss is measured about twenty times; the weights of the lowest are kept. By steps, a run is a
//! function of its settings, corpus and seed alone, whatever the number of threads and however often it was killed
//! and continued: batches are drawn again up to the step of the checkpoint, and what an objective leaves to chance
//! depends on the seed and the step alone.

use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use trace_core::random::{Purpose, Streams};

use super::corpus::{BatchShape, Batches, Corpus, Survey, windows};
use super::objective::Objective;
use super::optimiser::{Optimiser, OptimiserKind, Pace};
use super::step::{Gradients, loss, rows_of};
use crate::Error;

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// After this many steps.
    Steps(u64),
    /// After this many minutes.
    Minutes(f64),
    /// After this many steps, or when the held-out loss has long stopped to fall.
    EarlyStop(u64),
}

/// How the learning rate falls, from its peak to zero at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// In a straight line.
    #[default]
    Linear,
    /// As a cosine does from 0 to π.
    Cosine,
}

/// How to train.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainSpec {
    /// The optimiser.
    pub optimiser: OptimiserKind,
    /// The largest learning rate.
    pub rate: f32,
    /// How it falls.
    pub schedule: Schedule,
    /// The shares of it at which tensors move.
    pub pace: Pace,
    /// Weight decay: what share of a hidden weight a step at the rate of 1 takes away.
    pub decay: f32,
    /// Sequences a step.
    pub batch: usize,
    /// Events of a sequence that are read at once; longer ones are cut.
    pub length: usize,
    /// When to end.
    pub limit: Limit,
    /// The seed of weights and order.
    pub seed: u64,
    /// Seconds between checkpoints.
    pub checkpoint_seconds: f64,
}

/// Share of a run in which the rate rises.
const WARM_UP: f64 = 0.02;
/// How often the held-out loss is measured, and how often in a row it may fail to fall.
const EVALUATIONS: u64 = 20;
const PATIENCE: u32 = 4;
/// Held-out events that all but the last measurement use.
const QUICK_EVENTS: usize = 1 << 15;

/// All that a run needs to go on.
#[derive(Clone, Debug)]
pub struct TrainState {
    /// Steps done.
    pub step: u64,
    /// Seconds spent.
    pub seconds: f64,
    /// Events trained on.
    pub events: u64,
    /// The lowest held-out loss so far, on the smaller set.
    pub best_loss: Option<f64>,
    /// Measurements since then.
    pub since_best: u32,
    /// Measurements so far.
    pub evaluations: u64,
    /// The weights.
    pub weights: Vec<f32>,
    /// The weights of the lowest loss.
    pub best: Vec<f32>,
    pub(in crate::neural) optimiser: Optimiser,
}

/// What a run tells while it goes on.
#[derive(Clone, Copy, Debug)]
pub struct TrainProgress {
    /// Steps done.
    pub step: u64,
    /// The share of the run that is over.
    pub share: f64,
    /// Mean loss of recent steps, in nats per event.
    pub loss: f64,
    /// The last held-out loss.
    pub held_out_loss: Option<f64>,
    /// Whether it was measured just now.
    pub measured: bool,
    /// Events a second, of late.
    pub events_per_second: f64,
    /// Seconds that are left.
    pub seconds_left: f64,
    /// Epochs begun.
    pub epoch: u32,
}

/// What accompanies a run.
pub trait TrainObserver {
    /// Called after each step; `false` asks to stop.
    fn progress(&mut self, progress: &TrainProgress) -> bool;
    /// Called after each step with where the run stands.
    fn stepped(&mut self, _state: &TrainState) -> Result<(), Error> {
        Ok(())
    }
    /// Called now and then with all that is needed to go on.
    fn checkpoint(&mut self, state: &TrainState) -> Result<(), Error>;
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainEnd {
    /// At its limit.
    Complete,
    /// Because the held-out loss stopped to fall.
    EarlyStop,
    /// Because it was asked to; a checkpoint was taken.
    Interrupted,
}

/// A trained network's weights and what became of its loss.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The final state; `best` holds the weights to use.
    pub state: TrainState,
    /// Held-out loss of those weights on all held-out events.
    pub held_out_loss: Option<f64>,
    /// How the run ended.
    pub end: TrainEnd,
}

impl TrainState {
    pub(crate) fn new(weights: Vec<f32>, kind: OptimiserKind) -> Self {
        Self {
            step: 0,
            seconds: 0.0,
            events: 0,
            best_loss: None,
            since_best: 0,
            evaluations: 0,
            optimiser: Optimiser::new(kind, weights.len()),
            best: weights.clone(),
            weights,
        }
    }
}

/// What an objective may draw from in a step, or for all held-out windows.
fn chance(seed: u64, step: Option<u64>) -> ChaCha8Rng {
    let name = if step.is_some() { "examples" } else { "held-out examples" };
    let step = step.unwrap_or(0);
    Streams::new(seed, name).stream(Purpose::Mask, step as u32, (step >> 32) as u32)
}

/// Runs from `state` to the end.
pub(crate) fn run<O: Objective>(
    objective: &O,
    corpus: &dyn Corpus,
    survey: &Survey,
    spec: &TrainSpec,
    mut state: TrainState,
    observer: &mut dyn TrainObserver,
) -> Result<Trained, Error> {
    state.optimiser.set_pace(spec.decay, spec.pace);
    let begin = objective.begin();
    let held_out = survey.held_out.iter().flat_map(|events| windows(events, begin, spec.length, spec.length)).collect();
    let held_out = objective.examples(held_out, chance(spec.seed, None));
    let shape = BatchShape { begin, windows: spec.batch, length: spec.length };
    let mut batches = Batches::new(corpus, survey, shape, spec.seed);
    for _ in 0..state.step {
        batches.next()?;
    }
    let mut run = Run { objective, spec, state, quick: quick::<O>(&held_out), last_held_out: None };
    let mut gradients = Gradients::<O>::default();
    let mut recent = Recent::default();
    let started = Instant::now();
    let before = run.state.seconds;
    let mut saved = Instant::now();
    let mut saving = Duration::ZERO;
    let mut end = TrainEnd::Complete;
    while run.share() < 1.0 {
        let batch = objective.examples(batches.next()?, chance(spec.seed, Some(run.state.step)));
        let rate = spec.rate * rate_at(spec.schedule, run.share());
        let (loss, gradient) = gradients.compute(objective, &run.state.weights, &batch);
        run.state.optimiser.step(objective.layout(), &mut run.state.weights, gradient, rate);
        run.state.step += 1;
        run.state.events += rows_of::<O>(&batch) as u64;
        run.state.seconds = before + started.elapsed().as_secs_f64();
        if !loss.is_finite() {
            return Err(Error::spec("learning-rate", format!("the loss became {loss} at step {}", run.state.step)));
        }
        let measured = run.measure_if_due();
        observer.stepped(&run.state)?;
        // Speed leaves measurements out.
        recent.note(loss, rows_of::<O>(&batch), measured);
        run.state.seconds = before + started.elapsed().as_secs_f64();
        let stop = matches!(spec.limit, Limit::EarlyStop(_)) && run.state.since_best >= PATIENCE;
        let goes_on = observer.progress(&TrainProgress {
            step: run.state.step,
            share: run.share(),
            loss: recent.loss,
            held_out_loss: run.last_held_out,
            measured,
            events_per_second: recent.speed(),
            seconds_left: run.seconds_left(),
            epoch: batches.epoch(),
        });
        if stop {
            end = TrainEnd::EarlyStop;
            break;
        }
        if !goes_on {
            observer.checkpoint(&run.state)?;
            end = TrainEnd::Interrupted;
            break;
        }
        // Never more than a twentieth of the time goes into checkpoints.
        if saved.elapsed() > Duration::from_secs_f64(spec.checkpoint_seconds).max(saving * 20) {
            let began = Instant::now();
            observer.checkpoint(&run.state)?;
            (saved, saving) = (Instant::now(), began.elapsed());
        }
    }
    if end == TrainEnd::Complete {
        run.measure_if_due(); // when the time ran out during the last measurement
    }
    let mut state = run.state;
    if state.best_loss.is_none() {
        state.best.clone_from(&state.weights);
    }
    let held_out_loss = if end == TrainEnd::Interrupted { None } else { mean_loss(objective, &state.best, &held_out) };
    Ok(Trained { state, held_out_loss, end })
}

struct Run<'r, O: Objective> {
    objective: &'r O,
    spec: &'r TrainSpec,
    state: TrainState,
    quick: Vec<O::Example>,
    last_held_out: Option<f64>,
}

impl<O: Objective> Run<'_, O> {
    /// The share of the run that is over.
    fn share(&self) -> f64 {
        match self.spec.limit {
            Limit::Steps(steps) | Limit::EarlyStop(steps) => self.state.step as f64 / steps.max(1) as f64,
            Limit::Minutes(minutes) => self.state.seconds / (60.0 * minutes),
        }
    }

    fn seconds_left(&self) -> f64 {
        let share = self.share().min(1.0);
        if share > 0.0 { self.state.seconds * (1.0 - share) / share } else { f64::INFINITY }
    }

    fn measure_if_due(&mut self) -> bool {
        let due = (self.share().min(1.0) * EVALUATIONS as f64) as u64;
        if self.state.evaluations >= due {
            return false;
        }
        self.state.evaluations = due;
        let Some(loss) = mean_loss(self.objective, &self.state.weights, &self.quick) else { return false };
        self.last_held_out = Some(loss);
        if self.state.best_loss.is_none_or(|best| loss < best) {
            self.state.best_loss = Some(loss);
            self.state.best.clone_from(&self.state.weights);
            self.state.since_best = 0;
        } else {
            self.state.since_best += 1;
        }
        true
    }
}

/// The first examples, as many as a quick measurement uses.
fn quick<O: Objective>(examples: &[O::Example]) -> Vec<O::Example> {
    let mut events = 0;
    examples
        .iter()
        .take_while(|example| {
            let wanted = events < QUICK_EVENTS;
            events += O::rows(example);
            wanted
        })
        .cloned()
        .collect()
}

fn mean_loss<O: Objective>(objective: &O, weights: &[f32], examples: &[O::Example]) -> Option<f64> {
    let (sum, count) = loss(objective, weights, examples);
    (count > 0).then(|| sum / count as f64)
}

/// The rate's share of its peak.
fn rate_at(schedule: Schedule, share: f64) -> f32 {
    let left = 1.0 - share.min(1.0);
    let fall = match schedule {
        Schedule::Linear => left,
        Schedule::Cosine => 0.5 * (1.0 - (std::f64::consts::PI * left).cos()),
    };
    let rise = (share + 1e-3) / WARM_UP;
    rise.min(fall) as f32
}

/// Loss and speed of late.
struct Recent {
    loss: f64,
    events: f64,
    seconds: f64,
    last: Instant,
    known: f64,
}

impl Default for Recent {
    fn default() -> Self {
        Self { loss: 0.0, events: 0.0, seconds: 0.0, last: Instant::now(), known: 0.0 }
    }
}

impl Recent {
    /// What is old counts less and less.
    const KEEP: f64 = 0.97;

    fn note(&mut self, loss: f64, events: usize, interrupted: bool) {
        let elapsed = self.last.elapsed().as_secs_f64();
        self.last = Instant::now();
        self.known = Self::KEEP * self.known + (1.0 - Self::KEEP);
        self.loss += (1.0 - Self::KEEP) * (loss - self.loss) / self.known;
        if !interrupted {
            self.events = Self::KEEP * self.events + events as f64;
            self.seconds = Self::KEEP * self.seconds + elapsed;
        }
    }

    fn speed(&self) -> f64 {
        if self.seconds > 0.0 { self.events / self.seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_rise_quickly_and_fall_to_zero() {
        for (schedule, early) in [(Schedule::Linear, 0.75), (Schedule::Cosine, 0.5 + 0.5f32.sqrt() / 2.0)] {
            let rates = [0.0, 0.01, 0.25, 0.5, 1.0, 1.5].map(|share| rate_at(schedule, share));
            for (rate, wanted) in rates.into_iter().zip([0.05, 0.55, early, 0.5, 0.0, 0.0]) {
                assert!((rate - wanted).abs() < 1e-6, "{schedule:?}: {rates:?}");
            }
        }
    }
}
