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
use super::rows::{Batch, Buffers, Cause, Span, TokenSlice};
use super::settings::{Plan, Schedule};
use super::statistics::Sample;
use super::{Discovery, close_decided, draws, model_table};
use crate::random::{Purpose, Streams};
use crate::{DensityModel, Error, EventId, EventSequence, ModelError};

/// Particles whose samples are held at a time.
const PARTICLES_PER_STEP: usize = 16;

pub(super) fn run(
    plan: &Plan,
    discovery: &Discovery<'_>,
    sequence: &EventSequence,
) -> Result<(Vec<Cause>, u64), Error> {
    let model = discovery.model;
    let mut causes = discovery.causes(plan, sequence, plan.first_cause()..sequence.events.len() - 1);
    let draws = draws(plan, model, sequence)?;
    let Schedule::Rounds(totals) = &plan.schedule(model.vocabulary_size()) else {
        return Err(Error::setting("particles", "all does not go with a sampled history"));
    };
    let (mut work, mut from) = (0, 0);
    for total in totals {
        while from < *total {
            let to = (from + PARTICLES_PER_STEP).min(*total);
            let spans: Vec<Span> = causes.iter().map(Cause::span).collect();
            let step = (from..to)
                .into_par_iter()
                .map(|particle| run_particle(plan, model, sequence, &draws, &spans, particle))
                .collect::<Result<Vec<_>, Error>>()?;
            for (samples, cost) in step {
                work += cost;
                for (cause, lag, sample) in samples {
                    causes[cause].pairs[lag - 1].push(&sample, 1.0);
                }
            }
            from = to;
        }
        if !close_decided(plan, model.vocabulary_size(), &mut causes) {
            break;
        }
    }
    Ok((causes, work))
}

type Samples = Vec<(usize, usize, Sample)>;

fn run_particle(
    plan: &Plan,
    model: &dyn DensityModel,
    sequence: &EventSequence,
    draws: &Draws,
    spans: &[Span],
    particle: usize,
) -> Result<(Samples, u64), Error> {
    let events = history(plan, model, sequence, particle)?;
    let reading = model.read(&events)?;
    let size = model.vocabulary_size();
    let drawn: RefCell<FxHashMap<usize, Arc<Replacements>>> = RefCell::default();
    let tokens = |position: usize| {
        if draws.asks_model() {
            if let Some(of) = drawn.borrow().get(&position) {
                return Ok(TokenSlice { of: Arc::clone(of), from: 0, to: 1 });
            }
            let mut row = vec![0.0; size];
            reading.distribution(position, &mut row)?;
            let event = draws.one_from_model(position, particle, &row)?;
            let of = Arc::new(Replacements { events: vec![event], weights: None });
            drawn.borrow_mut().insert(position, Arc::clone(&of));
            Ok(TokenSlice { of, from: 0, to: 1 })
        } else {
            let of = draws.at(position, |_| Ok(()))?;
            Ok(TokenSlice { of, from: particle, to: particle + 1 })
        }
    };
    let batch = Batch { plan, reading: &*reading, vocabulary_size: size, tokens: &tokens };
    let mut samples = Vec::new();
    let cost = batch.score(spans, &mut Buffers::default(), &mut |cause, lag, sample, _| {
        samples.push((cause, lag, *sample));
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
        events[position] = model_table(row.iter().map(|value| value.exp()))?.draw(&mut random);
    }
    Ok(events)
}
