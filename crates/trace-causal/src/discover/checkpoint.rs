//! The population graph of an unfinished run.
//!
//! Results hold only the pairs that were kept, so the population so far cannot be made from them again. It is saved
//! beside its file as `FILE.partial`, with the number of results it covers and with the raw sums, so that a resumed
//! run ends with the same bits as an uninterrupted one.

use std::fs::{File, TryLockError};
use std::path::Path;

use serde::{Deserialize, Serialize};
use trace_core::evidence::PairLists;
use trace_core::{EventId, EvidenceBase, PairRecord, PopulationGraph, TypePair};
use trace_io::Error;
use trace_io::output::{partial_path, write_whole};
use trace_io::result::{ResultModel, RunSettings};

use super::pipeline::{Job, State};

#[derive(Serialize, Deserialize)]
struct Checkpoint {
    schema: String,
    /// What made it, and of which sequences: it must not pass for another run's.
    settings: RunSettings,
    model: ResultModel,
    ids: Vec<String>,
    edges: usize,
    branch_positions: u64,
    pairs: Vec<(TypePair<EventId>, PairRecord)>,
    evidence: Option<EvidenceBase>,
    /// The pairs that evidence is gathered for: those of the whole log.
    pair_list: Option<u64>,
}

const SCHEMA: &str = "trace.checkpoint/3";

/// Takes hold of the population's place, so that no other run writes to it; nothing where there is none.
pub(super) fn lock(job: &Job<'_>) -> Result<Option<File>, Error> {
    let Some(path) = job.population else { return Ok(None) };
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let place = Path::new(&name);
    let file = File::create(place).map_err(Error::io(place))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::file(path, "another run is writing it")),
        // Some file systems cannot lock; then nobody can.
        Err(TryLockError::Error(_)) | Ok(()) => Ok(Some(file)),
    }
}

/// Saves what a run has done, if it makes a population graph.
pub(super) fn write(job: &Job<'_>, state: &State) -> Result<(), Error> {
    let Some(path) = job.population else { return Ok(()) };
    let pairs = state.population.pairs.iter();
    let checkpoint = Checkpoint {
        schema: SCHEMA.to_owned(),
        settings: job.settings.clone(),
        model: job.model.clone(),
        ids: job.log.sequences[..state.done].iter().map(|sequence| sequence.id.clone()).collect(),
        edges: state.edges,
        branch_positions: state.branch_positions,
        pairs: pairs.map(|(types, record)| (*types, record.clone())).collect(),
        evidence: state.population.evidence,
        pair_list: job.evidence.map(PairLists::fingerprint),
    };
    write_whole(&partial_path(path), |out| Ok(serde_json::to_writer(out, &checkpoint)?))
}

/// Reads what this job had done before; `None` if nothing of it was saved.
pub(super) fn read(job: &Job<'_>, population: &Path) -> Result<Option<State>, Error> {
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
    let same_sequences = same_sequences && checkpoint.pair_list == job.evidence.map(PairLists::fingerprint);
    if checkpoint.settings != job.settings || checkpoint.model != job.model || !same_sequences {
        return Err(Error::file(
            &path,
            "is of a run with other settings, another model or another log; remove it, or start over instead of resuming",
        ));
    }
    let pairs = checkpoint.pairs.into_iter().collect();
    let population = PopulationGraph { sequences: done as u64, pairs, evidence: checkpoint.evidence };
    Ok(Some(State { done, edges: checkpoint.edges, branch_positions: checkpoint.branch_positions, population }))
}

/// Takes the checkpoint and its lock away.
pub(super) fn remove(population: Option<&Path>) -> Result<(), Error> {
    let Some(path) = population else { return Ok(()) };
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    for path in [partial_path(path), lock.into()] {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Error::io(path)(error)),
            _ => {}
        }
    }
    Ok(())
}
