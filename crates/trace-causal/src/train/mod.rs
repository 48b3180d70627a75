//! Training: from a log to a model.

mod corpus;
mod network;
mod ngram;
mod options;
mod part;
mod size;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use trace_core::numerics::entropy;
use trace_core::theory::Fitness;
use trace_core::{EventId, Vocabulary};
use trace_models::check_replaceable;

pub use self::options::{Backbone, NetworkOptions, Order, Size, TrainOptions};
use self::part::Part;
use crate::model::{FAMILIES, SHAPING};
use crate::progress::{Cancel, Control, Progress};
use crate::{Error, Log, Model};

/// The key of a model's record that has a hash of the sequences it was trained on.
const CORPUS: &str = "corpus";

/// Trains a model on a log.
///
/// ```no_run
/// use trace_causal::{Backbone, Log, Train};
///
/// let log = Log::open("events.csv")?;
/// let model = Train::new().backbone(Backbone::Gru).minutes(5.0).to_folder("model").run(&log)?;
/// # Ok::<(), trace_causal::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Train<'t> {
    options: TrainOptions,
    folder: Option<PathBuf>,
    resume: bool,
    process: Option<PathBuf>,
    vocabulary: Option<Vocabulary>,
    control: Control<'t>,
}

impl<'t> Train<'t> {
    /// With every default.
    pub fn new() -> Self {
        Self::default()
    }

    /// With these options.
    pub fn with_options(options: TrainOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The architecture.
    #[must_use]
    pub const fn backbone(mut self, backbone: Backbone) -> Self {
        self.options.backbone = backbone;
        self
    }

    /// Train for this many minutes.
    #[must_use]
    pub const fn minutes(mut self, minutes: f64) -> Self {
        self.options.network.minutes = Some(minutes);
        self
    }

    /// Train for this many steps.
    #[must_use]
    pub const fn steps(mut self, steps: u64) -> Self {
        self.options.network.steps = Some(steps);
        self
    }

    /// Seed of the held-out split, the weights and the order of training.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Train two models, each on one half of the sequences, so that every sequence has a model that has not seen it.
    #[must_use]
    pub const fn cross_fit(mut self, cross_fit: bool) -> Self {
        self.options.cross_fit = cross_fit;
        self
    }

    /// Write the model folder here; an unfinished run keeps its checkpoints beside it.
    #[must_use]
    pub fn to_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Go on where an unfinished run to the same folder stopped.
    #[must_use]
    pub const fn resume(mut self, resume: bool) -> Self {
        self.resume = resume;
        self
    }

    /// The folder of the simulated process that made the log, to compare the fit with its entropy.
    #[must_use]
    pub fn process(mut self, folder: impl Into<PathBuf>) -> Self {
        self.process = Some(folder.into());
        self
    }

    /// The event types of the model, where it should know more than the log has, or know them in this order.
    #[must_use]
    pub fn vocabulary(mut self, vocabulary: Vocabulary) -> Self {
        self.vocabulary = Some(vocabulary);
        self
    }

    /// Who listens.
    #[must_use]
    pub fn progress(mut self, progress: &'t dyn Progress) -> Self {
        self.control = self.control.progress(progress);
        self
    }

    /// How the run is asked to stop. What is done by then is kept for [`resume`](Self::resume).
    #[must_use]
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.control = self.control.cancel(cancel);
        self
    }

    /// Trains on a log. Without a folder the model lives in memory alone.
    pub fn run(&self, log: &Log) -> Result<Model, Error> {
        self.options.check()?;
        let Some(folder) = &self.folder else {
            let place = tempfile::tempdir().map_err(trace_io::Error::io(std::env::temp_dir()))?;
            return self.run_to(log, &place.path().join("model"));
        };
        self.check_paths(log, folder)?;
        self.run_to(log, folder)
    }

    fn run_to(&self, log: &Log, folder: &Path) -> Result<Model, Error> {
        if self.options.cross_fit {
            part::train(self, log, folder)?;
        } else {
            self.train_parts(log, &[Part::whole(folder)])?;
        }
        Model::open(folder)
    }

    fn train_parts(&self, log: &Log, parts: &[Part]) -> Result<(), Error> {
        match self.options.backbone {
            Backbone::Ngram => ngram::train(self, log, parts),
            _ => network::train(self, log, parts),
        }
    }

    /// Refuses to write the model over what it is made from.
    fn check_paths(&self, log: &Log, folder: &Path) -> Result<(), Error> {
        check_replaceable(folder)?;
        for (input, what) in [(Some(log.path()), "the log"), (self.process.as_deref(), "the process")] {
            let places = input.and_then(|input| Some((input.canonicalize().ok()?, folder.canonicalize().ok()?)));
            if places.is_some_and(|(input, out)| input.starts_with(out)) {
                let reason = format!("{}: holds {what}; expected another folder for the model", folder.display());
                return Err(Error::request(reason));
            }
        }
        Ok(())
    }

    /// The simulated process that made the log, if one is named; the entropy of any other model would say nothing.
    fn open_process(&self) -> Result<Option<Model>, Error> {
        let Some(folder) = &self.process else { return Ok(None) };
        let process = Model::open(folder)?;
        if !process.is_process() {
            let (place, found) = (folder.display(), process.density().backbone());
            let reason = format!("{place}: expected a simulated process, found a model ({found})");
            return Err(Error::option("process", reason));
        }
        Ok(Some(process))
    }

