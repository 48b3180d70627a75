//! `trace model info`: what a model is, and what its fit guarantees.

use std::io::Write;

use serde_json::json;
use trace_core::theory::ErrorBound;
use trace_models::{OpenEncoder, OpenModel};

use crate::cli::{ModelCommand, ModelInfoArgs};

pub fn run(command: &ModelCommand) -> anyhow::Result<()> {
    let ModelCommand::Info(args) = command;
    let text = if trace_models::is_encoder(&args.model)? {
        let opened = trace_models::open_encoder(&args.model)?;
        if args.json { encoder_as_json(&opened)? } else { encoder_as_text(args, &opened) }
    } else {
        let opened = trace_models::open(&args.model)?;
        if args.json { as_json(&opened)? } else { as_text(args, &opened) }
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn as_json(opened: &OpenModel) -> anyhow::Result<String> {
    let fitness = opened.model.fitness();
    let size = opened.model.vocabulary_size();
    let bound = fitness.epsilon().map(ErrorBound::new);
    let value = json!({
        "backbone": opened.model.backbone(),
        "vocabulary_size": size,
        "named_events": opened.vocabulary.has_names(),
        "reach": opened.model.reach(),
        "parameters": opened.parameters,
        "held_out_loss": fitness.held_out_loss,
        "unigram_loss": fitness.unigram_loss,
        "entropy": fitness.entropy,
        "redundancy": fitness.redundancy(size),
        "epsilon": fitness.epsilon(),
        "epsilon_hat": fitness.epsilon_hat(size),
        "total_variation": bound.map(|bound| bound.total_variation),
        "noise_floor": bound.map(|bound| bound.noise_floor),
        "identifiability_margin": bound.map(|bound| bound.identifiability_margin()),
        "vacuous": bound.map(|bound| bound.is_vacuous()),
        "config": opened.config,
        "training": opened.record.training,
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn encoder_as_json(opened: &OpenEncoder) -> anyhow::Result<String> {
    let value = json!({
        "backbone": opened.record.backbone,
        "masked": true,
        "vocabulary_size": opened.encoder.vocabulary_size(),
        "named_events": opened.vocabulary.has_names(),
        "most_events": opened.encoder.most_events(),
        "parameters": opened.encoder.parameters(),
        "held_out_loss": opened.record.held_out_loss,
        "unigram_loss": opened.record.unigram_loss,
        "config": opened.config,
        "training": opened.record.training,
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn encoder_as_text(args: &ModelInfoArgs, opened: &OpenEncoder) -> String {
    let size = opened.encoder.vocabulary_size();
    let rows = [
        ("model", args.model.display().to_string()),
        ("backbone", opened.record.backbone.clone()),
        ("event types", size.to_string()),
        ("parameters", opened.encoder.parameters().to_string()),
        ("longest sequence", opened.encoder.most_events().to_string()),
        ("uniform guess, ln V", nats(Some((size as f64).ln()))),
        ("event frequencies alone", nats(opened.record.unigram_loss)),
        ("held-out loss of hidden events", nats(opened.record.held_out_loss)),
    ];
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    aligned(&rows)
        + "\nA masked model says which event stood at a place, given both sides of it. It predicts no next event, and serves\n\
           `--method attention` only.\n"
}

fn nats(value: Option<f64>) -> String {
    value.map_or("unknown".to_owned(), |value| format!("{value:.4} nats an event"))
}

/// Values start in one column; only the last column may be long.
fn aligned(rows: &[Vec<String>]) -> String {
    let width = rows.iter().map(|row| row[0].chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        text += &format!("{}{}  {}\n", row[0], " ".repeat(width - row[0].chars().count()), row[1]);
    }
    text
}

fn as_text(args: &ModelInfoArgs, opened: &OpenModel) -> String {
    let fitness = opened.model.fitness();
    let size = opened.model.vocabulary_size();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row("model", args.model.display().to_string());
    row("backbone", opened.model.backbone().to_owned());
    row("event types", size.to_string());
    row("parameters", opened.parameters.to_string());
    row("largest lag it can see", opened.model.reach().map_or("unlimited".to_owned(), |reach| reach.to_string()));
    row("uniform guess, ln V", nats(Some((size as f64).ln())));
    row("event frequencies alone", nats(fitness.unigram_loss));
    row("held-out loss", nats(fitness.held_out_loss));
    row("entropy of the process", nats(fitness.entropy));
    if let Some(redundancy) = fitness.redundancy(size) {
        row("redundancy 1 − H/ln V", format!("{redundancy:.4}"));
    }
    if let Some(score) = fitness.epsilon_hat(size) {
        row("oracle score", format!("{score:.4}"));
    }
    let bound = fitness.epsilon().map(ErrorBound::new);
    if let Some(bound) = bound {
        row("excess loss ε", nats(Some(bound.epsilon)));
        row("total variation δ = √(ε/2)", format!("{:.4}", bound.total_variation));
        row("noise floor τ_ε", format!("{:.4} nats", bound.noise_floor));
        row("guaranteed above 2 τ_ε", format!("{:.4} nats", bound.identifiability_margin()));
    }
    let mut text = aligned(&rows);
    match bound {
        None => {
            text += "\nThe entropy of the process is unknown, as for every real log, so no error bound can be given.\n\
                     The held-out loss beside that of event frequencies says what the model has learnt.\n";
        }
        Some(bound) if bound.is_vacuous() => {
            text += "\nThe bound is vacuous: its noise floor reaches ln 2, more than one event can tell about whether another\n\
                     happens, or its premises do not hold. That is usual for trained models and says nothing about actual\n\
                     errors.\n";
        }
        Some(_) => {}
    }
    text
}
