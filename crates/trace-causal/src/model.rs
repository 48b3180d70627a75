//! Models, as every recipe uses them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use trace_core::theory::{ErrorBound, Fitness};
use trace_core::{DensityModel, Vocabulary};
use trace_io::log::Shaping;
use trace_io::result::ResultModel;
use trace_models::{Description, ModelRecord, OpenModel};

use crate::Error;

/// The key of a model's record that says how the log it was trained on was shaped.
pub(crate) const SHAPING: &str = "shaping";

/// A density model with its event types and its record.
pub struct Model {
    density: Box<dyn DensityModel>,
    vocabulary: Vocabulary,
    record: ModelRecord,
    parameters: usize,
    config: BTreeMap<String, Value>,
    fingerprint: Option<String>,
}

impl Model {
    /// Opens a model folder of any kind: trained here, by Hugging Face Transformers, or a simulated process.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let description = Description::read(folder.as_ref())?;
        let opened = if trace_sim::is_process(&description) {
            trace_sim::open(description)?
        } else {
            trace_models::open_described(description)?
        };
        let OpenModel { model, vocabulary, record, parameters, config, fingerprint } = opened;
        Ok(Self { density: model, vocabulary, record, parameters, config, fingerprint: Some(fingerprint) })
    }

    /// The same on a device: `cpu`, or `cuda`, `cuda:1`, `metal` in a build with that feature.
    pub fn open_on(folder: impl AsRef<Path>, device: &str) -> Result<Self, Error> {
        let opened = Self::open(&folder)?;
        if device == "cpu" { Ok(opened) } else { crate::device::place(opened, folder.as_ref(), device) }
    }

    /// A model of one's own. Results cannot say which model made them beyond its name.
    pub fn new(density: Box<dyn DensityModel>, vocabulary: Vocabulary) -> Result<Self, Error> {
        let (size, names) = (density.vocabulary_size(), vocabulary.len());
        if size != names {
            return Err(Error::request(format!("the model has {size} event types, but its vocabulary names {names}")));
        }
        let record = ModelRecord { backbone: density.backbone().to_owned(), ..ModelRecord::default() };
        Ok(Self { density, vocabulary, record, parameters: 0, config: BTreeMap::new(), fingerprint: None })
    }

    /// The model itself.
    pub fn density(&self) -> &dyn DensityModel {
        &*self.density
    }

    /// Its event types.
    pub const fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// What its folder records of it.
    pub const fn record(&self) -> &ModelRecord {
        &self.record
    }

    /// A hash of what decides its answers, where it came from a folder.
    pub fn fingerprint(&self) -> Option<&str> {
        self.fingerprint.as_deref()
    }

    /// Bounds the memory, in bytes, that the model uses for itself and for what it reads and scores.
    pub fn set_ram_limit(&mut self, bytes: usize) {
        self.density.set_ram_limit(bytes);
    }

    /// How well it predicts, as far as that is known.
    pub fn fitness(&self) -> Fitness {
        self.density.fitness()
    }

    /// How the log it was trained on was shaped, where it was trained here on one.
    pub fn shaping(&self) -> Option<Shaping> {
        serde_json::from_value(self.record.training.get(SHAPING)?.clone()).ok()
    }

    /// Whether it is a simulated process rather than a trained model.
    pub fn is_process(&self) -> bool {
        matches!(self.density.backbone(), "scm" | "fleet" | "workflow")
    }

    /// What results say of it.
    pub fn for_results(&self) -> ResultModel {
        ResultModel::new(self.density(), self.fingerprint.clone())
    }

    /// What it is and how far it can be trusted.
    pub fn info(&self) -> ModelInfo<'_> {
        let fitness = self.fitness();
        let size = self.density.vocabulary_size();
        let bound = fitness.epsilon().map(ErrorBound::new);
        ModelInfo {
            backbone: self.density.backbone(),
            vocabulary_size: size,
            named_events: self.vocabulary.has_names(),
            reach: self.density.reach(),
            parameters: self.parameters,
            held_out_loss: fitness.held_out_loss,
            unigram_loss: fitness.unigram_loss,
            entropy: fitness.entropy,
            redundancy: fitness.redundancy(size),
            epsilon: fitness.epsilon(),
            epsilon_hat: fitness.epsilon_hat(size),
            total_variation: bound.map(|bound| bound.total_variation),
            noise_floor: bound.map(|bound| bound.noise_floor),
            identifiability_margin: bound.map(|bound| bound.identifiability_margin()),
            vacuous: bound.map(|bound| bound.is_vacuous()),
            config: &self.config,
            training: &self.record.training,
        }
    }

    #[cfg(feature = "candle")]
    pub(crate) fn with_density(self, density: Box<dyn DensityModel>) -> Self {
        Self { density, ..self }
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (backbone, types) = (self.density.backbone(), self.vocabulary.len());
        f.debug_struct("Model").field("backbone", &backbone).field("types", &types).finish_non_exhaustive()
    }
}

/// What a model is and how far it can be trusted.
#[derive(Clone, Debug, Serialize)]
pub struct ModelInfo<'m> {
    /// Architecture.
    pub backbone: &'m str,
    /// The number of event types.
    pub vocabulary_size: usize,
    /// Whether they have names.
    pub named_events: bool,
    /// The largest lag at which an event can matter, if there is a limit.
    pub reach: Option<usize>,
    /// How many numbers it is made of.
    pub parameters: usize,
    /// Cross-entropy on held-out events, in nats per event.
    pub held_out_loss: Option<f64>,
    /// That of event frequencies on the same events.
    pub unigram_loss: Option<f64>,
    /// Entropy of the process that made the events, where it is known.
    pub entropy: Option<f64>,
    /// Shannon redundancy of that process.
    pub redundancy: Option<f64>,
    /// Excess loss over the entropy.
    pub epsilon: Option<f64>,
    /// The oracle score.
    pub epsilon_hat: Option<f64>,
    /// Pinsker's bound on the total variation.
    pub total_variation: Option<f64>,
    /// Noise floor of a strength, in nats.
    pub noise_floor: Option<f64>,
    /// True strengths above this are guaranteed to be told from none.
    pub identifiability_margin: Option<f64>,
    /// Whether that promises nothing.
    pub vacuous: Option<bool>,
    /// Facts of the architecture.
    pub config: &'m BTreeMap<String, Value>,
    /// How it was made.
    pub training: &'m BTreeMap<String, Value>,
}