    /// What every kind of model records of how it was trained.
    fn record(&self, log: &Log) -> Result<serde_json::Map<String, Value>, Error> {
        let fault = |error: serde_json::Error| Error::request(error.to_string());
        let mut record = serde_json::Map::new();
        record.insert("options".to_owned(), serde_json::to_value(&self.options).map_err(fault)?);
        record.insert(SHAPING.to_owned(), serde_json::to_value(log.options().shaping).map_err(fault)?);
        record.insert("seed".to_owned(), json!(self.options.seed));
        Ok(record)
    }

    /// The same with the steps of the event types.
    fn record_of_types(&self, log: &Log, vocabulary: &Vocabulary) -> Result<serde_json::Map<String, Value>, Error> {
        let mut record = self.record(log)?;
        if let Some(families) = log.families(vocabulary)? {
            let families = serde_json::to_value(families).map_err(|error| Error::request(error.to_string()))?;
            record.insert(FAMILIES.to_owned(), families);
        }
        Ok(record)
    }
}

/// What is about to be trained.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrainPlan {
    /// The architecture.
    pub backbone: String,
    /// How many numbers the network is made of.
    pub parameters: usize,
    /// When the training ends.
    pub limit: TrainLimit,
    /// Sequences per step.
    pub batch: usize,
    /// Events of a sequence that are read at once, where longer ones are cut into pieces of that many.
    pub pieces: Option<usize>,
    /// What held-out losses are compared with.
    pub floors: Floors,
}

/// When a training ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrainLimit {
    /// After this many steps.
    Steps(u64),
    /// After this many minutes.
    Minutes(f64),
    /// When the held-out loss no longer falls, at the latest after this many steps.
    EarlyStop(u64),
}

/// Held-out losses to compare with, on the same targets: events, and ends of cases where these are predicted; in nats per
/// event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Floors {
    /// Of the frequencies of events and ends.
    pub unigram: Option<f64>,
    /// Of the best n-gram that was tried: its order and loss.
    pub ngram: Option<(usize, f64)>,
    /// Of the process itself, where it is known.
    pub entropy: Option<f64>,
    /// The number of event types.
    pub types: usize,
}

impl Floors {
    /// The fitness that a held-out loss means.
    pub const fn fitness(&self, held_out_loss: Option<f64>) -> Fitness {
        Fitness { held_out_loss, unigram_loss: self.unigram, entropy: self.entropy }
    }
}

/// What a training came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrainReport {
    /// Where the model is.
    pub folder: PathBuf,
    /// The architecture.
    pub backbone: String,
    /// The order of an n-gram model.
    pub order: Option<usize>,
    /// How many numbers the model is made of.
    pub parameters: usize,
    /// Steps of a network.
    pub steps: Option<u64>,
    /// Events that it was trained on, as often as each was.
    pub events: Option<u64>,
    /// Seconds that took.
    pub seconds: f64,
    /// Whether it ended because the held-out loss no longer fell.
    pub stopped_early: bool,
    /// Cross-entropy on held-out events, and ends of cases where these are predicted, in nats per event.
    pub held_out_loss: Option<f64>,
    /// What it is compared with.
    pub floors: Floors,
}

impl TrainReport {
    /// Whether the model predicts no better than event frequencies, so that no causes can be expected from it.
    pub fn learned_nothing(&self) -> bool {
        matches!((self.held_out_loss, self.floors.unigram), (Some(loss), Some(unigram)) if loss > unigram - 0.01)
    }

    /// Whether counting n-grams predicts better.
    pub fn loses_to_ngrams(&self) -> bool {
        self.order.is_none()
            && matches!((self.held_out_loss, self.floors.ngram), (Some(loss), Some((_, floor))) if loss > floor)
    }
}

/// An error if the fit cannot be compared with a process, because the process goes on where the log's cases end.
fn check_process(process: Option<&Model>, end: bool) -> Result<(), Error> {
    if end && process.is_some_and(|process| !process.density().predicts_end()) {
        let reason = "the process goes on where cases of this log end, so that its entropy says nothing about their ends; \
                      expected a log of open cases";
        return Err(Error::request(reason).hint("open_cases", None, "reads it as one"));
    }
    Ok(())
}

/// Mean entropy of a process on these events: what no model can beat on them.
fn process_entropy<'s>(
    process: &Model,
    sequences: impl Iterator<Item = &'s [EventId]>,
    vocabulary: &Vocabulary,
) -> Result<f64, Error> {
    let density = process.density();
    let translate = |sequence: &[EventId]| {
        let events = sequence.iter().map(|event| process.vocabulary().id(&vocabulary.name(*event)));
        let lacks = || Error::option("process", "it did not make this log: it lacks some of the log's events");
        events.collect::<Option<Vec<EventId>>>().ok_or_else(lacks)
    };
    let sequences = sequences.map(translate).collect::<Result<Vec<_>, Error>>()?;
    let entropies = sequences
        .par_iter()
        .map(|events| {
            let mut row = vec![0.0; density.row_size()];
            let mut one = |position: usize| {
                density.forward(&events[..position], position..position + 1, &mut row)?;
                Ok(entropy(&row))
            };
            (0..events.len()).map(&mut one).collect()
        })
        .collect::<Result<Vec<Vec<f64>>, trace_core::Error>>()?;
    let count = entropies.iter().map(Vec::len).sum::<usize>();
    if count == 0 {
        return Err(Error::option("process", "nothing is held out to compare the fit on"));
    }
    Ok(entropies.iter().flatten().sum::<f64>() / count as f64)
}
