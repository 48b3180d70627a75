//! Causal attention of branches to a shared past and to themselves, with grouped queries; and full attention of whole
//! sequences to themselves.
//!
//! ```text
//! weight(t, u) = softmax over u ≤ t of  q_t · k_u / √c          o_t = Σ_u weight(t, u) v_u
//! ```
//!
//! Shapes: `H` query heads, `G` key heads (`H / G` query heads share one), `c` numbers per head; a row holds
//! `H·c` queries, `G·c` keys, `G·c` values. For a group of `N` branches of `S` steps after a past of `P` tokens the
//! scores of a head are `N·S × (P + S)`: those with the past are one product for all branches. Cost: two products of
//! `N·S·(P + S)·c` multiplications per head, and memory for the scores of one head, or of all heads where a backward
//! pass follows.

use trace_kernels as kernels;
use trace_kernels::f32::{BranchShape, SoftSum};
use trace_kernels::matmul::{Accumulate, Matrix, MatrixMut, multiply};

use super::architecture::resize;
use super::rows::Group;

/// A past longer than this is processed in tiles of this many tokens, which fit a core's cache.
const PAST_TILE: usize = 512;
/// Branches of at least this many steps use matrix products for attention to themselves.
const PRODUCT_STEPS: usize = 12;

/// How a row divides into heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heads {
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) head_dim: usize,
}

impl Heads {
    /// Numbers in a row of queries, keys and values.
    pub(crate) const fn row(&self) -> usize {
        (self.queries + 2 * self.keys) * self.head_dim
    }

    /// Numbers in a row of outputs.
    pub(crate) const fn out(&self) -> usize {
        self.queries * self.head_dim
    }

    /// The offsets of a query head's queries, keys and values in a row.
    const fn places(&self, head: usize) -> (usize, usize, usize) {
        let key = head / (self.queries / self.keys);
        (head * self.head_dim, (self.queries + key) * self.head_dim, (self.queries + self.keys + key) * self.head_dim)
    }

    pub(super) fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }

    /// Numbers stored for the scores of one row after a past of this many tokens.
    pub(crate) fn scores(&self, past: usize) -> usize {
        if past > PAST_TILE { self.head_dim + PAST_TILE } else { past }
    }

    /// Scores that a backward pass needs of a group.
    pub(crate) const fn kept_scores(&self, group: &Group) -> usize {
        self.queries * group.count * group.steps * (group.start + group.steps)
    }
}

