//! All architectures by name: the only module that knows every one of them.

use serde_json::{Map, Value};

use super::architecture::Network;
use super::bert::BertConfig;
use super::encoder::Encoder;
use super::gpt2::Gpt2Config;
use super::layout::{Entry, Layout, Role};
use super::llama::LlamaConfig;
use super::mamba::MambaConfig;
use super::recurrent::RecurrentConfig;
use super::store::{self, NeuralNetwork};
use super::train::{Corpus, CorpusStatistics, OptimizerKind, TrainObserver, TrainSpec, TrainState, Trained};
use super::train::{Gradients, Masked, NextEvent, run};
use crate::Error;
use crate::folder::Config;

/// The configuration of a network of any architecture.
#[derive(Clone, Debug, PartialEq)]
pub enum NetworkConfig {
    /// See [`super::llama`].
    Llama(LlamaConfig),
    /// See [`super::gpt2`]; can be read and queried, but not trained.
    Gpt2(Gpt2Config),
    /// See [`super::mamba`].
    Mamba(MambaConfig),
    /// See [`super::gru`].
    Gru(RecurrentConfig),
    /// See [`super::lstm`].
    Lstm(RecurrentConfig),
    /// See [`super::bert`]; trained on masked events, and not a density model.
    Bert(BertConfig),
}

/// Runs `$body` with `$network` for a config that learns the next event, `$other` with `$rest` for one that predicts
/// it but has no backward pass, and `$hidden` with `$masked` for one that learns masked events.
macro_rules! with_kind {
    ($config:expr, $network:ident => $body:expr, $rest:ident => $other:expr, $masked:ident => $hidden:expr) => {
        match $config {
            NetworkConfig::Llama(config) => {
                let $network = $crate::neural::llama::Llama::new(config.clone());
                $body
            }
            NetworkConfig::Mamba(config) => {
                let $network = $crate::neural::mamba::Mamba::new(config.clone());
                $body
            }
            NetworkConfig::Gru(config) => {
                let $network = $crate::neural::gru::Gru::new(config.clone());
                $body
            }
            NetworkConfig::Lstm(config) => {
                let $network = $crate::neural::lstm::Lstm::new(config.clone());
                $body
            }
            NetworkConfig::Gpt2(config) => {
                let $rest = $crate::neural::gpt2::Gpt2::new(config.clone());
                $other
            }
            NetworkConfig::Bert(config) => {
                let $masked = $crate::neural::bert::Bert::new(config.clone());
                $hidden
            }
        }
    };
}

/// Runs `$body` with `$network` for a config that predicts the next event, and `$hidden` with `$masked` for one that
/// does not.
macro_rules! with_network {
    ($config:expr, $network:ident => $body:expr, $masked:ident => $hidden:expr) => {
        $crate::neural::network::with_kind!($config, $network => $body, $network => $body, $masked => $hidden)
    };
}

/// Runs `$body` with `$network` for a config of any kind.
macro_rules! with_any {
    ($config:expr, $network:ident => $body:expr) => {
        with_network!($config, $network => $body, $network => $body)
    };
}
pub(crate) use {with_kind, with_network};

/// Why a masked model cannot be used as a density model.
pub(crate) const MASKED: &str = "a masked model predicts no next event; only its attention can be read";

/// The fields of a JSON object.
pub(crate) fn fields(object: Value) -> Map<String, Value> {
    if let Value::Object(fields) = object { fields } else { Map::new() }
}

/// Checks that a batch predicts at least one token.
fn check_batch(windows: &[Vec<u32>]) -> Result<(), Error> {
    if windows.iter().all(|window| window.len() < 2) {
        return Err(Error::spec("batch", "expected at least one window of two tokens"));
    }
    Ok(())
}

/// An f32 as the shortest decimal that represents it: 1e-5 instead of 9.999999747378752e-6.
pub(crate) fn short(value: f32) -> f64 {
    value.to_string().parse().unwrap_or_else(|_| f64::from(value))
}

/// Upper bounds of the sizes in a config; real models are far below them.
pub(crate) const MAX_VOCAB_SIZE: usize = 1 << 24;
pub(crate) const MAX_WIDTH: usize = 1 << 16;
pub(crate) const MAX_LAYERS: usize = 1 << 10;

/// The `model_type` of each architecture that predicts the next event.
const KNOWN: [&str; 5] = ["llama", "gpt2", "mamba", "trace-gru", "trace-lstm"];

