//! Linear maps over rows: `y = x Wᵀ` with `W` stored as `out × in`, the way most model files store it.

use crate::kernels::product::{Grade, Matrix, MatrixMut, Old, multiply, multiply_to};

/// `y = x Wᵀ`, or that added to `y`; `x` is `rows × inputs`, `y` is `rows × outputs`.
pub(crate) fn forward(
    y: &mut [f32],
    old: Old,
    grade: Grade,
    x: &[f32],
    weight: &[f32],
    (inputs, outputs): (usize, usize),
) {
    let rows = y.len() / outputs;
    let weight = Matrix::new(weight, outputs, inputs).transposed();
    multiply_to(grade, MatrixMut::new(y, rows, outputs), old, 1.0, Matrix::new(x, rows, inputs), weight);
}

/// `dx = dy W`.
pub(crate) fn back_input(d_x: &mut [f32], old: Old, d_y: &[f32], weight: &[f32], (inputs, outputs): (usize, usize)) {
    let rows = d_y.len() / outputs;
    let weight = Matrix::new(weight, outputs, inputs);
    multiply_to(Grade::Training, MatrixMut::new(d_x, rows, inputs), old, 1.0, Matrix::new(d_y, rows, outputs), weight);
}

/// `dW += dyᵀ x`.
pub(crate) fn back_weight(d_weight: &mut [f32], d_y: &[f32], x: &[f32], (inputs, outputs): (usize, usize)) {
    let rows = d_y.len() / outputs;
    let (d_y, x) = (Matrix::new(d_y, rows, outputs).transposed(), Matrix::new(x, rows, inputs));
    multiply_to(Grade::Training, MatrixMut::new(d_weight, outputs, inputs), Old::Add, 1.0, d_y, x);
}

/// `y = x W`, or that added to `y`, with `W` stored as `in × out`, the way GPT-2's files store it.
pub(crate) fn forward_plain(y: &mut [f32], old: Old, x: &[f32], weight: &[f32], (inputs, outputs): (usize, usize)) {
    let rows = y.len() / outputs;
    let weight = Matrix::new(weight, inputs, outputs);
    multiply(MatrixMut::new(y, rows, outputs), old, 1.0, Matrix::new(x, rows, inputs), weight);
}
