//! Training: from sequences to weights.

mod checkpoint;
mod corpus;
mod directions;
mod echo;
mod masked;
pub(super) mod objective;
mod optimiser;
mod run;
mod sample;
mod step;
mod undertone;

pub use checkpoint::Checkpoints;
pub use corpus::{Corpus, SequencePass, Survey};
pub use echo::Echo;
pub(crate) use masked::Masked;
pub(crate) use objective::NextEvent;
pub use optimiser::{OptimiserKind, Pace};
pub(crate) use run::run;
pub use run::{Limit, Schedule, TrainEnd, TrainObserver, TrainProgress, TrainSpec, TrainState, Trained};
pub(crate) use step::Gradients;
pub(crate) use undertone::{Room, Undertone};
