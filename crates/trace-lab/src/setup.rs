//! What an experiment needs: a process whose truth is known, and a backbone trained on sequences of it.
//!
//! Sequences have numbers, and their numbers decide what they are for: those that are reported, those that thresholds
//! are chosen by, and those that are trained on never overlap.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use rand::RngExt;
use trace_causal::{Backbone, Model};
use trace_core::random::{Purpose, Streams};
use trace_core::theory::Fitness;
use trace_core::{DensityModel, Error as CoreError, EventId, EventSequence};
use trace_models::neural::shape::Shape;
use trace_models::neural::{Encoder, NeuralNetwork, open_network};
use trace_sim::TruthSpec;

use crate::lab::Lab;
use crate::scores::Case;
use crate::simulator::{Simulator, SimulatorSpec, loss};
use crate::{Error, encoder, train};

/// Numbers of the sequences that are reported.
const REPORTED: usize = 0;
/// Numbers of the sequences that thresholds are chosen by.
const CHOSEN_BY: usize = 500;
/// Numbers of the sequences that are trained on, from here.
const TRAINED_ON: usize = 1000;
/// Numbers of the sequences that the fit of backbones is compared on.
const FITTED_ON: Range<usize> = 600..900;
/// Sequences simulated at once.
const TOGETHER: usize = 20_000;

/// What an experiment asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// What makes sequences.
    pub simulator: SimulatorSpec,
    /// Events of a sequence.
    pub length: usize,
    /// What is trained.
    pub backbone: Backbone,
    /// The size of the network; n-grams have none.
    pub shape: Shape,
    /// Events that it is trained on.
    pub events: usize,
}

impl Recipe {
    /// A name for the folder of its backbone.
    pub(crate) fn name(&self) -> String {
        let Shape { layers, hidden_size, heads, head_dim, intermediate_size } = self.shape;
        let backbone = match self.backbone {
            Backbone::Ngram => "ngram".to_owned(),
            network => format!("{}-{layers}x{hidden_size}-h{heads}x{head_dim}-f{intermediate_size}", network.name()),
        };
        format!("{}-l{}-{backbone}-e{}", self.simulator.name(), self.length, self.events)
    }

    /// Fresh sequences to train on, as many as give the events.
    pub(crate) fn corpus(&self, lab: &Lab<'_>, simulator: &Simulator) -> Result<Vec<Vec<EventId>>, Error> {
        let mut corpus: Vec<Vec<EventId>> = Vec::new();
        let mut events = 0;
        let mut number = TRAINED_ON;
        while events < self.events {
            lab.check_stop()?;
            let count = (self.events - events).div_ceil(self.length).clamp(1, TOGETHER);
            let more = simulator.sequences(self.simulator.seed(), number..number + count, self.length);
            events += more.iter().map(Vec::len).sum::<usize>();
            number += count;
            corpus.extend(more);
        }
        Ok(corpus)
    }
}

/// A process and a backbone trained on it.
pub struct Setup {
    /// What was asked for.
    pub recipe: Recipe,
    /// The process.
    pub simulator: Arc<Simulator>,
    /// The folder of the backbone.
    folder: PathBuf,
    backbone: Model,
}

impl Setup {
    /// Opens the setup from the laboratory's folder, training first what is not there.
    pub fn new(lab: &Lab<'_>, recipe: Recipe) -> Result<Self, Error> {
        let simulator = lab.simulators.get(&recipe.simulator)?;
        let folder = lab.folder.join("backbones").join(recipe.name());
        let backbone = if folder.exists() {
            Model::open(&folder)?
        } else {
            lab.say(&format!("training {} on {} events ({})", recipe.backbone.name(), recipe.events, recipe.name()));
            train::backbone(lab, &recipe, &simulator, &folder)?
        };
        Ok(Self { recipe, simulator, folder, backbone })
    }

    /// The backbone.
    pub fn model(&self) -> &dyn DensityModel {
        self.backbone.density()
    }

    /// The backbone with its gradients.
    pub fn network(&self) -> Result<Box<dyn NeuralNetwork>, Error> {
        Ok(open_network(&self.folder)?)
    }

    /// The backbone's distance from a perfect one, from 0 to 1.
    pub fn epsilon_hat(&self) -> Option<f64> {
        self.model().fitness().epsilon_hat(self.model().vocabulary_size())
    }

    /// The same, measured on sequences that are the same for every backbone of the process, however little it was
    /// trained on.
    pub fn measure_epsilon_hat(&self) -> Result<Option<f64>, Error> {
        let sequences = self.simulator.sequences(self.recipe.simulator.seed(), FITTED_ON, self.recipe.length);
        let fitness = Fitness {
            held_out_loss: Some(loss(self.model(), &sequences)?),
            unigram_loss: None,
            entropy: Some(self.simulator.entropy(&sequences)?),
        };
        Ok(fitness.epsilon_hat(self.model().vocabulary_size()))
    }

    /// A masked encoder of the same size, trained on the same events.
    pub fn encoder(&self, lab: &Lab<'_>) -> Result<Encoder, Error> {
        let folder = lab.folder.join("backbones").join(format!("{}-bert", self.recipe.name()));
        if !folder.exists() {
            lab.say(&format!("training a masked encoder on {} events ({})", self.recipe.events, self.recipe.name()));
            encoder::in_lab(lab, &self.recipe, &self.simulator, &folder)?;
        }
        Ok(trace_models::open_encoder(&folder)?.encoder)
    }

    /// Sequences that are reported.
    pub fn reported(&self, count: usize, length: usize) -> Vec<EventSequence> {
        self.named(REPORTED..REPORTED + count, length, "reported")
    }

    /// Sequences that thresholds are chosen by.
    pub fn chosen_by(&self, count: usize, length: usize) -> Vec<EventSequence> {
        self.named(CHOSEN_BY..CHOSEN_BY + count, length, "chosen by")
    }

    /// The sequences that the backbone was trained on.
    pub fn trained_on(&self, lab: &Lab<'_>) -> Result<Vec<Vec<EventId>>, Error> {
        self.recipe.corpus(lab, &self.simulator)
    }

    /// The truth of sequences.
    pub fn cases(&self, sequences: Vec<EventSequence>, truth: TruthSpec) -> Result<Vec<Case>, CoreError> {
        self.simulator.cases(sequences, truth)
    }

    fn named(&self, numbers: Range<usize>, length: usize, prefix: &str) -> Vec<EventSequence> {
        let sequences = self.simulator.sequences(self.recipe.simulator.seed(), numbers, length);
        let name = |(number, events)| EventSequence::new(format!("{prefix} {number}"), events);
        sequences.into_iter().enumerate().map(name).collect()
    }
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
