//! Training a network, with checkpoints that a later run goes on from.

use std::path::Path;

use serde_json::{Value, json};
use trace_models::neural::NetworkConfig;
use trace_models::neural::shape::{EVENTS_PER_STEP, WEIGHT_DECAY, default_learning_rates};
use trace_models::neural::train::{
    Checkpoints, CorpusStatistics, Limit, OptimizerKind, TrainEnd, TrainObserver, TrainProgress, TrainSpec, TrainState,
    Trained,
};
use trace_models::{ModelRecord, write_folder};

use super::corpus::LogCorpus;
use super::{
    CORPUS, Floors, Part, Train, TrainLimit, TrainOptions, TrainPlan, TrainReport, check_process, process_entropy, size,
};
use crate::error::Kept;
use crate::progress::{Control, Note, Update};
use crate::{Error, Log, Model};

/// Events that a sequence is cut into pieces of, unless asked otherwise.
const LONGEST_PIECE: usize = 256;
const CHECKPOINT_SECONDS: f64 = 30.0;
/// Bytes of attention weights that a training step may keep for one sequence.
const MOST_SCORES: usize = 4 << 30;
/// Without a limit: how often to go through the corpus, and how many events to train on at least and at most.
const EPOCHS: usize = 20;
const LEAST_EVENTS: usize = 300_000;
const MOST_EVENTS: usize = 10_000_000;
/// A fit that was measured on fewer held-out events says little.
const FEW_EVENTS: usize = 30;

/// Trains a network for each part.
pub(super) fn train(run: &Train<'_>, log: &Log, parts: &[Part]) -> Result<(), Error> {
    let process = run.open_process()?;
    let (vocabulary, summary) = log.vocabulary(run.vocabulary.as_ref())?;
    run.control.update(&Update::Read(&summary));
    // Of the whole log, so that both halves of a cross-fit predict the same.
    let end = summary.ended_cases > 0;
    check_process(process.as_ref(), end)?;
    for part in parts {
        let corpus = LogCorpus { log, vocabulary: &vocabulary, part };
        train_part(run, &corpus, end, process.as_ref())?;
    }
    Ok(())
}

fn train_part(run: &Train<'_>, corpus: &LogCorpus<'_>, end: bool, process: Option<&Model>) -> Result<(), Error> {
    let (Train { options, control, .. }, LogCorpus { log, vocabulary, part }) = (run, corpus);
    let folder = &part.folder;
    let statistics = CorpusStatistics::with_end(corpus, vocabulary.len(), end, options.held_out, options.seed)
        .map_err(|error| Error::Training { log: log.name().to_owned(), error })?;
    part.check_count(statistics.sequences)?;
    if run.resume && part.is_done(run, log, &statistics)? {
        control.note(&Note::CompleteAlready(part.name.clone()));
        return Ok(());
    }
    let held_out = statistics.held_out_events();
    warn_of_few(run, statistics.sequences, statistics.events, statistics.held_out.len(), held_out);
    let entropy = match process {
        Some(process) => {
            let held_out = statistics.held_out.iter().map(Vec::as_slice);
            Some(process_entropy(process, held_out, vocabulary)?)
        }
        None => None,
    };
    let length = piece_length(options, &statistics);
    let config = size::network(options.backbone, &options.network, &statistics, length)?;
    check_scores(&config, length)?;
    let spec = spec(options, &config, &statistics, length);
    let types = vocabulary.len();
    let floors = Floors { unigram: statistics.unigram_loss, ngram: statistics.ngram_loss, entropy, types };
    control.update(&Update::Training(&plan(&config, &spec, &statistics, floors)));

    let checkpoints = Checkpoints::open(&Checkpoints::place(folder))?;
    let settings = settings(options, &config, &spec, &statistics);
    let state = start(run, &checkpoints, &config, &spec, &settings)?;
    let mut observer = Observer { checkpoints: &checkpoints, settings: &settings, control };
    let trained = match config.train(corpus, &statistics, &spec, state, &mut observer) {
        Ok(trained) => trained,
        Err(error) => {
            if !checkpoints.exists() {
                checkpoints.remove()?; // nothing there to continue from
            }
            return Err(error.into());
        }
    };
    if trained.end == TrainEnd::Interrupted {
        let kept = Kept::Steps { done: trained.state.step, place: Checkpoints::place(folder) };
        return Err(Error::Cancelled(kept));
    }
    let mut record = record(run, corpus, &spec, &statistics, &trained, floors)?;
    record.special_tokens.insert(config.last_token().to_owned(), config.vocab_size() as u32 - 1);
    record.special_tokens.extend(statistics.end.map(|end| ("end".to_owned(), end.0)));
    write_folder(folder, |folder| {
        config.save(folder, &trained.state.best, vocabulary, record)?;
        statistics.split.save(folder)
    })?;
    checkpoints.remove()?;
    control.update(&Update::Trained(&report(&part.name, &config, &trained, floors)));
    Ok(())
}

