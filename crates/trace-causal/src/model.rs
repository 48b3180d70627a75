//! Models, as every recipe uses them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trace_core::theory::{ErrorBound, Fitness};
use trace_core::{DensityModel, EventSequence, Families, Vocabulary};
use trace_io::log::Shaping;
use trace_io::result::ResultModel;
use trace_models::cross_fit::{self, OpenCrossFit};
use trace_models::{Description, ModelRecord, OpenModel, Split};

use crate::{Error, Log};

/// The key of a model's record that says how the log it was trained on was shaped.
pub(crate) const SHAPING: &str = "shaping";

/// The key of a model's record that holds the steps of its event types.
pub(crate) const FAMILIES: &str = "families";

/// A density model with its event types and its record, or two of them that were each trained on one half of the
/// sequences (a cross-fit).
pub struct Model {
    density: Box<dyn DensityModel>,
    vocabulary: Vocabulary,
    record: ModelRecord,
    parameters: usize,
    config: BTreeMap<String, Value>,
    fingerprint: Option<String>,
    families: Option<Families>,
    /// What `density` was trained on.
    split: Option<Split>,
    /// What there is besides `density` in a cross-fit.
    cross_fit: Option<CrossFit>,
}

/// The second half of a cross-fit, and what is known of the first alone.
struct CrossFit {
    first: (ModelRecord, usize),
    density: Box<dyn DensityModel>,
    record: ModelRecord,
    parameters: usize,
    split: Split,
}

impl Model {
    /// Opens a model folder of any kind: trained here, by Hugging Face Transformers, or a simulated process.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref();
        if cross_fit::is_cross_fit(folder)? {
            return Self::from_cross_fit(folder, cross_fit::open(folder)?);
        }
        let description = Description::read(folder)?;
        let opened = if trace_sim::is_process(&description) {
            trace_sim::open(description)?
        } else {
            trace_models::open_described(description)?
        };
        let OpenModel { model, vocabulary, record, parameters, config, fingerprint, split } = opened;
        let families = recorded_families(folder, &record, vocabulary.len())?;
        let fingerprint = Some(fingerprint);
        let cross_fit = None;
        Ok(Self { density: model, vocabulary, record, parameters, config, fingerprint, families, split, cross_fit })
    }

    fn from_cross_fit(folder: &Path, opened: OpenCrossFit) -> Result<Self, Error> {
        let OpenCrossFit { halves: [first, second], splits: [split, second_split], record, fingerprint } = opened;
        let families = recorded_families(folder, &first.record, first.vocabulary.len())?;
        Ok(Self {
            families,
            density: first.model,
            vocabulary: first.vocabulary,
            record,
            parameters: first.parameters + second.parameters,
            config: first.config,
            fingerprint: Some(fingerprint),
            split: Some(split),
            cross_fit: Some(CrossFit {
                first: (first.record, first.parameters),
                density: second.model,
                record: second.record,
                parameters: second.parameters,
                split: second_split,
            }),
        })
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
        let (config, fingerprint) = (BTreeMap::new(), None);
        let (families, split, cross_fit) = (None, None, None);
        Ok(Self { density, vocabulary, record, parameters: 0, config, fingerprint, families, split, cross_fit })
    }

    /// The model itself. Of a cross-fit the first half, for what both have in common;
    /// [`density_for`](Self::density_for) is the one to ask about a sequence.
    pub fn density(&self) -> &dyn DensityModel {
        &*self.density
    }

    /// The model to ask about a sequence: of a cross-fit the half that has not seen it, which is the first half where
    /// neither has.
    pub fn density_for(&self, sequence: &EventSequence) -> &dyn DensityModel {
        match (&self.cross_fit, &self.split) {
            (Some(second), Some(first)) if first.has_seen(sequence) => &*second.density,
            _ => &*self.density,
        }
    }

    /// Whether what answers for a sequence was trained on it; `None` where that is unknown. What answers in a cross-fit
    /// never was.
    pub fn trained_on(&self, sequence: &EventSequence) -> Option<bool> {
        if self.is_cross_fit() {
            return Some(false);
        }
        self.split.as_ref().map(|split| split.has_trained_on(sequence))
    }

    /// Whether it is two models that were each trained on one half of the sequences.
    pub const fn is_cross_fit(&self) -> bool {
        self.cross_fit.is_some()
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
        let Some(second) = &mut self.cross_fit else { return self.density.set_ram_limit(bytes) };
        // Each half counts its own weights.
        let without = |parameters: usize| bytes.saturating_sub(parameters * size_of::<f32>());
        self.density.set_ram_limit(without(second.parameters));
        second.density.set_ram_limit(without(second.first.1));
    }

    /// How well it predicts, as far as that is known; of a cross-fit the mean over its halves.
    pub fn fitness(&self) -> Fitness {
        if self.is_cross_fit() { self.record.fitness() } else { self.density.fitness() }
    }

    /// How the log it was trained on was shaped, where it was trained here on one.
    pub fn shaping(&self) -> Option<Shaping> {
        serde_json::from_value(self.record.training.get(SHAPING)?.clone()).ok()
    }

    /// The steps of its event types, where its folder records them: those of the log it was trained on.
    pub const fn families(&self) -> Option<&Families> {
        self.families.as_ref()
    }

    /// The steps of its event types, with this log at hand: its own where it has them, or else those that the log was
    /// opened with, if any.
    pub fn families_for(&self, log: &Log) -> Result<Option<Families>, Error> {
        match &self.families {
            Some(families) => Ok(Some(families.clone())),
            None => log.families(&self.vocabulary),
        }
    }

    /// Whether it is a simulated process rather than a trained model.
    pub fn is_process(&self) -> bool {
        matches!(self.density.backbone(), "scm" | "fleet" | "workflow")
    }

    /// What results say of it.
    pub fn for_results(&self) -> ResultModel {
        let mut model = ResultModel::new(self.density(), self.fingerprint.clone());
        if self.is_cross_fit() {
            let fitness = self.fitness();
            (model.held_out_loss, model.unigram_loss) = (fitness.held_out_loss, fitness.unigram_loss);
        }
        model
    }

    /// What it is and how far it can be trusted.
    pub fn info(&self) -> ModelInfo<'_> {
        let fitness = self.fitness();
        let size = self.density.vocabulary_size();
        let bound = fitness.epsilon().map(ErrorBound::new);
        ModelInfo {
            backbone: self.density.backbone(),
            vocabulary_size: size,
            predicts_end: self.density.predicts_end(),
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
            halves: self.halves(),
            config: &self.config,
            training: &self.record.training,
        }
    }

    fn halves(&self) -> Option<[HalfInfo; 2]> {
        let (second, split) = (self.cross_fit.as_ref()?, self.split.as_ref()?);
        let (record, parameters) = &second.first;
        let half = |record: &ModelRecord, parameters: usize, split: &Split| HalfInfo {
            parameters,
            held_out_loss: record.held_out_loss,
            unigram_loss: record.unigram_loss,
            trained_sequences: split.trained(),
            held_out_sequences: split.held_out(),
        };
        Some([half(record, *parameters, split), half(&second.record, second.parameters, &second.split)])
    }

    #[cfg(feature = "candle")]
    pub(crate) fn with_density(self, density: Box<dyn DensityModel>) -> Self {
        Self { density, ..self }
    }

    #[cfg(feature = "candle")]
    pub(crate) fn with_halves(self, [density, second]: [Box<dyn DensityModel>; 2]) -> Self {
        let cross_fit = self.cross_fit.map(|half| CrossFit { density: second, ..half });
        Self { density, cross_fit, ..self }
    }
}

