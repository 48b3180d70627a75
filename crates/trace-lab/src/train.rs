//! Training a backbone inside the laboratory: by [`trace_causal::Train`], like everybody.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use trace_causal::{
    Backbone, Cancel, Log, Model, NetworkOptions, Note, Train, TrainOptions, TrainProgress, Update, Vocabulary,
};
use trace_core::EventId;
use trace_models::neural::shape::EVENTS_PER_STEP;
use trace_models::neural::train::CorpusStatistics;

use crate::Error;
use crate::lab::{Lab, Report};
use crate::setup::Recipe;
use crate::simulator::Simulator;

/// Share of the corpus that is held out, to know the fit.
pub(crate) const HELD_OUT: f64 = 0.02;
/// Seed of the split, the weights and the order.
pub(crate) const SEED: u64 = 1;
/// How often a line is said of a training.
const SAY_EVERY: Duration = Duration::from_secs(30);

/// Trains the backbone of a recipe by one pass over its events, and writes its folder. Goes on where an earlier run
/// stopped: the log that it was trained on stays beside the checkpoint until the training is complete.
pub(crate) fn backbone(lab: &Lab<'_>, recipe: &Recipe, simulator: &Simulator, folder: &Path) -> Result<Model, Error> {
    let corpus = recipe.corpus(lab, simulator)?;
    let vocabulary = simulator.vocabulary();
    let options = options(recipe, &corpus, vocabulary.len())?;
    let log = log_of(folder);
    if !log.exists() {
        write_log(&log, corpus.iter().map(|events| (&**events, true)), &vocabulary)?;
    }
    drop(corpus);
    let process = lab.folder.join("processes").join(recipe.simulator.name());
    simulator.save(&process)?;

    let (cancel, ticker) = (Cancel::new(), Ticker::new(lab.reporter));
    let listen = |update: &Update<'_>| match update {
        Update::Step(progress) if !ticker.step(progress) => cancel.cancel(),
        Update::Note(note @ Note::ContinuingSteps(_)) => lab.say(&format!("  {note}")),
        _ => {}
    };
    let train = Train::with_options(options).vocabulary(vocabulary).process(process).to_folder(folder).resume(true);
    let model = train.progress(&listen).cancel(&cancel).run(&Log::open(&log)?)?;
    fs::remove_file(&log).map_err(Error::io(&log))?;
    Ok(model)
}

/// What the library is asked to train.
fn options(recipe: &Recipe, corpus: &Vec<Vec<EventId>>, types: usize) -> Result<TrainOptions, Error> {
    let network = match recipe.backbone {
        Backbone::Ngram => NetworkOptions::default(),
        backbone => {
            let statistics = CorpusStatistics::new(corpus, types, HELD_OUT, SEED)?;
            let Pass { batch, steps } = Pass::over(&statistics);
            let shape = recipe.shape;
            // Other networks than a LLaMA have no heads.
            let only_llama = |size: usize| (backbone == Backbone::Llama).then_some(size);
            NetworkOptions {
                layers: Some(shape.layers),
                width: Some(shape.hidden_size),
                heads: only_llama(shape.heads),
                head_width: only_llama(shape.head_dim),
                feed_forward: only_llama(shape.intermediate_size),
                steps: Some(steps),
                batch: Some(batch),
                length: Some(statistics.longest.max(2)),
                ..NetworkOptions::default()
            }
        }
    };
    Ok(TrainOptions { backbone: recipe.backbone, network, held_out: HELD_OUT, seed: SEED, ..TrainOptions::default() })
}

/// One pass over the training events of a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    /// Sequences per step.
    pub(crate) batch: usize,
    /// Steps.
    pub(crate) steps: u64,
}

impl Pass {
    pub(crate) fn over(statistics: &CorpusStatistics) -> Self {
        let mean = (statistics.events as f64 / statistics.sequences.max(1) as f64).max(1.0);
        let batch = (EVENTS_PER_STEP / mean).round().max(1.0);
        let steps = (statistics.training_events() as f64 / (batch * mean)).ceil().max(1.0);
        Self { batch: batch as usize, steps: steps as u64 }
    }
}

/// Where the log of an unfinished training is.
fn log_of(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".jsonl");
    PathBuf::from(name)
}

/// Writes sequences as a log, each with whether its case is still open; types without names as numbers.
pub(crate) fn write_log<'c>(
    path: &Path,
    corpus: impl Iterator<Item = (&'c [EventId], bool)>,
    vocabulary: &Vocabulary,
) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    trace_io::output::write_whole(path, |out| {
        for (index, (events, open)) in corpus.enumerate() {
            let names: Vec<_> = events.iter().map(|event| vocabulary.name(*event)).collect();
            writeln!(out, "{}", json!({"id": format!("s{index}"), "events": names, "open": open}))?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Tells how a training goes, every now and then.
pub(crate) struct Ticker<'r> {
    reporter: &'r dyn Report,
    last: Mutex<Instant>,
}

impl<'r> Ticker<'r> {
    pub(crate) fn new(reporter: &'r dyn Report) -> Self {
        Self { reporter, last: Mutex::new(Instant::now()) }
    }

    /// After a step; whether to go on.
    pub(crate) fn step(&self, progress: &TrainProgress) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() > SAY_EVERY {
            *last = Instant::now();
            self.reporter.say(&format!(
                "  {:.0} %, loss {:.3}, {:.0} events/s, about {:.0} s left",
                100.0 * progress.share,
                progress.loss,
                progress.events_per_second,
                progress.seconds_left
            ));
        }
        drop(last);
        !self.reporter.stop()
    }
}
