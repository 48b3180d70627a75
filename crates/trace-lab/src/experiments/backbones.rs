//! Any autoregressive model will do: different ones, trained on the same events.

use trace_causal::Backbone;
use trace_models::neural::shape::Shape;

use super::{Axis, COLUMNS, Cell, Experiment, Plot, ProcessKind, base, measured, reported, trace_method};
use crate::lab::Lab;
use crate::rows::Row;
use crate::setup::Setup;
use crate::{Error, Size};

pub const BACKBONES: Experiment = Experiment {
    name: "backbones",
    process: ProcessKind::Synthetic,
    title: "Different backbones at equal data",
    paper: "LLaMA only; the claim is that any autoregressive model holds the graph",
    why: "Networks of different architectures come close to each other at equal data; counts of n-grams find more \
          false edges.",
    cells,
    run,
    columns: COLUMNS,
    plot: Plot { x: "backbone", axis: Axis::Linear, only: None, series: None, figures: &["f1", "precision", "recall"] },
    note: None,
};

const BACKBONES_COMPARED: [Backbone; 5] =
    [Backbone::Llama, Backbone::Mamba, Backbone::Gru, Backbone::Lstm, Backbone::Ngram];

fn cells(_size: Size) -> Vec<Cell> {
    BACKBONES_COMPARED.map(|backbone| Cell { name: backbone.name().to_owned(), value: 0.0 }).to_vec()
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let mut recipe = base(lab, seed);
    recipe.backbone = BACKBONES_COMPARED.into_iter().find(|backbone| backbone.name() == cell.name).unwrap_or_default();
    if recipe.backbone != Backbone::Llama {
        // Recurrent layers cost more for their width than the attention of the default shape.
        recipe.shape = Shape { hidden_size: recipe.shape.hidden_size / 2, ..recipe.shape };
    }
    let setup = Setup::new(lab, recipe)?;
    let row = Row::new(seed, &[("backbone", cell.name.clone())]);
    let method = trace_method(lab, setup.model(), lab.scale.memory, seed);
    Ok(vec![measured(row, &setup, &method, &reported(lab, &setup)?)?.0])
}
