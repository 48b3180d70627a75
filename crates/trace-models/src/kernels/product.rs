//! Matrix products behind views whose bounds are checked: on the tile unit where the processor has one and the product is
//! large enough, on `gemm` otherwise.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tiles;

use std::sync::atomic::{AtomicBool, Ordering};

static TILES_ALLOWED: AtomicBool = AtomicBool::new(true);

/// Lets products go to the tile unit, or keeps them to the vector units, in the whole program.
///
/// With a tile unit numbers differ a little (some 2⁻¹⁶) from those of a processor without one, which matters to whoever
/// compares results of different machines bit by bit. Without one this changes nothing. Call it before any work.
pub fn allow_tile_unit(allowed: bool) {
    TILES_ALLOWED.store(allowed, Ordering::Relaxed);
}

/// A matrix in a slice: element `(r, c)` lies at `r · row_stride + c · column_stride`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Rows one after the other.
    pub(crate) fn new(values: &'a [T], rows: usize, columns: usize) -> Self {
        Self::strided(values, rows, columns, columns)
    }

    /// Rows that start `row_stride` apart, as a block of columns in a wider matrix does.
    pub(crate) fn strided(values: &'a [T], rows: usize, columns: usize, row_stride: usize) -> Self {
        let matrix = Self { values, rows, columns, row_stride, column_stride: 1 };
        assert!(matrix.extent() <= values.len(), "a {rows} × {columns} matrix does not fit {} values", values.len());
        matrix
    }

    /// Rows become columns.
    pub(crate) const fn transposed(self) -> Self {
        Self {
            values: self.values,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }

    /// One past the last element's place.
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
pub(crate) struct MatrixMut<'a, T> {
    values: &'a mut [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
}

impl<'a, T> MatrixMut<'a, T> {
    /// Rows one after the other.
    pub(crate) fn new(values: &'a mut [T], rows: usize, columns: usize) -> Self {
        Self::strided(values, rows, columns, columns)
    }

    /// Rows that start `row_stride` apart.
    pub(crate) fn strided(values: &'a mut [T], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!(row_stride >= columns, "rows {row_stride} apart overlap when they have {columns} columns");
        let fits = rows == 0 || (rows - 1) * row_stride + columns <= values.len();
        assert!(fits, "a {rows} × {columns} matrix does not fit {} values", values.len());
        Self { values, rows, columns, row_stride }
    }
}

/// What becomes of the old values of a product's destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Old {
    /// They are overwritten.
    Replace,
    /// The product is added to them.
    Add,
}

/// How exact a product has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grade {
    /// As exact as numbers of this size allow, or nearly so (2⁻¹⁶).
    Exact,
    /// Eight bits of each factor do, where the processor is faster then: for steps of training, whose batches are chance
    /// anyway.
    Training,
}

/// `out = scale · left · right`, or that added to `out`. Runs on the calling thread alone: callers split their work
/// into pieces that do not depend on the number of threads.
pub(crate) fn multiply<T: Number>(
    out: MatrixMut<'_, T>,
    old: Old,
    scale: T,
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
) {
    multiply_to(Grade::Exact, out, old, scale, left, right);
}

/// As [`multiply`], as exact as `grade` says.
pub(crate) fn multiply_to<T: Number>(
    grade: Grade,
    mut out: MatrixMut<'_, T>,
    old: Old,
    scale: T,
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
) {
    assert_eq!((out.rows, out.columns), (left.rows, right.columns), "shape of a product");
    assert_eq!(left.columns, right.rows, "inner dimension of a product");
    if out.rows == 0 || out.columns == 0 {
        return;
    }
    if !T::multiply_in_tiles(&mut out, old, scale, grade, &left, &right) {
        multiply_in_vectors(&mut out, old, scale, &left, &right);
    }
}

/// Whether large products go to a tile unit: the processor has one, the system lets us use it, and it is allowed.
pub fn tile_unit() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    return TILES_ALLOWED.load(Ordering::Relaxed) && tiles::available();
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    false
}

/// The product on the vector units, by `gemm`; shapes have been checked.
pub(crate) fn multiply_in_vectors<T: Number>(
    out: &mut MatrixMut<'_, T>,
    old: Old,
    scale: T,
    left: &Matrix<'_, T>,
    right: &Matrix<'_, T>,
) {
    #[expect(unsafe_code)]
    // SAFETY: constructors checked that every element of the three views lies within its slice; the caller checked that
    // the shapes belong together; `out` is borrowed mutably, so it overlaps neither operand, and its rows do not
    // overlap each other.
    unsafe {
        gemm::gemm(
            out.rows,
            out.columns,
            left.columns,
            out.values.as_mut_ptr(),
            1,
            out.row_stride as isize,
            old == Old::Add,
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
pub(crate) trait Number: Copy + Send + Sync + 'static {
    const ONE: Self;

    /// The product on the tile unit, if there is one for these numbers and it pays for this shape: whether it was done.
    fn multiply_in_tiles(
        _out: &mut MatrixMut<'_, Self>,
        _old: Old,
        _scale: Self,
        _grade: Grade,
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
        old: Old,
        scale: Self,
        grade: Grade,
        left: &Matrix<'_, Self>,
        right: &Matrix<'_, Self>,
    ) -> bool {
        let done = tiles::worth(left.rows, left.columns, right.columns) && tile_unit();
        if done {
            tiles::multiply(out, old, scale, grade, left, right);
        }
        done
    }
}

impl Number for f64 {
    const ONE: Self = 1.0;
}

/// `out += left · right`, all row-major: `left` is `rows × depth`, `right` is `depth × columns`.
pub(crate) fn add_product(out: &mut [f64], left: &[f64], right: &[f64], rows: usize, depth: usize, columns: usize) {
    let (left, right) = (Matrix::new(left, rows, depth), Matrix::new(right, depth, columns));
    multiply(MatrixMut::new(out, rows, columns), Old::Add, 1.0, left, right);
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
            let old = if add { Old::Add } else { Old::Replace };
            multiply(MatrixMut::strided(&mut out, rows, columns, columns + gap), old, scale, left, right);
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
        multiply(MatrixMut::new(&mut out, 2, 2), Old::Replace, 1.0, left, right);
    }
}
