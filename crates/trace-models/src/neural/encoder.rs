//! A masked model from its folder: it predicts no next event, but its attention can be read.

use serde_json::Value;
use trace_core::EventId;
use trace_kernels::matmul::Precision;

use super::bert::{Bert, BertConfig, Tape};
use super::store::{check_counts, read_weights, special_tokens};
use crate::Error;
use crate::folder::Description;
use crate::shards::TensorSet;

/// An encoder with its weights.
#[derive(Debug)]
pub struct Encoder {
    network: Bert,
    weights: Vec<f32>,
    event_tokens: Vec<u32>,
}

impl Encoder {
    pub(crate) const MODEL_TYPE: &str = "bert";

    pub(crate) fn open(description: &Description) -> Result<Self, Error> {
        let (folder, config, record) =
            (description.folder.as_path(), &description.config(), description.record.as_ref());
        let kind = config.values.get("model_type");
        if kind.and_then(Value::as_str) != Some(Self::MODEL_TYPE) {
            return Err(config.fault("model_type", "\"bert\", the only masked model", kind));
        }
        let network = Bert::new(BertConfig::read(config)?);
        let weights = read_weights(network.layout(), &mut TensorSet::open(folder)?)?;
        let specials = special_tokens(folder, record, network.config.vocab_size)?;
        check_counts(folder, &specials, record)?;
        Ok(Self { event_tokens: specials.event_tokens().to_vec(), network, weights })
    }

    /// Its configuration.
    pub const fn config(&self) -> &BertConfig {
        &self.network.config
    }

    /// The number of event types.
    pub const fn vocabulary_size(&self) -> usize {
        self.event_tokens.len()
    }

    /// The maximum number of events of a sequence: there is no learned position beyond it.
    pub const fn most_events(&self) -> usize {
        self.network.config.positions
    }

    /// The token of each event, as numbered in the folder.
    pub fn event_tokens(&self) -> &[u32] {
        &self.event_tokens
    }

    /// The number of parameters.
    pub const fn parameters(&self) -> usize {
        self.weights.len()
    }

    /// The attention weights of the last layer, averaged over heads: `L × L` numbers for `L` events. Row `t` tells how
    /// much position `t` attends to each position. Each row sums to one.
    pub fn attention(&self, events: &[EventId]) -> Result<Vec<f32>, Error> {
        let token = |event: &EventId| {
            let reason = || format!("event {} is none of the model's {} types", event.0, self.event_tokens.len());
            self.event_tokens.get(event.index()).copied().ok_or_else(|| Error::spec("events", reason()))
        };
        let tokens = events.iter().map(token).collect::<Result<Vec<u32>, Error>>()?;
        self.check(&tokens)?;
        Ok(self.network.attention(&self.weights, &tokens))
    }

    /// Logits over all tokens at each position of a sequence of tokens, as numbered in the folder: `tokens × V`
    /// numbers.
    pub fn logits(&self, tokens: &[u32]) -> Result<Vec<f32>, Error> {
        self.check(tokens)?;
        let (rows, mut tape, mut logits) = (Bert::rows(&[tokens]), Tape::default(), Vec::new());
        self.network.forward(&self.weights, &rows, &mut tape, false);
        self.network.transform_rows(&self.weights, (0..tokens.len()).collect(), &mut tape);
        let width = self.network.hidden_size();
        self.network.head().logits(Precision::Exact, &self.weights, tape.hidden(width), width, &mut logits);
        Ok(logits)
    }

    fn check(&self, tokens: &[u32]) -> Result<(), Error> {
        let config = self.config();
        if tokens.len() > config.positions {
            let reason = format!("{} in a sequence, but the model knows {} positions", tokens.len(), config.positions);
            return Err(Error::spec("events", reason));
        }
        match tokens.iter().find(|token| **token as usize >= config.vocab_size) {
            Some(token) => Err(Error::spec("events", format!("token {token} is none of {}", config.vocab_size))),
            None => Ok(()),
        }
    }
}
