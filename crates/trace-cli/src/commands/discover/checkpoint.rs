//! The population graph of an unfinished run.
//!
//! Results hold only the pairs that were kept, so the population so far cannot be made from them again. It is saved
//! beside its file as `FILE.partial`, with the number of results it covers and with the raw sums, so that a resumed
//! run ends with the same bits as an uninterrupted one.

use std::path::Path;

use serde::{Deserialize, Serialize};
use trace_core::numerics::Moments;
use trace_core::{EventId, Lag, PairRecord, PopulationGraph};
use trace_io::Error;
use trace_io::output::{partial_path, write_whole};
use trace_io::population::SequenceProducts;
use trace_io::result::{ResultModel, ResultSettings};

use super::pipeline::{Job, State};

#[derive(Serialize, Deserialize)]
struct Checkpoint {
    schema: String,
    /// What made it, and of which sequences: it must not pass for another run's.
    settings: ResultSettings,
    model: ResultModel,
    ids: Vec<String>,
    edges: usize,
    branch_positions: u64,
    pairs: Vec<Pair>,
}

#[derive(Serialize, Deserialize)]
struct Pair {
    types: (u32, u32),
    sequences: u64,
    kept_count: u64,
    strength: (u64, f64, f64),
    log_ratio: (u64, f64, f64),
    lags: Vec<(u32, u64)>,
    /// Absent in checkpoints of earlier versions: what comes of them lacks the sums over sequences.
    #[serde(default)]
    by_sequence: Option<SequenceProducts>,
}

const SCHEMA: &str = "trace.checkpoint/1";

/// Saves what a run has done, if it makes a population graph.
pub fn write(job: &Job<'_>, state: &State) -> Result<(), Error> {
    let Some(path) = job.population else { return Ok(()) };
    let raw = |moments: &Moments| (moments.count, moments.mean, moments.squares);
    let pairs = state
        .population
        .pairs
        .iter()
        .map(|((cause, effect), record)| Pair {
            types: (cause.0, effect.0),
            sequences: record.sequences,
            kept_count: record.kept_count,
            strength: raw(&record.strength),
            log_ratio: raw(&record.log_ratio),
            lags: record.lags.iter().map(|(lag, count)| (lag.0, *count)).collect(),
            by_sequence: record.sequence_sums().map(SequenceProducts::new),
        })
        .collect();
    let checkpoint = Checkpoint {
        schema: SCHEMA.to_owned(),
        settings: job.settings.clone(),
        model: job.model.clone(),
        ids: job.log.sequences[..state.done].iter().map(|sequence| sequence.id.clone()).collect(),
        edges: state.edges,
        branch_positions: state.branch_positions,
        pairs,
    };
    write_whole(&partial_path(path), |out| Ok(serde_json::to_writer(out, &checkpoint)?))
}

/// Reads what this job had done before; `None` if nothing of it was saved.
pub fn read(job: &Job<'_>, population: &Path) -> Result<Option<State>, Error> {
    let path = partial_path(population);
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read(&path).map_err(Error::io(&path))?;
    let checkpoint: Checkpoint = serde_json::from_slice(&text)
        .map_err(|error| Error::file(&path, format!("expected the population of an interrupted run: {error}")))?;
    if checkpoint.schema != SCHEMA {
        return Err(Error::file(&path, format!("expected schema {SCHEMA:?}, found {:?}", checkpoint.schema)));
    }
    let done = checkpoint.ids.len();
    let same_sequences = done <= job.log.sequences.len()
        && checkpoint.ids.iter().zip(&job.log.sequences).all(|(id, sequence)| *id == sequence.id);
    if checkpoint.settings != job.settings || checkpoint.model != job.model || !same_sequences {
        return Err(Error::file(
            &path,
            "is of a run with other settings, another model or another log; remove it or start over without --resume",
        ));
    }
    let moments = |(count, mean, squares)| Moments { count, mean, squares };
    let mut population = PopulationGraph { sequences: done as u64, ..PopulationGraph::default() };
    for pair in checkpoint.pairs {
        let record = PairRecord {
            sequences: pair.sequences,
            kept_count: pair.kept_count,
            strength: moments(pair.strength),
            log_ratio: moments(pair.log_ratio),
            lags: pair.lags.into_iter().map(|(lag, count)| (Lag(lag), count)).collect(),
            by_sequence: pair.by_sequence.map(|sums| sums.sums(pair.sequences)).unwrap_or_default(),
        };
        population.pairs.insert((EventId(pair.types.0), EventId(pair.types.1)), record);
    }
    Ok(Some(State { done, edges: checkpoint.edges, branch_positions: checkpoint.branch_positions, population }))
}

/// Takes the checkpoint away.
pub fn remove(population: Option<&Path>) -> Result<(), Error> {
    let Some(path) = population.map(partial_path) else { return Ok(()) };
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path)(error)),
        _ => Ok(()),
    }
}
