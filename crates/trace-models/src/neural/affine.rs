//! Linear maps and layer norms with a bias, over rows.

use std::ops::Range;

use trace_kernels as kernels;
use trace_kernels::layer_norm::{back_layer_norm, layer_norm, layer_norm_kept};
use trace_kernels::matmul::{Accumulate, Precision};

use super::layout::{Initializer, Layout, Role};
use super::linear;

/// A weight and the bias stored right after it: those of a linear map, or the gains and biases of a norm.
#[derive(Clone, Debug)]
pub(crate) struct Affine {
    pub(crate) weight: Range<usize>,
    pub(crate) bias: Range<usize>,
}

impl Affine {
    /// Adds the gains and biases of a norm.
    pub(crate) fn add_norm(layout: &mut Layout, name: &str, width: usize) -> Self {
        let weight = layout.add(format!("{name}.weight"), &[width], Role::Vector, Initializer::Constant(1.0));
        let bias = layout.add(format!("{name}.bias"), &[width], Role::Vector, Initializer::Constant(0.0));
        Self { weight, bias }
    }

    /// The numbers of inputs and outputs.
    fn shape(&self) -> (usize, usize) {
        (self.weight.len() / self.bias.len(), self.bias.len())
    }

    /// `y = x Wᵀ + b`, or `y += x Wᵀ + b`, with `W` stored as `out × in`.
    pub(crate) fn forward(&self, y: &mut [f32], accumulate: Accumulate, x: &[f32], weights: &[f32]) {
        linear::forward(y, accumulate, Precision::Exact, x, &weights[self.weight.clone()], self.shape());
        kernels::f32::add_to_rows(y, &weights[self.bias.clone()]);
    }

    /// `y = x W + b`, or `y += x W + b`, with `W` stored as `in × out`.
    pub(crate) fn forward_plain(&self, y: &mut [f32], accumulate: Accumulate, x: &[f32], weights: &[f32]) {
        linear::forward_plain(y, accumulate, x, &weights[self.weight.clone()], self.shape());
        kernels::f32::add_to_rows(y, &weights[self.bias.clone()]);
    }

    /// Backward of [`Self::forward`]: computes the gradient of the inputs, and adds those of weight and bias to
    /// `gradient`.
    pub(crate) fn backward(
        &self,
        (d_x, accumulate): (&mut [f32], Accumulate),
        d_y: &[f32],
        x: &[f32],
        weights: &[f32],
        gradient: &mut [f32],
    ) {
        linear::back_input(d_x, accumulate, d_y, &weights[self.weight.clone()], self.shape());
        linear::back_weight(&mut gradient[self.weight.clone()], d_y, x, self.shape());
        kernels::f32::sum_of_rows(&mut gradient[self.bias.clone()], d_y);
    }

    /// Layer norm without a backward pass.
    pub(crate) fn norm(&self, out: &mut [f32], x: &[f32], weights: &[f32], epsilon: f32) {
        layer_norm(out, x, &weights[self.weight.clone()], &weights[self.bias.clone()], epsilon);
    }

    /// Layer norm; `x` and `inverse` receive what [`Self::back_norm`] needs.
    pub(crate) fn norm_kept(&self, out: &mut [f32], x: &mut [f32], inverse: &mut [f32], weights: &[f32], epsilon: f32) {
        layer_norm_kept(out, x, inverse, &weights[self.weight.clone()], &weights[self.bias.clone()], epsilon);
    }

    /// Backward of [`Self::norm_kept`]: `d` becomes the gradient of the inputs, those of gains and biases are added.
    pub(crate) fn back_norm(
        &self,
        d: &mut [f32],
        normal: &[f32],
        inverse: &[f32],
        weights: &[f32],
        gradient: &mut [f32],
    ) {
        let (d_gain, d_bias) = gradient[self.weight.start..self.bias.end].split_at_mut(self.weight.len());
        back_layer_norm(d, d_gain, d_bias, normal, inverse, &weights[self.weight.clone()]);
    }
}
