//! Causal graphs: of positions, of event types in one sequence, and of event types over many sequences.

mod compare;
mod explanation;
mod population;
mod sample;
mod summary;

pub use compare::{Change, CompareRule, Comparison, Difference, PairComparison};
pub use explanation::{Chain, Explanation};
pub use population::{
    EvidenceBase, Opportunity, PairRecord, PopulationGraph, PopulationPair, PopulationRule, SequenceSums, TypePair,
    Untestable,
};
pub use sample::{LEAST_EFFECTIVE, Pair, SampleGraph, Verdict, hidden_cause_ratio};
pub use summary::{SummaryEdge, SummaryGraph};
