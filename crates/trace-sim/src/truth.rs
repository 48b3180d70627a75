//! The truth of simulated sequences, measured by interventions on their process.

use rustc_hash::FxHashMap;
use trace_core::{
    DEFAULT_THRESHOLD, DensityModel, Discovery, Divergence, Error, EventSequence, Memory, Pair, Particles, Position,
    Proposal,
};

/// The largest number of event types for which every replacement is tried.
const MAX_ENUMERATED_TYPES: usize = 2000;
/// The number of replacements that are tried where there are more types.
const MANY_DRAWS: usize = 512;

/// How the truth of a sequence is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruthSpec {
    /// What is compared: the probability of the event that happened, or the whole distribution.
    pub divergence: Divergence,
    /// The number of replacements; with all of them the truth is exact.
    pub draws: Particles,
    /// Seed of the replacements.
    pub seed: u64,
}

/// The true edges of one sequence, with their strengths.
pub type TrueEdges = FxHashMap<(Position, Position), f64>;

impl TruthSpec {
    /// The number of replacements in the paper's protocol.
    pub const PAPER_DRAWS: usize = 10;

    /// Every replacement, and the probability of the event that happened.
    pub const EXACT: Self = Self { divergence: Divergence::Event, draws: Particles::All, seed: 0 };

    /// Exact where all replacements can be enumerated; otherwise by many replacements.
    pub const fn closest(types: usize) -> Self {
        let draws = if types <= MAX_ENUMERATED_TYPES { Particles::All } else { Particles::Fixed(MANY_DRAWS) };
        Self { draws, ..Self::EXACT }
    }

    /// Tests every pair that the process depends on: the process itself compares each replacement of the earlier event.
    /// Edges are the pairs above [`DEFAULT_THRESHOLD`].
    pub fn measure(&self, process: &dyn DensityModel, sequence: &EventSequence) -> Result<Vec<Pair>, Error> {
        // Another name gives other random draws than a discovery with the same seed.
        let renamed = EventSequence::new(format!("truth of {}", sequence.id), sequence.events.clone());
        let found = Discovery::new(process)
            .proposal(Proposal::Uniform)
            .divergence(self.divergence)
            .particles(self.draws)
            .memory(process.reach().map_or(Memory::All, Memory::Lags))
            .threshold(DEFAULT_THRESHOLD)
            .seed(self.seed)
            .run(&renamed)?;
        Ok(found.graph.edges().copied().collect())
    }

    /// The same as a map.
    pub fn edges(&self, process: &dyn DensityModel, sequence: &EventSequence) -> Result<TrueEdges, Error> {
        let edges = self.measure(process, sequence)?;
        Ok(edges.into_iter().map(|edge| ((edge.cause, edge.effect), edge.strength)).collect())
    }
}
