//! `trace train`: from a log to a model.

mod corpus;
mod network;
mod ngram;
mod size;

use anyhow::Context;
use trace_core::numerics::entropy;
use trace_core::{DensityModel, EventId, Vocabulary};
use trace_models::{OpenModel, check_replaceable};

use crate::cli::{Backbone, TrainArgs};
use crate::failure::Failure;

pub fn run(args: &TrainArgs, quiet: bool) -> anyhow::Result<()> {
    check_paths(args)?;
    check_flags(args)?;
    match args.backbone {
        Backbone::Ngram => ngram::train(args, quiet),
        _ => network::train(args, quiet),
    }
}

/// Refuses to write the model over what it is made from.
fn check_paths(args: &TrainArgs) -> anyhow::Result<()> {
    check_replaceable(&args.out)?;
    for (input, what) in [(Some(&args.log.path), "the log"), (args.process.as_ref(), "the process")] {
        let places = input.and_then(|input| Some((input.canonicalize().ok()?, args.out.canonicalize().ok()?)));
        if places.is_some_and(|(input, out)| input.starts_with(out)) {
            let out = args.out.display();
            return Err(Failure::usage(format!("{out}: holds {what}; expected another folder for the model")));
        }
    }
    Ok(())
}

/// Flags that mean nothing to the backbone are mistakes, not wishes.
fn check_flags(args: &TrainArgs) -> anyhow::Result<()> {
    let network_flags = [
        ("--size", args.size.is_some()),
        ("--layers", args.layers.is_some()),
        ("--width", args.width.is_some()),
        ("--heads", args.heads.is_some()),
        ("--head-width", args.head_width.is_some()),
        ("--feed-forward", args.feed_forward.is_some()),
        ("--steps", args.steps.is_some()),
        ("--minutes", args.minutes.is_some()),
        ("--batch", args.batch.is_some()),
        ("--length", args.length.is_some()),
        ("--learning-rate", args.learning_rate.is_some()),
        ("--schedule", args.schedule.is_some()),
        ("--weight-decay", args.weight_decay.is_some()),
        ("--optimiser", args.optimiser.is_some()),
        ("--checkpoint-seconds", args.checkpoint_seconds.is_some()),
        ("--resume", args.resume),
    ];
    let wrong = match args.backbone {
        Backbone::Ngram => network_flags.iter().find(|(_, given)| *given).map(|(name, _)| *name),
        _ if args.order.is_some() => Some("--order"),
        Backbone::Llama => None,
        // A masked model sees both sides of an event; what the process leaves open given the past is no bound for it.
        Backbone::Bert if args.process.is_some() => Some("--process"),
        Backbone::Bert => args.head_width.map(|_| "--head-width"),
        Backbone::Mamba | Backbone::Gru | Backbone::Lstm if args.feed_forward.is_some() => Some("--feed-forward"),
        Backbone::Mamba | Backbone::Gru | Backbone::Lstm if args.head_width.is_some() => Some("--head-width"),
        _ => args.heads.map(|_| "--heads"),
    };
    match wrong {
        Some(name) => Err(Failure::usage(format!("{name}: means nothing to --backbone {}", args.backbone.name()))),
        None => Ok(()),
    }
}

/// The simulated process that made the log, if one is named; the entropy of any other model would say nothing.
fn open_process(args: &TrainArgs) -> anyhow::Result<Option<OpenModel>> {
    let Some(folder) = &args.process else { return Ok(None) };
    let opened = trace_models::open(folder).context("--process")?;
    if !matches!(opened.model.backbone(), "scm" | "fleet") {
        let (place, found) = (folder.display(), opened.model.backbone());
        return Err(Failure::usage(format!(
            "--process {place}: expected a simulated process, found a model ({found})"
        )));
    }
    Ok(Some(opened))
}

/// Mean entropy of the process on these events: what no model can beat on them.
pub fn process_entropy<'s>(
    process: &dyn DensityModel,
    process_vocabulary: &Vocabulary,
    sequences: impl Iterator<Item = &'s [EventId]>,
    vocabulary: &Vocabulary,
) -> anyhow::Result<f64> {
    let mut row = vec![0.0; process.vocabulary_size()];
    let (mut sum, mut count) = (0.0, 0usize);
    for sequence in sequences {
        let events = sequence
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
