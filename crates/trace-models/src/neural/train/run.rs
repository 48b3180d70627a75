//! The training loop.
//!
//! ```text
//! rate(f) = peak · min(f / warm-up, fall(f))            f: the share of steps, or of minutes, that is done
//! ```
//!
//! where `fall` is `1 − f` or `(1 + cos π f) / 2` ([`Schedule`]).
//!
//! The held-out loss is measured about twenty times; the weights with the lowest loss are kept. With a limit in steps,
//! a run depends only on its settings, corpus and seed, not on the number of threads nor on how often it was killed and
//! continued: batches are drawn again up to the step of the checkpoint, and the random choices of an objective depend
//! only on the seed and the step.

use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use trace_core::random::{Purpose, Streams};

use super::corpus::{BatchShape, Batches, Corpus, CorpusStatistics, windows};
use super::objective::Objective;
use super::optimizer::{LearningRates, Optimizer, OptimizerKind};
use super::step::{Gradients, loss, rows_of};
use crate::Error;

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// After this many steps.
    Steps(u64),
    /// After this many minutes.
    Minutes(f64),
    /// After this many steps, or earlier when the held-out loss has stopped falling for some time.
    EarlyStop(u64),
}

/// How the learning rate falls from its peak to zero at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// Linearly.
    #[default]
    Linear,
    /// Like a cosine from 0 to π.
    Cosine,
}

/// How to train.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainSpec {
    /// The optimizer.
    pub optimizer: OptimizerKind,
    /// The peak learning rate.
    pub learning_rate: f32,
    /// How the learning rate falls.
    pub schedule: Schedule,
    /// The multiple of the learning rate for each kind of tensor.
    pub learning_rates: LearningRates,
    /// Weight decay of hidden matrices: the share that a step subtracts, divided by the learning rate.
    pub weight_decay: f32,
    /// Sequences per step.
    pub batch: usize,
    /// Maximum number of events that are read at once; longer sequences are cut.
    pub length: usize,
    /// When to end.
    pub limit: Limit,
    /// The seed of initial weights and of the order of sequences.
    pub seed: u64,
    /// Seconds between checkpoints.
    pub checkpoint_seconds: f64,
}

/// Share of a run in which the learning rate rises.
const WARM_UP: f64 = 0.02;
/// How often the held-out loss is measured, and how many measurements in a row may bring no improvement.
const EVALUATIONS: u64 = 20;
const PATIENCE: u32 = 4;
/// Held-out events of all measurements except the last one.
const QUICK_EVENTS: usize = 1 << 15;
/// With a limit of time: the share of it that each of these measurements may take, the share that the last one may take,
/// and the least number of rows of any.
const QUICK_SHARE: f64 = 0.01;
const LAST_SHARE: f64 = 0.1;
const LEAST_ROWS: usize = 256;

