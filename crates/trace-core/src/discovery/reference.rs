//! Discovery, slow and obvious: the definition written out, to test every fast path against.
//!
//! For each pair and each particle it writes the two edited sequences down, asks the model for one row by a plain
//! forward pass, and averages at the end. It shares with the fast path the random draws and nothing else.

use std::sync::Arc;

use super::proposal::{Draws, Replacements};
use super::sequential::skewed_std_error;
use super::settings::{Divergence, History, Intervention};
use super::{Discovery, Plan, Proposal, Run, sampled};
use crate::graph::{Pair, Verdict};
use crate::numerics::{EventScore, bernoulli_divergence, divergence};
use crate::{Error, EventId, EventSequence, Lag, ModelError, Position, Prior, Question};

/// One alternative of the cause and what it does.
struct Sample {
    event: EventId,
    /// The proposal's weight of it, and the probability of what lies between cause and effect.
    weight: f64,
    between: f64,
    strength: f64,
    kept: f64,
    replaced: f64,
}

/// One candidate edge from its first `particles` alternatives (all types, where the settings enumerate them).
#[expect(clippy::too_many_lines, reason = "the definition reads best in one piece")]
pub fn pair(
    discovery: &Discovery<'_>,
    sequence: &EventSequence,
    cause: Position,
    effect: Position,
    particles: usize,
) -> Result<Pair, Error> {
    let plan = discovery.plan()?;
    let model = discovery.model;
    let events = sequence.with_end(model.end().filter(|_| plan.end));
    let run = Run { plan: &plan, discovery, sequence, events: &events };
    let (cause, effect) = (cause.index(), effect.index());
    let (x, y) = (events[cause], events[effect]);
    let draws = run.draws()?;
    let row = |events: &[EventId], position: usize| -> Result<Vec<f64>, Error> {
        let mut row = vec![0.0; model.row_size()];
        model.forward(&events[..position], position..position + 1, &mut row)?;
        Ok(row)
    };
    // The probability of the events between cause and effect, with another event at the cause.
    let between = |event: EventId| -> Result<f64, Error> {
        let mut edited = events.to_vec();
        edited[cause] = event;
        (cause + 1..effect).try_fold(1.0, |product, k| Ok(product * row(&edited, k)?[events[k].index()].exp()))
    };
    let enumerates = run.enumerates();
    let most = if plan.history == History::Sampled && plan.proposal == Proposal::Model {
        usize::MAX
    } else {
        replacements(&draws, cause, &sequence.events, &row)?.events.len()
    };

    let mut samples: Vec<Sample> = Vec::new();
    let mut bound = 0.0f64;
    for particle in 0..most {
        if !enumerates && samples.len() == particles {
            break;
        }
        let mut history = match plan.history {
            History::Observed => sequence.events.clone(),
            History::Sampled => sampled::history(&plan, model, sequence, particle)?,
        };
        history.extend_from_slice(&events[history.len()..]);
        let (mut kept, mut replaced) = (history.clone(), history.clone());
        let (mut event, mut weight) = (x, 1.0);
        for position in cause..effect {
            let (drawn, drawn_weight) = draw(&draws, &plan, particle, position, &history, &row)?;
            if position == cause {
                replaced[position] = drawn;
                (event, weight) = (drawn, drawn_weight);
            } else if plan.intervention == Intervention::Staircase {
                kept[position] = drawn;
                replaced[position] = drawn;
            }
        }
        if event == x || event == y {
            continue;
        }
        let (kept, replaced) = (row(&kept, effect)?, row(&replaced, effect)?);
        let kept_score = EventScore::from_row(&kept, y.index());
        let replaced_score = EventScore::from_row(&replaced, y.index());
        bound = bound.max(-kept_score.log_p).max(-kept_score.log_not_p);
        let strength = match plan.divergence {
            Divergence::Event => bernoulli_divergence(replaced_score, kept_score),
            Divergence::Full => divergence(&kept, &replaced),
        };
        let between = if plan.enumerable() { between(event)? } else { 1.0 };
        let (kept, replaced) = (kept_score.probability(), replaced_score.probability());
        samples.push(Sample { event, weight, between, strength, kept, replaced });
    }

    let raw = |s: &Sample| if plan.proposal == Proposal::Plausible { s.weight * s.between } else { s.weight };
    // Squares of products of many probabilities would be too small for a number.
    let most = samples.iter().map(raw).fold(0.0, f64::max);
    let weight = |s: &Sample| raw(s) / most;
    let total: f64 = samples.iter().map(weight).sum();
    let mean = |of: fn(&Sample) -> f64| samples.iter().map(|s| weight(s) * of(s)).sum::<f64>() / total;
    let strength = mean(|s| s.strength);
    let n = samples.len() as f64;
    let effective = total * total / samples.iter().map(|s| weight(s).powi(2)).sum::<f64>();
    let squares = samples.iter().map(|s| weight(s) * (s.strength - strength).powi(2)).sum::<f64>() / total;
    let variance = if n > 1.0 { squares * n / (n - 1.0) } else { 0.0 };
    let unseen = run.population(cause, effect - cause).map_or(1.0, |size| 1.0 - n / size as f64);
    let std_error = match plan.divergence {
        _ if enumerates => 0.0,
        Divergence::Event => {
            let (draws, size) = (effective.round() as usize, run.population(cause, effect - cause));
            skewed_std_error(draws, strength, variance, bound, size)
        }
        Divergence::Full => (variance / effective * unseen.max(0.0)).sqrt(),
    };
    let overlap = if plan.enumerable() && (cause > 0 || model.predicts_first()) {
        let predicted: Vec<f64> = row(&events, cause)?.iter().map(|value| value.exp()).collect();
        Some(overlap(&plan, model.frequencies(), &predicted, (x, y), &samples, &between, enumerates)?)
    } else {
        None
    };
    let (cause, effect) = (Position(cause as u32), Position(effect as u32));
    let (probability, probability_replaced) = (mean(|s| s.kept), mean(|s| s.replaced));
    let pair = Pair {
        cause,
        effect,
        lag: Lag(effect.0 - cause.0),
        question: Question::Whether,
        strength,
        std_error,
        particles: samples.len() as u32,
        log_ratio: (probability / probability_replaced).ln(),
        probability,
        probability_replaced,
        effective_particles: (!enumerates && plan.proposal == Proposal::Plausible).then_some(effective),
        overlap,
        verdict: Verdict::None,
        hidden_cause_ratio: 1.0,
        tied: sequence.tied(cause, effect),
        kept: false,
        required: discovery.prior(sequence, cause, effect) == Prior::Required,
    };
    Ok(pair.decided(plan.threshold))
}

