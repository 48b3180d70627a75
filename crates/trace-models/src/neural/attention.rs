//! Causal attention of branches to a shared past and to themselves, with grouped queries.
//!
//! ```text
//! weight(t, u) = softmax over u ≤ t of  q_t · k_u / √c          o_t = Σ_u weight(t, u) v_u
//! ```
//!
//! Shapes: `H` query heads, `G` key heads (`H / G` query heads share one), `c` numbers a head; a row holds
//! `H·c` queries, `G·c` keys, `G·c` values. For a group of `N` branches of `S` steps after a past of `P` tokens the
//! scores of a head are `N·S × (P + S)`: those with the past are one product for all branches. Cost `N·S·(P + S)·c`
//! multiplications a head, twice; and memory for one head at a time, unless a backward pass needs them all.

use super::architecture::room;
use super::rows::Group;
use crate::kernels::product::{Matrix, MatrixMut, Old, multiply};
use crate::kernels::single::{self, OwnShape};

/// Branches of at least this many steps use matrix products for their own part.
const PRODUCT_STEPS: usize = 12;

/// How a row divides into heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heads {
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) width: usize,
}

impl Heads {
    /// Numbers in a row of queries, keys and values.
    pub(crate) const fn row(&self) -> usize {
        (self.queries + 2 * self.keys) * self.width
    }

    /// Numbers in a row of outputs.
    pub(crate) const fn out(&self) -> usize {
        self.queries * self.width
    }

    /// Where a query head's queries, keys and values start in a row.
    const fn places(&self, head: usize) -> (usize, usize, usize) {
        let key = head / (self.queries / self.keys);
        (head * self.width, (self.queries + key) * self.width, (self.queries + self.keys + key) * self.width)
    }

    fn scale(&self) -> f32 {
        1.0 / (self.width as f32).sqrt()
    }

    /// Scores that a backward pass needs of a group.
    pub(crate) const fn kept_scores(&self, group: &Group) -> usize {
        self.queries * group.count * group.steps * (group.start + group.steps)
    }
}

/// Keys and values of one layer for every token read so far.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Cache {
    pub(crate) fn with_room(heads: &Heads, tokens: usize) -> Self {
        let size = tokens * heads.keys * heads.width;
        Self { keys: Vec::with_capacity(size), values: Vec::with_capacity(size) }
    }

    /// Adds the keys and values of rows.
    pub(crate) fn extend(&mut self, heads: &Heads, rows: &[f32]) {
        let size = heads.keys * heads.width;
        for row in rows.chunks_exact(heads.row()) {
            let (keys, values) = row[heads.out()..].split_at(size);
            self.keys.extend_from_slice(keys);
            self.values.extend_from_slice(values);
        }
    }
}

/// One group's rows of `(queries, keys, values)` to its rows of outputs. `scores` gets the weights of all heads when
/// `keep` is set, and of the last head otherwise.
pub(crate) fn forward(
    heads: &Heads,
    group: &Group,
    past: Option<&Cache>,
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
    let scores = room(scores, if keep { heads.queries * each } else { each });
    for head in 0..heads.queries {
        let scores = if keep { &mut scores[head * each..][..each] } else { &mut *scores };
        let (query, key, value) = heads.places(head);
        let past_key = key - heads.out();
        let key_row = heads.keys * heads.width;
        if let Some(cache) = past.filter(|_| start > 0) {
            let queries = Matrix::strided(&rows[query..], count * steps, heads.width, heads.row());
            let keys = Matrix::strided(&cache.keys[past_key..], start, heads.width, key_row).transposed();
            let scores = MatrixMut::strided(scores, count * steps, start, columns);
            multiply(scores, Old::Replace, heads.scale(), queries, keys);
        }
        let shape = OwnShape {
            width: heads.width,
            prefix: start,
            score_stride: columns,
            stride: heads.row(),
            out_stride: heads.out(),
            scale: heads.scale(),
        };
        for (branch, scores) in scores.chunks_exact_mut(steps * columns).enumerate() {
            let rows = &rows[branch * steps * heads.row()..][..steps * heads.row()];
            if steps < PRODUCT_STEPS {
                single::own_attention(scores, &rows[query..], &rows[key..], shape);
            } else {
                let queries = Matrix::strided(&rows[query..], steps, heads.width, heads.row());
                let keys = Matrix::strided(&rows[key..], steps, heads.width, heads.row()).transposed();
                let own = MatrixMut::strided(&mut scores[start..], steps, steps, columns);
                multiply(own, Old::Replace, heads.scale(), queries, keys);
                single::causal_softmax(scores, columns, start + 1);
            }
        }
        let old = if let Some(cache) = past.filter(|_| start > 0) {
            let weights = Matrix::strided(scores, count * steps, start, columns);
            let values = Matrix::strided(&cache.values[past_key..], start, heads.width, key_row);
            let out = MatrixMut::strided(&mut out[query..], count * steps, heads.width, heads.out());
            multiply(out, Old::Replace, 1.0, weights, values);
            Old::Add
        } else {
            Old::Replace
        };
        for (branch, scores) in scores.chunks_exact(steps * columns).enumerate() {
            let rows = &rows[branch * steps * heads.row()..][..steps * heads.row()];
            let out = &mut out[branch * steps * heads.out()..][..steps * heads.out()];
            if steps < PRODUCT_STEPS {
                if old == Old::Replace {
                    for row in out.chunks_exact_mut(heads.out()) {
                        row[query..query + heads.width].fill(0.0);
                    }
                }
                single::own_values(&mut out[query..], scores, &rows[value..], shape);
            } else {
                let weights = Matrix::strided(&scores[start..], steps, steps, columns);
                let values = Matrix::strided(&rows[value..], steps, heads.width, heads.row());
                let out = MatrixMut::strided(&mut out[query..], steps, heads.width, heads.out());
                multiply(out, old, 1.0, weights, values);
            }
        }
    }
}

