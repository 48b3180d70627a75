//! Training a neural backbone.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use trace_core::theory::Fitness;
use trace_models::neural::NetworkConfig;
use trace_models::neural::shape::{DECAY, STEP_EVENTS, usual_pace};
use trace_models::neural::train::{
    Checkpoints, Echo, Limit, OptimiserKind, Schedule, Survey, TrainEnd, TrainObserver, TrainProgress, TrainSpec,
    TrainState, Trained,
};
use trace_models::{ModelRecord, write_folder};

use super::corpus::LogCorpus;
use super::{open_process, process_entropy, size};
use crate::cli::{Backbone, OptimiserFlag, ScheduleFlag, TrainArgs};
use crate::commands::log::SHAPING;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::say;

/// Events that a sequence is cut into pieces of, unless asked otherwise.
const LONGEST_WINDOW: usize = 256;
const CHECKPOINT_SECONDS: f64 = 30.0;
/// Bytes of attention weights that a training step may keep for one sequence.
const MOST_SCORES: usize = 4 << 30;
/// Without a limit: how often to go through the corpus, and how many events to train on at least and at most.
const EPOCHS: usize = 20;
const LEAST_EVENTS: usize = 300_000;
const MOST_EVENTS: usize = 10_000_000;

pub fn train(args: &TrainArgs, quiet: bool) -> anyhow::Result<()> {
    let process = open_process(args)?;
    let corpus = LogCorpus::open(&args.log)?;
    let types = corpus.vocabulary.len();
    say(quiet, corpus.summary.line());
    let mut survey = Survey::new(&corpus, types, args.held_out, args.seed).with_context(|| corpus.name.clone())?;
    if args.backbone == Backbone::Bert {
        survey.ngram_loss = None; // of predictions from the past alone: nothing to compare a masked model with
    }
    let entropy = match &process {
        Some(process) => {
            let held_out = survey.held_out.iter().map(Vec::as_slice);
            Some(process_entropy(&*process.model, &process.vocabulary, held_out, &corpus.vocabulary)?)
        }
        None => None,
    };
    let length = length(args, &survey)?;
    let echo = match args.backbone {
        Backbone::Llama => Echo::measure(&corpus, &survey)?,
        _ => Echo::default(), // the others look back by themselves
    };
    let config = size::network(args, types, survey.training_events(), length, &echo)?;
    check_scores(&config, length)?;
    let spec = spec(args, &config, &survey, length)?;
    let settings = settings(args, &config, &spec, &survey);
    say(quiet, introduce(&config, &spec, &survey, entropy));

    let checkpoints = Checkpoints::open(&Checkpoints::place(&args.out))?;
    let fresh = || config.fresh_state_on(&corpus, &survey, &echo, args.seed, spec.optimiser);
    let state = begin(args, &checkpoints, &config, &spec, &settings, quiet, fresh)?;
    interrupt::watch()?;
    let fitness = Fitness { held_out_loss: None, unigram_loss: survey.unigram_loss, entropy };
    let mut observer = Observer::new(&checkpoints, &settings, fitness, types, quiet);
    let outcome = config.train(&corpus, &survey, &spec, state, &mut observer);
    observer.finish();
    let trained = match outcome {
        Ok(trained) => trained,
        Err(error) => {
            if !checkpoints.exists() {
                checkpoints.remove()?; // nothing there to continue from
            }
            return Err(error.into());
        }
    };
    if trained.end == TrainEnd::Interrupted {
        let place = Checkpoints::place(&args.out);
        return Err(Failure::interrupted(format!(
            "{} steps are kept in {}; --resume continues",
            trained.state.step,
            place.display()
        )));
    }
    let fitness = Fitness { held_out_loss: trained.held_out_loss, ..fitness };
    let mut record = record(args, &spec, &survey, &trained, fitness);
    record.special_tokens.insert(config.last_token().to_owned(), config.tokens() as u32 - 1);
    write_folder(&args.out, |folder| config.save(folder, &trained.state.best, &corpus.vocabulary, record))?;
    checkpoints.remove()?;
    say(quiet, describe(args, &config, &survey, &trained, fitness, types));
    Ok(())
}

