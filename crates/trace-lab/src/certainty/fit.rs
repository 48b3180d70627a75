//! The models: the process itself, one that fits, and two that do not.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use trace_causal::{Backbone, Cancel, Log, Model, Order, Train, TrainOptions, Update};
use trace_core::{DensityModel, EventSequence, ModelError};

use super::Scope;
use super::world::{FITTED_ON, Kind, LogKind, TRAINED_ON, World};
use crate::lab::Report;
use crate::train::{Ticker, write_log};
use crate::{Error, Size};

/// What the evidence rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fitted {
    /// The process itself.
    Oracle,
    /// A network on plenty of sequences.
    Network,
    /// The same on a tenth of them.
    Tenth,
    /// An n-gram of order 2 on all.
    Bigram,
}

/// A model that has its loss within this many nats of the process's own fits.
pub(super) const GATE: f64 = 0.05;

impl Fitted {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Oracle, Self::Network, Self::Tenth, Self::Bigram];

    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Oracle => "oracle",
            Self::Network => "network",
            Self::Tenth => "tenth",
            Self::Bigram => "order-2",
        }
    }

    /// What it is trained as.
    fn options(self, log: LogKind, seed: u64) -> TrainOptions {
        let options = TrainOptions { seed, ..TrainOptions::default() };
        match self {
            Self::Bigram => TrainOptions { backbone: Backbone::Ngram, order: Some(Order::Fixed(2)), ..options },
            _ if log.kind == Kind::Scm => TrainOptions { backbone: Backbone::Llama, ..options },
            _ => TrainOptions { backbone: Backbone::Gru, ..options },
        }
    }

    /// How many sequences it is trained on.
    fn sequences(self, log: LogKind, size: Size) -> usize {
        let all = size.pick(400, 3_000, 10_000, 20_000) * if matches!(log.kind, Kind::Workflow(_)) { 1 } else { 2 };
        if self == Self::Tenth { all / 10 } else { all }
    }
}

/// A trained model; none for the process itself.
pub(super) struct Trained(Option<Model>);

impl Trained {
    /// Opens the model from the folder of results, training it first where it is not there.
    pub(super) fn new(
        scope: &Scope<'_>,
        world: &World,
        log: LogKind,
        fitted: Fitted,
        seed: u64,
    ) -> Result<Self, Error> {
        if fitted == Fitted::Oracle {
            return Ok(Self(None));
        }
        let count = fitted.sequences(log, scope.size);
        let folder = scope.folder.join("backbones").join(format!("{}-{}-n{count}-s{seed}", log.name(), fitted.name()));
        if folder.exists() {
            return Ok(Self(Some(Model::open(&folder)?)));
        }
        scope.reporter.say(&format!("training {} of {}, seed {seed}, on {count} sequences", fitted.name(), log.name()));
        let sequences = world.sequences(TRAINED_ON..TRAINED_ON + count);
        train(scope.reporter, world, &sequences, &fitted.options(log, seed), &folder).map(|model| Self(Some(model)))
    }

    /// The model.
    pub(super) fn density<'a>(&'a self, world: &'a World) -> &'a dyn DensityModel {
        self.0.as_ref().map_or_else(|| world.oracle(), Model::density)
    }

    /// How many nats an event it loses against the process, on sequences that neither has seen.
    pub(super) fn excess(&self, world: &World) -> Result<f64, Error> {
        let sequences = world.sequences(FITTED_ON);
        Ok(loss(self.density(world), &sequences)? - loss(world.oracle(), &sequences)?)
    }
}

fn train(
    reporter: &dyn Report,
    world: &World,
    sequences: &[EventSequence],
    options: &TrainOptions,
    folder: &Path,
) -> Result<Model, Error> {
    let vocabulary = world.vocabulary();
    let log = PathBuf::from(format!("{}.jsonl", folder.display()));
    write_log(&log, sequences.iter().map(|sequence| (&*sequence.events, !sequence.ended)), &vocabulary)?;
    let (cancel, ticker) = (Cancel::new(), Ticker::new(reporter));
    let listen = |update: &Update<'_>| {
        if let Update::Step(progress) = update
            && !ticker.step(progress)
        {
            cancel.cancel();
        }
    };
    let train = Train::with_options(options.clone()).vocabulary(vocabulary).to_folder(folder).resume(true);
    let model = train.progress(&listen).cancel(&cancel).run(&Log::open(&log)?)?;
    fs::remove_file(&log).map_err(Error::io(&log))?;
    Ok(model)
}

/// Mean loss in nats an event; the end of a case counts as one where it is predicted.
fn loss(model: &dyn DensityModel, sequences: &[EventSequence]) -> Result<f64, trace_core::Error> {
    let sums = sequences
        .par_iter()
        .map(|sequence| {
            let reading = model.read(&sequence.with_end(model.end()))?;
            let scores = reading.observed();
            Ok((-scores.iter().map(|score| score.log_p).sum::<f64>(), scores.len()))
        })
        .collect::<Result<Vec<(f64, usize)>, ModelError>>()?;
    let (sum, events) = sums.iter().fold((0.0, 0), |(sum, events), part| (sum + part.0, events + part.1));
    Ok(sum / events.max(1) as f64)
}