/// Backward for one training sequence: `d_rows` gets the gradient of its rows of queries, keys and values. `weights`
/// are those that [`forward`] kept.
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
    let d_scores = room(scratch, steps * steps);
    for (head, weights) in weights.chunks_exact(steps * steps).enumerate() {
        let (query, key, value) = heads.places(head);
        let d_out = Matrix::strided(&d_out[query..], steps, heads.width, heads.out());
        let part = |at: usize| Matrix::strided(&rows[at..], steps, heads.width, row);
        multiply(MatrixMut::new(d_scores, steps, steps), Old::Replace, 1.0, d_out, part(value).transposed());
        single::back_softmax(d_scores, weights, steps);
        let weights = Matrix::new(weights, steps, steps);
        // Query heads that share a key head add up; the first of them sets.
        let old = if head.is_multiple_of(shared) { Old::Replace } else { Old::Add };
        let mut into = |at: usize, old, scale, left, right| {
            let out = MatrixMut::strided(&mut d_rows[at..], steps, heads.width, row);
            multiply(out, old, scale, left, right);
        };
        let d_scores = Matrix::new(d_scores, steps, steps);
        into(value, old, 1.0, weights.transposed(), d_out);
        into(query, Old::Replace, heads.scale(), d_scores, part(key));
        into(key, old, heads.scale(), d_scores.transposed(), part(query));
    }
}

/// Rotary positions: how fast each pair of a head's numbers turns.
#[derive(Clone, Debug)]
pub(crate) struct Rotary {
    frequencies: Vec<f32>,
}

/// Cosines and sines, a row a position, as far as they were needed.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    cosines: Vec<f32>,
    sines: Vec<f32>,
}

impl Rotary {
    pub(crate) fn new(width: usize, theta: f32) -> Self {
        let frequencies = (0..width / 2).map(|i| 1.0 / theta.powf((2 * i) as f32 / width as f32)).collect();
        Self { frequencies }
    }

    /// Makes sure of every position below `positions`.
    pub(crate) fn prepare(&self, turns: &mut Turns, positions: usize) {
        for position in turns.cosines.len() / self.frequencies.len()..positions {
            for frequency in &self.frequencies {
                // In f32 like the files' own training: at large positions a more exact angle would be another one.
                let (sine, cosine) = f64::from(position as f32 * frequency).sin_cos();
                turns.cosines.push(cosine as f32);
                turns.sines.push(sine as f32);
            }
        }
    }

    /// Rotates the queries and keys of all rows of a group, each by its position; `turn` is −1 to undo it.
    pub(crate) fn rotate(&self, turns: &Turns, heads: &Heads, group: &Group, rows: &mut [f32], turn: f32) {
        let rotated = (heads.queries + heads.keys) * heads.width;
        let half = self.frequencies.len();
        for (index, row) in rows.chunks_exact_mut(heads.row()).enumerate() {
            let position = (group.start + index % group.steps) * half;
            let (cosines, sines) = (&turns.cosines[position..][..half], &turns.sines[position..][..half]);
            single::rotate(&mut row[..rotated], cosines, sines, turn);
        }
    }
}
