//! The logs: processes whose truth is known, and null versions of them.

use std::ops::Range;

use trace_core::{DensityModel, EventId, EventSequence, Question, TruthClass, Vocabulary};
use trace_sim::fleet::{CASCADES, Design, FleetLog, FleetSpec, MIN_TYPES};
use trace_sim::workflow::{ClassOptions, Preset, Workflow, WorkflowSettings};
use trace_sim::{Process, ProcessSpec};

use super::truth::{Contrast, Contrasts};
use super::{LEAST_RATIO, MEMORY};
use crate::Error;

/// The kinds of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scm,
    Fleet,
    Workflow(Preset),
}

/// A kind of log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogKind {
    pub(super) kind: Kind,
    /// Whether nothing is designed.
    pub(super) null: bool,
}

/// The numbers of the sequences that measure the fit, of those of the truth, and of the first that is trained on.
pub(super) const FITTED_ON: Range<usize> = 10_000..11_000;
const TRUTH_OF: Range<usize> = 20_000..20_400;
pub(super) const TRAINED_ON: usize = 100_000;

/// The synthetic process.
const SCM_TYPES: usize = 40;
const SCM_MEMORY: usize = 3;
const SCM_REDUNDANCY: f64 = 0.4;
const SCM_LENGTH: usize = 24;
/// The mean length of a vehicle's log.
const FLEET_LENGTH: usize = 20;
/// Ratios of the synthetic process from here on are designed.
const CLEAR_RATIO: f64 = 1.5;
/// Logarithms of ratios up to this are none.
const NO_RATIO: f64 = 0.05;

impl LogKind {
    /// All of them.
    pub(super) fn all() -> Vec<Self> {
        let kinds = [Kind::Scm, Kind::Fleet, Kind::Workflow(Preset::Hospital), Kind::Workflow(Preset::Business)];
        kinds.into_iter().flat_map(|kind| [false, true].map(|null| Self { kind, null })).collect()
    }

    /// Its name.
    pub(super) fn name(self) -> String {
        let kind = match self.kind {
            Kind::Scm => "scm",
            Kind::Fleet => "fleet",
            Kind::Workflow(preset) => preset.name(),
        };
        if self.null { format!("{kind}-null") } else { kind.to_owned() }
    }
}

/// A process and how its sequences are drawn.
pub(super) struct World {
    process: AnyProcess,
    seed: u64,
}

enum AnyProcess {
    Scm(Box<Process>),
    Fleet(Box<Design>),
    Workflow(Box<Workflow>),
}

/// What a pair of types is by its contrast.
type Classifier<'c> = dyn Fn(EventId, EventId, &Contrast) -> TruthClass + 'c;

/// What a pair of types is.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairTruth {
    pub(super) class: TruthClass,
    /// The ratio by the process itself; none where the cause is never plausible before the effect.
    pub(super) ratio: Option<f64>,
    /// The largest contrast anywhere.
    pub(super) largest: f64,
}

/// The truth of all pairs of a process.
pub(super) struct Truth {
    types: usize,
    pairs: Vec<PairTruth>,
}

impl Truth {
    /// What a pair of different types is.
    pub(super) fn of(&self, cause: EventId, effect: EventId) -> PairTruth {
        self.pairs[cause.index() * self.types + effect.index()]
    }
}

impl World {
    /// Draws the process of a log.
    pub(super) fn new(log: LogKind, seed: u64) -> Result<Self, Error> {
        let process = match log.kind {
            Kind::Scm => {
                let redundancy = if log.null { 0.0 } else { SCM_REDUNDANCY };
                let (vocabulary, memory) = (SCM_TYPES, SCM_MEMORY);
                let spec = ProcessSpec { vocabulary, memory, redundancy, decay: 1.0, seed };
                AnyProcess::Scm(Box::new(Process::draw(&spec)?))
            }
            Kind::Fleet => {
                let without = CASCADES.iter().filter(|_| log.null).map(|cascade| cascade.name.to_owned()).collect();
                AnyProcess::Fleet(Box::new(Design::new(&FleetSpec { types: MIN_TYPES, without })?))
            }
            Kind::Workflow(preset) => {
                let settings = WorkflowSettings { null: log.null, ..WorkflowSettings::default() };
                AnyProcess::Workflow(Box::new(Workflow::new(&preset.specification()?, &settings)?))
            }
        };
        Ok(Self { process, seed })
    }

    /// The process as a perfect model of itself.
    pub(super) fn oracle(&self) -> &dyn DensityModel {
        match &self.process {
            AnyProcess::Scm(process) => &**process,
            AnyProcess::Fleet(design) => &design.fleet,
            AnyProcess::Workflow(workflow) => &**workflow,
        }
    }

