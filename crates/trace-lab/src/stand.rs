//! What an experiment stands on: a process whose truth is known, and a backbone trained on sequences of it.
//!
//! Sequences have numbers, and their numbers decide what they are for: those that are reported, those that thresholds
//! are chosen by, and those that are trained on never meet.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rand::RngExt;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use trace_core::random::{Purpose, Streams};
use trace_core::theory::Fitness;
use trace_core::{DensityModel, Error as CoreError, EventId, EventSequence, Vocabulary};
use trace_models::fleet::{Design, FleetLog, FleetSpec};
use trace_models::neural::Encoder;
use trace_models::neural::shape::{Shape, Trainee};
use trace_models::ngram::{self, NgramSpec};
use trace_models::{Process, ProcessSpec, write_folder};

use crate::lab::Lab;
use crate::trial::Case;
use crate::truth::{TrueEdges, TruthSpec};
use crate::{Error, train};

/// Numbers of the sequences that are reported.
const REPORTED: usize = 0;
/// Numbers of the sequences that thresholds are chosen by.
const CHOSEN_BY: usize = 500;
/// Numbers of the sequences that are trained on, from here.
const TRAINED_ON: usize = 1000;
/// Numbers of the sequences that a checkpoint's fit is measured on.
const FITTED_ON: Range<usize> = 600..900;
/// Shares of a training after which its weights are kept too, where they are asked for.
const MARKS: [f64; 8] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0];
/// Sequences simulated at once.
const TOGETHER: usize = 20_000;

/// What makes sequences.
#[derive(Clone, Debug, PartialEq)]
pub enum WorldSpec {
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

impl WorldSpec {
    /// A name for folders.
    fn name(&self) -> String {
        match self {
            Self::Scm(spec) => {
                format!("scm-v{}-m{}-r{}-d{}-s{}", spec.vocabulary, spec.memory, spec.redundancy, spec.decay, spec.seed)
            }
            Self::Fleet { types, seed } => format!("fleet-v{types}-s{seed}"),
        }
    }

    fn seed(&self) -> u64 {
        match self {
            Self::Scm(spec) => spec.seed,
            Self::Fleet { seed, .. } => *seed,
        }
    }
}

/// A process with its simulator, and what has been measured of its sequences.
pub struct World {
    maker: Maker,
    truths: Mutex<Vec<(TruthSpec, Truths)>>,
}

/// The truth by name and events of a sequence.
type Truths = FxHashMap<(String, Vec<EventId>), TrueEdges>;

enum Maker {
    Scm(Box<Process>),
    Fleet(Box<Design>),
}

impl World {
    /// Draws the process.
    pub fn new(spec: &WorldSpec) -> Result<Self, Error> {
        let maker = match spec {
            WorldSpec::Scm(spec) => Maker::Scm(Box::new(Process::draw(spec)?)),
            WorldSpec::Fleet { types, .. } => {
                let spec = FleetSpec { types: *types, ..FleetSpec::default() };
                Maker::Fleet(Box::new(Design::new(&spec)?))
            }
        };
        Ok(Self { maker, truths: Mutex::default() })
    }

    /// The process as a perfect model of itself.
    pub fn oracle(&self) -> &dyn DensityModel {
        match &self.maker {
            Maker::Scm(process) => &**process,
            Maker::Fleet(design) => &design.fleet,
        }
    }

    /// Its event types.
    pub fn vocabulary(&self) -> Vocabulary {
        match &self.maker {
            Maker::Scm(process) => Vocabulary::ids(process.vocabulary_size()),
            Maker::Fleet(design) => design.vocabulary.clone(),
        }
    }

    /// Sequences by number.
    pub fn sequences(&self, seed: u64, numbers: Range<usize>, length: usize) -> Vec<Vec<EventId>> {
        match &self.maker {
            Maker::Scm(process) => {
                let made = process.simulate(seed, numbers.start, numbers.len(), length);
                made.into_iter().map(|made| made.events).collect()
            }
            Maker::Fleet(design) => {
                let log = FleetLog { length, noise: 0.0, drop: 0.0, seed };
                let made = log.vehicles(&design.fleet, numbers.start, numbers.len());
                made.into_iter().map(|made| made.events).collect()
            }
        }
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
}

/// The processes that were drawn so far.
#[derive(Default)]
pub(crate) struct Worlds(Mutex<Vec<(WorldSpec, Arc<World>)>>);

impl Worlds {
    fn get(&self, spec: &WorldSpec) -> Result<Arc<World>, Error> {
        let mut worlds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, world)) = worlds.iter().find(|(known, _)| known == spec) {
            return Ok(Arc::clone(world));
        }
        let world = Arc::new(World::new(spec)?);
        worlds.push((spec.clone(), Arc::clone(&world)));
        drop(worlds);
        Ok(world)
    }
}

