//! Where an interrupted run stopped.

use std::path::Path;

use trace_core::{Lag, PopulationGraph};
use trace_io::Error;
use trace_io::output::{PartialFile, complete_lines, partial_path};
use trace_io::result::ResultLine;

use super::checkpoint;
use super::pipeline::{Job, State};
use crate::commands::aggregate::difference;

/// The partial results of an interrupted run and what they cover; `None` if there is nothing to continue.
///
/// Every finished line must be what this run would have written there: the same sequence, settings and model.
pub fn find(job: &Job<'_>, out: &Path) -> anyhow::Result<Option<(PartialFile, State)>> {
    let partial = partial_path(out);
    if !partial.exists() {
        return Ok(None);
    }
    let lines = complete_lines(&partial)?;
    if lines.len() > job.sequences.len() {
        return Err(Error::file(&partial, "holds more results than the log has sequences to test").into());
    }
    let mut results = Vec::with_capacity(lines.len());
    for ((number, (text, _)), sequence) in (1..).zip(&lines).zip(job.sequences) {
        let fault = |reason: String| Error::Line { file: partial.display().to_string(), line: number, reason };
        let line: ResultLine = serde_json::from_str(text).map_err(|error| fault(format!("not a result: {error}")))?;
        if line.settings != job.settings {
            let difference = difference(&line.settings, &job.settings);
            return Err(fault(format!("cannot be continued with other settings: {difference}")).into());
        }
        if line.model != job.model {
            return Err(fault("cannot be continued with another model".to_owned()).into());
        }
        let same_events = line.events.len() == sequence.events.len()
            && line.events.iter().zip(&sequence.events).all(|(name, event)| job.vocabulary.id(&name.0) == Some(*event));
        if line.id != sequence.id || !same_events {
            return Err(fault(format!(
                "is the result of {:?}, but the log has {:?} there; it is not the log of the interrupted run",
                line.id, sequence.id
            ))
            .into());
        }
        if let Some(difference) = other_options(&line, job) {
            return Err(
                fault(format!("cannot be continued: one run is with {difference} and the other without")).into()
            );
        }
        results.push(line);
    }
    let state = state(job, &results, &partial)?;
    let bytes = state.done.checked_sub(1).map_or(0, |last| lines[last].1);
    Ok(Some((PartialFile::continue_at(out, bytes)?, state)))
}

/// The option that this line shows to have been another, if any. A line without edges shows nothing.
fn other_options(line: &ResultLine, job: &Job<'_>) -> Option<&'static str> {
    let marked = line.edges.first().map(|edge| edge.kept.is_some());
    let type_of = |position: u32| &line.events[position as usize];
    let mut kept = line.edges.iter().filter(|edge| edge.is_kept());
    let loops = kept.any(|edge| type_of(edge.cause) == type_of(edge.effect));
    let has_loops = line.summary.iter().any(|edge| edge.cause == edge.effect);
    if marked.is_some_and(|marked| marked != job.options.all_pairs) {
        Some("--all-pairs")
    } else if loops && has_loops != job.options.self_loops {
        Some("--self-loops")
    } else {
        None
    }
}

/// What the finished lines cover. The population comes from its checkpoint, or from the lines where they hold all
/// pairs; lines beyond the checkpoint are made again.
fn state(job: &Job<'_>, results: &[ResultLine], partial: &Path) -> anyhow::Result<State> {
    let kept = |lines: &[ResultLine]| lines.iter().flat_map(|line| &line.edges).filter(|edge| edge.is_kept()).count();
    let Some(path) = job.population else {
        return Ok(State { done: results.len(), edges: kept(results), ..State::default() });
    };
    if job.options.all_pairs {
        let mut population = PopulationGraph::default();
        for (line, sequence) in results.iter().zip(job.sequences) {
            let type_of = |position: u32| sequence.events[position as usize];
            population.add_sequence(line.edges.iter().map(|edge| {
                let types = (type_of(edge.cause), type_of(edge.effect));
                (types, edge.strength, edge.log_ratio, Lag(edge.lag), edge.is_kept())
            }));
        }
        return Ok(State { done: results.len(), edges: kept(results), population, ..State::default() });
    }
    match checkpoint::read(job, path)? {
        Some(state) if state.done <= results.len() => Ok(state),
        // Nothing finished, nothing lost.
        _ if results.is_empty() => Ok(State::default()),
        _ => Err(Error::file(
            partial,
            format!(
                "holds {} finished sequences, but no population of them was saved beside {}; resume without --population, \
                 or start over without --resume",
                results.len(),
                path.display()
            ),
        )
        .into()),
    }
}
