//! The truth of simulated sequences, measured by intervention on the process that made them.

use rustc_hash::FxHashMap;
use trace_core::{
    DEFAULT_THRESHOLD, DensityModel, Discovery, Divergence, Edge, Error, EventSequence, Memory, Particles, Position,
    Proposal,
};

/// Event types up to which every replacement is tried.
const MOST_TYPES: usize = 2000;
/// Replacements that are tried where there are more.
const MANY_DRAWS: usize = 512;

/// How the truth of a sequence is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruthSpec {
    /// What is compared: the probability of the event that happened, or the whole distribution.
    pub divergence: Divergence,
    /// How many replacements: all of them make it exact.
    pub draws: Particles,
    /// Seed of the replacements.
    pub seed: u64,
}

/// The true edges of one sequence, with their strengths.
pub type TrueEdges = FxHashMap<(Position, Position), f64>;

impl TruthSpec {
    /// Replacements of the paper's own protocol.
    pub const PAPER_DRAWS: usize = 10;

    /// Every replacement, and the event that happened.
    pub const EXACT: Self = Self { divergence: Divergence::Event, draws: Particles::All, seed: 0 };

    /// Exact up to what enumeration allows, and by many replacements above.
    pub const fn closest(types: usize) -> Self {
        let draws = if types <= MOST_TYPES { Particles::All } else { Particles::Fixed(MANY_DRAWS) };
        Self { draws, ..Self::EXACT }
    }

    /// Every pair that the process looks at: each replacement of the earlier event, compared by the process itself.
    /// Edges are those above [`DEFAULT_THRESHOLD`].
    pub fn measure(&self, process: &dyn DensityModel, sequence: &EventSequence) -> Result<Vec<Edge>, Error> {
        // A name of its own keeps the truth's draws apart from those of a discovery with the same seed.
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

    /// The same, to look edges up in.
    pub fn edges(&self, process: &dyn DensityModel, sequence: &EventSequence) -> Result<TrueEdges, Error> {
        let edges = self.measure(process, sequence)?;
        Ok(edges.into_iter().map(|edge| ((edge.cause, edge.effect), edge.strength)).collect())
    }
}