/// The most events that are read at once.
fn length(args: &TrainArgs, survey: &Survey) -> anyhow::Result<usize> {
    match args.length {
        Some(length) if !(2..=1 << 20).contains(&length) => {
            Err(Failure::usage(format!("--length: {length} is out of range; expected 2 to {}", 1 << 20)))
        }
        Some(length) => Ok(length.min(survey.longest.max(2))),
        None => Ok(survey.longest.clamp(2, LONGEST_WINDOW)),
    }
}

/// Refuses lengths whose attention weights no machine would hold.
fn check_scores(config: &NetworkConfig, length: usize) -> anyhow::Result<()> {
    let heads = match config {
        NetworkConfig::Llama(config) => config.layers * config.heads,
        NetworkConfig::Bert(config) => config.layers * config.heads,
        _ => 0,
    };
    let bytes = heads * length * length * size_of::<f32>();
    if bytes > MOST_SCORES {
        return Err(Failure::usage(format!(
            "--length {length}: a training step would keep {} GB of attention weights for one sequence; expected less \
             than {} GB, with shorter pieces, fewer heads or layers",
            bytes >> 30,
            MOST_SCORES >> 30
        )));
    }
    Ok(())
}

fn spec(args: &TrainArgs, config: &NetworkConfig, survey: &Survey, length: usize) -> anyhow::Result<TrainSpec> {
    let mean = (survey.events as f64 / survey.sequences as f64).clamp(1.0, length as f64);
    let batch = match args.batch {
        Some(batch) if !(1..=1 << 20).contains(&batch) => {
            return Err(Failure::usage(format!("--batch: {batch} is out of range; expected 1 to {}", 1 << 20)));
        }
        Some(batch) => batch,
        None => (STEP_EVENTS / mean).round().max(1.0) as usize,
    };
    let limit = match (args.steps, args.minutes) {
        (Some(0), _) => return Err(Failure::usage("--steps: expected at least 1")),
        (Some(steps), _) => Limit::Steps(steps),
        (None, Some(minutes)) if !(minutes > 0.0 && minutes < 1e6) => {
            return Err(Failure::usage(format!("--minutes: {minutes} is out of range; expected more than 0")));
        }
        (None, Some(minutes)) => Limit::Minutes(minutes),
        (None, None) => {
            let events = (survey.training_events() * EPOCHS).clamp(LEAST_EVENTS, MOST_EVENTS);
            Limit::EarlyStop((events as f64 / (batch as f64 * mean)).ceil() as u64)
        }
    };
    let optimiser = match args.optimiser.unwrap_or_default() {
        OptimiserFlag::Muon => OptimiserKind::Muon,
        OptimiserFlag::Adamw => OptimiserKind::AdamW,
    };
    let schedule = match args.schedule.unwrap_or_default() {
        ScheduleFlag::Linear => Schedule::Linear,
        ScheduleFlag::Cosine => Schedule::Cosine,
    };
    let (usual_rate, pace) = usual_pace(config);
    let rate = args.learning_rate.unwrap_or(usual_rate);
    if !(rate > 0.0 && rate < 10.0) {
        return Err(Failure::usage(format!("--learning-rate: {rate} is out of range; expected more than 0, below 10")));
    }
    let checkpoint_seconds = args.checkpoint_seconds.unwrap_or(CHECKPOINT_SECONDS);
    if !(0.0..1e6).contains(&checkpoint_seconds) {
        return Err(Failure::usage(format!(
            "--checkpoint-seconds: {checkpoint_seconds} is out of range; expected 0 or more"
        )));
    }
    let decay = args.weight_decay.unwrap_or(DECAY);
    if !(0.0..=10.0).contains(&decay) {
        return Err(Failure::usage(format!("--weight-decay: {decay} is out of range; expected 0 to 10")));
    }
    Ok(TrainSpec { optimiser, rate, schedule, pace, decay, batch, length, limit, seed: args.seed, checkpoint_seconds })
}