/// Keys and values of one layer for every token read so far.
#[derive(Debug, Default)]
pub(crate) struct KeyValueCache {
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl KeyValueCache {
    pub(crate) fn with_capacity(heads: &Heads, tokens: usize) -> Self {
        let size = tokens * heads.keys * heads.head_dim;
        Self { keys: Vec::with_capacity(size), values: Vec::with_capacity(size) }
    }

    /// Adds the keys and values of rows.
    pub(crate) fn extend(&mut self, heads: &Heads, rows: &[f32]) {
        let size = heads.keys * heads.head_dim;
        for row in rows.chunks_exact(heads.row()) {
            let (keys, values) = row[heads.out()..].split_at(size);
            self.keys.extend_from_slice(keys);
            self.values.extend_from_slice(values);
        }
    }
}

/// Computes one group's rows of outputs from its rows of `(queries, keys, values)`. `scores` receives the weights of
/// all heads when `keep` is set, and of the last head otherwise.
pub(crate) fn forward(
    heads: &Heads,
    group: &Group,
    past: Option<&KeyValueCache>,
    rows: &[f32],
    out: &mut [f32],
    scores: &mut Vec<f32>,
    keep: bool,
) {
    let Group { start, steps, count, .. } = *group;
    let columns = start + steps;
    let each = count * steps * columns;
    if each == 0 {
        return;
    }
    if let Some(cache) = past.filter(|_| start > PAST_TILE && !keep) {
        return forward_tiled(heads, group, cache, rows, out, scores);
    }
    let scores = resize(scores, if keep { heads.queries * each } else { each });
    for head in 0..heads.queries {
        let scores = if keep { &mut scores[head * each..][..each] } else { &mut *scores };
        let (query, key, value) = heads.places(head);
        let past_key = key - heads.out();
        let key_row = heads.keys * heads.head_dim;
        if let Some(cache) = past.filter(|_| start > 0) {
            let queries = Matrix::strided(&rows[query..], count * steps, heads.head_dim, heads.row());
            let keys = Matrix::strided(&cache.keys[past_key..], start, heads.head_dim, key_row).transposed();
            let scores = MatrixMut::strided(scores, count * steps, start, columns);
            multiply(scores, Accumulate::Replace, heads.scale(), queries, keys);
        }
        let shape = BranchShape {
            width: heads.head_dim,
            prefix: start,
            score_stride: columns,
            stride: heads.row(),
            out_stride: heads.out(),
            scale: heads.scale(),
        };
        for (branch, scores) in scores.chunks_exact_mut(steps * columns).enumerate() {
            let rows = &rows[branch * steps * heads.row()..][..steps * heads.row()];
            if steps < PRODUCT_STEPS {
                kernels::f32::branch_attention(scores, &rows[query..], &rows[key..], shape);
            } else {
                let queries = Matrix::strided(&rows[query..], steps, heads.head_dim, heads.row());
                let keys = Matrix::strided(&rows[key..], steps, heads.head_dim, heads.row()).transposed();
                let own = MatrixMut::strided(&mut scores[start..], steps, steps, columns);
                multiply(own, Accumulate::Replace, heads.scale(), queries, keys);
                kernels::f32::causal_softmax(scores, columns, start + 1);
            }
        }
        let accumulate = if let Some(cache) = past.filter(|_| start > 0) {
            let weights = Matrix::strided(scores, count * steps, start, columns);
            let values = Matrix::strided(&cache.values[past_key..], start, heads.head_dim, key_row);
            let out = MatrixMut::strided(&mut out[query..], count * steps, heads.head_dim, heads.out());
            multiply(out, Accumulate::Replace, 1.0, weights, values);
            Accumulate::Add
        } else {
            Accumulate::Replace
        };
        for (branch, scores) in scores.chunks_exact(steps * columns).enumerate() {
            let rows = &rows[branch * steps * heads.row()..][..steps * heads.row()];
            let out = &mut out[branch * steps * heads.out()..][..steps * heads.out()];
            if steps < PRODUCT_STEPS {
                if accumulate == Accumulate::Replace {
                    for row in out.chunks_exact_mut(heads.out()) {
                        row[query..query + heads.head_dim].fill(0.0);
                    }
                }
                kernels::f32::branch_values(&mut out[query..], scores, &rows[value..], shape);
            } else {
                let weights = Matrix::strided(&scores[start..], steps, steps, columns);
                let values = Matrix::strided(&rows[value..], steps, heads.head_dim, heads.row());
                let out = MatrixMut::strided(&mut out[query..], steps, heads.head_dim, heads.out());
                multiply(out, accumulate, 1.0, weights, values);
            }
        }
    }
}

/// [`forward`] after a long past: the softmax runs over tiles of the past, with weights relative to the largest score
/// so far, and is normalized at the end. It needs memory for one tile instead of the whole past.
fn forward_tiled(
    heads: &Heads,
    group: &Group,
    cache: &KeyValueCache,
    rows: &[f32],
    out: &mut [f32],
    scratch: &mut Vec<f32>,
) {
    let Group { start, steps, count, .. } = *group;
    let (all, width) = (count * steps, heads.head_dim);
    let scratch = resize(scratch, all * (width + PAST_TILE.max(steps)));
    let (sums, scores) = scratch.split_at_mut(all * width);
    let mut states = vec![SoftSum::EMPTY; all];
    let key_row = heads.keys * width;
    for head in 0..heads.queries {
        let (query, key, value) = heads.places(head);
        let past_key = key - heads.out();
        let queries = Matrix::strided(&rows[query..], all, width, heads.row());
        sums.fill(0.0);
        states.fill(SoftSum::EMPTY);
        for from in (0..start).step_by(PAST_TILE) {
            let tile = PAST_TILE.min(start - from);
            let at = from * key_row + past_key;
            let keys = Matrix::strided(&cache.keys[at..], tile, width, key_row).transposed();
            let scores = &mut scores[..all * tile];
            multiply(MatrixMut::new(scores, all, tile), Accumulate::Replace, heads.scale(), queries, keys);
            kernels::f32::fold_scores(scores, tile, tile, &mut states, sums, width);
            let values = Matrix::strided(&cache.values[at..], tile, width, key_row);
            multiply(MatrixMut::new(sums, all, width), Accumulate::Add, 1.0, Matrix::new(scores, all, tile), values);
        }
        for branch in 0..count {
            let rows = &rows[branch * steps * heads.row()..][..steps * heads.row()];
            let sums = &mut sums[branch * steps * width..][..steps * width];
            let scores = &mut scores[..steps * steps];
            let part = |at: usize| Matrix::strided(&rows[at..], steps, width, heads.row());
            multiply(
                MatrixMut::new(scores, steps, steps),
                Accumulate::Replace,
                heads.scale(),
                part(query),
                part(key).transposed(),
            );
            kernels::f32::fold_scores(scores, steps, 1, &mut states[branch * steps..][..steps], sums, width);
            multiply(
                MatrixMut::new(sums, steps, width),
                Accumulate::Add,
                1.0,
                Matrix::new(scores, steps, steps),
                part(value),
            );
        }
        for ((sums, state), out) in sums.chunks_exact(width).zip(&states).zip(out.chunks_exact_mut(heads.out())) {
            let inverse = (1.0 / state.sum) as f32;
            for (out, sum) in out[query..query + width].iter_mut().zip(sums) {
                *out = sum * inverse;
            }
        }
    }
}

/// The weights with which each position of a sequence attends to every position of it, in one head.
fn full_weights(heads: &Heads, head: usize, steps: usize, rows: &[f32], weights: &mut [f32]) {
    let (query, key, _) = heads.places(head);
    let part = |at: usize| Matrix::strided(&rows[at..], steps, heads.head_dim, heads.row());
    multiply(
        MatrixMut::new(weights, steps, steps),
        Accumulate::Replace,
        heads.scale(),
        part(query),
        part(key).transposed(),
    );
    kernels::f32::causal_softmax(weights, steps, steps); // the first row sees all columns, and so do the others
}

/// Full attention: computes a sequence's rows of outputs from its rows of `(queries, keys, values)`. `scores` receives
/// the weights of all heads when `keep` is set, and of the last head otherwise.
pub(crate) fn forward_full(
    heads: &Heads,
    steps: usize,
    rows: &[f32],
    out: &mut [f32],
    scores: &mut Vec<f32>,
    keep: bool,
) {
    let each = steps * steps;
    if each == 0 {
        return;
    }
    let scores = resize(scores, if keep { heads.queries * each } else { each });
    for head in 0..heads.queries {
        let scores = if keep { &mut scores[head * each..][..each] } else { &mut *scores };
        full_weights(heads, head, steps, rows, scores);
        let (query, _, value) = heads.places(head);
        let values = Matrix::strided(&rows[value..], steps, heads.head_dim, heads.row());
        let out = MatrixMut::strided(&mut out[query..], steps, heads.head_dim, heads.out());
        multiply(out, Accumulate::Replace, 1.0, Matrix::new(scores, steps, steps), values);
    }
}

/// The weights of full attention, averaged over heads: one row per position that attends.
pub(crate) fn mean_weights(heads: &Heads, steps: usize, rows: &[f32]) -> Vec<f32> {
    let (mut mean, mut weights) = (vec![0.0; steps * steps], vec![0.0; steps * steps]);
    for head in (0..heads.queries).take_while(|_| steps > 0) {
        full_weights(heads, head, steps, rows, &mut weights);
        kernels::f32::add_scaled(&mut mean, &weights, 1.0 / heads.queries as f32);
    }
    mean
}

/// Backward pass of one training sequence: `d_rows` receives the gradient of its rows of queries, keys and values.
/// `weights` are those that [`forward`] or [`forward_full`] kept.
pub(crate) fn backward(
    heads: &Heads,
    steps: usize,
    rows: &[f32],
    weights: &[f32],
    d_out: &[f32],
    d_rows: &mut [f32],
    scratch: &mut Vec<f32>,
) {
    if steps == 0 {
        return;
    }
    let row = heads.row();
    let shared = heads.queries / heads.keys;
    let d_scores = resize(scratch, steps * steps);
    for (head, weights) in weights.chunks_exact(steps * steps).enumerate() {
        let (query, key, value) = heads.places(head);
        let d_out = Matrix::strided(&d_out[query..], steps, heads.head_dim, heads.out());
        let part = |at: usize| Matrix::strided(&rows[at..], steps, heads.head_dim, row);
        multiply(MatrixMut::new(d_scores, steps, steps), Accumulate::Replace, 1.0, d_out, part(value).transposed());
        kernels::f32::back_softmax(d_scores, weights, steps);
        let weights = Matrix::new(weights, steps, steps);
        // Gradients of query heads that share a key head are added; the first of them replaces.
        let accumulate = if head.is_multiple_of(shared) { Accumulate::Replace } else { Accumulate::Add };
        let mut into = |at: usize, accumulate, scale, left, right| {
            let out = MatrixMut::strided(&mut d_rows[at..], steps, heads.head_dim, row);
            multiply(out, accumulate, scale, left, right);
        };
        let d_scores = Matrix::new(d_scores, steps, steps);
        into(value, accumulate, 1.0, weights.transposed(), d_out);
        into(query, Accumulate::Replace, heads.scale(), d_scores, part(key));
        into(key, accumulate, heads.scale(), d_scores.transposed(), part(query));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers.
    fn numbers(count: usize, salt: u32) -> Vec<f32> {
        let mix = |i: u32| (i.wrapping_add(salt)).wrapping_mul(2_654_435_761) ^ (i.wrapping_mul(40_503) >> 3);
        (0..count as u32).map(|i| ((mix(i) >> 8) % 2000) as f32 / 500.0 - 2.0).collect()
    }

    /// Attention by its definition, in f64.
    fn plain(heads: &Heads, group: &Group, cache: &KeyValueCache, rows: &[f32]) -> Vec<f64> {
        let mut out = vec![0.0; group.count * group.steps * heads.out()];
        let key_row = heads.keys * heads.head_dim;
        for (index, out) in out.chunks_exact_mut(heads.out()).enumerate() {
            let (branch, step) = (index / group.steps, index % group.steps);
            for head in 0..heads.queries {
                let (query, key, value) = heads.places(head);
                let query = &rows[index * heads.row() + query..][..heads.head_dim];
                let past = (0..group.start).map(|t| {
                    let at = t * key_row + key - heads.out();
                    (&cache.keys[at..][..heads.head_dim], &cache.values[at..][..heads.head_dim])
                });
                let own = (0..=step).map(|u| {
                    let row = &rows[(branch * group.steps + u) * heads.row()..];
                    (&row[key..][..heads.head_dim], &row[value..][..heads.head_dim])
                });
                let seen: Vec<_> = past.chain(own).collect();
                let product = |key: &[f32]| -> f64 { query.iter().zip(key).map(|(a, b)| f64::from(a * b)).sum() };
                let weights: Vec<f64> =
                    seen.iter().map(|(key, _)| (product(key) / (heads.head_dim as f64).sqrt()).exp()).collect();
                let total: f64 = weights.iter().sum();
                for (weight, (_, values)) in weights.iter().zip(&seen) {
                    for (out, value) in out[head * heads.head_dim..].iter_mut().zip(*values) {
                        *out += weight / total * f64::from(*value);
                    }
                }
            }
        }
        out
    }

    /// Short and long pasts, short and long branches, shared key heads.
    #[test]
    fn branches_attend_to_the_past_and_to_themselves() {
        let heads = Heads { queries: 4, keys: 2, head_dim: 8 };
        for (start, steps, count) in
            [(0, 3, 2), (7, 3, 2), (PAST_TILE, 5, 3), (2 * PAST_TILE + 77, 5, 3), (PAST_TILE + 1, 40, 1)]
        {
            let group = Group { index: 0, start, steps, count, branch: 0, row: 0 };
            let mut cache = KeyValueCache::default();
            cache.extend(&heads, &numbers(start * heads.row(), 1));
            let rows = numbers(count * steps * heads.row(), 2);
            let mut out = vec![f32::NAN; count * steps * heads.out()];
            forward(&heads, &group, Some(&cache), &rows, &mut out, &mut Vec::new(), false);
            for (found, expected) in out.iter().zip(plain(&heads, &group, &cache, &rows)) {
                assert!((f64::from(*found) - expected).abs() < 2e-5, "past {start}: {found} instead of {expected}");
            }
        }
    }
}
