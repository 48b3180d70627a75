//! Where an interrupted run stopped.

use std::path::Path;

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
    let mut state = match job.population {
        None => State { done: lines.len(), ..State::default() },
        // The population covers what was saved of it; results beyond that are made again.
        Some(path) => match checkpoint::read(path)? {
            Some(state) if state.done <= lines.len() => state,
            _ => State::default(),
        },
    };
    if lines.len() > job.sequences.len() {
        return Err(Error::file(&partial, "holds more results than the log has sequences to test").into());
    }
    let mut edges = 0;
    for ((number, (text, _)), sequence) in (1..).zip(&lines).zip(job.sequences).take(state.done) {
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
        if line.edges.iter().any(|edge| edge.kept.is_some()) != job.options.all_pairs && !line.edges.is_empty() {
            return Err(
                fault("cannot be continued: one run is with --all-pairs and the other without".to_owned()).into()
            );
        }
        edges += line.edges.iter().filter(|edge| edge.is_kept()).count();
    }
    state.edges = edges;
    let bytes = state.done.checked_sub(1).map_or(0, |last| lines[last].1);
    Ok(Some((PartialFile::continue_at(out, bytes)?, state)))
}
