//! `trace train`: from a log to a model.

use anyhow::Context;
use serde_json::{Map, json};
use trace_core::numerics::entropy;
use trace_core::{DensityModel, EventSequence, Vocabulary};
use trace_io::log::Unknown;
use trace_models::ngram::{self, NgramSpec, TrainedNgram};
use trace_models::{check_replaceable, write_folder};

use super::read_log;
use crate::cli::{Backbone, TrainArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::say;

pub fn run(args: &TrainArgs, quiet: bool) -> anyhow::Result<()> {
    match args.backbone {
        Backbone::Ngram => train_ngram(args, quiet),
    }
}

fn train_ngram(args: &TrainArgs, quiet: bool) -> anyhow::Result<()> {
    check_replaceable(&args.out)?;
    for (input, what) in [(Some(&args.log), "the log"), (args.process.as_ref(), "the process")] {
        let places = input.and_then(|input| Some((input.canonicalize().ok()?, args.out.canonicalize().ok()?)));
        if places.is_some_and(|(input, out)| input.starts_with(out)) {
            let out = args.out.display();
            return Err(Failure::usage(format!("{out}: holds {what}; expected another folder for the model")));
        }
    }
    let process = args.process.as_deref().map(trace_models::open).transpose().context("--process")?;
    let mut vocabulary = Vocabulary::named();
    let log = read_log(&args.log, &mut vocabulary, Unknown::Add)?;
    say(
        quiet,
        format_args!(
            "{}: {} sequences, {} events, {} types",
            log.name,
            log.sequences.len(),
            log.events(),
            vocabulary.len()
        ),
    );
    let spec = NgramSpec { order: args.order.0, held_out: args.held_out, seed: args.seed };
    let mut trained = ngram::train(&log.sequences, vocabulary.len(), &spec).with_context(|| log.name.clone())?;
    if let Some(process) = &process {
        let entropy = process_entropy(&*process.model, &process.vocabulary, &log.sequences, &trained, &vocabulary)?;
        trained.model.set_entropy(entropy);
    }
    let mut record = Map::new();
    record.insert("command".to_owned(), json!("train --backbone ngram"));
    record.insert("sequences".to_owned(), json!(log.sequences.len()));
    record.insert("events".to_owned(), json!(log.events()));
    record.insert("held_out_sequences".to_owned(), json!(trained.held_out.len()));
    record.insert(
        "held_out_loss_by_order".to_owned(),
        trained.losses.iter().map(|(order, loss)| (order.to_string(), json!(loss))).collect(),
    );
    record.insert("seed".to_owned(), json!(args.seed));
    interrupt::watch()?; // so that writing is not cut in half
    write_folder(&args.out, |folder| trained.model.save(folder, &vocabulary, &record))?;
    say(quiet, describe(&trained, args));
    Ok(())
}

/// Mean entropy of the process on the held-out events: what no model can beat on them.
pub fn process_entropy(
    process: &dyn DensityModel,
    process_vocabulary: &Vocabulary,
    sequences: &[EventSequence],
    trained: &TrainedNgram,
    vocabulary: &Vocabulary,
) -> anyhow::Result<f64> {
    let mut row = vec![0.0; process.vocabulary_size()];
    let (mut sum, mut count) = (0.0, 0usize);
    for index in &trained.held_out {
        let events = sequences[*index]
            .events
            .iter()
            .map(|event| process_vocabulary.id(&vocabulary.name(*event)))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Failure::usage("--process: it did not make this log: it lacks some of the log's events"))?;
        for position in 0..events.len() {
            process.forward(&events[..position], position..position + 1, &mut row)?;
            sum += entropy(&row);
        }
        count += events.len();
    }
    if count == 0 {
        return Err(Failure::usage("--process: nothing is held out to compare the fit on"));
    }
    Ok(sum / count as f64)
}

fn describe(trained: &TrainedNgram, args: &TrainArgs) -> String {
    let model = &trained.model;
    let fitness = model.fitness();
    let mut text = format!("{}: {}-gram with {} counts", args.out.display(), model.order(), model.parameters());
    if let (Some(loss), Some(unigram)) = (fitness.held_out_loss, fitness.unigram_loss) {
        text += &format!("; held-out loss {loss:.3} nats an event, frequencies alone {unigram:.3}");
        if loss > unigram - 0.01 {
            text += "\nwarning: the model predicts no better than event frequencies; expect to find no causes with it";
        }
    } else {
        text += "; nothing was held out, so its fit is unknown";
    }
    if let Some(score) = fitness.epsilon_hat(model.vocabulary_size()) {
        text += &format!("; oracle score {score:.3} (0 is perfect, 1 a uniform guess)");
    }
    text
}
