//! Training a masked encoder (BERT), whose attention a rival method looks at. It predicts no next event, so that
//! [`trace_causal::Train`] does not train it.

use std::path::Path;

use serde_json::{Value, json};
use trace_core::{EventId, Vocabulary};
use trace_models::neural::shape::{Shape, WEIGHT_DECAY, default_learning_rates};
use trace_models::neural::train::{
    Checkpoints, CorpusStatistics, Limit, OptimizerKind, Schedule, TrainEnd, TrainObserver, TrainProgress, TrainSpec,
    TrainState,
};
use trace_models::{ModelRecord, check_replaceable, write_folder};

use crate::Error;
use crate::lab::{Lab, Report};
use crate::setup::Recipe;
use crate::simulator::Simulator;
use crate::train::{HELD_OUT, Pass, SEED, Ticker};

const CHECKPOINT_SECONDS: f64 = 30.0;
/// The most passes over the events where the loss decides when to end.
const MOST_PASSES: u64 = 20;

/// How to train an encoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncoderOptions {
    /// Its size; by the corpus where it is left open.
    pub shape: Option<Shape>,
    /// When to end.
    pub limit: EncoderLimit,
    /// Share of sequences to measure the fit on instead of training on them.
    pub held_out: f64,
    /// Seed of the split, the weights, the order and the masks.
    pub seed: u64,
}

/// When the training of an encoder ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EncoderLimit {
    /// After one pass over the training events.
    OnePass,
    /// After this many steps.
    Steps(u64),
    /// After this many minutes.
    Minutes(f64),
    /// When the held-out loss no longer falls.
    EarlyStop,
}

/// What a training came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainedEncoder {
    /// How many numbers the encoder is made of.
    pub parameters: usize,
    /// Steps.
    pub steps: u64,
    /// Seconds that they took.
    pub seconds: f64,
    /// Cross-entropy of masked events that were held out, in nats per event.
    pub held_out_loss: Option<f64>,
}

/// Trains an encoder and writes its folder. Goes on where an earlier run with the same options stopped.
pub fn train_encoder(
    corpus: &Vec<Vec<EventId>>,
    vocabulary: &Vocabulary,
    options: &EncoderOptions,
    folder: &Path,
    reporter: &dyn Report,
) -> Result<TrainedEncoder, Error> {
    check_replaceable(folder)?;
    let types = vocabulary.len();
    let statistics = CorpusStatistics::new(corpus, types, options.held_out, options.seed)?;
    let shape = options.shape.unwrap_or_else(|| Shape::for_corpus(types, statistics.training_events()));
    let config = shape.encoder(types, statistics.longest.max(2));
    let pass = Pass::over(&statistics);
    let (learning_rate, learning_rates) = default_learning_rates(&config);
    let spec = TrainSpec {
        optimizer: OptimizerKind::AdamW,
        learning_rate,
        schedule: Schedule::default(),
        learning_rates,
        weight_decay: WEIGHT_DECAY,
        batch: pass.batch,
        length: statistics.longest.max(2),
        limit: match options.limit {
            EncoderLimit::OnePass => Limit::Steps(pass.steps),
            EncoderLimit::Steps(steps) => Limit::Steps(steps),
            EncoderLimit::Minutes(minutes) => Limit::Minutes(minutes),
            EncoderLimit::EarlyStop => Limit::EarlyStop(MOST_PASSES * pass.steps),
        },
        seed: options.seed,
        checkpoint_seconds: CHECKPOINT_SECONDS,
    };
    let settings = json!({"network": format!("{config:?}"), "spec": format!("{spec:?}"),
                          "held_out": options.held_out, "corpus": format!("{:016x}", statistics.fingerprint)});
    let checkpoints = Checkpoints::open(&Checkpoints::place(folder))?;
    let state = if checkpoints.exists() {
        checkpoints.load(&settings, spec.optimizer, config.parameters())?
    } else {
        config.fresh_state(spec.seed, spec.optimizer)
    };
    let mut observer = Observer { checkpoints: &checkpoints, settings: &settings, ticker: Ticker::new(reporter) };
    let trained = config.train(corpus, &statistics, &spec, state, &mut observer)?;
    if trained.end == TrainEnd::Interrupted {
        return Err(Error::Interrupted);
    }
    let mut record = ModelRecord {
        held_out_loss: trained.held_out_loss,
        unigram_loss: statistics.unigram_loss,
        event_counts: Some(statistics.counts.clone()),
        ..ModelRecord::default()
    };
    record.special_tokens.insert(config.last_token().to_owned(), types as u32);
    record.training.insert("events_trained_on".to_owned(), json!(trained.state.events));
    record.training.insert("steps".to_owned(), json!(trained.state.step));
    record.training.insert("seed".to_owned(), json!(options.seed));
    write_folder(folder, |folder| config.save(folder, &trained.state.best, vocabulary, record))?;
    checkpoints.remove()?;
    Ok(TrainedEncoder {
        parameters: config.parameters(),
        steps: trained.state.step,
        seconds: trained.state.seconds,
        held_out_loss: trained.held_out_loss,
    })
}

/// The encoder of a recipe: of the backbone's size, by one pass over the same events.
pub(crate) fn in_lab(lab: &Lab<'_>, recipe: &Recipe, simulator: &Simulator, folder: &Path) -> Result<(), Error> {
    let corpus = recipe.corpus(lab, simulator)?;
    let options =
        EncoderOptions { shape: Some(recipe.shape), limit: EncoderLimit::OnePass, held_out: HELD_OUT, seed: SEED };
    train_encoder(&corpus, &simulator.vocabulary(), &options, folder, lab.reporter)?;
    Ok(())
}

struct Observer<'o> {
    checkpoints: &'o Checkpoints,
    settings: &'o Value,
    ticker: Ticker<'o>,
}

impl TrainObserver for Observer<'_> {
    fn progress(&mut self, progress: &TrainProgress) -> bool {
        self.ticker.step(progress)
    }

    fn checkpoint(&mut self, state: &TrainState) -> Result<(), trace_models::Error> {
        self.checkpoints.save(self.settings, state)
    }
}
