//! Backbones trained on more and more events: how good must a model be?

use super::{Axis, COLUMNS, Cell, Experiment, Plot, ProcessKind, base, numbered, reported, trace_method};
use crate::lab::Lab;
use crate::rows::Row;
use crate::scores::MethodScores;
use crate::setup::{Recipe, Setup};
use crate::{Error, Size};

pub const EPSILON: Experiment = Experiment {
    name: "epsilon",
    process: ProcessKind::Synthetic,
    title: "Accuracy over the quality of the backbone",
    paper: "a phase transition at an oracle score of about 0.1; precision above 0.95 throughout",
    why: "As in the paper, a model above an oracle score of about 0.1 is hardly worth asking, and precision falls \
          there too: what it has learned wrongly is read out of it. Below, precision is settled, and what is missing \
          is recall, lag by lag.",
    cells,
    run,
    columns: COLUMNS,
    plot: Plot {
        x: "epsilon_hat",
        axis: Axis::Logarithmic,
        only: None,
        series: None,
        figures: &["f1", "precision", "recall_lag_1", "recall_lag_2"],
    },
    note: None,
};

/// Shares of the events, each with a training of its own; all of them train the backbone that experiments share.
fn cells(_size: Size) -> Vec<Cell> {
    numbered(&[0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0])
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let recipe = base(lab, seed);
    let events = (cell.value * recipe.events as f64).round() as usize;
    let setup = Setup::new(lab, Recipe { events, ..recipe })?;
    let Some(score) = setup.measure_epsilon_hat()? else { return Ok(Vec::new()) };
    let method = trace_method(lab, setup.model(), lab.scale.memory, seed);
    let scores = MethodScores::run(&method, &reported(lab, &setup)?)?;
    // The score is the place on the axis, so that seeds do not share places: each row stands for itself.
    let row = Row::new(seed, &[("epsilon_hat", format!("{score:.4}")), ("share", cell.name.clone())]);
    Ok(vec![row.with_all(scores.figures()).with("events", events as f64).with("epsilon_hat", score)])
}
