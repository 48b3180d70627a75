//! Linear maps over rows: `y = x Wᵀ` with `W` stored as `out × in`, as most model files store it.

use trace_kernels::matmul::{Accumulate, Matrix, MatrixMut, Precision, multiply, multiply_with};

/// `y = x Wᵀ`, or `y += x Wᵀ`; `x` is `rows × inputs`, `y` is `rows × outputs`.
pub(crate) fn forward(
    y: &mut [f32],
    accumulate: Accumulate,
    precision: Precision,
    x: &[f32],
    weight: &[f32],
    (inputs, outputs): (usize, usize),
) {
    let rows = y.len() / outputs;
    let weight = Matrix::new(weight, outputs, inputs).transposed();
    multiply_with(precision, MatrixMut::new(y, rows, outputs), accumulate, 1.0, Matrix::new(x, rows, inputs), weight);
}

/// `dx = dy W`.
pub(crate) fn back_input(
    d_x: &mut [f32],
    accumulate: Accumulate,
    d_y: &[f32],
    weight: &[f32],
    (inputs, outputs): (usize, usize),
) {
    let rows = d_y.len() / outputs;
    let weight = Matrix::new(weight, outputs, inputs);
    multiply_with(
        Precision::Training,
        MatrixMut::new(d_x, rows, inputs),
        accumulate,
        1.0,
        Matrix::new(d_y, rows, outputs),
        weight,
    );
}

/// `dW += dyᵀ x`.
pub(crate) fn back_weight(d_weight: &mut [f32], d_y: &[f32], x: &[f32], (inputs, outputs): (usize, usize)) {
    let rows = d_y.len() / outputs;
    let (d_y, x) = (Matrix::new(d_y, rows, outputs).transposed(), Matrix::new(x, rows, inputs));
    multiply_with(Precision::Training, MatrixMut::new(d_weight, outputs, inputs), Accumulate::Add, 1.0, d_y, x);
}

/// `y = x W`, or `y += x W`, with `W` stored as `in × out`, as the files of GPT-2 store it.
pub(crate) fn forward_plain(
    y: &mut [f32],
    accumulate: Accumulate,
    x: &[f32],
    weight: &[f32],
    (inputs, outputs): (usize, usize),
) {
    let rows = y.len() / outputs;
    let weight = Matrix::new(weight, inputs, outputs);
    multiply(MatrixMut::new(y, rows, outputs), accumulate, 1.0, Matrix::new(x, rows, inputs), weight);
}
