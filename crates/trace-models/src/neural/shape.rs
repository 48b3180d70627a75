//! Default network sizes, and default learning rates.

use super::NetworkConfig;
use super::bert::BertConfig;
use super::llama::LlamaConfig;
use super::mamba::MambaConfig;
use super::recurrent::RecurrentConfig;
use super::train::LearningRates;

/// Events per training step. Chosen, like the learning rates and the shapes, by the study in research/diary.md.
pub const EVENTS_PER_STEP: f64 = 1024.0;
/// The peak learning rate of most networks.
const LEARNING_RATE: f32 = 0.003;
/// Hidden size up to which hidden matrices use the full learning rate.
const FULL_RATE_WIDTH: f32 = 64.0;
/// Weight decay of hidden matrices.
pub const WEIGHT_DECAY: f32 = 0.1;

/// Below this size, heads become fewer instead of narrower.
const MIN_HEAD_DIM: usize = 16;

/// The peak learning rate, and the multiples of it that each kind of tensor uses.
pub fn default_learning_rates(config: &NetworkConfig) -> (f32, LearningRates) {
    let hidden = (FULL_RATE_WIDTH / config.hidden_size() as f32).min(1.0);
    match config {
        // Post-norm: at the learning rate of the others a wide network never gets better than event frequencies, and
        // with a smaller learning rate for matrices alone it learns slowly.
        NetworkConfig::Bert(_) => (LEARNING_RATE * hidden.sqrt(), LearningRates::UNIFORM),
        // Large weights need large steps: gains start at the size of the rows. Embeddings learn only near their event.
        NetworkConfig::Llama(_) => (LEARNING_RATE, LearningRates { hidden, embedding: 10.0, head: 2.0, vector: 30.0 }),
        _ => (LEARNING_RATE, LearningRates { hidden, embedding: 3.0, ..LearningRates::UNIFORM }),
    }
}

/// An architecture that can be trained to predict the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// A Transformer.
    Llama,
    /// A selective state-space model.
    Mamba,
    /// A gated recurrent network.
    Gru,
    /// A long short-term memory.
    Lstm,
}

/// The size of a network, independent of its architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of layers.
    pub layers: usize,
    /// Numbers in a hidden row.
    pub hidden_size: usize,
    /// Number of attention heads. Transformers requires that it divides the hidden size, for any `head_dim`.
    pub heads: usize,
    /// Numbers in a head; even.
    pub head_dim: usize,
    /// Numbers in the feed-forward layer.
    pub intermediate_size: usize,
}

impl Shape {
    /// For small corpora.
    pub const TINY: Self = Self { layers: 2, hidden_size: 64, heads: 4, head_dim: 16, intermediate_size: 128 };
    /// For corpora of several hundred thousand events.
    pub const SMALL: Self = Self { layers: 2, hidden_size: 128, heads: 4, head_dim: 32, intermediate_size: 256 };
    /// For millions of events: shallow, and wide enough to distinguish a thousand types.
    pub const BASE: Self = Self { layers: 1, hidden_size: 512, heads: 16, head_dim: 32, intermediate_size: 128 };
    /// For longer training.
    pub const LARGE: Self = Self { layers: 4, hidden_size: 512, heads: 8, head_dim: 64, intermediate_size: 1024 };

    /// The shape for a corpus: a network should have far fewer weights than there are events to learn from, and rows
    /// that are wide enough to distinguish the types.
    pub const fn for_corpus(types: usize, events: usize) -> Self {
        if events < 50_000 || types < 50 {
            Self::TINY
        } else if events < 500_000 {
            Self::SMALL
        } else {
            Self::BASE
        }
    }

    /// The number of heads for another hidden size, and the size of each: the same number, with a size in proportion to
    /// the row; fewer where they would be too small to distinguish positions. `None` where no such heads fit.
    pub fn heads_for(&self, width: usize) -> Option<(usize, usize)> {
        let fits = |(heads, size): &(usize, usize)| width.is_multiple_of(2 * heads) && *size >= MIN_HEAD_DIM;
        (2..=self.heads).rev().map(|heads| (heads, width / heads)).find(fits)
    }

    /// A masked encoder of this shape over `types` event types and a mask token; its heads divide the hidden size.
    pub const fn encoder(self, types: usize, length: usize) -> NetworkConfig {
        NetworkConfig::Bert(BertConfig {
            vocab_size: types + 1,
            hidden_size: self.hidden_size,
            layers: self.layers,
            heads: self.heads,
            intermediate_size: self.intermediate_size,
            positions: length,
            token_types: 1,
            layer_norm_eps: 1e-12,
        })
    }

    /// A network of this shape over `outcomes` tokens that are predicted – event types, and the end of a case where it is
    /// one – and a begin token; `length` is the length of the longest sequence that it will be trained on.
    pub fn network(self, architecture: Architecture, outcomes: usize, length: usize) -> NetworkConfig {
        let (vocab_size, hidden_size, layers) = (outcomes + 1, self.hidden_size, self.layers);
        let recurrent =
            RecurrentConfig { vocab_size, hidden_size, layers, rms_norm_eps: 1e-6, tie_word_embeddings: false };
        match architecture {
            Architecture::Gru => NetworkConfig::Gru(recurrent),
            Architecture::Lstm => NetworkConfig::Lstm(recurrent),
            Architecture::Mamba => NetworkConfig::Mamba(MambaConfig {
                vocab_size,
                hidden_size,
                layers,
                state_size: 16,
                conv_kernel: 4,
                intermediate_size: 2 * hidden_size,
                time_step_rank: hidden_size.div_ceil(16),
                rms_norm_eps: 1e-5,
                use_conv_bias: true,
                use_bias: false,
                tie_word_embeddings: false,
            }),
            Architecture::Llama => NetworkConfig::Llama(LlamaConfig {
                vocab_size,
                hidden_size,
                layers,
                heads: self.heads,
                num_key_value_heads: self.heads,
                head_dim: self.head_dim,
                intermediate_size: self.intermediate_size,
                rope_theta: 10_000.0,
                rms_norm_eps: 1e-5,
                tie_word_embeddings: false,
                trained_length: length,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_shapes_are_such_as_transformers_takes() {
        for shape in [Shape::TINY, Shape::SMALL, Shape::BASE, Shape::LARGE] {
            assert!(shape.hidden_size.is_multiple_of(shape.heads) && shape.head_dim.is_multiple_of(2), "{shape:?}");
            assert_eq!(shape.heads * shape.head_dim, shape.hidden_size, "heads copy a whole row");
            assert_eq!(shape.heads_for(shape.hidden_size), Some((shape.heads, shape.head_dim)));
        }
    }

    #[test]
    fn narrower_rows_have_as_many_heads_until_these_are_too_narrow() {
        let heads = [1024, 256, 128, 64, 100, 30].map(|width| Shape::BASE.heads_for(width));
        assert_eq!(heads, [Some((16, 64)), Some((16, 16)), Some((8, 16)), Some((4, 16)), Some((5, 20)), None]);
    }
}
