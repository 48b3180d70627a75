//! TRACE: causal discovery in event sequences.
//!
//! An autoregressive model trained to predict the next event already holds the conditional probabilities that
//! independence tests need. Edit one past event, watch how much the probability of a later one moves, and keep the
//! edges whose effect is real (Math & Lienhart, 2026). This crate is that method and nothing else: it knows no file
//! format and no machine-learning framework.
//!
//! Data flows one way:
//!
//! ```text
//! EventSequence → DensityModel → Discovery → SampleGraph → SummaryGraph, PopulationGraph → Evaluation
//! ```
//!
//! Any model takes part by implementing [`DensityModel`]; a plain forward pass is enough:
//!
//! ```
//! use std::ops::Range;
//! use trace_core::{DensityModel, Discovery, EventId, EventSequence, ModelError, SummaryGraph};
//!
//! /// Type 1 is likely after type 0, and unlikely otherwise.
//! struct Follows;
//!
//! impl DensityModel for Follows {
//!     fn vocabulary_size(&self) -> usize { 3 }
//!     fn backbone(&self) -> &str { "follows" }
//!     fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
//!         for (q, row) in positions.zip(rows.chunks_exact_mut(3)) {
//!             let after = q > 0 && events[q - 1] == EventId(0);
//!             row.copy_from_slice(&if after { [0.1f64, 0.8, 0.1] } else { [0.45, 0.1, 0.45] }.map(f64::ln));
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let sequence = EventSequence::new("example", [2, 0, 1, 2].map(EventId).to_vec());
//! let found = Discovery::new(&Follows).run(&sequence)?;
//! let summary = SummaryGraph::new(&found.graph, false);
//! assert!(summary.edges().iter().any(|e| (e.cause, e.effect) == (EventId(0), EventId(1))));
//! # Ok::<(), trace_core::Error>(())
//! ```
#![forbid(unsafe_code)]

mod discovery;
mod error;
pub mod evaluation;
mod event;
pub mod evidence;
mod families;
mod graph;
mod knowledge;
mod model;
pub mod numerics;
mod option;
pub mod random;
pub mod theory;
mod truth;
mod vocabulary;

pub use discovery::{
    CumulativeTable, DEFAULT_MEMORY, DEFAULT_SEED, DEFAULT_THRESHOLD, Discovered, Discovery, Divergence, History,
    Intervention, LEAST_OVERLAP, MOST_PARTICLES, Memory, Particles, Plan, Proposal, Settings, Threshold, ThresholdRule,
    reference, sequential,
};
pub use error::{Error, ModelError};
pub use event::{EventId, EventSequence, Lag, Position};
pub use families::{Families, Question, StepId};
pub use graph::{
    Chain, Change, CompareRule, Comparison, Difference, EvidenceBase, Explanation, LEAST_EFFECTIVE, Opportunity, Pair,
    PairComparison, PairRecord, PopulationGraph, PopulationPair, PopulationRule, SampleGraph, SequenceSums,
    SummaryEdge, SummaryGraph, TypePair, Untestable, Verdict, hidden_cause_ratio,
};
pub use knowledge::{Knowledge, LagRule, Prior, TypeSet};
pub use model::{Branches, DensityModel, EntryMut, Measure, PlainReading, Reading, Scores};
pub use numerics::EventScore;
pub use option::{Hint, OptionName};
pub use truth::TruthClass;
pub use vocabulary::{END, EventName, Vocabulary};
