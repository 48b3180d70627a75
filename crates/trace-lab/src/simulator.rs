//! Processes whose truth is known: they make the sequences that backbones are trained on and methods are scored on.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use trace_core::numerics::entropy;
use trace_core::{DensityModel, Error as CoreError, EventId, EventSequence, ModelError, Vocabulary};
use trace_models::write_folder;
use trace_sim::fleet::{Design, FleetLog, FleetSpec};
use trace_sim::{Process, ProcessSpec, TrueEdges, TruthSpec};

use crate::Error;
use crate::scores::Case;

/// What makes sequences.
#[derive(Clone, Debug, PartialEq)]
pub enum SimulatorSpec {
    /// The paper's synthetic process.
    Scm(ProcessSpec),
    /// The named vehicle fleet with this many types.
    Fleet {
        /// Number of event types.
        types: usize,
        /// Seed of the vehicles.
        seed: u64,
    },
}

impl SimulatorSpec {
    /// A name for folders.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Scm(spec) => {
                format!("scm-v{}-m{}-r{}-d{}-s{}", spec.vocabulary, spec.memory, spec.redundancy, spec.decay, spec.seed)
            }
            Self::Fleet { types, seed } => format!("fleet-v{types}-s{seed}"),
        }
    }

    /// The seed of its sequences.
    pub(crate) const fn seed(&self) -> u64 {
        match self {
            Self::Scm(spec) => spec.seed,
            Self::Fleet { seed, .. } => *seed,
        }
    }
}

/// A process, and what has been measured of its sequences.
pub struct Simulator {
    process: AnyProcess,
    truths: Mutex<Vec<(TruthSpec, Truths)>>,
}

/// The truth by name and events of a sequence.
type Truths = FxHashMap<(String, Vec<EventId>), TrueEdges>;

enum AnyProcess {
    Scm(Box<Process>),
    Fleet(Box<Design>),
}

impl Simulator {
    /// Draws the process.
    pub fn new(spec: &SimulatorSpec) -> Result<Self, Error> {
        let process = match spec {
            SimulatorSpec::Scm(spec) => AnyProcess::Scm(Box::new(Process::draw(spec)?)),
            SimulatorSpec::Fleet { types, .. } => {
                let spec = FleetSpec { types: *types, ..FleetSpec::default() };
                AnyProcess::Fleet(Box::new(Design::new(&spec)?))
            }
        };
        Ok(Self { process, truths: Mutex::default() })
    }

    /// The process as a perfect model of itself.
    pub fn oracle(&self) -> &dyn DensityModel {
        match &self.process {
            AnyProcess::Scm(process) => &**process,
            AnyProcess::Fleet(design) => &design.fleet,
        }
    }

    /// Its event types.
    pub fn vocabulary(&self) -> Vocabulary {
        match &self.process {
            AnyProcess::Scm(process) => Vocabulary::ids(process.vocabulary_size()),
            AnyProcess::Fleet(design) => design.vocabulary.clone(),
        }
    }

    /// Sequences by number.
    pub fn sequences(&self, seed: u64, numbers: Range<usize>, length: usize) -> Vec<Vec<EventId>> {
        match &self.process {
            AnyProcess::Scm(process) => {
                let made = process.simulate(seed, numbers.start, numbers.len(), length);
                made.into_iter().map(|made| made.events).collect()
            }
            AnyProcess::Fleet(design) => {
                let log = FleetLog { length, noise: 0.0, drop: 0.0, seed };
                let made = log.vehicles(&design.fleet, numbers.start, numbers.len());
                made.into_iter().map(|made| made.events).collect()
            }
        }
    }

    /// Writes the process as a model folder, where there is none yet.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), Error> {
        if folder.exists() {
            return Ok(());
        }
        let record = serde_json::Map::new();
        write_folder(folder, |folder| match &self.process {
            AnyProcess::Scm(process) => process.save(folder, &record),
            AnyProcess::Fleet(design) => design.fleet.save(folder, &design.vocabulary, &record),
        })?;
        Ok(())
    }

    /// The truth of sequences; measured once, however often it is asked for.
    pub fn cases(&self, sequences: Vec<EventSequence>, truth: TruthSpec) -> Result<Vec<Case>, CoreError> {
        let key = |sequence: &EventSequence| (sequence.id.clone(), sequence.events.clone());
        let known = |sequence: &EventSequence| {
            let truths = self.truths.lock().unwrap_or_else(PoisonError::into_inner);
            truths.iter().find(|(spec, _)| *spec == truth)?.1.get(&key(sequence)).cloned()
        };
        let case = |sequence: EventSequence| {
            let truth = known(&sequence).map_or_else(|| truth.edges(self.oracle(), &sequence), Ok)?;
            Ok(Case { sequence, truth })
        };
        let cases = sequences.into_par_iter().map(case).collect::<Result<Vec<Case>, CoreError>>()?;
        let mut truths = self.truths.lock().unwrap_or_else(PoisonError::into_inner);
        let at = truths.iter().position(|(spec, _)| *spec == truth).unwrap_or_else(|| {
            truths.push((truth, FxHashMap::default()));
            truths.len() - 1
        });
        truths[at].1.extend(cases.iter().map(|case| (key(&case.sequence), case.truth.clone())));
        drop(truths);
        Ok(cases)
    }

    /// Mean entropy of the process on these sequences, in nats per event: what no model can beat on them.
    pub fn entropy(&self, sequences: &[Vec<EventId>]) -> Result<f64, CoreError> {
        let oracle = self.oracle();
        mean_over_events(sequences, |events| {
            let mut row = vec![0.0; oracle.row_size()];
            let mut sum = 0.0;
            for position in 0..events.len() {
                oracle.forward(&events[..position], position..position + 1, &mut row)?;
                sum += entropy(&row);
            }
            Ok(sum)
        })
    }
}

/// Mean loss of a model on these sequences, in nats per event.
pub fn loss(model: &dyn DensityModel, sequences: &[Vec<EventId>]) -> Result<f64, CoreError> {
    mean_over_events(sequences, |events| Ok(model.read(events)?.observed().iter().map(|score| -score.log_p).sum()))
}

/// The sum over sequences, divided by the number of events.
fn mean_over_events(
    sequences: &[Vec<EventId>],
    sum: impl Fn(&[EventId]) -> Result<f64, ModelError> + Sync,
) -> Result<f64, CoreError> {
    let sums = sequences.par_iter().map(|events| sum(events)).collect::<Result<Vec<f64>, ModelError>>()?;
    let events: usize = sequences.iter().map(Vec::len).sum();
    Ok(sums.iter().sum::<f64>() / events.max(1) as f64)
}

/// The processes that were drawn so far.
#[derive(Default)]
pub(crate) struct Simulators(Mutex<Vec<(SimulatorSpec, Arc<Simulator>)>>);

impl Simulators {
    pub(crate) fn get(&self, spec: &SimulatorSpec) -> Result<Arc<Simulator>, Error> {
        let mut simulators = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, simulator)) = simulators.iter().find(|(known, _)| known == spec) {
            return Ok(Arc::clone(simulator));
        }
        let simulator = Arc::new(Simulator::new(spec)?);
        simulators.push((spec.clone(), Arc::clone(&simulator)));
        drop(simulators);
        Ok(simulator)
    }
}
