//! More and more event types.

use super::{Axis, COLUMNS, Cell, Experiment, Plot, ProcessKind, measured, numbered, recipe, reported, trace_method};
use crate::lab::Lab;
use crate::rows::Row;
use crate::setup::{Recipe, Setup};
use crate::{Error, Size};

pub const VOCABULARY: Experiment = Experiment {
    name: "vocabulary",
    process: ProcessKind::Synthetic,
    title: "Accuracy over the size of the vocabulary",
    paper: "F1 about 0.81 at every vocabulary from 200 to 8000 (oracle score 0.01, N = 64, threshold 1e-4)",
    why: "What must be learned grows with the square of the vocabulary, and the events to learn it from grow with it \
          only as far as the size of the run allows (`events`). What a model has not learned is missed: the later \
          lags first.",
    cells,
    run,
    columns: COLUMNS,
    plot: Plot {
        x: "vocabulary",
        axis: Axis::Logarithmic,
        only: None,
        series: None,
        figures: &["f1", "precision", "recall"],
    },
    note: None,
};

/// The vocabularies.
pub(super) fn cells(size: Size) -> Vec<Cell> {
    numbered(size.pick(
        &[10.0, 20.0, 40.0],
        &[50.0, 100.0, 250.0, 500.0],
        &[200.0, 500.0, 1000.0, 2000.0],
        &[200.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0],
    ))
}

/// The setup of one vocabulary.
pub(super) fn setup(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Setup, Error> {
    let scale = lab.scale;
    let vocabulary = cell.value as usize;
    let events = scale.events_for_types(vocabulary);
    Setup::new(lab, Recipe { events, ..recipe(lab, vocabulary, scale.memory, 1.0, seed) })
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let setup = setup(lab, cell, seed)?;
    let row = Row::new(seed, &[("vocabulary", cell.name.clone())]);
    let method = trace_method(lab, setup.model(), lab.scale.memory, seed);
    Ok(vec![measured(row, &setup, &method, &reported(lab, &setup)?)?.0])
}
