//! Checkpoints along one training: how good must a model be?

use super::{Axis, COLUMNS, Cell, Experiment, Ground, Plot, base, ours, reported};
use crate::lab::Lab;
use crate::rows::Row;
use crate::stand::{Milestone, Stand};
use crate::trial::Trial;
use crate::{Error, Size};

pub const EPSILON: Experiment = Experiment {
    name: "epsilon",
    ground: Ground::Synthetic,
    title: "Accuracy along training",
    paper: "a phase transition at an oracle score of about 0.1; precision above 0.95 throughout",
    why: "As in the paper, a model above an oracle score of about 0.1 is hardly worth asking, and precision falls there too: what it \
          has learnt wrongly is read out of it. Below, precision is settled, and what is missing is recall, lag by lag.",
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

fn cells(_size: Size) -> Vec<Cell> {
    vec![Cell { name: "one training".to_owned(), value: 0.0 }]
}

fn run(lab: &Lab<'_>, _cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let stand = Stand::new(lab, base(lab, seed))?;
    let cases = reported(lab, &stand)?;
    let mut rows = Vec::new();
    let milestones = stand.along(lab)?;
    let steps = milestones.last().map_or(1, |last| last.step);
    for Milestone { step, model } in milestones {
        let Some(score) = stand.measure_epsilon_hat(&*model)? else { continue };
        let trial = Trial::run(&ours(lab, &*model, lab.scale.memory, seed), &cases)?;
        let events = stand.recipe.events as f64 * step as f64 / steps as f64;
        // The score is the place on the axis, so that seeds do not share places: each row stands for itself.
        let row = Row::new(seed, &[("epsilon_hat", format!("{score:.4}")), ("step", step.to_string())]);
        rows.push(row.with_all(trial.figures()).with("events", events).with("epsilon_hat", score));
    }
    Ok(rows)
}
