//! Copy heads: how the weights of a new LLaMA start.
//!
//! With random weights alone a Transformer first has to find out that positions matter at all. Here the heads of the first
//! layer start by attending to the events before, and by copying their rows:
//!
//! ```text
//! attention to the event k before  ∝  2^−k          values: the row itself          output: GAIN · row, at its own place
//! ```
//!
//! What the network learns of an event that has just happened then holds for one that happened a little earlier too, until
//! training finds out where it does not. Attention must not depend on events at first, so every embedding shares one large
//! number ([`SCALE`]), from which queries and keys are made. As that number dominates a row, RMSNorm divides all rows by
//! nearly the same, and the gains undo it.

use super::super::attention::Heads;
use super::{Layer, Llama};

/// Standard deviation of the other numbers of an embedding.
pub(super) const EMBEDDING_STD: f32 = 0.3;
/// Root mean square of a row, nearly all of it in its first number.
pub(super) const SCALE: f32 = 4.0;
/// The first number as the heads see it after the norm.
const SEEN: f32 = 4.0;
/// Lags that copy heads attend to.
const LAGS: i32 = 8;
/// What a copied row is multiplied by.
pub(super) const GAIN: f32 = 2.0;

impl Llama {
    pub(super) fn initialize_copy_heads(&self, weights: &mut [f32]) {
        let hidden_size = self.config.hidden_size;
        let root = (hidden_size as f32).sqrt();
        if !self.config.tie_word_embeddings {
            for row in weights[self.head.clone()].chunks_exact_mut(hidden_size) {
                row[0] = 0.0;
            }
        }
        for row in weights[self.embedding.clone()].chunks_exact_mut(hidden_size) {
            row[0] = SCALE * root;
        }
        let set_gains = |gains: &mut [f32], first: f32| {
            gains.fill(SCALE);
            gains[0] = first / root;
        };
        set_gains(&mut weights[self.norm.clone()], 1.0);
        for layer in &self.layers {
            set_gains(&mut weights[layer.norm.clone()], SEEN);
            set_gains(&mut weights[layer.mlp_norm.clone()], 1.0);
            // What is random would only have to be unlearned.
            weights[layer.out.clone()].fill(0.0);
            weights[layer.down.clone()].fill(0.0);
        }
        if let Some(layer) = self.layers.first() {
            self.attend_to_lags(&mut weights[layer.qkv.clone()]);
            self.copy_rows(weights, layer);
        }
    }

    /// Queries and keys that depend on the shared number alone.
    fn attend_to_lags(&self, qkv: &mut [f32]) {
        let hidden_size = self.config.hidden_size;
        let Heads { queries, keys, head_dim } = self.heads;
        let (query_rows, rest) = qkv.split_at_mut(queries * head_dim * hidden_size);
        let key_rows = &mut rest[..keys * head_dim * hidden_size];
        // Keys that no query asks for yet stay random, so that queries can learn to ask for them.
        query_rows.fill(0.0);
        let shares: Vec<f64> = (1..=LAGS).map(|lag| 0.5f64.powi(lag)).collect();
        let pairs = self.rotary.look_back(&shares);
        let set = |table: &mut [f32], at: usize, value: f32| {
            let row = &mut table[at * hidden_size..][..hidden_size];
            row.fill(0.0);
            row[0] = value / SEEN;
        };
        for head in 0..queries {
            let (query, key) = (head * head_dim, self.key_of(head) * head_dim);
            for (i, ((x, y), size)) in pairs.iter().copied().enumerate() {
                set(query_rows, query + i, x);
                set(query_rows, query + head_dim / 2 + i, y);
                set(key_rows, key + i, size);
                set(key_rows, key + head_dim / 2 + i, 0.0);
            }
        }
    }

    /// Values and output that pass each number of a row on to its own place.
    fn copy_rows(&self, weights: &mut [f32], layer: &Layer) {
        let hidden_size = self.config.hidden_size;
        let Heads { queries, keys, head_dim } = self.heads;
        let copied = |place: usize| (1..hidden_size).contains(&place);
        let values = &mut weights[layer.qkv.clone()][(queries + keys) * head_dim * hidden_size..];
        for (place, row) in values.chunks_exact_mut(hidden_size).enumerate() {
            row.fill(0.0);
            if copied(place) {
                row[place] = 1.0;
            }
        }
        // Query heads that share values share the gain.
        let gain = GAIN / (queries / keys) as f32;
        let columns = queries * head_dim;
        let out = &mut weights[layer.out.clone()];
        for column in 0..columns {
            let place = self.key_of(column / head_dim) * head_dim + column % head_dim;
            if copied(place) {
                out[place * columns + column] = gain;
            }
        }
    }

    /// The key head of a query head.
    const fn key_of(&self, head: usize) -> usize {
        head / (self.heads.queries / self.heads.keys)
    }
}
