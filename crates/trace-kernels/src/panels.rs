//! Repeated products of a few rows with the same matrix: what a recurrence computes at each step.
//!
//! ```text
//! out[r, j]  =  Σ_k  left[r, k] · right[k, j]
//! ```
//!
//! Shapes: `left` is `rows × K`, `right` is `K × J`. A general product reorders `right` for the registers in each call,
//! which takes as long as the product with a few rows. [`Panels`] does this once: panels of sixteen columns, each `K ×
//! 16` and contiguous. Cost: `2·rows·K·J` operations; `right` is read once per `ROWS` rows. Every sum runs over `k` in
//! order, for any register width and number of rows.

use pulp::{Arch, Simd, WithSimd};

use super::LANES;
use super::matmul::Accumulate;

/// Rows that are multiplied with all panels before the next rows, so that they stay in the cache.
const ROWS: usize = 96;

/// A matrix as panels of sixteen columns; the last panel is padded with zeros.
#[derive(Debug, Default)]
pub struct Panels {
    values: Vec<f32>,
    depth: usize,
    columns: usize,
}

impl Panels {
    /// Packs a matrix of `depth` rows, and replaces the previous one.
    pub fn pack(&mut self, matrix: &[f32], depth: usize, columns: usize) {
        self.resize(depth, columns);
        for (panel, first) in self.values.chunks_exact_mut(depth * LANES).zip((0..columns).step_by(LANES)) {
            let count = LANES.min(columns - first);
            for (out, row) in panel.chunks_exact_mut(LANES).zip(matrix.chunks_exact(columns)) {
                out[..count].copy_from_slice(&row[first..first + count]);
            }
        }
    }

    /// Like [`Self::pack`], for a matrix stored as `columns × depth`.
    pub fn pack_transposed(&mut self, matrix: &[f32], depth: usize, columns: usize) {
        self.resize(depth, columns);
        for (panel, rows) in self.values.chunks_exact_mut(depth * LANES).zip(matrix.chunks(depth * LANES)) {
            for (column, row) in rows.chunks_exact(depth).enumerate() {
                for (out, value) in panel.chunks_exact_mut(LANES).zip(row) {
                    out[column] = *value;
                }
            }
        }
    }

    fn resize(&mut self, depth: usize, columns: usize) {
        (self.depth, self.columns) = (depth, columns);
        self.values.clear();
        self.values.resize(columns.div_ceil(LANES) * LANES * depth, 0.0);
    }

    /// `out = left · right`, or `out += left · right`. Rows of `out` are contiguous; rows of `left` start `left_stride`
    /// apart.
    ///
    /// # Panics
    ///
    /// When the shapes are not those of a product.
    pub fn multiply(&self, out: &mut [f32], accumulate: Accumulate, left: &[f32], left_stride: usize) {
        assert!(left_stride >= self.depth && out.len().is_multiple_of(self.columns), "shape of a product");
        let blocks = out.chunks_mut(ROWS * self.columns).zip(left.chunks(ROWS * left_stride));
        for (out, left) in blocks {
            Arch::new().dispatch(Block { out, accumulate, left, left_stride, right: self });
        }
    }
}

struct Block<'a> {
    out: &'a mut [f32],
    accumulate: Accumulate,
    left: &'a [f32],
    left_stride: usize,
    right: &'a Panels,
}

impl WithSimd for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Twelve registers of sums, for any register width.
        match S::F32_LANES {
            16 => self.run::<S, 1, 12>(simd),
            8 => self.run::<S, 2, 6>(simd),
            4 => self.run::<S, 4, 3>(simd),
            2 => self.run::<S, 8, 1>(simd),
            _ => self.run::<S, 16, 1>(simd),
        }
    }
}

impl Block<'_> {
    /// `V` registers make sixteen lanes; `R` rows are processed together.
    #[inline(always)]
    fn run<S: Simd, const V: usize, const R: usize>(mut self, simd: S) {
        let rows = self.out.len() / self.right.columns;
        for (index, panel) in self.right.values.chunks_exact(self.right.depth * LANES).enumerate() {
            let (panel, _) = S::as_simd_f32s(panel).0.as_chunks::<V>();
            let mut row = 0;
            while row < rows {
                row += match rows - row {
                    left if left >= R => self.tile::<S, V, R>(simd, panel, row, index * LANES),
                    4.. => self.tile::<S, V, 4>(simd, panel, row, index * LANES),
                    2.. => self.tile::<S, V, 2>(simd, panel, row, index * LANES),
                    _ => self.tile::<S, V, 1>(simd, panel, row, index * LANES),
                };
            }
        }
    }

    /// One panel times `R` rows; returns `R`.
    #[inline(always)]
    fn tile<S: Simd, const V: usize, const R: usize>(
        &mut self,
        simd: S,
        panel: &[[S::f32s; V]],
        row: usize,
        first: usize,
    ) -> usize {
        let mut rows = [&self.left[..0]; R];
        for (r, one) in rows.iter_mut().enumerate() {
            *one = &self.left[(row + r) * self.left_stride..][..panel.len()];
        }
        let mut sums = [[simd.splat_f32s(0.0); V]; R];
        for (k, values) in panel.iter().enumerate() {
            for r in 0..R {
                let factor = simd.splat_f32s(rows[r][k]);
                for v in 0..V {
                    sums[r][v] = simd.mul_add_f32s(factor, values[v], sums[r][v]);
                }
            }
        }
        let columns = self.right.columns;
        let count = LANES.min(columns - first);
        for (r, sums) in sums.iter().enumerate() {
            let mut line = [0.0f32; LANES];
            for (line, sum) in S::as_mut_simd_f32s(&mut line).0.iter_mut().zip(sums) {
                *line = *sum;
            }
            let out = &mut self.out[(row + r) * columns + first..][..count];
            if self.accumulate == Accumulate::Add {
                for (out, value) in out.iter_mut().zip(line) {
                    *out += value;
                }
            } else {
                out.copy_from_slice(&line[..count]);
            }
        }
        R
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matmul::{self, Matrix, MatrixMut};

    proptest! {
        #[test]
        fn panels_multiply_as_matrices_do(
            (rows, depth, columns) in (1usize..110, 1usize..40, 1usize..50),
            (gap, salt) in (0usize..5, 0usize..1000),
            (turned, add) in any::<(bool, bool)>(),
        ) {
            let value = |i: usize| ((i * 37 + salt) % 101) as f32 / 50.0 - 1.0;
            let left: Vec<f32> = (0..rows * (depth + gap)).map(value).collect();
            let right: Vec<f32> = (0..depth * columns).map(|i| value(i + 7)).collect();
            let mut out: Vec<f32> = (0..rows * columns).map(|i| value(i + 3)).collect();
            let mut expected = out.clone();
            let accumulate = if add { Accumulate::Add } else { Accumulate::Replace };
            let mut panels = Panels::default();
            let matrix = if turned {
                panels.pack_transposed(&right, depth, columns);
                Matrix::new(&right, columns, depth).transposed()
            } else {
                panels.pack(&right, depth, columns);
                Matrix::new(&right, depth, columns)
            };
            panels.multiply(&mut out, accumulate, &left, depth + gap);
            let left = Matrix::strided(&left, rows, depth, depth + gap);
            matmul::multiply(MatrixMut::new(&mut expected, rows, columns), accumulate, 1.0, left, matrix);
            for (one, other) in out.iter().zip(&expected) {
                prop_assert!((one - other).abs() < 1e-5);
            }
        }
    }
}
