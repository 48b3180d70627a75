//! The shapes that networks usually have here, and how they are usually trained.

use super::NetworkConfig;
use super::bert::BertConfig;
use super::llama::{LlamaConfig, public_part};
use super::mamba::MambaConfig;
use super::recurrent::RecurrentConfig;
use super::train::Pace;

/// Events a step. Chosen, like the rate and the shapes, by the study in docs/measurements.md.
pub const STEP_EVENTS: f64 = 1024.0;
/// The largest learning rate of most networks.
const RATE: f32 = 0.003;
/// Width up to which hidden matrices move at the full rate.
const NARROW: f32 = 64.0;
/// Weight decay of hidden matrices.
pub const DECAY: f32 = 0.1;

/// The width below which heads become fewer instead of narrower.
const NARROWEST_HEAD: usize = 16;
/// How far back the usual number of heads does, whatever the shape.
const USUAL_REACH: usize = 7;

/// The largest learning rate, and the shares of it at which tensors move.
pub fn usual_pace(config: &NetworkConfig) -> (f32, Pace) {
    let hidden = (NARROW / config.width() as f32).min(1.0);
    match config {
        // Its norms come after its sums: at the rate that suits the others a wide one never leaves the frequencies of events,
        // and with slow matrices it learns slowly.
        NetworkConfig::Bert(_) => (RATE * hidden.sqrt(), Pace::EVEN),
        // Large numbers move fast: gains start at the size of its rows, and embeddings learn only where their event is near.
        NetworkConfig::Llama(_) => (RATE, Pace { hidden, embedding: 10.0, head: 2.0, vector: 30.0 }),
        _ => (RATE, Pace { hidden, embedding: 3.0, ..Pace::EVEN }),
    }
}

/// The architectures that can be trained to predict the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trainee {
    /// A Transformer.
    Llama,
    /// A selective state-space model.
    Mamba,
    /// A gated recurrent network.
    Gru,
    /// A long short-term memory.
    Lstm,
}

/// The shape of a network, before it is one of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Layers.
    pub layers: usize,
    /// Numbers in a hidden row.
    pub width: usize,
    /// Attention heads. Transformers wants their number to divide the width, whatever they are wide.
    pub heads: usize,
    /// Numbers in a head; even.
    pub head_width: usize,
    /// Numbers in the feed-forward layer.
    pub feed_forward: usize,
}

impl Shape {
    /// Far fewer weights than there are events to learn from.
    pub const TINY: Self = Self { layers: 2, width: 64, heads: 4, head_width: 16, feed_forward: 128 };
    /// For corpora of some hundred thousand events.
    pub const SMALL: Self = Self { layers: 2, width: 128, heads: 4, head_width: 32, feed_forward: 256 };
    /// For millions of events: shallow, and wide enough to tell a thousand types apart.
    pub const BASE: Self = Self { layers: 1, width: 512, heads: 16, head_width: 40, feed_forward: 128 };
    /// For those who have more time.
    pub const LARGE: Self = Self { layers: 4, width: 512, heads: 8, head_width: 64, feed_forward: 1024 };

    /// The shape for a corpus: a network should have far fewer weights than there are events to learn from, and a row
    /// wide enough to tell the types apart.
    pub const fn for_corpus(types: usize, events: usize) -> Self {
        if events < 50_000 || types < 50 {
            Self::TINY
        } else if events < 500_000 {
            Self::SMALL
        } else {
            Self::BASE
        }
    }

    /// The number of heads for another width, and the width of each: as many as usual, narrower or wider with the row, and
    /// fewer only where they would be too narrow to tell positions apart. `None` where no such heads fit.
    pub fn heads_for(&self, width: usize) -> Option<(usize, usize)> {
        // All heads together are to a row what they usually are.
        let together = (width * self.heads * self.head_width) / self.width;
        let exact = (width * self.heads * self.head_width).is_multiple_of(self.width);
        (2..=self.heads).rev().map(|heads| (heads, together / heads)).find(|(heads, each)| {
            let whole = exact && together.is_multiple_of(2 * heads) && width.is_multiple_of(*heads);
            whole && *each >= NARROWEST_HEAD
        })
    }

