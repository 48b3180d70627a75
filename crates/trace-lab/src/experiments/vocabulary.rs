//! More and more event types.

use super::{Axis, COLUMNS, Cell, Experiment, Plot, measured, numbered, ours, recipe, reported};
use crate::lab::Lab;
use crate::rows::Row;
use crate::stand::Stand;
use crate::{Error, Size};

pub const VOCABULARY: Experiment = Experiment {
    name: "vocabulary",
    title: "Accuracy over the size of the vocabulary",
    paper: "F1 about 0.81 at every vocabulary from 200 to 8000 (oracle score 0.01, N = 64, threshold 1e-4)",
    why: "Every vocabulary gets the same number of events to train on here, so that larger ones are fitted less well \
          (see the oracle score), and it is the later lags that they lose first.",
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

/// The stand of one vocabulary.
pub(super) fn stand(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Stand, Error> {
    Stand::new(lab, recipe(lab, cell.value as usize, lab.size.scale().memory, 1.0, seed))
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let stand = stand(lab, cell, seed)?;
    let row = Row::new(seed, &[("vocabulary", cell.name.clone())]);
    let method = ours(lab, &*stand.model, lab.size.scale().memory, seed);
    Ok(vec![measured(row, &stand, &method, &reported(lab, &stand)?)?.0])
}
