//! Neural backbones on plain CPUs.
//!
//! One file an architecture ([`llama`], …), written as functions over slices on the kernels of this crate; the same
//! forward pass trains, reads and scores branches. What they share: `layout` says where each tensor lies in one flat
//! buffer, `rows` what goes through a network at once, `head` turns hidden rows into losses and scores, `model` makes a
//! network a density model, `logits` asks it for plain rows, `saliency` for gradients, `store` puts it into a folder, `train`
//! fits it to a corpus, `shape` says how large it usually is, and `network` knows them all.
//! [`bert`] alone is no density model: an `encoder` whose attention can be read.

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
pub(crate) use store::open;
pub use store::{NeuralNetwork, open_network};

#[cfg(test)]
mod gradients;
#[cfg(test)]
mod parity;
