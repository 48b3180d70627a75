//! What an edge must exceed.

use trace_core::Intervention;

use super::{Axis, Cell, Experiment, Plot, ProcessKind, base, measured, reported, trace_method};
use crate::lab::Lab;
use crate::rows::Row;
use crate::setup::Setup;
use crate::{Error, Size};

pub const THRESHOLD: Experiment = Experiment {
    name: "threshold",
    process: ProcessKind::Synthetic,
    title: "Accuracy over the threshold",
    paper: "the staircase is best at 1.4e-5 (V = 1000, oracle score 0.04)",
    why: "The strength of TRACE is on the scale of the truth's own definition, so that its best threshold is the \
          effect size that the truth asks for, 0.05. At the staircase's best one it finds lag 1 alone; the paper's is \
          far below, where it finds more than this truth holds.",
    cells,
    run,
    columns: &["f1", "precision", "recall", "positions_f1", "epsilon_hat"],
    plot: Plot { x: "threshold", axis: Axis::Logarithmic, only: None, series: Some("method"), figures: &["f1"] },
    note: None,
};

fn cells(_size: Size) -> Vec<Cell> {
    ["trace", "staircase"].map(|name| Cell { name: name.to_owned(), value: 0.0 }).to_vec()
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let setup = Setup::new(lab, base(lab, seed))?;
    let staircase = cell.name == "staircase";
    let mut method = trace_method(lab, setup.model(), lab.scale.memory, seed);
    if staircase {
        method = method.intervention(Intervention::Staircase);
    }
    let keys = |threshold: f64| [("method", cell.name.clone()), ("threshold", format!("{threshold:.1e}"))];
    let thresholds: Vec<f64> = if staircase {
        (-7..=-1).flat_map(|power| [1.0, 3.0].map(|factor| factor * 10f64.powi(power))).collect()
    } else {
        [0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.2, 0.5].to_vec()
    };
    let (row, scores) = measured(Row::new(seed, &keys(0.0)), &setup, &method, &reported(lab, &setup)?)?;
    let rest: Vec<(String, f64)> = row.values.iter().filter(|value| value.0 == "epsilon_hat").cloned().collect();
    let row = |threshold: f64| {
        Row::new(seed, &keys(threshold)).with_all(scores.at(threshold).figures()).with_all(rest.clone())
    };
    Ok(thresholds.into_iter().map(row).collect())
}
