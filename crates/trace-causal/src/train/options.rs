//! What a training is asked to do, as plain data: the same for every door, and what `trace.json` records.

use serde::{Deserialize, Serialize};
use trace_core::DEFAULT_SEED;
use trace_models::neural::train::{OptimizerKind, Schedule};

use crate::Error;

/// Architectures that can be trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backbone {
    /// A Transformer with rotary positions.
    #[default]
    Llama,
    /// A selective state-space model.
    Mamba,
    /// Gated recurrent units.
    Gru,
    /// A long short-term memory.
    Lstm,
    /// Interpolated Kneser–Ney counts.
    Ngram,
}

impl Backbone {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Mamba => "mamba",
            Self::Gru => "gru",
            Self::Lstm => "lstm",
            Self::Ngram => "ngram",
        }
    }
}

/// The size of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// By the number of events and types.
    #[default]
    Auto,
    /// 2 layers of 64.
    Tiny,
    /// 2 layers of 128.
    Small,
    /// 1 layer of 512: the best fit per minute on large logs.
    Base,
    /// 4 layers of 512.
    Large,
}

/// The order of an n-gram model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The one with the lowest held-out loss.
    #[default]
    Auto,
    /// This one.
    #[serde(untagged)]
    Fixed(usize),
}

/// What a training is asked to do. What is `None` follows the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrainOptions {
    /// The architecture.
    pub backbone: Backbone,
    /// Options of networks.
    #[serde(flatten)]
    pub network: NetworkOptions,
    /// Events that an n-gram spans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// Share of sequences to measure the fit on instead of training on them.
    pub held_out: f64,
    /// Train two models, each on one half of the sequences.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cross_fit: bool,
    /// Seed of the held-out split, the weights and the order of training.
    pub seed: u64,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self {
            backbone: Backbone::default(),
            network: NetworkOptions::default(),
            order: None,
            held_out: 0.1,
            cross_fit: false,
            seed: DEFAULT_SEED,
        }
    }
}

/// What is asked of a network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkOptions {
    /// The size that the others deviate from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<usize>,
    /// Hidden size: numbers in a hidden row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Attention heads of a LLaMA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<usize>,
    /// Numbers in a head of a LLaMA; heads need not share the hidden size between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_width: Option<usize>,
    /// Intermediate size: numbers in the feed-forward layers of a LLaMA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed_forward: Option<usize>,
    /// Train for this many steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Train for this many minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// Sequences per step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Events of a sequence that are read at once; longer ones are cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<usize>,
    /// The largest learning rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f32>,
    /// How the learning rate falls to zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Weight decay of hidden matrices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_decay: Option<f32>,
    /// How weights follow their gradients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<OptimizerKind>,
    /// Seconds between checkpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_seconds: Option<f64>,
}

impl TrainOptions {
    /// Options that mean nothing to the backbone are mistakes, and so are values out of range.
    pub(super) fn check(&self) -> Result<(), Error> {
        let NetworkOptions { heads, head_width, feed_forward, .. } = self.network;
        let given = self.network.given();
        let wrong = match self.backbone {
            Backbone::Ngram => given,
            _ if self.order.is_some() => Some("order"),
            Backbone::Llama => None,
            _ if feed_forward.is_some() => Some("feed_forward"),
            _ if head_width.is_some() => Some("head_width"),
            _ => heads.map(|_| "heads"),
        };
        match wrong {
            Some(name) => Err(Error::option(name, format!("means nothing to the backbone {}", self.backbone.name()))),
            None => self.network.check(),
        }
    }
}

impl NetworkOptions {
    /// The first option that is given.
    fn given(&self) -> Option<&'static str> {
        [
            ("size", self.size.is_some()),
            ("layers", self.layers.is_some()),
            ("width", self.width.is_some()),
            ("heads", self.heads.is_some()),
            ("head_width", self.head_width.is_some()),
            ("feed_forward", self.feed_forward.is_some()),
            ("steps", self.steps.is_some()),
            ("minutes", self.minutes.is_some()),
            ("batch", self.batch.is_some()),
            ("length", self.length.is_some()),
            ("learning_rate", self.learning_rate.is_some()),
            ("schedule", self.schedule.is_some()),
            ("weight_decay", self.weight_decay.is_some()),
            ("optimizer", self.optimizer.is_some()),
            ("checkpoint_seconds", self.checkpoint_seconds.is_some()),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }

    fn check(&self) -> Result<(), Error> {
        let sizes = [
            ("layers", self.layers, 1, 128),
            ("width", self.width, 4, 16_384),
            ("heads", self.heads, 1, 256),
            ("head_width", self.head_width, 2, 1024),
            ("feed_forward", self.feed_forward, 1, 65_536),
            ("batch", self.batch, 1, 1 << 20),
            ("length", self.length, 2, 1 << 20),
        ];
        for (name, value, least, most) in sizes {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                return Err(Error::option(name, format!("{value} is out of range; expected {least} to {most}")));
            }
        }
        if let Some(odd) = self.head_width.filter(|width| !width.is_multiple_of(2)) {
            return Err(Error::option("head_width", format!("{odd} is odd; expected an even number")));
        }
        if self.steps.is_some() && self.minutes.is_some() {
            return Err(Error::option("steps", "goes without minutes: a run ends after either"));
        }
        if self.steps == Some(0) {
            return Err(Error::option("steps", "0 is out of range; expected at least 1"));
        }
        let numbers = [
            ("minutes", self.minutes, 0.0, 1e6, "more than 0"),
            ("learning_rate", self.learning_rate.map(f64::from), 0.0, 10.0, "more than 0, below 10"),
        ];
        for (name, value, above, below, expected) in numbers {
            if let Some(value) = value.filter(|value| !(*value > above && *value < below)) {
                return Err(Error::option(name, format!("{value} is out of range; expected {expected}")));
            }
        }
        if let Some(seconds) = self.checkpoint_seconds.filter(|seconds| !(0.0..1e6).contains(seconds)) {
            return Err(Error::option("checkpoint_seconds", format!("{seconds} is out of range; expected 0 or more")));
        }
        match self.weight_decay.filter(|decay| !(0.0..=10.0).contains(decay)) {
            Some(decay) => Err(Error::option("weight_decay", format!("{decay} is out of range; expected 0 to 10"))),
            None => Ok(()),
        }
    }
}
