//! Training: batches of ragged sequences, and AdamW steps on them.

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};

use crate::network::on_deep_stack;
use crate::{Error, Network, Weights, masked_loss};

/// Sequences padded to one length, and their targets.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The input tokens: `[B, T]`, `u32`.
    pub tokens: Tensor,
    /// The next tokens: `[B, T]`, `u32`.
    pub targets: Tensor,
    /// 1 for a target, 0 for padding: `[B, T]`, `f32`.
    pub mask: Tensor,
}

impl Batch {
    /// Pads sequences at their ends. Each token is predicted from those before it. The first token is predicted only
    /// with a `begin` token, which is inserted before each sequence.
    ///
    /// Padding is token 0: all networks are causal, so no real token depends on the padding after it.
    pub fn new<S: AsRef<[u32]>>(sequences: &[S], begin: Option<u32>, device: &Device) -> Result<Self, Error> {
        let targets_of = |sequence: &S| sequence.as_ref().len().saturating_sub(usize::from(begin.is_none()));
        let length = sequences.iter().map(targets_of).max().unwrap_or(0);
        if length == 0 {
            return Err(Error::EmptyBatch);
        }
        let size = sequences.len() * length;
        let (mut tokens, mut targets, mut mask) = (vec![0; size], vec![0; size], vec![0.0f32; size]);
        for (row, sequence) in sequences.iter().enumerate() {
            let from = row * length;
            let all = begin.iter().chain(sequence.as_ref()).copied();
            for (place, (token, target)) in all.clone().zip(all.skip(1)).enumerate() {
                tokens[from + place] = token;
                targets[from + place] = target;
                mask[from + place] = 1.0;
            }
        }
        let shape = (sequences.len(), length);
        Ok(Self {
            tokens: Tensor::from_vec(tokens, shape, device)?,
            targets: Tensor::from_vec(targets, shape, device)?,
            mask: Tensor::from_vec(mask, shape, device)?,
        })
    }
}

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainerSettings {
    /// The decay rate of the mean gradient.
    pub beta1: f64,
    /// The decay rate of the mean squared gradient.
    pub beta2: f64,
    /// Keeps a step from dividing by zero.
    pub eps: f64,
    /// Weight decay, relative to the learning rate. It applies to matrices, but not to biases, norms and Mamba's
    /// `A_log`.
    pub weight_decay: f64,
    /// The maximum norm of the whole gradient; infinity for no clipping.
    pub clip: f64,
}

impl Default for TrainerSettings {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01, clip: 1.0 }
    }
}

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The batch's mean cross-entropy in nats, before the step.
    pub loss: f64,
    /// The norm of the whole gradient, before clipping.
    pub gradient_norm: f64,
}

/// Trains a network's weights in place with AdamW (Loshchilov & Hutter, *Decoupled Weight Decay Regularization*, 2019).
pub struct Trainer {
    network: Box<dyn Network>,
    variables: Vec<Var>,
    optimizers: [AdamW; 2], // with and without weight decay
    clip: f64,
}

impl Trainer {
    /// A trainer of a network that uses these weights, not [frozen](Weights::frozen) ones.
    pub fn new(network: Box<dyn Network>, weights: &Weights, settings: TrainerSettings) -> Result<Self, Error> {
        if settings.clip.is_nan() || settings.clip <= 0.0 {
            return Err(Error::setting("clip", format!("{} is not a positive number", settings.clip)));
        }
        let decays = |name: &str, variable: &Var| variable.rank() >= 2 && !name.ends_with("A_log");
        let optimizer = |with_decay: bool| {
            let group = weights.variables().iter().filter(|(name, variable)| decays(name, variable) == with_decay);
            let weight_decay = if with_decay { settings.weight_decay } else { 0.0 };
            let TrainerSettings { beta1, beta2, eps, .. } = settings;
            let params = ParamsAdamW { lr: 0.0, beta1, beta2, eps, weight_decay };
            AdamW::new(group.map(|(_, variable)| variable.clone()).collect(), params)
        };
        let optimizers = [optimizer(true)?, optimizer(false)?];
        Ok(Self {
            network,
            variables: weights.variables().values().cloned().collect(),
            optimizers,
            clip: settings.clip,
        })
    }

    /// Updates the weights by one step with this learning rate. If loss or gradient is not finite, they do not change.
    pub fn step(&mut self, batch: &Batch, learning_rate: f64) -> Result<Step, Error> {
        on_deep_stack(|| {
            let loss = masked_loss(&*self.network, &batch.tokens, &batch.targets, &batch.mask)?;
            let mut gradients = loss.backward()?;
            let loss = to_f64(&loss)?;
            let gradient_norm = self.norm(&gradients)?;
            if !loss.is_finite() || !gradient_norm.is_finite() {
                return Err(Error::Diverged { loss, gradient_norm });
            }
            if gradient_norm > self.clip {
                self.scale(&mut gradients, self.clip / gradient_norm)?;
            }
            for optimizer in &mut self.optimizers {
                optimizer.set_learning_rate(learning_rate);
                optimizer.step(&gradients)?;
            }
            Ok(Step { loss, gradient_norm })
        })
    }

    /// The network in training.
    pub fn network(&self) -> &dyn Network {
        &*self.network
    }

    fn norm(&self, gradients: &GradStore) -> Result<f64, Error> {
        let gradients = self.variables.iter().filter_map(|variable| gradients.get(variable));
        let squares: Vec<Tensor> = gradients.map(|gradient| gradient.sqr()?.sum_all()).collect::<Result<_, _>>()?;
        // Stacked, so that there is only one transfer from the device.
        if squares.is_empty() { Ok(0.0) } else { Ok(to_f64(&Tensor::stack(&squares, 0)?.sum_all()?)?.sqrt()) }
    }

    fn scale(&self, gradients: &mut GradStore, factor: f64) -> Result<(), Error> {
        for variable in &self.variables {
            if let Some(gradient) = gradients.remove(variable) {
                gradients.insert(variable, (gradient * factor)?);
            }
        }
        Ok(())
    }
}

/// Reads a scalar from the device; not every device has 64-bit floats.
fn to_f64(scalar: &Tensor) -> Result<f64, Error> {
    let scalar = scalar.detach();
    Ok(if scalar.dtype() == DType::F64 {
        scalar.to_scalar()?
    } else {
        f64::from(scalar.to_dtype(DType::F32)?.to_scalar::<f32>()?)
    })
}
