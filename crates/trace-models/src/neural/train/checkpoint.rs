//! Checkpoints: a run that was killed can continue.
//!
//! A checkpoint has two files: the tensors, under a new name for each checkpoint, and `state.json`, which refers to
//! them and is replaced atomically. Whenever a run is killed, `state.json` refers to a complete file.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::optimizer::{Optimizer, OptimizerKind};
use super::run::TrainState;
use crate::Error;
use crate::tensors::{self, AnyTensor, Tensor, TensorFile};

const STATE: &str = "state.json";
const NEW: &str = "state.new";
const LOCK: &str = "lock";

#[derive(Serialize, Deserialize)]
struct Saved {
    /// The settings of the run; a run with other settings cannot continue from here.
    settings: Value,
    numbers: String,
    step: u64,
    seconds: f64,
    events: u64,
    best_loss: Option<f64>,
    since_best: u32,
    evaluations: u64,
}

/// The folder of a run's checkpoints, locked by one run at a time.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    lock: File,
}

impl Checkpoints {
    /// The folder in which a run that writes `model` keeps its checkpoints.
    pub fn place(model: &Path) -> PathBuf {
        let mut name = model.as_os_str().to_owned();
        name.push(".partial");
        PathBuf::from(name)
    }

    /// Locks the folder, and creates it if it does not exist.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let path = folder.join(LOCK);
        let lock = File::create(&path).map_err(Error::io(&path))?;
        if lock.try_lock().is_err() {
            return Err(Error::folder(folder, "another run is writing this model; wait for it or stop it"));
        }
        Ok(Self { folder: folder.to_owned(), lock })
    }

    /// Whether there is a checkpoint to continue from.
    pub fn exists(&self) -> bool {
        self.folder.join(STATE).exists()
    }

    /// Reads the last checkpoint; an error if it is of a run with other settings.
    pub fn load(&self, settings: &Value, optimizer: OptimizerKind, size: usize) -> Result<TrainState, Error> {
        let path = self.folder.join(STATE);
        let text = fs::read(&path).map_err(Error::io(&path))?;
        let saved: Saved =
            serde_json::from_slice(&text).map_err(|error| Error::folder(&path, format!("is broken: {error}")))?;
        if saved.settings != *settings {
            let differing = differences(&saved.settings, settings);
            let reason = format!("is of a run with other settings ({differing}); use those, or start over");
            return Err(Error::folder(&path, reason));
        }
        let mut file = TensorFile::open(&self.folder.join(&saved.numbers))?;
        let mut read = |name: &str| file.read::<f32>(name, &[size]);
        Ok(TrainState {
            step: saved.step,
            seconds: saved.seconds,
            events: saved.events,
            best_loss: saved.best_loss,
            since_best: saved.since_best,
            evaluations: saved.evaluations,
            weights: read("weights")?,
            best: read("best")?,
            optimizer: Optimizer::restore(optimizer, read("first")?, read("second")?, saved.step),
        })
    }

    /// Writes a checkpoint and deletes the previous one.
    pub fn save(&self, settings: &Value, state: &TrainState) -> Result<(), Error> {
        let numbers = format!("state-{}.safetensors", state.step);
        let flat = |values| AnyTensor::F32(Tensor { shape: vec![<[f32]>::len(values)], values });
        let path = self.folder.join(&numbers);
        tensors::write(
            &path,
            &[
                ("weights", flat(&state.weights)),
                ("best", flat(&state.best)),
                ("first", flat(&state.optimizer.first)),
                ("second", flat(&state.optimizer.second)),
            ],
        )?;
        File::open(&path).and_then(|file| file.sync_all()).map_err(Error::io(&path))?;
        let saved = Saved {
            settings: settings.clone(),
            numbers: numbers.clone(),
            step: state.step,
            seconds: state.seconds,
            events: state.events,
            best_loss: state.best_loss,
            since_best: state.since_best,
            evaluations: state.evaluations,
        };
        let (place, new) = (self.folder.join(STATE), self.folder.join(NEW));
        let text = serde_json::to_vec_pretty(&saved).map_err(|error| Error::folder(&place, error.to_string()))?;
        let write = |path: &Path| {
            let mut file = File::create(path)?;
            file.write_all(&text)?;
            file.sync_all()
        };
        write(&new).map_err(Error::io(&new))?;
        fs::rename(&new, &place).map_err(Error::io(&place))?;
        self.drop_all_but(&numbers)
    }

    fn drop_all_but(&self, kept: &str) -> Result<(), Error> {
        for entry in fs::read_dir(&self.folder).map_err(Error::io(&self.folder))? {
            let entry = entry.map_err(Error::io(&self.folder))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("state-") && name.ends_with(".safetensors") && name != kept {
                fs::remove_file(entry.path()).map_err(Error::io(&entry.path()))?;
            }
        }
        Ok(())
    }

    /// Deletes the checkpoint.
    pub fn clear(&self) -> Result<(), Error> {
        for name in [STATE, NEW] {
            match fs::remove_file(self.folder.join(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::io(&self.folder)(error)),
                _ => {}
            }
        }
        self.drop_all_but("")
    }

    /// Deletes the checkpoint and the folder.
    pub fn remove(self) -> Result<(), Error> {
        self.clear()?;
        drop(self.lock);
        let lock = self.folder.join(LOCK);
        fs::remove_file(&lock).map_err(Error::io(&lock))?;
        match fs::remove_dir(&self.folder) {
            // Other files in the folder are left alone.
            Err(error) if error.kind() != ErrorKind::DirectoryNotEmpty => Err(Error::io(&self.folder)(error)),
            _ => Ok(()),
        }
    }
}

/// The names of settings that differ.
fn differences(a: &Value, b: &Value) -> String {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return "all".to_owned() };
    let mut names: Vec<&str> =
        a.keys().chain(b.keys()).map(String::as_str).filter(|k| a.get(*k) != b.get(*k)).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