impl NetworkConfig {
    /// Rejects a config whose architecture is unknown or predicts no next event.
    pub(crate) fn check_known(config: &Config<'_>) -> Result<(), Error> {
        let found = config.values.get("model_type");
        if found.and_then(Value::as_str) == Some(Encoder::MODEL_TYPE) {
            return Err(Error::folder(&config.path, MASKED));
        }
        if found.and_then(Value::as_str).is_some_and(|kind| KNOWN.contains(&kind)) {
            return Ok(());
        }
        let known = KNOWN.join(", ");
        Err(config.fault("model_type", &format!("one of {known}, trace-ngram, trace-scm"), found))
    }

    /// Reads a config; `has` tells whether the files contain a tensor.
    pub(crate) fn read(config: &Config<'_>, has: impl Fn(&str) -> bool) -> Result<Self, Error> {
        match config.values.get("model_type").and_then(Value::as_str).unwrap_or_default() {
            "llama" => Ok(Self::Llama(LlamaConfig::read(config, has("lm_head.weight"))?)),
            "gpt2" => Ok(Self::Gpt2(Gpt2Config::read(config, has("lm_head.weight"))?)),
            "mamba" => Ok(Self::Mamba(MambaConfig::read(config, has("lm_head.weight"))?)),
            "trace-gru" => Ok(Self::Gru(RecurrentConfig::read(config)?)),
            "trace-lstm" => Ok(Self::Lstm(RecurrentConfig::read(config)?)),
            _ => Err(config.fault("model_type", "an architecture", config.values.get("model_type"))),
        }
    }

    /// The config in the format of Transformers.
    pub(crate) fn describe(&self) -> Map<String, Value> {
        match self {
            Self::Llama(config) => config.describe(),
            Self::Gpt2(config) => config.describe(),
            Self::Mamba(config) => config.describe(),
            Self::Gru(config) => config.describe("trace-gru"),
            Self::Lstm(config) => config.describe("trace-lstm"),
            Self::Bert(config) => config.describe(),
        }
    }

