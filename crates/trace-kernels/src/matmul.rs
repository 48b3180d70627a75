//! Matrix products of views with checked bounds: on the tile unit if the processor has one and the product is large
//! enough, otherwise by `gemm`.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tiles;

use std::sync::atomic::{AtomicBool, Ordering};

static TILES_ALLOWED: AtomicBool = AtomicBool::new(true);

/// Allows or forbids the tile unit for products in the whole program; without it they run on the vector units.
///
/// The tile unit gives slightly different numbers (by about 2⁻¹⁶), which matters when results of different machines are
/// compared bit by bit. On a machine without one this has no effect. Call it before any computation.
pub fn allow_tile_unit(allowed: bool) {
    TILES_ALLOWED.store(allowed, Ordering::Relaxed);
}

/// A matrix in a slice: element `(r, c)` is at index `r · row_stride + c · column_stride`.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// A matrix with contiguous rows.
    pub fn new(values: &'a [T], rows: usize, columns: usize) -> Self {
        Self::strided(values, rows, columns, columns)
    }

    /// A matrix whose rows start `row_stride` apart, such as a block of columns in a wider matrix.
    ///
    /// # Panics
    ///
    /// When the matrix does not fit the slice.
    pub fn strided(values: &'a [T], rows: usize, columns: usize, row_stride: usize) -> Self {
        let matrix = Self { values, rows, columns, row_stride, column_stride: 1 };
        assert!(matrix.extent() <= values.len(), "a {rows} × {columns} matrix does not fit {} values", values.len());
        matrix
    }

    /// The transposed matrix.
    #[must_use]
    pub const fn transposed(self) -> Self {
        Self {
            values: self.values,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }

    /// One past the index of the last element.
    const fn extent(&self) -> usize {
        if self.rows == 0 || self.columns == 0 {
            0
        } else {
            (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride + 1
        }
    }
}

/// A matrix to write into; its rows do not overlap.
#[derive(Debug)]
pub struct MatrixMut<'a, T> {
    values: &'a mut [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
}

impl<'a, T> MatrixMut<'a, T> {
    /// A matrix with contiguous rows.
    pub fn new(values: &'a mut [T], rows: usize, columns: usize) -> Self {
        Self::strided(values, rows, columns, columns)
    }

    /// A matrix whose rows start `row_stride` apart.
    ///
    /// # Panics
    ///
    /// When rows overlap, or the matrix does not fit the slice.
    pub fn strided(values: &'a mut [T], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!(row_stride >= columns, "rows {row_stride} apart overlap when they have {columns} columns");
        let fits = rows == 0 || (rows - 1) * row_stride + columns <= values.len();
        assert!(fits, "a {rows} × {columns} matrix does not fit {} values", values.len());
        Self { values, rows, columns, row_stride }
    }
}

/// What a product does with the old values of its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulate {
    /// Overwrites them.
    Replace,
    /// Adds the product to them.
    Add,
}

/// The precision of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// The precision of the number type, or nearly so (2⁻¹⁶).
    Exact,
    /// Eight bits of each factor, if the processor is faster with them: enough for training, where batches are random
    /// anyway.
    Training,
}

/// `out = scale · left · right`, or `out += scale · left · right`. Runs on the calling thread only: callers split their
/// work into pieces that do not depend on the number of threads.
///
/// # Panics
///
/// When the shapes are not those of a product.
pub fn multiply<T: Number>(
    out: MatrixMut<'_, T>,
    accumulate: Accumulate,
    scale: T,
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
) {
    multiply_with(Precision::Exact, out, accumulate, scale, left, right);
}

/// Like [`multiply`], with the given precision.
///
/// # Panics
///
/// When the shapes are not those of a product.
pub fn multiply_with<T: Number>(
    precision: Precision,
    mut out: MatrixMut<'_, T>,
    accumulate: Accumulate,
    scale: T,
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
) {
    assert_eq!((out.rows, out.columns), (left.rows, right.columns), "shape of a product");
    assert_eq!(left.columns, right.rows, "inner dimension of a product");
    if out.rows == 0 || out.columns == 0 {
        return;
    }
    if !T::multiply_in_tiles(&mut out, accumulate, scale, precision, &left, &right) {
        multiply_in_vectors(&mut out, accumulate, scale, &left, &right);
    }
}

/// Whether large products run on a tile unit: the processor has one, the operating system permits it, and it is
/// allowed.
pub fn tile_unit() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    return TILES_ALLOWED.load(Ordering::Relaxed) && tiles::available();
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    false
}