/// Says so when the fit is measured on next to nothing, or not at all.
pub(super) fn warn_of_few(run: &Train<'_>, sequences: usize, events: usize, held_out: usize, held_out_events: usize) {
    if run.options.held_out == 0.0 {
        return; // as asked for
    }
    if sequences == 1 {
        run.control.note(&Note::OneSequence { events });
    } else if held_out_events < FEW_EVENTS {
        run.control.note(&Note::FewHeldOut { sequences: held_out, events: held_out_events });
    }
}

/// The most events that are read at once.
fn piece_length(options: &TrainOptions, statistics: &CorpusStatistics) -> usize {
    let longest = statistics.longest.max(2);
    options.network.length.unwrap_or(LONGEST_PIECE).min(longest)
}

/// Refuses lengths whose attention weights no machine would hold.
fn check_scores(config: &NetworkConfig, length: usize) -> Result<(), Error> {
    let heads = match config {
        NetworkConfig::Llama(config) => config.layers * config.heads,
        _ => 0,
    };
    let bytes = heads * length * length * size_of::<f32>();
    if bytes > MOST_SCORES {
        let reason = format!(
            "{length}: a training step would keep {} GB of attention weights for one sequence; expected less than {} GB, \
             with shorter pieces, fewer heads or layers",
            bytes >> 30,
            MOST_SCORES >> 30
        );
        return Err(Error::option("length", reason));
    }
    Ok(())
}

fn spec(options: &TrainOptions, config: &NetworkConfig, statistics: &CorpusStatistics, length: usize) -> TrainSpec {
    let network = &options.network;
    let mean = (statistics.targets as f64 / statistics.sequences as f64).clamp(1.0, length as f64);
    let batch = network.batch.unwrap_or((EVENTS_PER_STEP / mean).round().max(1.0) as usize);
    let limit = match (network.steps, network.minutes) {
        (Some(steps), _) => Limit::Steps(steps),
        (None, Some(minutes)) => Limit::Minutes(minutes),
        (None, None) => {
            let events = (statistics.training_events() * EPOCHS).clamp(LEAST_EVENTS, MOST_EVENTS);
            Limit::EarlyStop((events as f64 / (batch as f64 * mean)).ceil() as u64)
        }
    };
    let (learning_rate, learning_rates) = default_learning_rates(config);
    TrainSpec {
        optimizer: network.optimizer.unwrap_or(OptimizerKind::AdamW),
        learning_rate: network.learning_rate.unwrap_or(learning_rate),
        schedule: network.schedule.unwrap_or_default(),
        learning_rates,
        weight_decay: network.weight_decay.unwrap_or(WEIGHT_DECAY),
        batch,
        length,
        limit,
        seed: options.seed,
        checkpoint_seconds: network.checkpoint_seconds.unwrap_or(CHECKPOINT_SECONDS),
    }
}

/// All that decides what a run does: a run with other settings cannot go on from its checkpoint.
fn settings(options: &TrainOptions, config: &NetworkConfig, spec: &TrainSpec, statistics: &CorpusStatistics) -> Value {
    json!({
        "network": format!("{config:?}"),
        "optimizer": spec.optimizer,
        "learning_rate": spec.learning_rate,
        "schedule": spec.schedule,
        "learning_rates": format!("{:?}", spec.learning_rates),
        "weight_decay": spec.weight_decay,
        "batch": spec.batch,
        "length": spec.length,
        "limit": format!("{:?}", spec.limit),
        "seed": spec.seed,
        "held_out": options.held_out,
        "sequences": statistics.sequences,
        "events": statistics.events,
        CORPUS: fingerprint(statistics),
    })
}

