//! Training: from sequences to weights.

mod checkpoint;
mod corpus;
mod masked;
pub(super) mod objective;
mod optimizer;
mod run;
mod step;

pub use checkpoint::Checkpoints;
pub use corpus::{Corpus, CorpusStatistics, SequencePass};
pub(crate) use masked::Masked;
pub(crate) use objective::NextEvent;
pub use optimizer::{LearningRates, OptimizerKind};
pub(crate) use run::run;
pub use run::{Limit, Schedule, TrainEnd, TrainObserver, TrainProgress, TrainSpec, TrainState, Trained};
pub(crate) use step::Gradients;
