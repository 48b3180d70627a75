//! Training an n-gram model.

use std::path::Path;
use std::time::Instant;

use serde_json::json;
use trace_core::DensityModel;
use trace_models::ngram::{self, NgramSpec};
use trace_models::write_folder;

use super::{Floors, Order, Train, TrainReport, process_entropy};
use crate::progress::Update;
use crate::{Error, Log};

pub(super) fn train(run: &Train<'_>, log: &Log, folder: &Path) -> Result<(), Error> {
    let start = Instant::now();
    let process = run.open_process()?;
    let (events, vocabulary) = log.read_all(run.vocabulary.as_ref(), &run.control)?;
    let order = match run.options.order.unwrap_or_default() {
        Order::Auto => None,
        Order::Fixed(order) => Some(order),
    };
    let spec = NgramSpec { order, held_out: run.options.held_out, seed: run.options.seed };
    let mut trained = ngram::train(&events.sequences, vocabulary.len(), &spec)
        .map_err(|error| Error::Training { log: log.name().to_owned(), error })?;
    if let Some(process) = &process {
        let held_out = trained.held_out.iter().map(|index| events.sequences[*index].events.as_slice());
        trained.model.set_entropy(process_entropy(process, held_out, &vocabulary)?);
    }
    let held_out: usize = trained.held_out.iter().map(|index| events.sequences[*index].events.len()).sum();
    super::network::warn_of_few(run, events.sequences.len(), events.events(), trained.held_out.len(), held_out);
    let mut record = run.record(log, &vocabulary)?;
    record.insert("sequences".to_owned(), json!(events.sequences.len()));
    record.insert("events".to_owned(), json!(events.events()));
    record.insert("held_out_sequences".to_owned(), json!(trained.held_out.len()));
    let losses = trained.losses.iter().map(|(order, loss)| (order.to_string(), json!(loss)));
    record.insert("held_out_loss_by_order".to_owned(), losses.collect());
    write_folder(folder, |folder| trained.model.save(folder, &vocabulary, &record))?;
    let fitness = trained.model.fitness();
    let report = TrainReport {
        folder: folder.to_owned(),
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
