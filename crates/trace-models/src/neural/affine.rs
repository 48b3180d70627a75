//! Linear maps and layer norms with a bias, over rows.

use std::ops::Range;

use super::layout::{Layout, Role, Start};
use super::linear;
use crate::kernels::layer_norm::{back_layer_norm, layer_norm, layer_norm_kept};
use crate::kernels::product::{Grade, Old};
use crate::kernels::single;

/// A weight and, right after it, its bias: of a linear map, or the gains of a norm and what it adds.
#[derive(Clone, Debug)]
pub(crate) struct Affine {
    pub(crate) weight: Range<usize>,
    pub(crate) bias: Range<usize>,
}

impl Affine {
    /// Adds the gains and biases of a norm.
    pub(crate) fn add_norm(layout: &mut Layout, name: &str, width: usize) -> Self {
        let weight = layout.add(format!("{name}.weight"), &[width], Role::Vector, Start::Constant(1.0));
        let bias = layout.add(format!("{name}.bias"), &[width], Role::Vector, Start::Constant(0.0));
        Self { weight, bias }
    }

    /// Numbers in a row of inputs and of outputs.
    fn shape(&self) -> (usize, usize) {
        (self.weight.len() / self.bias.len(), self.bias.len())
    }

    /// `y = x Wᵀ + b`, or that added to `y`, with `W` stored as `out × in`.
    pub(crate) fn forward(&self, y: &mut [f32], old: Old, x: &[f32], weights: &[f32]) {
        linear::forward(y, old, Grade::Exact, x, &weights[self.weight.clone()], self.shape());
        single::add_to_rows(y, &weights[self.bias.clone()]);
    }

    /// `y = x W + b`, or that added to `y`, with `W` stored as `in × out`.
    pub(crate) fn forward_plain(&self, y: &mut [f32], old: Old, x: &[f32], weights: &[f32]) {
        linear::forward_plain(y, old, x, &weights[self.weight.clone()], self.shape());
        single::add_to_rows(y, &weights[self.bias.clone()]);
    }

    /// Backward of [`Self::forward`]: the gradient of the inputs, and those of weight and bias added to `gradient`.
    pub(crate) fn backward(
        &self,
        (d_x, old): (&mut [f32], Old),
        d_y: &[f32],
        x: &[f32],
        weights: &[f32],
        gradient: &mut [f32],
    ) {
        linear::back_input(d_x, old, d_y, &weights[self.weight.clone()], self.shape());
        linear::back_weight(&mut gradient[self.weight.clone()], d_y, x, self.shape());
        single::sum_of_rows(&mut gradient[self.bias.clone()], d_y);
    }

    /// Layer norm, when no backward pass follows.
    pub(crate) fn norm(&self, out: &mut [f32], x: &[f32], weights: &[f32], epsilon: f32) {
        layer_norm(out, x, &weights[self.weight.clone()], &weights[self.bias.clone()], epsilon);
    }

    /// Layer norm; `x` and `inverse` become what [`Self::back_norm`] needs.
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