    /// Its event types.
    pub(super) fn vocabulary(&self) -> Vocabulary {
        match &self.process {
            AnyProcess::Scm(process) => Vocabulary::ids(process.vocabulary_size()),
            AnyProcess::Fleet(design) => design.vocabulary.clone(),
            AnyProcess::Workflow(workflow) => workflow.vocabulary(),
        }
    }

    /// Sequences by number.
    pub(super) fn sequences(&self, numbers: Range<usize>) -> Vec<EventSequence> {
        let (first, count) = (numbers.start, numbers.len());
        let made: Vec<(Vec<EventId>, Option<Vec<f64>>)> = match &self.process {
            AnyProcess::Scm(process) => {
                let made = process.simulate(self.seed, first, count, SCM_LENGTH);
                made.into_iter().map(|made| (made.events, None)).collect()
            }
            AnyProcess::Fleet(design) => {
                let log = FleetLog { length: FLEET_LENGTH, noise: 0.0, drop: 0.0, seed: self.seed };
                let made = log.vehicles(&design.fleet, first, count);
                made.into_iter().map(|made| (made.events, Some(made.times))).collect()
            }
            AnyProcess::Workflow(workflow) => {
                let made = workflow.cases(self.seed, first, count);
                made.into_iter().map(|made| (made.events, Some(made.times))).collect()
            }
        };
        let ended = self.oracle().predicts_end();
        let sequence = |(number, (events, times))| EventSequence { id: format!("s{number}"), events, times, ended };
        numbers.zip(made).map(sequence).collect()
    }

    /// What every pair of types is, by the exact conditionals of the process.
    pub(super) fn truth(&self) -> Result<Truth, Error> {
        let types = self.oracle().vocabulary_size();
        let contrasts = Contrasts::measure(self.oracle(), &self.sequences(TRUTH_OF), MEMORY)?;
        let class: Box<Classifier<'_>> = match &self.process {
            AnyProcess::Scm(_) => Box::new(|_, _, contrast| match contrast.ratio() {
                Some(ratio) if ratio >= CLEAR_RATIO => TruthClass::Designed,
                ratio => none_or_weak(ratio),
            }),
            AnyProcess::Fleet(design) => Box::new(|cause, effect, contrast| {
                if design.pairs.contains(&(cause, effect)) {
                    designed_or_weak(contrast.ratio())
                } else {
                    none_or_weak(contrast.ratio())
                }
            }),
            AnyProcess::Workflow(workflow) => {
                let options = ClassOptions { memory: MEMORY, ..ClassOptions::new(workflow) };
                let classes = workflow.classes(&options);
                Box::new(move |cause, effect, contrast| match classes.get(&(cause, effect, Question::Whether)) {
                    Some(pair) if pair.class == TruthClass::Designed => designed_or_weak(contrast.ratio()),
                    Some(pair) => pair.class,
                    None => TruthClass::Order,
                })
            }
        };
        let pairs = (0..types * types).map(|pair| {
            let (cause, effect) = (pair / types, pair % types);
            let contrast = contrasts.of(cause, effect);
            let class = class(EventId(cause as u32), EventId(effect as u32), contrast);
            PairTruth { class, ratio: contrast.ratio(), largest: contrast.largest }
        });
        Ok(Truth { types, pairs: pairs.collect() })
    }
}

/// A designed pair counts where its ratio exceeds the one that is tested.
fn designed_or_weak(ratio: Option<f64>) -> TruthClass {
    if ratio.is_some_and(|ratio| ratio > LEAST_RATIO) { TruthClass::Designed } else { TruthClass::Order }
}

/// A pair that is not designed is null where it does nothing.
fn none_or_weak(ratio: Option<f64>) -> TruthClass {
    if ratio.is_none_or(|ratio| ratio > 0.0 && ratio.ln().abs() <= NO_RATIO) {
        TruthClass::Null
    } else {
        TruthClass::Order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_logs_have_null_pairs_alone_and_designed_ones_are_found() {
        let counts = |log: LogKind| {
            let world = World::new(log, 1000).unwrap();
            let types = world.oracle().vocabulary_size() as u32;
            let truth = world.truth().unwrap();
            let mut counts = [0; 3];
            for (u, v) in (0..types).flat_map(|u| (0..types).map(move |v| (u, v))).filter(|(u, v)| u != v) {
                counts[truth.of(EventId(u), EventId(v)).class as usize] += 1;
            }
            counts
        };
        let [designed, weak, null] = counts(LogKind { kind: Kind::Scm, null: true });
        assert_eq!((designed, weak, null), (0, 0, SCM_TYPES * (SCM_TYPES - 1)));
        let [designed, _, null] = counts(LogKind { kind: Kind::Scm, null: false });
        assert!(designed > 20 && null > 20, "{designed} {null}");
    }
}
