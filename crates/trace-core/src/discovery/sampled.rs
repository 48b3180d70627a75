//! Discovery with a sampled history: the paper's estimator as written, one history a particle.
//!
//! Particle `l` keeps the first event and resamples the next `context` ones from the model; causes and effects lie
//! after them. Branches of different particles share nothing, so each particle is a reading of its own and costs
//! what the paper's does. Particles run in parallel and are added up in order.

use std::cell::RefCell;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::proposal::{Draws, Replacements};
use super::rows::{Batch, Buffers, Draw, Span, TokenSlice};
use super::settings::{Plan, Schedule};
use super::statistics::Sample;
use super::{Cause, Discovered, Gathered, Run, model_table};
use crate::random::{Purpose, Streams};
use crate::{DensityModel, Error, EventId, EventSequence, ModelError};

/// Particles whose samples are held at a time.
const PARTICLES_PER_STEP: usize = 16;

pub(super) fn run(run: &Run<'_>) -> Result<Discovered, Error> {
    let (plan, model) = (run.plan, run.model());
    let mut causes = run.causes(plan.first_cause()..run.events.len() - 1);
    let draws = run.draws()?;
    let Schedule::Rounds(totals) = &plan.schedule(model.vocabulary_size()) else {
        return Err(Error::setting("particles", "all does not go with a sampled history"));
    };
    let mut found = Gathered::new(None);
    let mut from = 0;
    for total in totals {
        while from < *total {
            let to = (from + PARTICLES_PER_STEP).min(*total);
            let spans: Vec<Span> = causes.iter().map(Cause::span).collect();
            let step = (from..to)
                .into_par_iter()
                .map(|particle| run_particle(run, &draws, &spans, particle))
                .collect::<Result<Vec<_>, Error>>()?;
            for (samples, cost) in step {
                found.work += cost;
                for (cause, lag, event, sample) in samples {
                    let draw = Draw {
                        event,
                        log_proposal: 0.0,
                        enumerated: false,
                        between: 0.0,
                        sample,
                        row: &[],
                        log_frequencies: None,
                        types: model.vocabulary_size(),
                    };
                    causes[cause].take(plan, None, run.events, lag, &draw);
                }
            }
            from = to;
        }
        if !run.close_decided(&mut causes) {
            break;
        }
    }
    for cause in &causes {
        // Histories differ between particles: there is no one probability as observed.
        found.add_cause(run, cause, |_, _| (None, 0.0))?;
    }
    Ok(found.discovered(run))
}

/// Cause, lag, replacement and what it says.
type Samples = Vec<(usize, usize, EventId, Sample)>;

fn run_particle(run: &Run<'_>, draws: &Draws, spans: &[Span], particle: usize) -> Result<(Samples, u64), Error> {
    let (plan, model) = (run.plan, run.model());
    let mut events = history(plan, model, run.sequence, particle)?;
    events.extend_from_slice(&run.events[run.sequence.events.len()..]);
    let reading = model.read(&events)?;
    let drawn: RefCell<FxHashMap<usize, Arc<Replacements>>> = RefCell::default();
    let tokens = |position: usize| {
        if plan.proposal.asks_model() {
            if let Some(of) = drawn.borrow().get(&position) {
                return Ok(TokenSlice { of: Arc::clone(of), from: 0, to: 1 });
            }
            let mut row = vec![0.0; model.row_size()];
            reading.distribution(position, &mut row)?;
            let event = draws.one_from_model(position, particle, &row[..model.vocabulary_size()])?;
            let of = Arc::new(Replacements { events: vec![event], log_weights: None });
            drawn.borrow_mut().insert(position, Arc::clone(&of));
            Ok(TokenSlice { of, from: 0, to: 1 })
        } else {
            let of = draws.at(position, |_| Ok(()))?;
            Ok(TokenSlice { of, from: particle, to: particle + 1 })
        }
    };
    let batch = Batch {
        plan,
        reading: &*reading,
        types: model.vocabulary_size(),
        row_size: model.row_size(),
        tokens: &tokens,
        with_rows: false,
        log_frequencies: None,
        families: None,
        events: run.events,
    };
    let mut samples = Vec::new();
    let cost = batch.score(spans, &mut Buffers::default(), &mut |cause, lag, draw| {
        samples.push((cause, lag, draw.event, draw.sample));
    })?;
    Ok((samples, cost))
}

/// The sequence with the history that this particle has.
pub(super) fn history(
    plan: &Plan,
    model: &dyn DensityModel,
    sequence: &EventSequence,
    particle: usize,
) -> Result<Vec<EventId>, ModelError> {
    let mut random = Streams::new(plan.seed, &sequence.id).stream(Purpose::History, 0, particle as u32);
    let mut events = sequence.events.clone();
    let mut row = vec![0.0; model.row_size()];
    for position in 1..=plan.context.min(events.len() - 1) {
        model.forward(&events[..position], position..position + 1, &mut row)?;
        let types = &row[..model.vocabulary_size()];
        events[position] = model_table(types.iter().map(|value| value.exp()))?.draw(&mut random);
    }
    Ok(events)
}
