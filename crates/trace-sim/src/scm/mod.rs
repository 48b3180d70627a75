//! The synthetic process of the paper's appendix: a benchmark with a known causal truth, and a perfect model of itself.
//!
//! ```text
//! P(X_t | x_{t-h:t-1}) = softmax( b + Σ_{k=1..h} e^{-decay·(k-1)} W[x_{t-k}]
//!                                   + ReLU([E_{x_{t-h}} … E_{x_{t-1}}] W1) W2 )
//! ```
//!
//! Shapes: `W` is V×V with a density of one in ten, stored as sparse rows; `E` is V×16, `W1` is 16h×64, `W2` is 64×V.
//! The first `h` events are uniform. `W` is scaled by bisection until sampled sequences have the requested redundancy;
//! redundancy 0 is the null process, where every event is uniform and nothing causes anything.

mod calibrate;
mod process;
mod scoring;
mod simulate;
mod store;

pub use process::{Process, ProcessSpec};
pub use simulate::Simulated;

/// Width of an event's embedding.
pub(crate) const EMBEDDING: usize = 16;
/// Width of the hidden layer.
pub(crate) const HIDDEN: usize = 64;
/// Share of entries of `W` that are not zero.
const DENSITY: f64 = 0.1;
