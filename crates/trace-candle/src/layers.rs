//! The operations that the networks share, composed of operations that candle can differentiate.
//!
//! Candle has fused versions of several of them (softmax over the last dimension, RMSNorm, rotary embedding) without a
//! backward pass; these are not used. Shapes: B sequences, T tokens, d numbers per token, H heads of size w.

use candle_core::{D, DType, Device, Tensor};

use crate::Error;

/// Rows of a table `[V, d]` for tokens `[B, T]`: `[B, T, d]`.
pub(crate) fn embed(table: &Tensor, tokens: &Tensor) -> Result<Tensor, Error> {
    let (batch, length) = tokens.dims2()?;
    let rows = table.index_select(&tokens.flatten_all()?, 0)?;
    Ok(rows.reshape((batch, length, table.dim(1)?))?)
}

/// `x Wᵀ` for `x` of shape `[…, in]` and `W` of shape `[out, in]`.
pub(crate) fn linear(x: &Tensor, weight: &Tensor) -> Result<Tensor, Error> {
    project(x, &weight.t()?)
}

/// `x W` for `x` of shape `[…, in]` and `W` of shape `[in, out]`.
pub(crate) fn project(x: &Tensor, weight: &Tensor) -> Result<Tensor, Error> {
    let mut shape = x.dims().to_vec();
    let rows = x.reshape(((), weight.dim(0)?))?.matmul(weight)?;
    if let Some(width) = shape.last_mut() {
        *width = weight.dim(1)?;
    }
    Ok(rows.reshape(shape)?)
}

/// Root-mean-square norm (Zhang & Sennrich, 2019): `x / √(mean(x²) + ε) ⊙ w` over the last dimension.
pub(crate) fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor, Error> {
    let size = (x.sqr()?.mean_keepdim(D::Minus1)? + eps)?.sqrt()?;
    Ok(x.broadcast_div(&size)?.broadcast_mul(weight)?)
}

/// Layer norm (Ba, Kiros & Hinton, 2016): `(x − mean) / √(var + ε) ⊙ w + b` over the last dimension.
pub(crate) fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor, eps: f64) -> Result<Tensor, Error> {
    let centered = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
    let size = (centered.sqr()?.mean_keepdim(D::Minus1)? + eps)?.sqrt()?;
    Ok(centered.broadcast_div(&size)?.broadcast_mul(weight)?.broadcast_add(bias)?)
}

/// `softmax(x)` over the last dimension.
pub(crate) fn softmax(x: &Tensor) -> Result<Tensor, Error> {
    let weights = x.broadcast_sub(&x.detach().max_keepdim(D::Minus1)?)?.exp()?;
    Ok(weights.broadcast_div(&weights.sum_keepdim(D::Minus1)?)?)
}

/// `log softmax(x)` over the last dimension.
pub(crate) fn log_softmax(x: &Tensor) -> Result<Tensor, Error> {
    let shifted = x.broadcast_sub(&x.detach().max_keepdim(D::Minus1)?)?;
    Ok(shifted.broadcast_sub(&shifted.exp()?.sum_keepdim(D::Minus1)?.log()?)?)
}

/// `1 / (1 + e^−x)`, computed by tanh, whose gradient does not overflow.
pub(crate) fn sigmoid(x: &Tensor) -> Result<Tensor, Error> {
    Ok((x * 0.5)?.tanh()?.affine(0.5, 0.5)?)
}

/// `log(1 + e^x) = max(x, 0) + log1p(e^−|x|)`.
///
/// Small results matter, because they are the step sizes of Mamba, and they would lose precision in `1 + u`. The value
/// therefore comes from `log1p(u) = u · log(w) / (w − 1)` with the rounded `w = 1 + u` (Goldberg, 1991), and the
/// gradient, whose rounding error is harmless, from `log(w)`.
pub(crate) fn softplus(x: &Tensor) -> Result<Tensor, Error> {
    let u = x.abs()?.neg()?.exp()?;
    let w = (&u + 1.0)?;
    let log = w.log()?;
    let gap = (w.detach() - 1.0)?;
    let nothing = gap.eq(&gap.zeros_like()?)?;
    let safe = nothing.where_cond(&gap.ones_like()?, &gap)?;
    let value = nothing.where_cond(&u.detach(), &((u.detach() * log.detach())? / safe)?)?;
    let log1p = ((&log - log.detach())? + value)?;
    Ok((x.relu()? + log1p)?)
}

/// The tanh form of the Gaussian error linear unit (Hendrycks & Gimpel, 2016), Hugging Face's `gelu_new`:
/// `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`.
pub(crate) fn gelu_tanh(x: &Tensor) -> Result<Tensor, Error> {
    let cube = (x.sqr()? * x)?;
    let inner = ((x + (cube * 0.044_715)?)? * (2.0 / std::f64::consts::PI).sqrt())?;
    Ok(((x * 0.5)? * (inner.tanh()? + 1.0)?)?)
}

