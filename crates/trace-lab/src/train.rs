//! Training a backbone inside the laboratory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use serde_json::{Value, json};
use trace_core::numerics::entropy;
use trace_core::{DensityModel, EventId, ModelError};
use trace_models::neural::NetworkConfig;
use trace_models::neural::shape::{DECAY, STEP_EVENTS, usual_pace};
use trace_models::neural::train::{
    Checkpoints, Echo, Limit, OptimiserKind, Schedule, Survey, TrainEnd, TrainObserver, TrainProgress, TrainSpec,
    TrainState,
};
use trace_models::{ModelRecord, write_folder};

use crate::Error;
use crate::lab::Lab;
use crate::stand::World;

/// Share of the corpus that is held out, to know the fit.
const HELD_OUT: f64 = 0.02;
/// Seed of weights and order.
const SEED: u64 = 1;
const CHECKPOINT_SECONDS: f64 = 30.0;
const SAY_EVERY: Duration = Duration::from_secs(30);

/// Trains a network by one pass over a corpus and writes its folder. Goes on where an earlier run stopped. The weights
/// after some shares of the training are kept too, in folders beside it.
pub fn network(
    lab: &Lab<'_>,
    world: &World,
    config: &NetworkConfig,
    corpus: &Vec<Vec<EventId>>,
    folder: &Path,
    shares: &[f64],
) -> Result<(), Error> {
    let types = world.oracle().vocabulary_size();
    let survey = Survey::new(corpus, types, HELD_OUT, SEED)?;
    let mean = survey.events as f64 / survey.sequences.max(1) as f64;
    let batch = (STEP_EVENTS / mean).round().max(1.0) as usize;
    let steps = (survey.training_events() as f64 / (batch as f64 * mean)).ceil() as u64;
    let (rate, pace) = usual_pace(config);
    let spec = TrainSpec {
        optimiser: OptimiserKind::AdamW,
        rate,
        schedule: Schedule::default(),
        pace,
        decay: DECAY,
        batch,
        length: survey.longest,
        limit: Limit::Steps(steps),
        seed: SEED,
        checkpoint_seconds: CHECKPOINT_SECONDS,
    };
    let settings = json!({"network": format!("{config:?}"), "spec": format!("{spec:?}"),
                          "corpus": format!("{:016x}", survey.fingerprint)});
    let checkpoints = Checkpoints::open(&Checkpoints::place(folder))?;
    let state = if checkpoints.exists() {
        checkpoints.load(&settings, spec.optimiser, config.parameters())?
    } else {
        let looks_back = matches!(config, NetworkConfig::Llama(_));
        let echo = if looks_back { Echo::measure(corpus, &survey)? } else { Echo::default() };
        config.fresh_state_on(corpus, &survey, &echo, SEED, spec.optimiser)?
    };
    let mut record = ModelRecord { event_counts: Some(survey.counts.clone()), ..ModelRecord::default() };
    record.special_tokens.insert(config.last_token().to_owned(), config.tokens() as u32 - 1);
    let save = |folder: &Path, weights: &[f32], record: ModelRecord| {
        write_folder(folder, |folder| config.save(folder, weights, &world.vocabulary(), record))
    };
    let place = marks(folder);
    let wanted: Vec<u64> = shares.iter().map(|share| ((share * steps as f64) as u64).max(1)).collect();
    if !wanted.is_empty() {
        fs::create_dir_all(&place).map_err(Error::io(&place))?;
    }
    let mut observer = Observer {
        lab,
        checkpoints: &checkpoints,
        settings: &settings,
        said: Instant::now(),
        mark: &|state| {
            let here = place.join(state.step.to_string());
            if wanted.contains(&state.step) { save(&here, &state.weights, record.clone()) } else { Ok(()) }
        },
    };
    let trained = config.train(corpus, &survey, &spec, state, &mut observer)?;
    if trained.end == TrainEnd::Interrupted {
        return Err(Error::Interrupted);
    }
    let training: BTreeMap<String, Value> = [
        ("events_trained_on".to_owned(), json!(trained.state.events)),
        ("steps".to_owned(), json!(trained.state.step)),
        ("seconds".to_owned(), json!(trained.state.seconds)),
    ]
    .into();
    let record = ModelRecord {
        held_out_loss: trained.held_out_loss,
        unigram_loss: survey.unigram_loss,
        // What the past leaves open is no bound for a model that sees both sides.
        entropy: match config.last_token() {
            "begin" => Some(process_entropy(world, &survey.held_out)?),
            _ => None,
        },
        training,
        ..record.clone()
    };
    save(folder, &trained.state.best, record)?;
    checkpoints.remove()?;
    Ok(())
}

/// Where weights along the training of a backbone are kept.
pub fn marks(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".along");
    PathBuf::from(name)
}

/// Mean loss of a model on these sequences, in nats an event.
pub fn loss(model: &dyn DensityModel, sequences: &[Vec<EventId>]) -> Result<f64, Error> {
    let sums = sequences
        .par_iter()
        .map(|events| Ok(model.read(events)?.observed().iter().map(|score| -score.log_p).sum::<f64>()))
        .collect::<Result<Vec<f64>, ModelError>>()
        .map_err(trace_core::Error::from)?;
    let events: usize = sequences.iter().map(Vec::len).sum();
    Ok(sums.iter().sum::<f64>() / events.max(1) as f64)
}

/// Mean entropy of the process on these sequences, in nats an event: what no model can beat on them.
pub fn process_entropy(world: &World, sequences: &[Vec<EventId>]) -> Result<f64, Error> {
    let oracle = world.oracle();
    let sums = sequences
        .par_iter()
        .map(|events| {
            let mut row = vec![0.0; oracle.vocabulary_size()];
            let mut sum = 0.0;
            for position in 0..events.len() {
                oracle.forward(&events[..position], position..position + 1, &mut row)?;
                sum += entropy(&row);
            }
            Ok(sum)
        })
        .collect::<Result<Vec<f64>, ModelError>>()
        .map_err(trace_core::Error::from)?;
    let events: usize = sequences.iter().map(Vec::len).sum();
    Ok(sums.iter().sum::<f64>() / events.max(1) as f64)
}

/// What to do with the state after a step.
type Mark<'m> = dyn Fn(&TrainState) -> Result<(), trace_models::Error> + 'm;

struct Observer<'o, 'l> {
    lab: &'o Lab<'l>,
    checkpoints: &'o Checkpoints,
    settings: &'o Value,
    said: Instant,
    mark: &'o Mark<'o>,
}

impl TrainObserver for Observer<'_, '_> {
    fn progress(&mut self, progress: &TrainProgress) -> bool {
        if self.said.elapsed() > SAY_EVERY {
            self.said = Instant::now();
            self.lab.say(&format!(
                "  {:.0} %, loss {:.3}, {:.0} events/s, about {:.0} s left",
                100.0 * progress.share,
                progress.loss,
                progress.events_per_second,
                progress.seconds_left
            ));
        }
        self.lab.check_stop().is_ok()
    }

    fn stepped(&mut self, state: &TrainState) -> Result<(), trace_models::Error> {
        (self.mark)(state)
    }

    fn checkpoint(&mut self, state: &TrainState) -> Result<(), trace_models::Error> {
        self.checkpoints.save(self.settings, state)
    }
}
