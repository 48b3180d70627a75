//! The truth of simulated sequences, measured by intervention on the process that made them.

use serde_json::json;
use trace_core::{DEFAULT_THRESHOLD, DensityModel, Divergence, Edge, EventSequence, MOST_PARTICLES, Particles};
use trace_io::result::divergence_word;
use trace_io::truth::{TruthEdge, TruthLine};
use trace_lab::truth::TruthSpec;

use crate::cli::TruthKind;
use crate::failure::Failure;

/// Largest vocabulary whose truth is exact unless asked otherwise.
const EXACT_TRUTH_UP_TO: usize = 2000;

/// The truth that was asked for, if any: exact for vocabularies that allow it, else the paper's protocol, unless a number
/// of replacements was asked for too.
pub fn spec(kind: TruthKind, draws: Option<Particles>, vocabulary: usize, seed: u64) -> Option<TruthSpec> {
    let divergence = match kind {
        TruthKind::Event => Divergence::Event,
        TruthKind::Full => Divergence::Full,
        TruthKind::None => return None,
    };
    let usual = if vocabulary <= EXACT_TRUTH_UP_TO { Particles::All } else { Particles::Fixed(TruthSpec::PAPER_DRAWS) };
    Some(TruthSpec { divergence, draws: draws.unwrap_or(usual), seed })
}

/// The true edges of one sequence, as a line of a truth file.
pub fn line(
    spec: &TruthSpec,
    process: &dyn DensityModel,
    sequence: &EventSequence,
) -> Result<TruthLine, trace_core::Error> {
    let edge = |edge: Edge| TruthEdge {
        cause: edge.cause.0,
        effect: edge.effect.0,
        strength: Some(edge.strength),
        kept: true,
    };
    Ok(TruthLine {
        id: sequence.id.clone(),
        divergence: Some(divergence_word(spec.divergence).to_owned()),
        draws: Some(match spec.draws {
            Particles::Fixed(count) => json!(count),
            _ => json!("all"),
        }),
        threshold: Some(DEFAULT_THRESHOLD),
        edges: spec.measure(process, sequence)?.into_iter().map(edge).collect(),
    })
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
