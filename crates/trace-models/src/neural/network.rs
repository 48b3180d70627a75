//! The architectures by name: the one place that knows all of them.

use serde_json::{Map, Value};

use super::architecture::Architecture;
use super::llama::LlamaConfig;
use super::train::{Corpus, OptimiserKind, Survey, TrainObserver, TrainSpec, TrainState, Trained, run};
use crate::Error;
use crate::folder::Config;

/// The shape of a network of any architecture.
#[derive(Clone, Debug, PartialEq)]
pub enum NetworkConfig {
    /// See [`super::llama`].
    Llama(LlamaConfig),
}

/// Runs `$body` with `$network` as the network of a config.
macro_rules! with_network {
    ($config:expr, $network:ident => $body:expr) => {
        match $config {
            NetworkConfig::Llama(config) => {
                let $network = $crate::neural::llama::Llama::new(config.clone());
                $body
            }
        }
    };
}
pub(crate) use with_network;

/// Bounds of what a config may ask for; real models stay far below.
pub(crate) const MOST_TOKENS: usize = 1 << 24;
pub(crate) const WIDEST: usize = 1 << 16;
pub(crate) const MOST_LAYERS: usize = 1 << 10;

impl NetworkConfig {
    /// Reads a config; `has` says whether the files have a tensor.
    pub(crate) fn read(config: &Config<'_>, has: impl Fn(&str) -> bool) -> Result<Self, Error> {
        match config.values.get("model_type").and_then(Value::as_str).unwrap_or_default() {
            "llama" => Ok(Self::Llama(LlamaConfig::read(config, has("lm_head.weight"))?)),
            _ => {
                let known = "llama, gpt2, mamba, trace-gru, trace-lstm, trace-ngram or trace-scm";
                Err(config.fault("model_type", known, config.values.get("model_type")))
            }
        }
    }

    /// The config as Transformers knows it.
    pub(crate) fn describe(&self) -> Map<String, Value> {
        match self {
            Self::Llama(config) => config.describe(),
        }
    }

    /// Short name of the architecture.
    pub const fn backbone(&self) -> &'static str {
        match self {
            Self::Llama(_) => "llama",
        }
    }

    /// Tokens, special ones counted.
    pub const fn tokens(&self) -> usize {
        match self {
            Self::Llama(config) => config.tokens,
        }
    }

    /// The longest sequence it was trained on, where positions can go beyond.
    pub const fn trained_length(&self) -> Option<usize> {
        match self {
            Self::Llama(config) => Some(config.trained_length),
        }
    }

    /// How many numbers the network is made of.
    pub fn parameters(&self) -> usize {
        with_network!(self, network => network.layout().len())
    }

    /// A run that has not begun.
    pub fn fresh_state(&self, seed: u64, optimiser: OptimiserKind) -> TrainState {
        TrainState::new(with_network!(self, network => network.layout().draw(seed)), optimiser)
    }

    /// Trains from `state` on. The last token is the begin token.
    pub fn train(
        &self,
        corpus: &dyn Corpus,
        survey: &Survey,
        spec: &TrainSpec,
        state: TrainState,
        observer: &mut dyn TrainObserver,
    ) -> Result<Trained, Error> {
        with_network!(self, network => run(&network, corpus, survey, spec, state, observer))
    }
}
