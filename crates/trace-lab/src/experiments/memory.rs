//! Processes that look further and further back.

use super::{Axis, COLUMNS, Cell, Experiment, Plot, ProcessKind, first, measured, numbered, recipe, trace_method};
use crate::lab::Lab;
use crate::rows::Row;
use crate::setup::{Recipe, Setup};
use crate::{Error, Size};

/// How fast direct influence fades with the lag: slowly, so that long lags exist to be found.
const DECAY: f64 = 0.1;

pub const MEMORY: Experiment = Experiment {
    name: "memory",
    process: ProcessKind::Synthetic,
    title: "Accuracy over the memory of the process",
    paper: "F1 above 0.8 up to m = 20, falling towards m = 48",
    why: "Influence fades by e^-0.1 per lag here, so that distant causes are nearly as strong as near ones, and there \
          are 100 types unless the run is full, so that memory is what is asked for. The more lags there are, the \
          more there is to learn, and the more events it is learned from (`events`), as far as the size of the run \
          allows. Among so few types strong pairs recur, and the summary graph counts each but once, beside weak \
          pairs that occur once: it scores lower than positions. Where ten sequences are reported (the quick size) \
          its mean says little: some have a single true edge, and a score of 0 or 1.",
    cells,
    run,
    columns: COLUMNS,
    plot: Plot { x: "memory", axis: Axis::Linear, only: None, series: None, figures: &["f1", "precision", "recall"] },
    note: None,
};

fn cells(size: Size) -> Vec<Cell> {
    numbered(size.pick(
        &[1.0, 2.0, 4.0],
        &[2.0, 6.0, 12.0, 20.0],
        &[2.0, 6.0, 12.0, 20.0],
        &[2.0, 6.0, 12.0, 20.0, 32.0, 48.0],
    ))
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let memory = cell.value as usize;
    let scale = lab.scale;
    let events = scale.events_for_lags(memory);
    let setup = Setup::new(lab, Recipe { events, ..recipe(lab, scale.few_types, memory, DECAY, seed) })?;
    let row = Row::new(seed, &[("memory", cell.name.clone())]);
    let method = trace_method(lab, setup.model(), memory, seed);
    Ok(vec![measured(row, &setup, &method, &first(&setup, scale.many_sequences)?)?.0])
}