    /// The shape for a log whose echo reaches this far ([`super::train::Echo::reach`]): twice as many heads, where there are not
    /// enough to have one that looks at each earlier event by itself.
    #[must_use]
    pub const fn reaching(self, reach: usize) -> Self {
        let carriers = public_part(self.width).div_ceil(self.head_width);
        // The last event needs no head, and one before it has one each.
        let enough = reach <= 1 + self.heads.saturating_sub(carriers);
        let heads = 2 * self.heads;
        if enough || reach <= USUAL_REACH || !self.width.is_multiple_of(heads) {
            return self;
        }
        let half = self.head_width / 4 * 2;
        let head_width = if half < NARROWEST_HEAD { NARROWEST_HEAD } else { half };
        Self { heads, head_width, ..self }
    }

    /// A masked encoder of this shape over `types` event types and a mask token: its heads share the width.
    pub const fn encoder(self, types: usize, length: usize) -> NetworkConfig {
        NetworkConfig::Bert(BertConfig {
            tokens: types + 1,
            width: self.width,
            layers: self.layers,
            heads: self.heads,
            feed_forward: self.feed_forward,
            positions: length,
            token_types: 1,
            norm_epsilon: 1e-12,
        })
    }

    /// A network of this shape over `types` event types and a begin token; `length` is the longest sequence that it
    /// will be trained on.
    pub fn network(self, trainee: Trainee, types: usize, length: usize) -> NetworkConfig {
        let (tokens, width, layers) = (types + 1, self.width, self.layers);
        let recurrent = RecurrentConfig { tokens, width, layers, norm_epsilon: 1e-6, tied: false };
        match trainee {
            Trainee::Gru => NetworkConfig::Gru(recurrent),
            Trainee::Lstm => NetworkConfig::Lstm(recurrent),
            Trainee::Mamba => NetworkConfig::Mamba(MambaConfig {
                tokens,
                width,
                layers,
                state: 16,
                kernel: 4,
                inner: 2 * width,
                step_rank: width.div_ceil(16),
                norm_epsilon: 1e-5,
                conv_bias: true,
                bias: false,
                tied: false,
            }),
            Trainee::Llama => NetworkConfig::Llama(LlamaConfig {
                tokens,
                width,
                layers,
                heads: self.heads,
                key_heads: self.heads,
                head_width: self.head_width,
                feed_forward: self.feed_forward,
                rope_theta: 10_000.0,
                norm_epsilon: 1e-5,
                tied: false,
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
            assert!(shape.width.is_multiple_of(shape.heads) && shape.head_width.is_multiple_of(2), "{shape:?}");
            assert!(shape.heads * shape.head_width >= shape.width, "a whole row can be passed on: {shape:?}");
            assert_eq!(shape.heads_for(shape.width), Some((shape.heads, shape.head_width)));
        }
    }

    #[test]
    fn a_far_echo_gets_more_heads() {
        let heads = |shape: Shape, reach| (shape.reaching(reach).heads, shape.reaching(reach).head_width);
        let narrow = Shape { width: 256, head_width: 20, ..Shape::BASE };
        assert_eq!([6, 7, 8, 20].map(|reach| heads(Shape::BASE, reach)), [(16, 40), (16, 40), (32, 20), (32, 20)]);
        assert_eq!([7, 20].map(|reach| heads(narrow, reach)), [(16, 20), (32, 16)]);
        assert_eq!([4, 20].map(|reach| heads(Shape::TINY, reach)), [(4, 16), (8, 16)]);
    }

    #[test]
    fn narrower_rows_have_as_many_heads_until_these_are_too_narrow() {
        let heads = [1024, 256, 128, 64, 100].map(|width| Shape::BASE.heads_for(width));
        assert_eq!(heads, [Some((16, 80)), Some((16, 20)), Some((8, 20)), Some((4, 20)), None]);
    }
}