/// What kind of backbone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backbone {
    /// A network of this architecture and shape.
    Network(Trainee, Shape),
    /// Counts of n-grams.
    Ngram,
}

impl Backbone {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network(Trainee::Llama, _) => "llama",
            Self::Network(Trainee::Mamba, _) => "mamba",
            Self::Network(Trainee::Gru, _) => "gru",
            Self::Network(Trainee::Lstm, _) => "lstm",
            Self::Ngram => "ngram",
        }
    }

    fn folder(self) -> String {
        match self {
            Self::Network(_, shape) => {
                let Shape { layers, width, heads, head_width, feed_forward } = shape;
                format!("{}-{layers}x{width}-h{heads}x{head_width}-f{feed_forward}", self.name())
            }
            Self::Ngram => self.name().to_owned(),
        }
    }
}

/// What to stand on.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// What makes sequences.
    pub world: WorldSpec,
    /// Events of a sequence.
    pub length: usize,
    /// What is trained.
    pub backbone: Backbone,
    /// Events that it is trained on.
    pub events: usize,
    /// Whether weights along the training are kept.
    pub marks: bool,
}

impl Recipe {
    /// A name for the folder of its backbone.
    pub(crate) fn name(&self) -> String {
        format!("{}-l{}-{}-e{}", self.world.name(), self.length, self.backbone.folder(), self.events)
    }

    /// Fresh sequences to train on, as many as give the events.
    pub(crate) fn corpus(&self, lab: &Lab<'_>, world: &World) -> Result<Vec<Vec<EventId>>, Error> {
        let mut corpus: Vec<Vec<EventId>> = Vec::new();
        let mut events = 0;
        let mut number = TRAINED_ON;
        while events < self.events {
            lab.check_stop()?;
            let count = (self.events - events).div_ceil(self.length).clamp(1, TOGETHER);
            let more = world.sequences(self.world.seed(), number..number + count, self.length);
            events += more.iter().map(Vec::len).sum::<usize>();
            number += count;
            corpus.extend(more);
        }
        Ok(corpus)
    }
}

/// A backbone as it was along its training.
pub struct Milestone {
    /// After this many steps.
    pub step: u64,
    /// The model.
    pub model: Box<dyn DensityModel>,
}

/// A process and a backbone trained on it.
pub struct Stand {
    /// What was asked for.
    pub recipe: Recipe,
    /// The process.
    pub world: Arc<World>,
    /// The backbone.
    pub model: Box<dyn DensityModel>,
}

impl Stand {
    /// Opens the stand from the laboratory's folder, making first what is not there.
    pub fn new(lab: &Lab<'_>, recipe: Recipe) -> Result<Self, Error> {
        let world = lab.worlds.get(&recipe.world)?;
        let folder = lab.folder.join("backbones").join(recipe.name());
        if !folder.exists() {
            lab.say(&format!("training {} on {} events ({})", recipe.backbone.name(), recipe.events, recipe.name()));
            let corpus = recipe.corpus(lab, &world)?;
            match recipe.backbone {
                Backbone::Network(trainee, shape) => {
                    let config = shape.network(trainee, world.oracle().vocabulary_size(), recipe.length);
                    let shares: &[f64] = if recipe.marks { &MARKS } else { &[] };
                    train::network(lab, &world, &config, &corpus, &folder, shares)?;
                }
                Backbone::Ngram => ngram(&world, corpus, &folder)?,
            }
        }
        let model = trace_models::open(&folder)?.model;
        Ok(Self { recipe, world, model })
    }

    /// The backbone's distance from a perfect one, from 0 to 1.
    pub fn epsilon_hat(&self) -> Option<f64> {
        self.model.fitness().epsilon_hat(self.model.vocabulary_size())
    }

    /// The same for a model of the same process, measured on sequences of their own.
    pub fn measure_epsilon_hat(&self, model: &dyn DensityModel) -> Result<Option<f64>, Error> {
        let sequences = self.world.sequences(self.recipe.world.seed(), FITTED_ON, self.recipe.length);
        let fitness = Fitness {
            held_out_loss: Some(train::loss(model, &sequences)?),
            unigram_loss: None,
            entropy: Some(train::process_entropy(&self.world, &sequences)?),
        };
        Ok(fitness.epsilon_hat(model.vocabulary_size()))
    }

