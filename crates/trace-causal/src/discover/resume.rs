//! Where an unfinished run stopped.

use std::path::Path;

use trace_core::{PopulationGraph, SampleGraph};
use trace_io::Error as FileError;
use trace_io::output::{PartialFile, complete_lines, partial_path};
use trace_io::population::Population;
use trace_io::result::ResultLine;

use super::checkpoint;
use super::pipeline::{Job, State};
use crate::Error;

/// What there is to continue.
pub(super) enum Resumed {
    /// Nothing.
    Nothing,
    /// All of it is done.
    Complete,
    /// Results, what they cover, and how many results beyond that must be made again.
    Partial(PartialFile, State, usize),
}

/// Looks for results of this job that an unfinished run left.
pub(super) fn find(job: &Job<'_>, out: &Path) -> Result<Resumed, Error> {
    let partial = partial_path(out);
    if !partial.exists() {
        let done = out.exists() && job.population.is_none_or(|path| is_same(job, path)) && is_complete(job, out);
        return Ok(if done { Resumed::Complete } else { Resumed::Nothing });
    }
    let lines = complete_lines(&partial)?;
    let results = verify(job, &partial, &lines)?;
    let state = state(job, &results, &partial)?;
    let bytes = state.done.checked_sub(1).map_or(0, |last| lines[last].1);
    let again = results.len() - state.done;
    Ok(Resumed::Partial(PartialFile::continue_at(out, bytes)?, state, again))
}

/// Whether a population file is of as many sequences, made in the same way.
fn is_same(job: &Job<'_>, population: &Path) -> bool {
    Population::read(population).is_ok_and(|file| {
        file.settings == job.settings && file.model == job.model && file.sequences == job.log.sequences.len() as u64
    })
}

/// Whether a finished file is what this job would write.
fn is_complete(job: &Job<'_>, out: &Path) -> bool {
    let results = complete_lines(out).map(|lines| verify(job, out, &lines));
    results.is_ok_and(|results| results.is_ok_and(|results| results.len() == job.log.sequences.len()))
}

/// Reads finished lines. Every one must be what this job would have written there: the same sequence, settings, model
/// and options.
fn verify(job: &Job<'_>, file: &Path, lines: &[(String, u64)]) -> Result<Vec<ResultLine>, Error> {
    if lines.len() > job.log.sequences.len() {
        return Err(FileError::file(file, "holds more results than the log has sequences to test").into());
    }
    let mut results = Vec::with_capacity(lines.len());
    for ((number, (text, _)), (sequence, skipped)) in
        (1..).zip(lines).zip(job.log.sequences.iter().zip(&job.log.skipped))
    {
        let fault = |reason: String| FileError::at_line(file.display().to_string(), number, reason);
        let line: ResultLine = serde_json::from_str(text).map_err(|error| fault(format!("not a result: {error}")))?;
        if line.settings != job.settings {
            let difference = line.settings.difference(&job.settings);
            return Err(fault(format!("cannot be continued with other settings: {difference}")).into());
        }
        if line.model != job.model {
            return Err(fault("cannot be continued with another model".to_owned()).into());
        }
        let events = sequence.with_end(job.end());
        let same_events = line.events.len() == events.len()
            && line.events.iter().zip(&*events).all(|(name, event)| job.vocabulary.name(*event) == *name);
        if line.id != sequence.id || !same_events || line.skipped != *skipped {
            return Err(fault(format!(
                "is the result of another sequence ({:?}) than the log has there ({:?}, perhaps changed since); it is not \
                 the log of the interrupted run",
                line.id, sequence.id
            ))
            .into());
        }
        if let Some(options) = line.options.filter(|options| *options != job.options) {
            let name = if options.all_pairs == job.options.all_pairs { "self_loops" } else { "all_pairs" };
            let reason = format!("cannot be continued: one run is with the option {name} and the other without");
            return Err(fault(reason).into());
        }
        results.push(line);
    }
    Ok(results)
}

/// What the finished lines cover. The population comes from its checkpoint, or from the lines where they hold all
/// pairs; lines beyond the checkpoint are made again.
fn state(job: &Job<'_>, results: &[ResultLine], partial: &Path) -> Result<State, Error> {
    let kept = |lines: &[ResultLine]| lines.iter().map(|line| line.edges().count()).sum();
    let Some(path) = job.population else {
        return Ok(State { done: results.len(), edges: kept(results), ..State::default() });
    };
    // Results with all pairs make the population again, but for its evidence.
    if job.options.all_pairs && job.evidence.is_none() {
        let mut population = PopulationGraph::default();
        for (line, sequence) in results.iter().zip(&job.log.sequences) {
            let events = sequence.with_end(job.end()).into_owned();
            population.add(&SampleGraph::new(events, line.pairs.clone(), job.settings.plan.threshold), job.families());
        }
        return Ok(State { done: results.len(), edges: kept(results), population, ..State::default() });
    }
    match checkpoint::read(job, path)? {
        Some(state) if state.done <= results.len() => Ok(state),
        // Nothing finished, nothing lost; and what holds all pairs is made again for its evidence.
        _ if results.is_empty() || job.options.all_pairs => Ok(State::default()),
        _ => Err(FileError::file(
            partial,
            format!(
                "holds {} finished sequences, but no population of them was saved beside {}; resume without a population \
                 file, or start over",
                results.len(),
                path.display()
            ),
        )
        .into()),
    }
}