    /// Short name of the architecture.
    pub const fn backbone(&self) -> &'static str {
        match self {
            Self::Llama(_) => "llama",
            Self::Gpt2(_) => "gpt2",
            Self::Mamba(_) => "mamba",
            Self::Gru(_) => "gru",
            Self::Lstm(_) => "lstm",
            Self::Bert(_) => Encoder::MODEL_TYPE,
        }
    }

    /// Number of tokens, including special ones.
    pub const fn vocab_size(&self) -> usize {
        match self {
            Self::Llama(config) => config.vocab_size,
            Self::Gpt2(config) => config.vocab_size,
            Self::Mamba(config) => config.vocab_size,
            Self::Gru(config) | Self::Lstm(config) => config.vocab_size,
            Self::Bert(config) => config.vocab_size,
        }
    }

    /// Numbers in a hidden row.
    pub const fn hidden_size(&self) -> usize {
        match self {
            Self::Llama(config) => config.hidden_size,
            Self::Gpt2(config) => config.hidden_size,
            Self::Mamba(config) => config.hidden_size,
            Self::Gru(config) | Self::Lstm(config) => config.hidden_size,
            Self::Bert(config) => config.hidden_size,
        }
    }

    /// The purpose of the last token of a network that was trained here: `mask` or `begin`.
    pub const fn last_token(&self) -> &'static str {
        if matches!(self, Self::Bert(_)) { "mask" } else { "begin" }
    }

    /// The longest sequence that it was trained on, where it reads longer ones but may predict them badly.
    pub const fn trained_length(&self) -> Option<usize> {
        match self {
            Self::Llama(config) => Some(config.trained_length),
            Self::Gpt2(_) | Self::Mamba(_) | Self::Gru(_) | Self::Lstm(_) | Self::Bert(_) => None,
        }
    }

    /// The number of parameters.
    pub fn parameters(&self) -> usize {
        with_any!(self, network => network.layout().len())
    }

    /// The place of each tensor in the weights.
    pub fn layout(&self) -> Layout {
        with_any!(self, network => network.layout().clone())
    }

    /// The mean loss over windows of tokens, and its gradient. In each window every token but the first is predicted.
    pub fn loss_and_gradient(&self, weights: &[f32], windows: &[Vec<u32>]) -> Result<(f64, Vec<f32>), Error> {
        check_batch(windows)?;
        with_kind!(
            self,
            network => {
                let mut gradients = Gradients::default();
                let (loss, gradient) = gradients.compute(&NextEvent(&network), weights, windows);
                Ok((loss, gradient.to_vec()))
            },
            _network => Err(self.untrainable()),
            _encoder => Err(Error::spec("backbone", MASKED))
        )
    }

    fn untrainable(&self) -> Error {
        Error::spec("backbone", format!("{} can be read and queried, but not trained", self.backbone()))
    }

    /// Trains on these batches, one step per batch, with no held-out loss; returns the mean loss of the last batch.
    pub fn steps(&self, state: &mut TrainState, batches: &[Vec<Vec<u32>>], learning_rate: f32) -> Result<f64, Error> {
        with_kind!(
            self,
            network => {
                let mut gradients = Gradients::default();
                let mut loss = f64::NAN;
                for batch in batches {
                    check_batch(batch)?;
                    let (mean, gradient) = gradients.compute(&NextEvent(&network), &state.weights, batch);
                    state.optimizer.step(network.layout(), &mut state.weights, gradient, learning_rate);
                    loss = mean;
                }
                Ok(loss)
            },
            _network => Err(self.untrainable()),
            _encoder => Err(Error::spec("backbone", MASKED))
        )
    }

    /// Floating-point operations of one row after a past of `context` tokens, including the head for `types` types.
    pub fn row_operations(&self, context: usize, types: usize) -> f64 {
        let layout = self.layout();
        let entries = layout.entries().iter();
        let is_table = |entry: &&Entry| matches!(entry.role, Role::Embedding | Role::Head);
        let tables: usize = entries.filter(is_table).map(|entry| entry.range().len()).sum();
        let width = with_any!(self, network => network.hidden_size());
        let attended = match self {
            Self::Llama(config) => config.layers * config.heads * config.head_dim,
            Self::Gpt2(config) => config.layers * config.hidden_size,
            Self::Bert(config) => config.layers * config.hidden_size,
            Self::Mamba(_) | Self::Gru(_) | Self::Lstm(_) => 0,
        };
        2.0 * (layout.len() - tables) as f64 + 4.0 * (attended * context) as f64 + 2.0 * (width * types) as f64
    }

    /// A run that has not begun: new weights, which depend on the seed alone.
    pub fn fresh_state(&self, seed: u64, optimizer: OptimizerKind) -> TrainState {
        let mut weights = self.layout().draw(seed);
        with_network!(
            self,
            network => network.initialize(&mut weights),
            encoder => encoder.initialize(&mut weights)
        );
        TrainState::new(weights, optimizer)
    }

    /// The network with these weights, without special tokens, names or record.
    pub fn with_weights(&self, weights: Vec<f32>) -> Result<Box<dyn NeuralNetwork>, Error> {
        if weights.len() != self.parameters() {
            let reason = format!("{} numbers for {} parameters", weights.len(), self.parameters());
            return Err(Error::spec("weights", reason));
        }
        with_network!(
            self,
            network => Ok(store::bare(self, network, weights)),
            _encoder => Err(Error::spec("backbone", MASKED))
        )
    }

    /// Continues training from `state`. The tokens are the event types, the end of a case where it is a target, and one
    /// more; [`Self::last_token`] tells what it is.
    pub fn train(
        &self,
        corpus: &dyn Corpus,
        statistics: &CorpusStatistics,
        spec: &TrainSpec,
        state: TrainState,
        observer: &mut dyn TrainObserver,
    ) -> Result<Trained, Error> {
        if self.vocab_size() != statistics.outcomes() + 1 {
            let reason = format!("{} of the network for {} targets", self.vocab_size(), statistics.outcomes());
            return Err(Error::spec("tokens", reason + "; expected one more"));
        }
        with_kind!(
            self,
            network => run(&NextEvent(&network), corpus, statistics, spec, state, observer),
            _network => Err(self.untrainable()),
            encoder => {
                if statistics.end.is_some() {
                    return Err(Error::spec("end", "means nothing to a masked model"));
                }
                if spec.length > encoder.config.positions {
                    let reason = format!("{} is more than {} learned positions", spec.length, encoder.config.positions);
                    return Err(Error::spec("length", reason));
                }
                run(&Masked(&encoder), corpus, statistics, spec, state, observer)
            }
        )
    }
}