/// The steps that a record holds, which must be those of all event types.
fn recorded_families(folder: &Path, record: &ModelRecord, types: usize) -> Result<Option<Families>, Error> {
    let Some(value) = record.training.get(FAMILIES) else { return Ok(None) };
    let wrong = |reason: String| Error::request(format!("{}: trace.json: {FAMILIES}: {reason}", folder.display()));
    let families = Families::deserialize(value).map_err(|error| wrong(error.to_string()))?;
    if families.len() != types {
        return Err(wrong(format!("expected one step for each of the {types} event types, found {}", families.len())));
    }
    Ok(Some(families))
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (backbone, types) = (self.density.backbone(), self.vocabulary.len());
        f.debug_struct("Model").field("backbone", &backbone).field("types", &types).finish_non_exhaustive()
    }
}

/// One half of a cross-fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HalfInfo {
    /// How many numbers it is made of.
    pub parameters: usize,
    /// Cross-entropy on what was held out of its half, in nats per event.
    pub held_out_loss: Option<f64>,
    /// That of frequencies on the same.
    pub unigram_loss: Option<f64>,
    /// Sequences that it was trained on.
    pub trained_sequences: usize,
    /// Sequences of its half that were held out.
    pub held_out_sequences: usize,
}

/// What a model is and how far it can be trusted.
#[derive(Clone, Debug, Serialize)]
pub struct ModelInfo<'m> {
    /// Architecture.
    pub backbone: &'m str,
    /// The number of event types.
    pub vocabulary_size: usize,
    /// Whether it predicts the end of a case too.
    pub predicts_end: bool,
    /// Whether the types have names.
    pub named_events: bool,
    /// The largest lag at which an event can matter, if there is a limit.
    pub reach: Option<usize>,
    /// How many numbers it is made of.
    pub parameters: usize,
    /// Cross-entropy on held-out events, and ends of cases where these are predicted, in nats per event; of a cross-fit the
    /// mean over its halves, as the losses below.
    pub held_out_loss: Option<f64>,
    /// That of the frequencies of events, and ends, on the same ones.
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
    /// The halves of a cross-fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halves: Option<[HalfInfo; 2]>,
    /// Facts of the architecture.
    pub config: &'m BTreeMap<String, Value>,
    /// How it was made.
    pub training: &'m BTreeMap<String, Value>,
}
