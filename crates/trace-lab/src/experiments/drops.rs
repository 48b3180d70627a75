//! Events that were not recorded.

use rustc_hash::FxHashMap;
use trace_core::Position;
use trace_sim::TruthSpec;

use super::{Axis, Cell, Experiment, Plot, ProcessKind, base, measured, numbered, trace_method};
use crate::lab::Lab;
use crate::rows::Row;
use crate::setup::{Setup, with_drops};
use crate::{Error, Size};

pub const DROPS: Experiment = Experiment {
    name: "drops",
    process: ProcessKind::Synthetic,
    title: "Accuracy where a share of events is missing",
    paper: "robust to dropping less than 20 % of the events; scores fall quickly beyond",
    why: "The truth is that of the complete sequence, between events that are left: a cause that loses the event \
          between itself and its effect moves one lag closer, where the model has learned other effects.",
    cells,
    run,
    columns: &["f1", "precision", "recall", "positions_f1", "true_edges", "epsilon_hat"],
    plot: Plot { x: "missing", axis: Axis::Linear, only: None, series: None, figures: &["f1", "precision", "recall"] },
    note: None,
};

fn cells(size: Size) -> Vec<Cell> {
    numbered(size.pick(
        &[0.0, 0.4],
        &[0.0, 0.1, 0.2, 0.4],
        &[0.0, 0.05, 0.1, 0.2, 0.3, 0.4],
        &[0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5],
    ))
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let scale = lab.scale;
    let setup = Setup::new(lab, base(lab, seed))?;
    let mut cases = setup.cases(setup.reported(scale.sequences, scale.length), TruthSpec::EXACT)?;
    for case in &mut cases {
        let (sequence, left) = with_drops(&case.sequence, cell.value, seed);
        let place: FxHashMap<usize, u32> = left.iter().zip(0..).map(|(old, new)| (*old, new)).collect();
        let moved = |position: Position| place.get(&position.index()).copied().map(Position);
        case.truth = case
            .truth
            .iter()
            .filter_map(|((cause, effect), strength)| Some(((moved(*cause)?, moved(*effect)?), *strength)))
            .collect();
        case.sequence = sequence;
    }
    let method = trace_method(lab, setup.model(), scale.memory, seed);
    let row = Row::new(seed, &[("missing", cell.name.clone())]);
    Ok(vec![measured(row, &setup, &method, &cases)?.0])
}
