//! The interface between the architectures and the code that trains or queries them.

use std::ops::Range;

use trace_kernels::matmul::Precision;

use super::layout::Layout;
use super::rows::{Order, Rows};

/// The past of the rows of a forward pass.
pub(crate) enum Past<'a, C> {
    /// Nothing: groups start at the first token. Activations are kept for a backward pass.
    Training,
    /// Nothing, and no backward pass follows.
    Nothing,
    /// The past that was read into a cache; each group branches off from it at its start.
    Shared(&'a C),
    /// One group of one branch, whose rows are added to the cache.
    Growing(&'a mut C),
}

impl<C> Past<'_, C> {
    /// The precision that the matrix products of the pass need.
    pub(crate) const fn precision(&self) -> Precision {
        match self {
            Self::Training => Precision::Training,
            Self::Nothing | Self::Shared(_) | Self::Growing(_) => Precision::Exact,
        }
    }
}

/// A network without its head: from tokens to the normalized hidden rows that the head multiplies.
pub(crate) trait Network: Send + Sync {
    /// What is kept of an observed sequence, so that branches can start at any position of it.
    type Cache: Send + Sync;
    /// Activations. The buffers are reused between calls.
    type Tape: Default + Send + Sync;
    /// The order of rows in memory.
    const ORDER: Order;

    /// Changes freshly drawn weights, where an architecture starts from something better than chance.
    fn initialize(&self, _weights: &mut [f32]) {}

    /// The tensors.
    fn layout(&self) -> &Layout;
    /// Numbers in a hidden row.
    fn hidden_size(&self) -> usize;
    /// The number of tokens, including special ones.
    fn vocab_size(&self) -> usize;
    /// The embedding table, one row per token.
    fn embedding(&self) -> Range<usize>;
    /// The head's table, one row per token; the embedding table where the two are tied.
    fn head(&self) -> Range<usize>;
    /// The maximum number of tokens of a sequence, where positions are learned.
    fn max_tokens(&self) -> Option<usize> {
        None
    }
    /// An empty cache with capacity for this many tokens.
    fn cache(&self, tokens: usize) -> Self::Cache;
    /// Bytes of a cache of this many tokens, and bytes per row of a forward pass that follows it.
    fn cost(&self, tokens: usize) -> (usize, usize);
    /// Runs rows through the network.
    fn forward(&self, weights: &[f32], rows: &Rows, past: Past<'_, Self::Cache>, tape: &mut Self::Tape);
    /// The hidden rows of the last forward pass.
    fn hidden(tape: &Self::Tape) -> &[f32];
}

/// A network with a backward pass.
pub(crate) trait Trainable: Network {
    /// After a forward pass with [`Past::Training`]: the gradient of the embedded rows, from that of the hidden rows.
    /// Adds the gradient of all weights except those of the tables. `d_hidden` is overwritten.
    fn back_to_rows<'t>(
        &self,
        weights: &[f32],
        rows: &Rows,
        tape: &'t mut Self::Tape,
        d_hidden: &mut [f32],
        gradient: &mut [f32],
    ) -> &'t [f32];

    /// The same, including the gradient of the embedding table; only the gradient of the head is left out.
    fn backward(
        &self,
        weights: &[f32],
        rows: &Rows,
        tape: &mut Self::Tape,
        d_hidden: &mut [f32],
        gradient: &mut [f32],
    ) {
        let d_rows = self.back_to_rows(weights, rows, tape, d_hidden, gradient);
        back_embed(&mut gradient[self.embedding()], d_rows, &rows.tokens, self.hidden_size());
    }
}

/// Makes a buffer at least `size` long and returns that much of it. Old values stay; the caller overwrites them.
pub(crate) fn resize(buffer: &mut Vec<f32>, size: usize) -> &mut [f32] {
    if buffer.len() < size {
        buffer.resize(size, 0.0);
    }
    &mut buffer[..size]
}

/// Looks up the embedding of each row's token.
pub(crate) fn embed(out: &mut [f32], table: &[f32], tokens: &[u32], width: usize) {
    for (row, token) in out.chunks_exact_mut(width).zip(tokens) {
        row.copy_from_slice(&table[*token as usize * width..][..width]);
    }
}

/// Adds the gradient of embedded rows to that of the table.
pub(crate) fn back_embed(d_table: &mut [f32], d_out: &[f32], tokens: &[u32], width: usize) {
    for (row, token) in d_out.chunks_exact(width).zip(tokens) {
        trace_kernels::f32::add(&mut d_table[*token as usize * width..][..width], row);
    }
}