/// A hash of the sequences, as records have it.
pub(super) fn fingerprint(statistics: &CorpusStatistics) -> String {
    format!("{:016x}", statistics.fingerprint)
}

/// Where the run starts.
fn start(
    run: &Train<'_>,
    checkpoints: &Checkpoints,
    config: &NetworkConfig,
    spec: &TrainSpec,
    settings: &Value,
) -> Result<TrainState, Error> {
    if run.resume && checkpoints.exists() {
        let state = checkpoints.load(settings, spec.optimizer, config.parameters())?;
        run.control.note(&Note::ContinuingSteps(state.step));
        return Ok(state);
    }
    if run.resume {
        run.control.note(&Note::NothingToContinue);
    } else if checkpoints.exists() {
        run.control.note(&Note::StartingOver);
    }
    checkpoints.clear()?;
    Ok(config.fresh_state(spec.seed, spec.optimizer))
}

fn plan(config: &NetworkConfig, spec: &TrainSpec, statistics: &CorpusStatistics, floors: Floors) -> TrainPlan {
    TrainPlan {
        backbone: config.backbone().to_owned(),
        parameters: config.parameters(),
        limit: match spec.limit {
            Limit::Steps(steps) => TrainLimit::Steps(steps),
            Limit::Minutes(minutes) => TrainLimit::Minutes(minutes),
            Limit::EarlyStop(steps) => TrainLimit::EarlyStop(steps),
        },
        batch: spec.batch,
        pieces: (statistics.longest > spec.length).then_some(spec.length),
        floors,
    }
}

/// What `trace.json` says of the run.
fn record(
    run: &Train<'_>,
    corpus: &LogCorpus<'_>,
    spec: &TrainSpec,
    statistics: &CorpusStatistics,
    trained: &Trained,
    floors: Floors,
) -> Result<ModelRecord, Error> {
    let mut training = run.record_of_types(corpus.log, corpus.vocabulary)?;
    let measured = [
        ("sequences", json!(statistics.sequences)),
        ("events", json!(statistics.events)),
        ("held_out_sequences", json!(statistics.held_out.len())),
        (CORPUS, json!(fingerprint(statistics))),
        ("ngram_loss", json!(statistics.ngram_loss.map(|(_, loss)| loss))),
        ("optimizer", json!(spec.optimizer)),
        ("learning_rate", json!(spec.learning_rate)),
        ("schedule", json!(spec.schedule)),
        ("weight_decay", json!(spec.weight_decay)),
        ("batch", json!(spec.batch)),
        ("length", json!(spec.length)),
        ("steps", json!(trained.state.step)),
        ("events_trained_on", json!(trained.state.events)),
        ("early_stop", json!(trained.end == TrainEnd::EarlyStop)),
        ("tile_unit", json!(trace_kernels::matmul::tile_unit())),
    ];
    training.extend(measured.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Ok(ModelRecord {
        held_out_loss: trained.held_out_loss,
        unigram_loss: floors.unigram,
        entropy: floors.entropy,
        event_counts: Some(statistics.counts.clone()),
        training: training.into_iter().collect(),
        ..ModelRecord::default()
    })
}

fn report(folder: &Path, config: &NetworkConfig, trained: &Trained, floors: Floors) -> TrainReport {
    TrainReport {
        folder: folder.to_owned(),
        backbone: config.backbone().to_owned(),
        order: None,
        parameters: config.parameters(),
        steps: Some(trained.state.step),
        events: Some(trained.state.events),
        seconds: trained.state.seconds,
        stopped_early: trained.end == TrainEnd::EarlyStop,
        held_out_loss: trained.held_out_loss,
        floors,
    }
}

/// Passes progress on and writes checkpoints.
struct Observer<'o> {
    checkpoints: &'o Checkpoints,
    settings: &'o Value,
    control: &'o Control<'o>,
}

impl TrainObserver for Observer<'_> {
    fn progress(&mut self, progress: &TrainProgress) -> bool {
        self.control.update(&Update::Step(progress));
        !self.control.is_cancelled()
    }

    fn checkpoint(&mut self, state: &TrainState) -> Result<(), trace_models::Error> {
        self.checkpoints.save(self.settings, state)
    }
}