/// Everything that a run needs to continue.
#[derive(Clone, Debug)]
pub struct TrainState {
    /// Number of steps done.
    pub step: u64,
    /// Seconds of training so far.
    pub seconds: f64,
    /// Number of events trained on.
    pub events: u64,
    /// The lowest held-out loss so far, on the smaller set of events.
    pub best_loss: Option<f64>,
    /// Number of measurements since then.
    pub since_best: u32,
    /// Number of measurements so far.
    pub evaluations: u64,
    /// The weights.
    pub weights: Vec<f32>,
    /// The weights with the lowest loss.
    pub best: Vec<f32>,
    pub(in crate::neural) optimizer: Optimizer,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct TrainProgress {
    /// Number of steps done.
    pub step: u64,
    /// The share of the run that is done.
    pub share: f64,
    /// Running mean of the training loss, in nats per event.
    pub loss: f64,
    /// The last held-out loss.
    pub held_out_loss: Option<f64>,
    /// Whether it was measured in this step.
    pub measured: bool,
    /// Recent events per second.
    pub events_per_second: f64,
    /// Estimated seconds left.
    pub seconds_left: f64,
    /// Number of epochs that have begun.
    pub epoch: u32,
}

/// Observes a run.
pub trait TrainObserver {
    /// Called after each step; returns `false` to stop the run.
    fn progress(&mut self, progress: &TrainProgress) -> bool;
    /// Called at checkpoints with everything that is needed to continue.
    fn checkpoint(&mut self, state: &TrainState) -> Result<(), Error>;
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainEnd {
    /// It reached its limit.
    Complete,
    /// The held-out loss stopped falling.
    EarlyStop,
    /// The observer asked it to stop; a checkpoint was taken.
    Interrupted,
}

/// The result of a run.
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
    pub(crate) fn new(weights: Vec<f32>, kind: OptimizerKind) -> Self {
        Self {
            step: 0,
            seconds: 0.0,
            events: 0,
            best_loss: None,
            since_best: 0,
            evaluations: 0,
            optimizer: Optimizer::new(kind, weights.len()),
            best: weights.clone(),
            weights,
        }
    }
}

/// The random stream of an objective for a step, or for all held-out windows.
fn chance(seed: u64, step: Option<u64>) -> ChaCha8Rng {
    let name = if step.is_some() { "examples" } else { "held-out examples" };
    let step = step.unwrap_or(0);
    Streams::new(seed, name).stream(Purpose::Mask, step as u32, (step >> 32) as u32)
}

/// Runs training from `state` to the end.
pub(crate) fn run<O: Objective>(
    objective: &O,
    corpus: &dyn Corpus,
    statistics: &CorpusStatistics,
    spec: &TrainSpec,
    mut state: TrainState,
    observer: &mut dyn TrainObserver,
) -> Result<Trained, Error> {
    state.optimizer.configure(spec.weight_decay, spec.learning_rates);
    let begin = objective.begin();
    let held_out =
        statistics.held_out.iter().flat_map(|events| windows(events, begin, spec.length, spec.length)).collect();
    let held_out = objective.examples(held_out, chance(spec.seed, None));
    let shape = BatchShape { begin, windows: spec.batch, length: spec.length };
    let mut batches = Batches::new(corpus, statistics, shape, spec.seed);
    for _ in 0..state.step {
        batches.next()?;
    }
    let mut run = Run { objective, spec, state, held_out: &held_out, quick: None, last_held_out: None };
    let mut gradients = Gradients::<O>::default();
    let mut recent = Recent::default();
    let started = Instant::now();
    let before = run.state.seconds;
    let mut saved = Instant::now();
    let mut saving = Duration::ZERO;
    let mut end = TrainEnd::Complete;
    while run.share() < 1.0 {
        let batch = objective.examples(batches.next()?, chance(spec.seed, Some(run.state.step)));
        let rate = spec.learning_rate * rate_at(spec.schedule, run.share());
        let (loss, gradient) = gradients.compute(objective, &run.state.weights, &batch);
        run.state.optimizer.step(objective.layout(), &mut run.state.weights, gradient, rate);
        run.state.step += 1;
        run.state.events += rows_of::<O>(&batch) as u64;
        run.state.seconds = before + started.elapsed().as_secs_f64();
        if !loss.is_finite() {
            return Err(Error::spec("learning-rate", format!("the loss became {loss} at step {}", run.state.step)));
        }
        let measured = run.measure_if_due();
        // The measured speed excludes evaluations.
        recent.note(loss, rows_of::<O>(&batch), measured);
        run.state.seconds = before + started.elapsed().as_secs_f64();
        let stop = matches!(spec.limit, Limit::EarlyStop(_)) && run.state.since_best >= PATIENCE;
        let keep_going = observer.progress(&TrainProgress {
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
        if !keep_going {
            observer.checkpoint(&run.state)?;
            end = TrainEnd::Interrupted;
            break;
        }
        // Checkpoints take at most a twentieth of the time.
        if saved.elapsed() > Duration::from_secs_f64(spec.checkpoint_seconds).max(saving * 20) {
            let began = Instant::now();
            observer.checkpoint(&run.state)?;
            (saved, saving) = (Instant::now(), began.elapsed());
        }
    }
    if end == TrainEnd::Complete {
        run.measure_if_due(); // if the time ran out during the last measurement
    }
    let last = first_rows::<O>(&held_out, run.affordable(LAST_SHARE, usize::MAX));
    let mut state = run.state;
    if state.best_loss.is_none() {
        state.best.clone_from(&state.weights);
    }
    let held_out_loss = if end == TrainEnd::Interrupted { None } else { mean_loss(objective, &state.best, last) };
    Ok(Trained { state, held_out_loss, end })
}

struct Run<'r, O: Objective> {
    objective: &'r O,
    spec: &'r TrainSpec,
    state: TrainState,
    held_out: &'r [O::Example],
    /// What all but the last measurement use, once the speed is known.
    quick: Option<&'r [O::Example]>,
    last_held_out: Option<f64>,
}

impl<O: Objective> Run<'_, O> {
    /// The share of the run that is done.
    fn share(&self) -> f64 {
        match self.spec.limit {
            Limit::Steps(steps) | Limit::EarlyStop(steps) => self.state.step as f64 / steps.max(1) as f64,
            Limit::Minutes(minutes) => self.state.seconds / (60.0 * minutes),
        }
    }

    /// Rows that a measurement may have: at most `most`, and where time is limited what takes this share of it, going by
    /// the speed of training so far, which is slower than measuring.
    fn affordable(&self, share: f64, most: usize) -> usize {
        let Limit::Minutes(minutes) = self.spec.limit else { return most };
        let speed = self.state.events as f64 / self.state.seconds.max(1e-3);
        most.min(((60.0 * minutes * share * speed) as usize).max(LEAST_ROWS))
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
        let rows = self.affordable(QUICK_SHARE, QUICK_EVENTS);
        let held_out = self.held_out;
        let quick = *self.quick.get_or_insert_with(|| first_rows::<O>(held_out, rows));
        let Some(loss) = mean_loss(self.objective, &self.state.weights, quick) else { return false };
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

/// The first examples, up to about this many rows.
fn first_rows<O: Objective>(examples: &[O::Example], most: usize) -> &[O::Example] {
    let mut rows = 0;
    let wanted = |example: &O::Example| {
        let wanted = rows < most;
        rows += O::rows(example);
        wanted
    };
    let count = examples.iter().map(wanted).take_while(|wanted| *wanted).count();
    &examples[..count]
}

fn mean_loss<O: Objective>(objective: &O, weights: &[f32], examples: &[O::Example]) -> Option<f64> {
    let (sum, count) = loss(objective, weights, examples);
    (count > 0).then(|| sum / count as f64)
}

/// The learning rate relative to its peak.
fn rate_at(schedule: Schedule, share: f64) -> f32 {
    let left = 1.0 - share.min(1.0);
    let fall = match schedule {
        Schedule::Linear => left,
        Schedule::Cosine => 0.5 * (1.0 - (std::f64::consts::PI * left).cos()),
    };
    let rise = (share + 1e-3) / WARM_UP;
    rise.min(fall) as f32
}

/// Running means of loss and speed.
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
    /// Decay of the running means.
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
