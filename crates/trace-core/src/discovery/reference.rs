//! Discovery, slow and obvious: the definition written out, to test every fast path against.
//!
//! For each pair and each particle it writes the two edited sequences down, asks the model for one row by a plain
//! forward pass, and averages at the end. It shares with the fast path the random draws and nothing else.

use std::sync::Arc;

use super::proposal::{Draws, Replacements};
use super::settings::{Divergence, History, Intervention, Schedule};
use super::{Discovery, Proposal, draws, population, sampled};
use crate::graph::Pair;
use crate::numerics::{EventScore, bernoulli_divergence, divergence};
use crate::{Error, EventId, EventSequence, Lag, ModelError, Position, Verdict};

/// One candidate edge from its first `particles` draws (all types, where the settings enumerate them).
pub fn pair(
    discovery: &Discovery<'_>,
    sequence: &EventSequence,
    cause: Position,
    effect: Position,
    particles: usize,
) -> Result<Pair, Error> {
    let plan = discovery.plan()?;
    let model = discovery.model;
    let (cause, effect) = (cause.index(), effect.index());
    let draws = draws(&plan, model, sequence)?;
    let row = |events: &[EventId], position: usize| -> Result<Vec<f64>, Error> {
        let mut row = vec![0.0; model.row_size()];
        model.forward(&events[..position], position..position + 1, &mut row)?;
        Ok(row)
    };
    let schedule = plan.schedule(model.vocabulary_size());
    let count = match schedule {
        Schedule::Enumerate => replacements(&draws, cause, &sequence.events, &row)?.events.len(),
        Schedule::Rounds(_) => particles,
    };

    // (weight, strength, log p as observed, log p replaced) of each particle
    let mut samples: Vec<(f64, f64, f64, f64)> = Vec::new();
    for particle in 0..count {
        let history = match plan.history {
            History::Observed => sequence.events.clone(),
            History::Sampled => sampled::history(&plan, model, sequence, particle)?,
        };
        let (mut kept, mut replaced) = (history.clone(), history.clone());
        let mut weight = 1.0;
        for position in cause..effect {
            let (event, event_weight) = draw(&draws, &plan, particle, position, &history, &row)?;
            if position == cause {
                replaced[position] = event;
                weight = event_weight;
            } else if plan.intervention == Intervention::Staircase {
                kept[position] = event;
                replaced[position] = event;
            }
        }
        let (kept, replaced) = (row(&kept, effect)?, row(&replaced, effect)?);
        let target = sequence.events[effect].index();
        let kept_score = EventScore::from_row(&kept, target);
        let replaced_score = EventScore::from_row(&replaced, target);
        let strength = match plan.divergence {
            Divergence::Event => bernoulli_divergence(replaced_score, kept_score),
            Divergence::Full => divergence(&kept, &replaced),
        };
        samples.push((weight, strength, kept_score.log_p, replaced_score.log_p));
    }

    let total: f64 = samples.iter().map(|s| s.0).sum();
    let mean = |of: fn(&(f64, f64, f64, f64)) -> f64| samples.iter().map(|s| s.0 * of(s)).sum::<f64>() / total;
    let strength = mean(|s| s.1);
    let n = samples.len() as f64;
    let variance = samples.iter().map(|s| (s.1 - strength).powi(2)).sum::<f64>() / (n - 1.0);
    let unseen = population(&plan, model.vocabulary_size()).map_or(1.0, |size| 1.0 - n / size as f64);
    let std_error = match schedule {
        Schedule::Enumerate => 0.0,
        Schedule::Rounds(_) => (variance / n * unseen.max(0.0)).sqrt(),
    };
    let (cause, effect) = (Position(cause as u32), Position(effect as u32));
    let required = discovery.verdict(sequence, cause, effect) == Verdict::Required;
    Ok(Pair {
        cause,
        effect,
        lag: Lag(effect.0 - cause.0),
        strength,
        std_error,
        particles: samples.len() as u32,
        log_ratio: mean(|s| s.2) - mean(|s| s.3),
        probability: mean(|s| s.2.exp()),
        probability_replaced: mean(|s| s.3.exp()),
        tied: sequence.tied(cause, effect),
        kept: required || strength > plan.threshold,
        required,
    })
}

type Row<'r> = dyn Fn(&[EventId], usize) -> Result<Vec<f64>, Error> + 'r;

/// What particle `particle` puts at `position`, and its weight.
fn draw(
    draws: &Draws,
    plan: &super::Plan,
    particle: usize,
    position: usize,
    history: &[EventId],
    row: &Row<'_>,
) -> Result<(EventId, f64), Error> {
    if plan.history == History::Sampled && plan.proposal == Proposal::Model {
        return Ok((draws.one_from_model(position, particle, &row(history, position)?)?, 1.0));
    }
    let made = replacements(draws, position, history, row)?;
    Ok((made.events[particle], made.weights.as_ref().map_or(1.0, |weights| weights[particle])))
}

fn replacements(
    draws: &Draws,
    position: usize,
    history: &[EventId],
    row: &Row<'_>,
) -> Result<Arc<Replacements>, Error> {
    Ok(draws.at(position, |out| {
        out.copy_from_slice(&row(history, position).map_err(ModelError::new)?);
        Ok(())
    })?)
}
