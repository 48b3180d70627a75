//! A network as a density model of events.

use std::ops::Range;

use candle_core::{D, DType, Device, Tensor};
use trace_core::numerics::normalize;
use trace_core::theory::Fitness;
use trace_core::{DensityModel, EventId, ModelError};

use crate::{Architecture, Error, Network, Weights};

/// How the tokens of a network relate to events: tokens `0 .. events` are the event types, the next one is the end of a
/// case where it is predicted, and later tokens are special.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The number of event types.
    pub events: usize,
    /// The token that every sequence begins with, if there is one. Without it the first event has no probability.
    pub begin: Option<u32>,
    /// Whether the token behind the event types is the end of a case, which is then predicted.
    pub end: bool,
}

impl Tokens {
    /// Numbers in a row: one per event type, and one for the end where it is predicted.
    const fn outcomes(&self) -> usize {
        self.events + self.end as usize
    }
}

/// A network as a density model, by plain forward passes on any device.
pub struct CandleModel {
    backbone: &'static str,
    network: Box<dyn Network>,
    device: Device,
    tokens: Tokens,
    fitness: Fitness,
    frequencies: Option<Vec<f64>>,
}

/// The maximum number of tokens in one pass, and of pairs of tokens, which determine the memory of attention.
const TOKENS_TOGETHER: usize = 1 << 14;
const PAIRS_TOGETHER: usize = 1 << 22;

impl CandleModel {
    /// A model that shares these weights, on the same device.
    pub fn new(architecture: &Architecture, weights: &Weights, tokens: Tokens) -> Result<Self, Error> {
        let network = architecture.network(&weights.frozen())?;
        let size = network.vocab_size();
        if tokens.events == 0 || tokens.outcomes() > size {
            let end = if tokens.end { " and an end" } else { "" };
            let reason = format!("{}{end} do not go with a network of {size} tokens", tokens.events);
            return Err(Error::setting("events", reason));
        }
        if tokens.begin.is_some_and(|begin| begin as usize >= size) {
            return Err(Error::setting("begin", format!("not one of the network's {size} tokens")));
        }
        let (device, backbone) = (weights.device().clone(), architecture.name());
        Ok(Self { backbone, network, device, tokens, fitness: Fitness::default(), frequencies: None })
    }

    /// Sets how well the model predicts.
    #[must_use]
    pub fn with_fitness(self, fitness: Fitness) -> Self {
        Self { fitness, ..self }
    }

    /// Sets how often each event type occurred in training.
    pub fn with_frequencies(self, frequencies: Vec<f64>) -> Result<Self, Error> {
        if frequencies.len() != self.tokens.events {
            let reason = format!("{} of them for {} event types", frequencies.len(), self.tokens.events);
            return Err(Error::setting("frequencies", reason));
        }
        Ok(Self { frequencies: Some(frequencies), ..self })
    }

    /// Computes the rows of a batch of sequences, each of which reaches at least to `positions.end − 1`.
    fn rows(&self, sequences: &[&[EventId]], positions: Range<usize>, rows: &mut [f64]) -> Result<(), Error> {
        let begin = usize::from(self.tokens.begin.is_some());
        let seen = positions.end - 1; // events that some row depends on
        let tokens: Vec<u32> = sequences
            .iter()
            .flat_map(|events| self.tokens.begin.into_iter().chain(events[..seen].iter().map(|event| event.0)))
            .collect();
        let tokens = Tensor::from_vec(tokens, (sequences.len(), seen + begin), &self.device)?;
        // Row q comes from the last token before event q.
        let hidden = self.network.hidden(&tokens)?.narrow(1, positions.start + begin - 1, positions.len())?;
        let logits = self.network.head(&hidden.contiguous()?)?.narrow(D::Minus1, 0, self.tokens.outcomes())?;
        // Widened on the CPU: not every device has 64-bit floats.
        let logits = logits.to_device(&Device::Cpu)?.to_dtype(DType::F64)?.flatten_all()?.to_vec1::<f64>()?;
        rows.copy_from_slice(&logits);
        rows.chunks_exact_mut(self.tokens.outcomes()).for_each(normalize);
        Ok(())
    }

    fn batches(&self, sequences: &[&[EventId]], positions: &Range<usize>, rows: &mut [f64]) -> Result<(), Error> {
        if sequences.is_empty() || positions.is_empty() {
            return Ok(());
        }
        if positions.start == 0 && self.tokens.begin.is_none() {
            return Err(Error::setting("begin", "without a begin token the first event has no probability"));
        }
        let length = positions.end.max(1);
        let together = (TOKENS_TOGETHER / length).min(PAIRS_TOGETHER / (length * length)).max(1);
        let each = positions.len() * self.tokens.outcomes();
        for (sequences, rows) in sequences.chunks(together).zip(rows.chunks_mut(together * each)) {
            self.rows(sequences, positions.clone(), rows)?;
        }
        Ok(())
    }
}

impl DensityModel for CandleModel {
    fn vocabulary_size(&self) -> usize {
        self.tokens.events
    }

    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        self.batches(&[events], &positions, rows).map_err(ModelError::new)
    }

    fn forward_batch(
        &self,
        sequences: &[Vec<EventId>],
        positions: Range<usize>,
        rows: &mut [f64],
    ) -> Result<(), ModelError> {
        let sequences: Vec<&[EventId]> = sequences.iter().map(Vec::as_slice).collect();
        self.batches(&sequences, &positions, rows).map_err(ModelError::new)
    }

    fn backbone(&self) -> &str {
        self.backbone
    }

    fn predicts_first(&self) -> bool {
        self.tokens.begin.is_some()
    }

    fn predicts_end(&self) -> bool {
        self.tokens.end
    }

    fn max_length(&self) -> Option<usize> {
        // The last event is predicted but not read.
        self.network.max_tokens().map(|most| most + usize::from(self.tokens.begin.is_none()))
    }

    fn frequencies(&self) -> Option<&[f64]> {
        self.frequencies.as_deref()
    }

    fn fitness(&self) -> Fitness {
        self.fitness
    }
}
