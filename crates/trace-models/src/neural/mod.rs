//! Neural backbones on plain CPUs.
//!
//! Each architecture has one file ([`llama`], …), written as functions over slices on the kernels of `trace-kernels`;
//! training, reading and scoring use the same forward pass. Shared parts:
//!
//! * `layout` – where each tensor is in one flat buffer; `rows` – what goes through a network at once.
//! * `head` – from hidden rows to losses and scores; `logits` – plain logits; `saliency` – gradients of inputs.
//! * `model` – a network as a density model; `store` – a network as a folder.
//! * `train` – fits a network to a corpus; `shape` – default sizes; `network` – all architectures by name.
//!
//! Only [`bert`] is not a density model: it is an `encoder` whose attention can be read.

mod affine;
pub(crate) mod architecture;
mod attention;
pub mod bert;
mod encoder;
pub mod gpt2;
pub mod gru;
mod head;
pub mod layout;
mod linear;
pub mod llama;
mod logits;
pub mod lstm;
pub mod mamba;
pub(crate) mod model;
mod network;
pub mod recurrent;
mod rotary;
mod rows;
mod saliency;
pub mod shape;
mod store;
pub mod train;

pub use encoder::Encoder;
pub use logits::Logits;
pub use network::NetworkConfig;
pub use saliency::InputGradients;
pub(crate) use store::open;
pub use store::{NeuralNetwork, open_network};

#[cfg(test)]
mod gradients;
#[cfg(test)]
mod parity;
