//! Causal graphs: of positions, of event types in one sequence, and of event types over many sequences.

mod explanation;
mod population;
mod sample;
mod summary;

pub use explanation::{Chain, Explanation};
pub use population::{PairRecord, PopulationGraph, PopulationRule};
pub use sample::{Edge, SampleGraph};
pub use summary::{SummaryEdge, SummaryGraph};