/// All that decides what a run does, for `--resume` to compare.
fn settings(args: &TrainArgs, config: &NetworkConfig, spec: &TrainSpec, survey: &Survey) -> Value {
    json!({
        "network": format!("{config:?}"),
        "optimiser": spec.optimiser,
        "learning_rate": spec.rate,
        "schedule": spec.schedule,
        "pace": format!("{:?}", spec.pace),
        "weight_decay": spec.decay,
        "batch": spec.batch,
        "length": spec.length,
        "limit": format!("{:?}", spec.limit),
        "seed": spec.seed,
        "held_out": args.held_out,
        "sequences": survey.sequences,
        "events": survey.events,
        "corpus": format!("{:016x}", survey.fingerprint),
    })
}

/// Where the run starts.
fn begin(
    args: &TrainArgs,
    checkpoints: &Checkpoints,
    config: &NetworkConfig,
    spec: &TrainSpec,
    settings: &Value,
    quiet: bool,
    fresh: impl FnOnce() -> Result<TrainState, trace_models::Error>,
) -> anyhow::Result<TrainState> {
    if args.resume && checkpoints.exists() {
        let state = checkpoints.load(settings, spec.optimiser, config.parameters())?;
        say(quiet, format_args!("continuing after {} steps", state.step));
        return Ok(state);
    }
    if args.resume {
        say(quiet, "nothing to continue; starting from the beginning");
    } else if checkpoints.exists() {
        say(quiet, "starting over: an earlier, unfinished run is discarded (--resume would continue it)");
    }
    checkpoints.clear()?;
    Ok(fresh()?)
}

fn introduce(config: &NetworkConfig, spec: &TrainSpec, survey: &Survey, entropy: Option<f64>) -> String {
    let mut text = format!("{} with {} parameters, ", config.backbone(), config.parameters());
    text += &match spec.limit {
        Limit::Steps(steps) => format!("{steps} steps"),
        Limit::Minutes(minutes) => format!("{minutes} minutes"),
        Limit::EarlyStop(steps) => format!("at most {steps} steps"),
    };
    text += &format!(" of {} sequences", spec.batch);
    if survey.longest > spec.length {
        text += &format!("; sequences are cut into pieces of {} events", spec.length);
    }
    let mut floors = Vec::new();
    floors.extend(survey.unigram_loss.map(|loss| format!("event frequencies {loss:.3}")));
    floors.extend(survey.ngram_loss.map(|(order, loss)| format!("{order}-gram {loss:.3}")));
    floors.extend(entropy.map(|entropy| format!("the process itself {entropy:.3}")));
    if !floors.is_empty() {
        text += &format!("\nheld-out losses to compare with, in nats an event: {}", floors.join(", "));
    }
    text
}

