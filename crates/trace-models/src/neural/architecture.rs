//! What every network has in common: the seam between architectures and what trains or queries them.

use std::ops::Range;

use super::layout::Layout;
use super::rows::{Order, Rows};
use super::train::{Echo, Room, Undertone};
use crate::kernels::product::Grade;

/// What lies before the rows of a forward pass.
pub(crate) enum Past<'a, M> {
    /// Nothing: groups start at the first token. Activations are kept for a backward pass.
    Training,
    /// Nothing, and no backward pass follows.
    Nothing,
    /// The past that was read into a memory; each group parts from it at its start.
    Shared(&'a M),
    /// One group of one branch, whose rows are added to the memory.
    Growing(&'a mut M),
}

impl<M> Past<'_, M> {
    /// How exact the products of the pass have to be.
    pub(crate) const fn grade(&self) -> Grade {
        match self {
            Self::Training => Grade::Training,
            Self::Nothing | Self::Shared(_) | Self::Growing(_) => Grade::Exact,
        }
    }
}

/// A network without its head: from tokens to the normalised hidden row that the head multiplies.
pub(crate) trait Architecture: Send + Sync {
    /// What is kept of an observed sequence so that branches can part from it anywhere.
    type Memory: Send + Sync;
    /// Activations, kept between calls for their room.
    type Tape: Default + Send + Sync;
    /// How rows must lie.
    const ORDER: Order;

    /// Gives freshly drawn weights what chance would take long to find.
    fn begin(&self, _weights: &mut [f32], _echo: &Echo, _undertone: Option<&Undertone>) {}

    /// How much of an undertone a fresh network has room for.
    fn undertone_room(&self) -> Option<Room> {
        None
    }

    /// The tensors.
    fn layout(&self) -> &Layout;
    /// Numbers in a hidden row.
    fn width(&self) -> usize;
    /// The number of tokens, special ones counted.
    fn tokens(&self) -> usize;
    /// The table of embeddings, a row a token.
    fn embedding(&self) -> Range<usize>;
    /// The head's table, a row a token; that of the embeddings where they are tied.
    fn head(&self) -> Range<usize>;
    /// The most tokens of a sequence, where positions are learnt.
    fn max_tokens(&self) -> Option<usize> {
        None
    }
    /// A memory with room for this many tokens.
    fn memory(&self, tokens: usize) -> Self::Memory;
    /// Bytes that a memory of this many tokens takes, and bytes that a row of a forward pass takes after this many.
    fn cost(&self, tokens: usize) -> (usize, usize);
    /// Takes rows through the network.
    fn forward(&self, weights: &[f32], rows: &Rows, past: Past<'_, Self::Memory>, tape: &mut Self::Tape);
    /// The hidden rows of the last forward pass.
    fn hidden(tape: &Self::Tape) -> &[f32];
}

/// A network with a backward pass.
pub(crate) trait Trainable: Architecture {
    /// After a forward pass with [`Past::Training`]: the gradient of the embedded rows, from that of the hidden rows.
    /// Adds that of all weights but the tables'. `d_hidden` is used up.
    fn back_to_rows<'t>(
        &self,
        weights: &[f32],
        rows: &Rows,
        tape: &'t mut Self::Tape,
        d_hidden: &mut [f32],
        gradient: &mut [f32],
    ) -> &'t [f32];

    /// The same for all weights but the head's: the table of embeddings too.
    fn backward(
        &self,
        weights: &[f32],
        rows: &Rows,
        tape: &mut Self::Tape,
        d_hidden: &mut [f32],
        gradient: &mut [f32],
    ) {
        let d_rows = self.back_to_rows(weights, rows, tape, d_hidden, gradient);
        back_embed(&mut gradient[self.embedding()], d_rows, &rows.tokens, self.width());
    }
}

/// Sizes a buffer for a pass; its old numbers stay, for they are overwritten.
pub(crate) fn room(buffer: &mut Vec<f32>, size: usize) -> &mut [f32] {
    if buffer.len() < size {
        buffer.resize(size, 0.0);
    }
    &mut buffer[..size]
}

/// The embedding of each row's token.
pub(crate) fn embed(out: &mut [f32], table: &[f32], tokens: &[u32], width: usize) {
    for (row, token) in out.chunks_exact_mut(width).zip(tokens) {
        row.copy_from_slice(&table[*token as usize * width..][..width]);
    }
}

/// Adds the gradient of embedded rows to that of the table.
pub(crate) fn back_embed(d_table: &mut [f32], d_out: &[f32], tokens: &[u32], width: usize) {
    for (row, token) in d_out.chunks_exact(width).zip(tokens) {
        crate::kernels::single::add(&mut d_table[*token as usize * width..][..width], row);
    }
}
