//! The truth of simulated sequences, measured by intervention on the process that made them.

use serde_json::json;
use trace_core::{
    DEFAULT_THRESHOLD, DensityModel, Discovery, Divergence, EventSequence, MOST_PARTICLES, Memory, Particles, Proposal,
};
use trace_io::result::divergence_word;
use trace_io::truth::{TruthEdge, TruthLine};

use crate::cli::TruthKind;
use crate::failure::Failure;

/// Largest vocabulary whose truth is exact unless asked otherwise.
const EXACT_TRUTH_UP_TO: usize = 2000;
/// Replacements of the paper's own protocol.
const PAPER_DRAWS: usize = 10;

/// How the truth of simulated sequences is measured.
#[derive(Clone, Copy, Debug)]
pub struct TruthSpec {
    pub divergence: Divergence,
    pub draws: Particles,
    pub seed: u64,
}

impl TruthSpec {
    /// The truth that was asked for, if any: exact for vocabularies that allow it, else the paper's protocol, unless a
    /// number of replacements was asked for too.
    pub fn new(kind: TruthKind, draws: Option<Particles>, vocabulary: usize, seed: u64) -> Option<Self> {
        let divergence = match kind {
            TruthKind::Event => Divergence::Event,
            TruthKind::Full => Divergence::Full,
            TruthKind::None => return None,
        };
        let exact = vocabulary <= EXACT_TRUTH_UP_TO;
        let draws = draws.unwrap_or(if exact { Particles::All } else { Particles::Fixed(PAPER_DRAWS) });
        Some(Self { divergence, draws, seed })
    }

    /// The true edges of one sequence: every replacement of every event the process looks at, compared by the
    /// process itself.
    pub fn measure(
        &self,
        process: &dyn DensityModel,
        sequence: &EventSequence,
    ) -> Result<TruthLine, trace_core::Error> {
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
        let edges = found
            .graph
            .edges()
            .map(|edge| TruthEdge {
                cause: edge.cause.0,
                effect: edge.effect.0,
                strength: Some(edge.strength),
                kept: true,
            })
            .collect();
        Ok(TruthLine {
            id: sequence.id.clone(),
            divergence: Some(divergence_word(self.divergence).to_owned()),
            draws: Some(match self.draws {
                Particles::Fixed(count) => json!(count),
                _ => json!("all"),
            }),
            threshold: Some(DEFAULT_THRESHOLD),
            edges,
        })
    }
}

/// Checks `--truth-draws`.
pub fn check_draws(draws: Option<Particles>) -> anyhow::Result<()> {
    match draws {
        Some(Particles::Fixed(count)) if !(2..=MOST_PARTICLES).contains(&count) => Err(Failure::usage(format!(
            "--truth-draws: {count} is out of range; expected all, or 2 to {MOST_PARTICLES}"
        ))),
        _ => Ok(()),
    }
}