/// `1 − π(x) − π(y)`, over all types where they are enumerated, and estimated from draws otherwise.
fn overlap(
    plan: &Plan,
    frequencies: Option<&[f64]>,
    predicted: &[f64],
    (x, y): (EventId, EventId),
    samples: &[Sample],
    between: &dyn Fn(EventId) -> Result<f64, Error>,
    enumerates: bool,
) -> Result<f64, Error> {
    let own = predicted[x.index()] * between(x)?;
    let tried = |event: EventId| match plan.proposal {
        Proposal::Unigram => frequencies.is_some_and(|weights| weights[event.index()] > 0.0),
        _ => true,
    };
    let y = (x != y && y.index() < predicted.len()).then_some(y);
    let (others, effect) = if enumerates {
        let effect = match y.filter(|y| tried(*y)) {
            Some(y) => predicted[y.index()] * between(y)?,
            None => 0.0,
        };
        (samples.iter().map(|s| predicted[s.event.index()] * s.between).sum::<f64>(), effect)
    } else {
        let total: f64 = frequencies.map_or(1.0, |weights| weights.iter().sum());
        let importance = |event: EventId| match plan.proposal {
            Proposal::Uniform => predicted[event.index()],
            Proposal::Unigram => predicted[event.index()] / (frequencies.map_or(1.0, |f| f[event.index()]) / total),
            Proposal::Model | Proposal::Plausible => 1.0,
        };
        let mean = samples.iter().map(|s| importance(s.event) * s.between).sum::<f64>()
            / samples.iter().map(|s| importance(s.event)).sum::<f64>();
        let effect = y.map_or(0.0, |y| predicted[y.index()]);
        ((1.0 - predicted[x.index()] - effect) * mean, effect * mean)
    };
    Ok(others / (others + own + effect))
}

type Row<'r> = dyn Fn(&[EventId], usize) -> Result<Vec<f64>, Error> + 'r;

/// What particle `particle` puts at `position`, and its weight.
fn draw(
    draws: &Draws,
    plan: &Plan,
    particle: usize,
    position: usize,
    history: &[EventId],
    row: &Row<'_>,
) -> Result<(EventId, f64), Error> {
    if plan.history == History::Sampled && plan.proposal == Proposal::Model {
        return Ok((draws.one_from_model(position, particle, &row(history, position)?)?, 1.0));
    }
    let made = replacements(draws, position, history, row)?;
    // What lies between is drawn in the staircase alone, where every position has as many draws.
    let event = made.events.get(particle).copied().unwrap_or(history[position]);
    Ok((event, made.log_weights.as_ref().map_or(1.0, |weights| weights.get(particle).map_or(0.0, |w| w.exp()))))
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