    /// The backbone as it was along its training.
    pub fn along(&self, lab: &Lab<'_>) -> Result<Vec<Milestone>, Error> {
        let folder = train::marks(&lab.folder.join("backbones").join(self.recipe.name()));
        let mut steps = Vec::new();
        for entry in fs::read_dir(&folder).map_err(Error::io(&folder))? {
            let entry = entry.map_err(Error::io(&folder))?;
            steps.extend(entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        steps.sort_unstable();
        steps
            .into_iter()
            .map(|step| Ok(Milestone { step, model: trace_models::open(&folder.join(step.to_string()))?.model }))
            .collect()
    }

    /// A masked encoder of the same size, trained on the same events.
    pub fn encoder(&self, lab: &Lab<'_>) -> Result<Encoder, Error> {
        let folder = lab.folder.join("backbones").join(format!("{}-bert", self.recipe.name()));
        if !folder.exists() {
            lab.say(&format!("training a masked encoder on {} events ({})", self.recipe.events, self.recipe.name()));
            let Backbone::Network(_, shape) = self.recipe.backbone else {
                return Err(Error::Output("a masked encoder needs the shape of a network".to_owned()));
            };
            let config = shape.encoder(self.world.oracle().vocabulary_size(), self.recipe.length);
            let corpus = self.recipe.corpus(lab, &self.world)?;
            train::network(lab, &self.world, &config, &corpus, &folder, &[])?;
        }
        Ok(trace_models::open_encoder(&folder)?.encoder)
    }

    /// Sequences that are reported.
    pub fn reported(&self, count: usize, length: usize) -> Vec<EventSequence> {
        named(self.world.sequences(self.recipe.world.seed(), REPORTED..REPORTED + count, length), "reported")
    }

    /// Sequences that thresholds are chosen by.
    pub fn chosen_by(&self, count: usize, length: usize) -> Vec<EventSequence> {
        named(self.world.sequences(self.recipe.world.seed(), CHOSEN_BY..CHOSEN_BY + count, length), "chosen by")
    }

    /// The sequences that the backbone was trained on.
    pub fn trained_on(&self, lab: &Lab<'_>) -> Result<Vec<Vec<EventId>>, Error> {
        self.recipe.corpus(lab, &self.world)
    }

    /// The truth of sequences.
    pub fn cases(&self, sequences: Vec<EventSequence>, truth: TruthSpec) -> Result<Vec<Case>, CoreError> {
        self.world.cases(sequences, truth)
    }
}

fn named(sequences: Vec<Vec<EventId>>, prefix: &str) -> Vec<EventSequence> {
    let name = |(number, events)| EventSequence::new(format!("{prefix} {number}"), events);
    sequences.into_iter().enumerate().map(name).collect()
}

fn ngram(world: &World, corpus: Vec<Vec<EventId>>, folder: &Path) -> Result<(), Error> {
    let size = world.oracle().vocabulary_size();
    let trained = ngram::train(&named(corpus, "trained on"), size, &NgramSpec::default())?;
    write_folder(folder, |folder| trained.model.save(folder, &world.vocabulary(), &serde_json::Map::new()))?;
    Ok(())
}

/// Replaces a share of a sequence's events by uniform draws; which ones were replaced.
pub fn with_noise(sequence: &EventSequence, share: f64, types: usize, seed: u64) -> (EventSequence, Vec<bool>) {
    let mut random = Streams::new(seed, &sequence.id).stream(Purpose::Simulation, 0, 1);
    let mut noisy = sequence.clone();
    let replaced = noisy
        .events
        .iter_mut()
        .map(|event| {
            let hit = random.random::<f64>() < share;
            let draw = EventId(random.random_range(0..types as u32));
            if hit {
                *event = draw;
            }
            hit
        })
        .collect();
    (noisy, replaced)
}

/// Leaves a share of a sequence's events out; the positions of those that are left.
pub fn with_drops(sequence: &EventSequence, share: f64, seed: u64) -> (EventSequence, Vec<usize>) {
    let mut random = Streams::new(seed, &sequence.id).stream(Purpose::Simulation, 0, 2);
    let left: Vec<usize> = (0..sequence.events.len()).filter(|_| random.random::<f64>() >= share).collect();
    let events = left.iter().map(|position| sequence.events[*position]).collect();
    (EventSequence::new(sequence.id.clone(), events), left)
}
