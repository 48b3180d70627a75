//! Training an n-gram model.

use std::time::Instant;

use serde_json::json;
use trace_core::{DensityModel, EventSequence, Vocabulary};
use trace_models::ngram::{self, NgramSpec};
use trace_models::{Split, write_folder};

use super::{Floors, Order, Part, Train, TrainReport, check_process, process_entropy};
use crate::progress::Update;
use crate::{Error, Log, Model};

/// Trains a model for each part.
pub(super) fn train(run: &Train<'_>, log: &Log, parts: &[Part]) -> Result<(), Error> {
    let process = run.open_process()?;
    let (events, vocabulary) = log.read_all(run.vocabulary.as_ref(), &run.control)?;
    let order = match run.options.order.unwrap_or_default() {
        Order::Auto => None,
        Order::Fixed(order) => Some(order),
    };
    // Of the whole log, so that both halves of a cross-fit predict the same.
    let end = events.sequences.iter().any(|sequence| sequence.ended && !sequence.events.is_empty());
    check_process(process.as_ref(), end)?;
    let spec = NgramSpec { order, held_out: run.options.held_out, seed: run.options.seed, end };
    let mut sequences = events.sequences;
    for part in parts {
        let (own, rest) = sequences.into_iter().partition::<Vec<_>, _>(|sequence| part.has(&sequence.id));
        sequences = rest;
        part.check_count(own.len())?;
        train_part(run, log, part, &own, &vocabulary, &spec, process.as_ref())?;
    }
    Ok(())
}

fn train_part(
    run: &Train<'_>,
    log: &Log,
    part: &Part,
    sequences: &[EventSequence],
    vocabulary: &Vocabulary,
    spec: &NgramSpec,
    process: Option<&Model>,
) -> Result<(), Error> {
    let start = Instant::now();
    let mut trained = ngram::train(sequences, vocabulary.len(), spec)
        .map_err(|error| Error::Training { log: log.name().to_owned(), error })?;
    if let Some(process) = process {
        let held_out = trained.held_out.iter().map(|index| sequences[*index].events.as_slice());
        trained.model.set_entropy(process_entropy(process, held_out, vocabulary)?);
    }
    let events: usize = sequences.iter().map(|sequence| sequence.events.len()).sum();
    let held_out: usize = trained.held_out.iter().map(|index| sequences[*index].events.len()).sum();
    super::network::warn_of_few(run, sequences.len(), events, trained.held_out.len(), held_out);
    let mut record = run.record_of_types(log, vocabulary)?;
    record.insert("sequences".to_owned(), json!(sequences.len()));
    record.insert("events".to_owned(), json!(events));
    record.insert("held_out_sequences".to_owned(), json!(trained.held_out.len()));
    let losses = trained.losses.iter().map(|(order, loss)| (order.to_string(), json!(loss)));
    record.insert("held_out_loss_by_order".to_owned(), losses.collect());
    let used = sequences.iter().enumerate();
    // Indices are in ascending order.
    let used = used.map(|(index, sequence)| (sequence, trained.held_out.binary_search(&index).is_ok()));
    let split = Split::new(used);
    write_folder(&part.folder, |folder| {
        trained.model.save(folder, vocabulary, &record)?;
        split.save(folder)
    })?;
    let fitness = trained.model.fitness();
    let report = TrainReport {
        folder: part.name.clone(),
        backbone: "ngram".to_owned(),
        order: Some(trained.model.order()),
        parameters: trained.model.parameters(),
        steps: None,
        events: None,
        seconds: start.elapsed().as_secs_f64(),
        stopped_early: false,
        held_out_loss: fitness.held_out_loss,
        floors: Floors {
            unigram: fitness.unigram_loss,
            ngram: None,
            entropy: fitness.entropy,
            types: vocabulary.len(),
        },
    };
    run.control.update(&Update::Trained(&report));
    Ok(())
}
