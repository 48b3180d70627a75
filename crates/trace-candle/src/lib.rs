//! The backbones of TRACE as composed [candle](candle_core) operations.
//!
//! Simple and slow code with two uses: it runs training and discovery on GPUs (features `cuda` and `metal`), and it is
//! the reference for the logits and gradients of the faster kernels. No operation is fused: every operation has a
//! backward pass, and in 64-bit floats ([`Weights::to_dtype`]) the gradients agree with finite differences of the loss
//! as far as these are accurate.
//!
//! ```
//! use candle_core::Device;
//! use trace_candle::{Architecture, Batch, Trainer, TrainerSettings, Weights, gru};
//!
//! let tensor = |name: &str, shape: &[usize]| {
//!     let size = shape.iter().product::<usize>();
//!     (name.to_owned(), shape.to_vec(), (0..size).map(|i| (i as f32 * 0.7).sin()).collect::<Vec<f32>>())
//! };
//! let weights = Weights::new(
//!     [
//!         tensor("embedding.weight", &[3, 2]),
//!         tensor("rnn.weight_ih_l0", &[6, 2]),
//!         tensor("rnn.weight_hh_l0", &[6, 2]),
//!         tensor("rnn.bias_ih_l0", &[6]),
//!         tensor("rnn.bias_hh_l0", &[6]),
//!         tensor("norm.weight", &[2]),
//!         tensor("lm_head.weight", &[3, 2]),
//!     ],
//!     &Device::Cpu,
//! )?;
//! let architecture = Architecture::Gru(gru::Config { vocab_size: 3, hidden_size: 2, layers: 1 });
//! let mut trainer = Trainer::new(architecture.network(&weights)?, &weights, TrainerSettings::default())?;
//! let batch = Batch::new(&[vec![0, 1, 0, 1], vec![1, 0]], Some(2), &Device::Cpu)?;
//! let first = trainer.step(&batch, 0.05)?;
//! let second = trainer.step(&batch, 0.05)?;
//! assert!(second.loss < first.loss);
//! # Ok::<(), trace_candle::Error>(())
//! ```
#![forbid(unsafe_code)]

mod backend;
mod error;
pub mod gpt2;
pub mod gru;
mod layers;
pub mod llama;
pub mod lstm;
pub mod mamba;
mod model;
mod network;
mod recurrent;
mod trainer;
mod weights;

pub use backend::Backend;
pub use candle_core;
pub use error::Error;
pub use gpt2::Gpt2;
pub use gru::Gru;
pub use llama::Llama;
pub use lstm::Lstm;
pub use mamba::Mamba;
pub use model::{CandleModel, Tokens};
pub use network::{Architecture, Network, gradients, loss, masked_loss};
pub use trainer::{Batch, Step, Trainer, TrainerSettings};
pub use weights::{Named, Weights};
