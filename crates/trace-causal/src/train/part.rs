//! The models of a run: one, or the two halves of a cross-fit.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use trace_models::cross_fit::{self, HALVES};
use trace_models::neural::train::{Checkpoints, CorpusStatistics};
use trace_models::split::half_of;
use trace_models::{Description, check_replaceable, write_folder};

use super::{CORPUS, Train, network};
use crate::model::SHAPING;
use crate::progress::Note;
use crate::{Error, Log};

/// One model of a run.
pub(super) struct Part {
    /// The half of the sequences that it is trained on, and the seed of the halves; all of them if there is none.
    half: Option<(usize, u64)>,
    /// Where its folder is written.
    pub(super) folder: PathBuf,
    /// Where it is in the end.
    pub(super) name: PathBuf,
}

impl Part {
    /// The model that is trained on all sequences.
    pub(super) fn whole(folder: &Path) -> Self {
        Self { half: None, folder: folder.to_owned(), name: folder.to_owned() }
    }

    /// Whether the sequence with this id belongs to it.
    pub(super) fn has(&self, id: &str) -> bool {
        self.half.is_none_or(|(half, seed)| half_of(id, seed) == half)
    }

    /// An error if a half has no sequence.
    pub(super) fn check_count(&self, sequences: usize) -> Result<(), Error> {
        match self.half {
            Some((half, _)) if sequences == 0 => Err(Error::option(
                "cross_fit",
                format!("half {half} has no sequence; expected a log with more of them"),
            )),
            _ => Ok(()),
        }
    }

    /// Whether an earlier run with the same options and sequences finished this half; an error if it had others.
    pub(super) fn is_done(&self, run: &Train<'_>, log: &Log, statistics: &CorpusStatistics) -> Result<bool, Error> {
        if self.half.is_none() || !self.folder.exists() {
            return Ok(false);
        }
        let record = Description::read(&self.folder)?.record.unwrap_or_default();
        let mut here = run.record(log)?;
        here.insert(CORPUS.to_owned(), json!(network::fingerprint(statistics)));
        let differs = |key: &&str| {
            let plain = |value: Option<&Value>| {
                let mut value = value.cloned().unwrap_or_default();
                // How often the state is saved does not change the result.
                if let Some(options) = value.as_object_mut() {
                    options.remove("checkpoint_seconds");
                }
                value
            };
            plain(record.training.get(*key)) != plain(here.get(*key))
        };
        match ["options", SHAPING, CORPUS].iter().find(|key| differs(key)) {
            None => Ok(true),
            Some(key) => {
                let reason = format!("is of a run with other settings ({key}); use those, or start over");
                Err(trace_models::Error::folder(&self.folder, reason).into())
            }
        }
    }
}

/// Trains two models, each on one half of the sequences, into one folder.
pub(super) fn train(run: &Train<'_>, log: &Log, folder: &Path) -> Result<(), Error> {
    // Until both are there, they are kept beside the folder, as checkpoints are.
    let place = Checkpoints::place(folder);
    let guard = Checkpoints::open(&place)?;
    let part = |half: usize| Part {
        half: Some((half, run.options.seed)),
        folder: place.join(HALVES[half]),
        name: folder.join(HALVES[half]),
    };
    let parts = [part(0), part(1)];
    if guard.exists() {
        if run.resume {
            let reason = "is of a run with other settings (cross_fit); use those, or start over";
            return Err(trace_models::Error::folder(&place, reason).into());
        }
        run.control.note(&Note::StartingOver);
        guard.clear()?;
    }
    if !run.resume {
        discard(&parts)?;
    }
    let trained = run.train_parts(log, &parts);
    if let Err(error) = trained {
        if !parts.iter().any(|part| part.folder.exists() || Checkpoints::place(&part.folder).exists()) {
            guard.remove()?; // nothing there to continue from
        }
        return Err(error);
    }
    let training = run.record(log)?.into_iter().collect();
    write_folder(folder, |new| {
        for part in &parts {
            let place = new.join(part.name.file_name().unwrap_or_default());
            fs::rename(&part.folder, &place).map_err(trace_models::Error::io(&place))?;
        }
        cross_fit::save(new, training)
    })?;
    Ok(guard.remove()?)
}

/// Deletes what an unfinished run left of the parts.
fn discard(parts: &[Part]) -> Result<(), Error> {
    for part in parts {
        if part.folder.exists() {
            check_replaceable(&part.folder)?;
            fs::remove_dir_all(&part.folder).map_err(trace_models::Error::io(&part.folder))?;
        }
        let place = Checkpoints::place(&part.folder);
        if place.exists() {
            Checkpoints::open(&place)?.remove()?;
        }
    }
    Ok(())
}
