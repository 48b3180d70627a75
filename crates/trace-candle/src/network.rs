//! The interface of all networks, their loss and its gradients.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::thread;

use candle_core::{D, DType, Tensor};

use crate::layers::log_softmax;
use crate::weights::to_floats;
use crate::{Error, Weights, gpt2, gru, llama, lstm, mamba};

/// An autoregressive network: tokens in, logits of each next token out.
pub trait Network: Send + Sync {
    /// The hidden states `[B, T, d]` of tokens `[B, T]` (`u32`), before the head. State `t` depends only on tokens
    /// `0 ..= t`.
    fn hidden(&self, tokens: &Tensor) -> Result<Tensor, Error>;

    /// Logits `[…, V]` of hidden states `[…, d]`.
    fn head(&self, hidden: &Tensor) -> Result<Tensor, Error>;

    /// Logits `[B, T, V]` of tokens `[B, T]` (`u32`): row `t` predicts token `t + 1`.
    fn logits(&self, tokens: &Tensor) -> Result<Tensor, Error> {
        self.head(&self.hidden(tokens)?)
    }

    /// V: the number of tokens, including special ones.
    fn vocab_size(&self) -> usize;

    /// The maximum number of tokens that the network reads, if it has a limit.
    fn max_tokens(&self) -> Option<usize> {
        None
    }
}

/// An architecture with its configuration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Architecture {
    /// [`llama`]
    Llama(llama::Config),
    /// [`gpt2`]
    Gpt2(gpt2::Config),
    /// [`mamba`]
    Mamba(mamba::Config),
    /// [`gru`]
    Gru(gru::Config),
    /// [`lstm`]
    Lstm(lstm::Config),
}

impl Architecture {
    /// Takes the network's tensors from `weights`.
    pub fn network(&self, weights: &Weights) -> Result<Box<dyn Network>, Error> {
        Ok(match self {
            Self::Llama(config) => Box::new(llama::Llama::new(config, weights)?),
            Self::Gpt2(config) => Box::new(gpt2::Gpt2::new(config, weights)?),
            Self::Mamba(config) => Box::new(mamba::Mamba::new(config, weights)?),
            Self::Gru(config) => Box::new(gru::Gru::new(config, weights)?),
            Self::Lstm(config) => Box::new(lstm::Lstm::new(config, weights)?),
        })
    }

    /// Its short name, such as `llama`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Llama(_) => "llama",
            Self::Gpt2(_) => "gpt2",
            Self::Mamba(_) => "mamba",
            Self::Gru(_) => "gru",
            Self::Lstm(_) => "lstm",
        }
    }
}

/// Mean cross-entropy in nats of `targets` `[B, T]` given `tokens` `[B, T]` (both `u32`): a scalar that
/// `Tensor::backward` differentiates.
///
/// The tensor holds the graph of its computation, which candle traverses and frees recursively. For recurrent networks
/// and thousands of tokens, use [`gradients`] or a [`Trainer`](crate::Trainer), or a thread with a large stack.
pub fn loss(network: &dyn Network, tokens: &Tensor, targets: &Tensor) -> Result<Tensor, Error> {
    if targets.elem_count() == 0 {
        return Err(Error::EmptyBatch);
    }
    Ok(cross_entropies(network, tokens, targets)?.mean_all()?)
}

/// Like [`loss`], but only over the positions where `mask` `[B, T]` is 1 and not 0.
pub fn masked_loss(network: &dyn Network, tokens: &Tensor, targets: &Tensor, mask: &Tensor) -> Result<Tensor, Error> {
    let each = cross_entropies(network, tokens, targets)?;
    let mask = mask.flatten_all()?.to_dtype(each.dtype())?;
    let count = f64::from(mask.sum_all()?.to_dtype(DType::F32)?.to_scalar::<f32>()?);
    if count == 0.0 {
        return Err(Error::EmptyBatch);
    }
    Ok(((each * mask)?.sum_all()? * count.recip())?)
}

/// The cross-entropy of each target: `[B·T]`.
fn cross_entropies(network: &dyn Network, tokens: &Tensor, targets: &Tensor) -> Result<Tensor, Error> {
    let rows = log_softmax(&network.logits(tokens)?)?.reshape(((), network.vocab_size()))?;
    Ok(rows.gather(&targets.reshape(((), 1))?, D::Minus1)?.squeeze(1)?.neg()?)
}

/// The gradient of [`loss`] by every tensor of `weights`, in row-major order; zeros for a tensor that the loss does not
/// depend on. `network` must use these weights, not [frozen](Weights::frozen) ones.
pub fn gradients(
    network: &dyn Network,
    weights: &Weights,
    tokens: &Tensor,
    targets: &Tensor,
) -> Result<BTreeMap<String, Vec<f32>>, Error> {
    on_deep_stack(|| {
        let gradients = loss(network, tokens, targets)?.backward()?;
        let of = |(name, variable): (&String, &candle_core::Var)| {
            let gradient = gradients.get(variable).map_or_else(|| Ok(vec![0.0; variable.elem_count()]), to_floats)?;
            Ok((name.clone(), gradient))
        };
        weights.variables().iter().map(of).collect()
    })
}

/// Candle traverses and frees the graph of a computation recursively, with several stack frames per operation: a
/// recurrent network over a few thousand tokens overflows a default stack. This size is enough for several hundred
/// thousand tokens; only the touched part of it uses memory.
const DEEP_STACK: usize = 1 << 28;

/// Runs `work` with a stack for long computations; all tensors with a graph must be dropped when it returns.
pub(crate) fn on_deep_stack<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, work)?;
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
