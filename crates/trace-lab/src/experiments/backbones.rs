//! Any autoregressive model will do: different ones, trained on the same events.

use trace_models::neural::shape::{Shape, Trainee};

use super::{Axis, COLUMNS, Cell, Experiment, Ground, Plot, base, measured, ours, reported, shape};
use crate::lab::Lab;
use crate::rows::Row;
use crate::stand::{Backbone, Stand};
use crate::{Error, Size};

pub const BACKBONES: Experiment = Experiment {
    name: "backbones",
    ground: Ground::Synthetic,
    title: "Different backbones at equal data",
    paper: "LLaMA only; the claim is that any autoregressive model holds the graph",
    why: "Networks of different architectures come close to each other at equal data; counts of n-grams find more false edges.",
    cells,
    run,
    columns: COLUMNS,
    plot: Plot { x: "backbone", axis: Axis::Linear, only: None, series: None, figures: &["f1", "precision", "recall"] },
    note: None,
};

const NAMES: [&str; 5] = ["llama", "mamba", "gru", "lstm", "ngram"];

fn cells(_size: Size) -> Vec<Cell> {
    NAMES.iter().zip(0u8..).map(|(name, value)| Cell { name: (*name).to_owned(), value: value.into() }).collect()
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let mut recipe = base(lab, seed);
    let usual = shape(lab.size, lab.scale.vocabulary, lab.scale.memory);
    // Recurrent layers cost more for their width than the attention of the usual shape.
    let narrow = Shape { width: usual.width / 2, ..usual };
    recipe.backbone = match cell.name.as_str() {
        "mamba" => Backbone::Network(Trainee::Mamba, narrow),
        "gru" => Backbone::Network(Trainee::Gru, narrow),
        "lstm" => Backbone::Network(Trainee::Lstm, narrow),
        "ngram" => Backbone::Ngram,
        _ => Backbone::Network(Trainee::Llama, usual),
    };
    recipe.marks = cell.name == "llama";
    let stand = Stand::new(lab, recipe)?;
    let row = Row::new(seed, &[("backbone", cell.name.clone())]);
    let method = ours(lab, &*stand.model, lab.scale.memory, seed);
    Ok(vec![measured(row, &stand, &method, &reported(lab, &stand)?)?.0])
}