/// What `trace.json` says of the run.
fn record(args: &TrainArgs, spec: &TrainSpec, survey: &Survey, trained: &Trained, fitness: Fitness) -> ModelRecord {
    let mut training: BTreeMap<String, Value> = [
        ("command", json!(format!("train --backbone {}", args.backbone.name()))),
        ("sequences", json!(survey.sequences)),
        ("events", json!(survey.events)),
        ("held_out_sequences", json!(survey.held_out.len())),
        ("ngram_loss", json!(survey.ngram_loss.map(|(_, loss)| loss))),
        ("optimiser", json!(spec.optimiser)),
        ("learning_rate", json!(spec.rate)),
        ("schedule", json!(spec.schedule)),
        ("weight_decay", json!(spec.decay)),
        ("batch", json!(spec.batch)),
        ("length", json!(spec.length)),
        ("steps", json!(trained.state.step)),
        ("events_trained_on", json!(trained.state.events)),
        ("early_stop", json!(trained.end == TrainEnd::EarlyStop)),
        ("tile_unit", json!(trace_models::tile_unit())),
        ("seed", json!(spec.seed)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    training.extend(args.log.shaping().map(|shaping| (SHAPING.to_owned(), json!(shaping))));
    ModelRecord {
        held_out_loss: fitness.held_out_loss,
        unigram_loss: fitness.unigram_loss,
        entropy: fitness.entropy,
        event_counts: Some(survey.counts.clone()),
        training,
        ..ModelRecord::default()
    }
}

fn describe(
    args: &TrainArgs,
    config: &NetworkConfig,
    survey: &Survey,
    trained: &Trained,
    fitness: Fitness,
    types: usize,
) -> String {
    let state = &trained.state;
    let mut text = format!(
        "{}: {} with {} parameters after {} steps on {} events in {}",
        args.out.display(),
        config.backbone(),
        config.parameters(),
        state.step,
        state.events,
        time(state.seconds)
    );
    if trained.end == TrainEnd::EarlyStop {
        text += ", stopped because the held-out loss no longer fell";
    }
    let Some(loss) = fitness.held_out_loss else { return text + "; nothing was held out, so its fit is unknown" };
    let mut remarks = String::new();
    let event = if args.backbone == Backbone::Bert { "a hidden event" } else { "an event" };
    text += &format!("\nheld-out loss {loss:.3} nats {event}");
    if let Some(unigram) = fitness.unigram_loss {
        text += &format!("; frequencies alone {unigram:.3}");
        if loss > unigram - 0.01 {
            remarks +=
                "\nwarning: the model predicts no better than event frequencies; expect to find no causes with it";
        }
    }
    if let Some((order, floor)) = survey.ngram_loss {
        text += &format!("; {order}-gram {floor:.3}");
        if loss > floor {
            remarks += "\nnote: counting n-grams predicts better; more training, or --backbone ngram, would help";
        }
    }
    if let Some(score) = fitness.epsilon_hat(types) {
        text += &format!("; oracle score {score:.4} (0 is perfect, 1 a uniform guess)");
    }
    text + &remarks
}

/// Seconds for people.
fn time(seconds: f64) -> String {
    if !seconds.is_finite() {
        "?".to_owned()
    } else if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else if seconds < 5400.0 {
        format!("{:.1} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

/// Shows progress and writes checkpoints.
struct Observer<'o> {
    checkpoints: &'o Checkpoints,
    settings: &'o Value,
    fitness: Fitness,
    types: usize,
    bar: Option<ProgressBar>,
    lines: bool,
    last: Instant,
}

const LINE_EVERY: Duration = Duration::from_secs(10);

impl<'o> Observer<'o> {
    fn new(checkpoints: &'o Checkpoints, settings: &'o Value, fitness: Fitness, types: usize, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("training {bar:20} {percent} %  {msg}") {
                bar.set_style(style);
            }
            bar
        });
        let lines = !quiet && bar.is_none();
        Self { checkpoints, settings, fitness, types, bar, lines, last: Instant::now() }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn message(&self, progress: &TrainProgress) -> String {
        let mut text = format!("step {}, epoch {}, loss {:.3}", progress.step, progress.epoch, progress.loss);
        if let Some(loss) = progress.held_out_loss {
            text += &format!(", held-out {loss:.3}");
            let fitness = Fitness { held_out_loss: Some(loss), ..self.fitness };
            match (fitness.epsilon_hat(self.types), fitness.unigram_loss) {
                (Some(score), _) => text += &format!(" (oracle score {score:.3})"),
                (None, Some(unigram)) => text += &format!(" (frequencies {unigram:.3})"),
                (None, None) => {}
            }
        }
        text + &format!(", {:.0} events/s, {} left", progress.events_per_second, time(progress.seconds_left))
    }
}

impl TrainObserver for Observer<'_> {
    fn progress(&mut self, progress: &TrainProgress) -> bool {
        if let Some(bar) = &self.bar {
            bar.set_position((progress.share.min(1.0) * 1000.0) as u64);
            bar.set_message(self.message(progress));
        } else if self.lines && (self.last.elapsed() >= LINE_EVERY) {
            self.last = Instant::now();
            eprintln!("training: {:.0} %, {}", 100.0 * progress.share.min(1.0), self.message(progress));
        }
        !interrupt::requested()
    }

    fn checkpoint(&mut self, state: &TrainState) -> Result<(), trace_models::Error> {
        self.checkpoints.save(self.settings, state)
    }
}