/// The product on the vector units, by `gemm`. The caller has checked the shapes.
pub(crate) fn multiply_in_vectors<T: Number>(
    out: &mut MatrixMut<'_, T>,
    accumulate: Accumulate,
    scale: T,
    left: &Matrix<'_, T>,
    right: &Matrix<'_, T>,
) {
    #[expect(unsafe_code)]
    // SAFETY: constructors checked that every element of the three views is inside its slice; the caller checked that
    // the shapes match; `out` is borrowed mutably, so it overlaps neither operand, and its rows do not
    // overlap each other.
    unsafe {
        gemm::gemm(
            out.rows,
            out.columns,
            left.columns,
            out.values.as_mut_ptr(),
            1,
            out.row_stride as isize,
            accumulate == Accumulate::Add,
            left.values.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.values.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            T::ONE,
            scale,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Numbers that can be multiplied.
pub trait Number: Copy + Send + Sync + 'static {
    /// The number 1.
    const ONE: Self;

    /// Computes the product on the tile unit, if there is one for this number type and it is faster for this shape.
    /// Returns whether it did.
    fn multiply_in_tiles(
        _out: &mut MatrixMut<'_, Self>,
        _accumulate: Accumulate,
        _scale: Self,
        _precision: Precision,
        _left: &Matrix<'_, Self>,
        _right: &Matrix<'_, Self>,
    ) -> bool {
        false
    }
}

impl Number for f32 {
    const ONE: Self = 1.0;

    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn multiply_in_tiles(
        out: &mut MatrixMut<'_, Self>,
        accumulate: Accumulate,
        scale: Self,
        precision: Precision,
        left: &Matrix<'_, Self>,
        right: &Matrix<'_, Self>,
    ) -> bool {
        let done = tiles::worth(left.rows, left.columns, right.columns) && tile_unit();
        if done {
            tiles::multiply(out, accumulate, scale, precision, left, right);
        }
        done
    }
}

impl Number for f64 {
    const ONE: Self = 1.0;
}

/// `out += left · right`, all row-major: `left` is `rows × depth`, `right` is `depth × columns`.
pub fn add_product(out: &mut [f64], left: &[f64], right: &[f64], rows: usize, depth: usize, columns: usize) {
    let (left, right) = (Matrix::new(left, rows, depth), Matrix::new(right, depth, columns));
    multiply(MatrixMut::new(out, rows, columns), Accumulate::Add, 1.0, left, right);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) fn view<T>(values: &[T], (rows, columns): (usize, usize), gap: usize, turned: bool) -> Matrix<'_, T> {
        if turned {
            Matrix::strided(values, columns, rows, rows + gap).transposed()
        } else {
            Matrix::strided(values, rows, columns, columns + gap)
        }
    }

    proptest! {
        #[test]
        fn products_equal_their_definition(
            (rows, depth, columns) in (1usize..20, 1usize..40, 1usize..40),
            (gap, salt, scale) in (0usize..3, 0u32..1000, -2.0..2.0f64),
            (turn_left, turn_right, add) in any::<(bool, bool, bool)>(),
        ) {
            let value = |i: usize| f64::from((i as u32 * 37 + salt) % 101) / 50.0 - 1.0;
            let at = |m: &Matrix<'_, f64>, r: usize, c: usize| m.values[r * m.row_stride + c * m.column_stride];
            let many: Vec<f64> = (0..4000).map(value).collect();
            let left = view(&many, (rows, depth), gap, turn_left);
            let right = view(&many[7..], (depth, columns), gap, turn_right);
            let start: Vec<f64> = (0..rows * (columns + gap)).map(|i| value(i + 3)).collect();
            let mut out = start.clone();
            let accumulate = if add { Accumulate::Add } else { Accumulate::Replace };
            multiply(MatrixMut::strided(&mut out, rows, columns, columns + gap), accumulate, scale, left, right);
            for r in 0..rows {
                for c in 0..columns + gap {
                    let before = start[r * (columns + gap) + c];
                    let expected = if c < columns {
                        let sum: f64 = (0..depth).map(|d| at(&left, r, d) * at(&right, d, c)).sum();
                        scale * sum + if add { before } else { 0.0 }
                    } else {
                        before
                    };
                    prop_assert!((out[r * (columns + gap) + c] - expected).abs() < 1e-11);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn a_view_beyond_its_slice_is_refused() {
        let _ = Matrix::strided(&[0.0f32; 10], 3, 4, 4);
    }

    #[test]
    #[should_panic(expected = "inner dimension")]
    fn shapes_must_belong_together() {
        let mut out = [0.0f32; 4];
        let (left, right) = (Matrix::new(&[0.0f32; 6], 2, 3), Matrix::new(&[0.0f32; 8], 4, 2));
        multiply(MatrixMut::new(&mut out, 2, 2), Accumulate::Replace, 1.0, left, right);
    }
}
