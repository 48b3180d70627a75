//! The truth of simulated sequences, measured by intervention on the process that made them.

use serde::{Deserialize, Serialize};
use trace_core::{DEFAULT_THRESHOLD, DensityModel, Divergence, EventSequence, MOST_PARTICLES, Pair, Particles};
use trace_io::truth::{TruthEdge, TruthLine};
use trace_sim::TruthSpec;

use crate::Error;

/// Largest vocabulary whose truth is exact unless asked otherwise.
const EXACT_TRUTH_UP_TO: usize = 2000;

/// How the truth measures an effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TruthKind {
    /// Whether the observed event happens.
    #[default]
    Event,
    /// The whole next-event distribution.
    Full,
    /// No truth is measured.
    None,
}

/// The truth that was asked for, if any: exact for vocabularies that allow it, else the paper's protocol, unless a
/// number of replacements was asked for too.
pub(super) fn spec(kind: TruthKind, draws: Option<Particles>, vocabulary: usize, seed: u64) -> Option<TruthSpec> {
    let divergence = match kind {
        TruthKind::Event => Divergence::Event,
        TruthKind::Full => Divergence::Full,
        TruthKind::None => return None,
    };
    let exact = vocabulary <= EXACT_TRUTH_UP_TO;
    let default = if exact { Particles::All } else { Particles::Fixed(TruthSpec::PAPER_DRAWS) };
    Some(TruthSpec { divergence, draws: draws.unwrap_or(default), seed })
}

/// The true edges of one sequence, as a line of a truth file.
pub(super) fn line(
    spec: &TruthSpec,
    process: &dyn DensityModel,
    sequence: &EventSequence,
) -> Result<TruthLine, trace_core::Error> {
    let edge = |pair: Pair| TruthEdge::new(pair.cause, pair.effect, Some(pair.strength));
    Ok(TruthLine {
        id: sequence.id.clone(),
        divergence: Some(spec.divergence),
        draws: Some(spec.draws),
        threshold: Some(DEFAULT_THRESHOLD),
        edges: spec.measure(process, sequence)?.into_iter().map(edge).collect(),
    })
}

/// Checks how many replacements the truth is to try.
pub(super) fn check_draws(draws: Option<Particles>) -> Result<(), Error> {
    match draws {
        Some(Particles::Fixed(count)) if !(2..=MOST_PARTICLES).contains(&count) => {
            let reason = format!("{count} is out of range; expected all, or 2 to {MOST_PARTICLES}");
            Err(Error::option("truth_draws", reason))
        }
        Some(Particles::Auto) => Err(Error::option("truth_draws", "auto is out of range; expected all or a number")),
        _ => Ok(()),
    }
}
