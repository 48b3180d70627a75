//! Training an n-gram model.

use anyhow::Context;
use serde_json::{Map, json};
use trace_core::{DensityModel, Vocabulary};
use trace_io::log::Unknown;
use trace_models::ngram::{self, NgramSpec, TrainedNgram};
use trace_models::write_folder;

use super::{open_process, process_entropy};
use crate::cli::{Order, TrainArgs};
use crate::commands::log::{SHAPING, read_log};
use crate::interrupt;
use crate::progress::say;

pub fn train(args: &TrainArgs, quiet: bool) -> anyhow::Result<()> {
    let process = open_process(args)?;
    let mut vocabulary = Vocabulary::named();
    let log = read_log(&args.log, &mut vocabulary, Unknown::Add, quiet)?;
    let spec = NgramSpec { order: args.order.unwrap_or(Order(None)).0, held_out: args.held_out, seed: args.seed };
    let mut trained = ngram::train(&log.sequences, vocabulary.len(), &spec).with_context(|| log.name.clone())?;
    if let Some(process) = &process {
        let held_out = trained.held_out.iter().map(|index| log.sequences[*index].events.as_slice());
        let entropy = process_entropy(&*process.model, &process.vocabulary, held_out, &vocabulary)?;
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
    if let Some(shaping) = args.log.shaping() {
        record.insert(SHAPING.to_owned(), json!(shaping));
    }
    interrupt::watch()?; // so that writing is not cut in half
    write_folder(&args.out, |folder| trained.model.save(folder, &vocabulary, &record))?;
    say(quiet, describe(&trained, args));
    Ok(())
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