/// `[B, T, H·w]` as `[B, H, T, w]`.
pub(crate) fn split_heads(x: &Tensor, heads: usize) -> Result<Tensor, Error> {
    let (batch, length, width) = x.dims3()?;
    Ok(x.reshape((batch, length, heads, width / heads))?.transpose(1, 2)?.contiguous()?)
}

/// Causal scaled dot-product attention (Vaswani et al., 2017): `softmax(q kᵀ / √w + mask) v`.
///
/// `q`, `k` and `v` are `[B, H, T, w]`; the outputs of the heads are concatenated, `[B, T, H·w]`.
pub(crate) fn attention(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor, Error> {
    let (batch, heads, length, width) = q.dims4()?;
    let scores = (q.matmul(&k.t()?)? * (width as f64).sqrt().recip())?;
    let scores = scores.broadcast_add(&causal_mask(length, q.dtype(), q.device())?)?;
    let mixed = softmax(&scores)?.matmul(v)?;
    Ok(mixed.transpose(1, 2)?.reshape((batch, length, heads * width))?)
}

/// `[T, T]`: 0 where the column is not after the row, minus infinity where it is.
fn causal_mask(length: usize, dtype: DType, device: &Device) -> Result<Tensor, Error> {
    let value = |row: usize, column: usize| if column > row { f32::NEG_INFINITY } else { 0.0 };
    let mask: Vec<f32> = (0..length).flat_map(|row| (0..length).map(move |column| value(row, column))).collect();
    Ok(Tensor::from_vec(mask, (length, length), device)?.to_dtype(dtype)?)
}

/// The slices of a tensor `[B, T, …]` along time: T tensors `[B, …]`.
///
/// The backward pass of a slice writes a whole tensor of zeros around it. Halving the tensor recursively, instead of
/// cutting every slice from the whole, reduces that from T² to T log T numbers.
pub(crate) fn steps(x: &Tensor) -> Result<Vec<Tensor>, Error> {
    fn halve(x: &Tensor, out: &mut Vec<Tensor>) -> Result<(), Error> {
        match x.dim(1)? {
            0 => {}
            1 => out.push(x.squeeze(1)?),
            length => {
                halve(&x.narrow(1, 0, length / 2)?, out)?;
                halve(&x.narrow(1, length / 2, length - length / 2)?, out)?;
            }
        }
        Ok(())
    }
    let mut out = Vec::new();
    halve(x, &mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softplus_keeps_small_and_large_values() {
        let x = [-80.0f32, -30.0, -6.9, -0.5, 0.0, 0.5, 30.0, 80.0];
        let variable = candle_core::Var::new(&x, &Device::Cpu).unwrap();
        let y = softplus(&variable).unwrap();
        let slopes = y.sum_all().unwrap().backward().unwrap();
        let slopes = slopes.get(&variable).unwrap().to_vec1::<f32>().unwrap();
        for ((x, y), slope) in x.iter().zip(y.to_vec1::<f32>().unwrap()).zip(slopes) {
            let x = f64::from(*x);
            let expected = x.max(0.0) + (-x.abs()).exp().ln_1p();
            assert!((f64::from(y) / expected - 1.0).abs() < 4e-7, "{x}: {y} {expected}");
            assert!((f64::from(slope) - 1.0 / (1.0 + (-x).exp())).abs() < 1e-6, "{x}: {slope}");
        }
    }

    #[test]
    fn sigmoid_has_a_finite_slope_everywhere() {
        let variable = candle_core::Var::new(&[-200.0f32, -1.0, 0.0, 1.0, 200.0], &Device::Cpu).unwrap();
        let y = sigmoid(&variable).unwrap();
        let slopes = y.sum_all().unwrap().backward().unwrap();
        let slopes = slopes.get(&variable).unwrap().to_vec1::<f32>().unwrap();
        for (y, slope) in y.to_vec1::<f32>().unwrap().iter().zip(slopes) {
            assert!((y * (1.0 - y) - slope).abs() < 1e-6, "{y} {slope}");
        }
    }

    #[test]
    fn steps_are_the_slices_in_order() {
        let x = Tensor::arange(0u32, 14, &Device::Cpu).unwrap().reshape((2, 7)).unwrap();
        let firsts: Vec<u32> = steps(&x).unwrap().iter().map(|s| s.to_vec1::<u32>().unwrap()[0]).collect();
        assert_eq!(firsts, [0, 1, 2, 3, 4, 5, 6]);
    }
}
