//! `trace model info`: what a model is, and what its fit guarantees.

use trace_causal::{Model, ModelInfo};

use crate::cli::{ModelCommand, ModelInfoArgs};
use crate::failure::Failure;
use crate::output::{print, print_json};

pub fn run(command: &ModelCommand) -> Result<(), Failure> {
    let ModelCommand::Info(args) = command;
    let model = Model::open(&args.model)?;
    let info = model.info();
    if args.json { print_json(&info) } else { print(&as_text(args, &info)) }
}

fn nats(value: Option<f64>) -> String {
    value.map_or("unknown".to_owned(), |value| format!("{value:.4} nats per event"))
}

fn as_text(args: &ModelInfoArgs, info: &ModelInfo<'_>) -> String {
    let (outcomes, guess) = if info.predicts_end {
        (info.vocabulary_size + 1, "uniform guess, ln (V + 1)")
    } else {
        (info.vocabulary_size, "uniform guess, ln V")
    };
    let mut rows: Vec<(&str, String)> = vec![
        ("model", args.model.display().to_string()),
        ("backbone", info.backbone.to_owned()),
        ("event types", info.vocabulary_size.to_string()),
        ("parameters", info.parameters.to_string()),
        ("largest lag it can see", info.reach.map_or("unlimited".to_owned(), |reach| reach.to_string())),
        (guess, nats(Some((outcomes as f64).ln()))),
        ("event frequencies alone", nats(info.unigram_loss)),
        ("held-out loss", nats(info.held_out_loss)),
        ("entropy of the process", nats(info.entropy)),
    ];
    if info.predicts_end {
        rows.insert(3, ("end of a case", "predicted".to_owned()));
    }
    for (name, half) in ["half 0", "half 1"].into_iter().zip(info.halves.iter().flatten()) {
        let (trained, held_out) = (half.trained_sequences, half.held_out_sequences);
        let loss = nats(half.held_out_loss);
        rows.push((name, format!("trained on {trained} sequences, {held_out} held out, held-out loss {loss}")));
    }
    if let Some(redundancy) = info.redundancy {
        rows.push(("redundancy 1 − H/ln V", format!("{redundancy:.4}")));
    }
    if let Some(score) = info.epsilon_hat {
        rows.push(("oracle score", format!("{score:.4}")));
    }
    if let (Some(epsilon), Some(variation)) = (info.epsilon, info.total_variation) {
        rows.push(("excess loss ε", nats(Some(epsilon))));
        rows.push(("total variation δ = √(ε/2)", format!("{variation:.4}")));
    }
    if let (Some(floor), Some(margin)) = (info.noise_floor, info.identifiability_margin) {
        rows.push(("noise floor τ_ε", format!("{floor:.4} nats")));
        rows.push(("guaranteed above 2 τ_ε", format!("{margin:.4} nats")));
    }
    // Values start in one column; only the last column may be long.
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in &rows {
        text += &format!(
            "{name}{}  {value}
",
            " ".repeat(width - name.chars().count())
        );
    }
    match info.vacuous {
        None => {
            text += "\nThe entropy of the process is unknown, as for every real log, so no error bound can be given.\n\
                     The held-out loss beside that of event frequencies says what the model has learned.\n";
        }
        Some(true) => {
            text += "\nThe bound is vacuous: its noise floor reaches ln 2, more than one event can tell about whether another\n\
                     happens, or its premises do not hold. That is usual for trained models and says nothing about actual\n\
                     errors.\n";
        }
        Some(false) => {}
    }
    text
}
