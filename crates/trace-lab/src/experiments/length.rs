//! Sequences longer than those that were trained on.

use trace_core::Memory;
use trace_sim::TruthSpec;

use super::{Axis, Cell, Experiment, Plot, ProcessKind, base, measured, numbered, trace_method, with_peak};
use crate::lab::Lab;
use crate::rows::Row;
use crate::setup::Setup;
use crate::{Error, Size};

pub const LENGTH: Experiment = Experiment {
    name: "length",
    process: ProcessKind::Synthetic,
    title: "Accuracy and memory over the length of the sequence",
    paper: "precision about 0.95 beyond the training length of 64 and memory linear in L for the sparse variant; \
            quadratic for the full one",
    why: "A branch here shares the past it has in common with the observed sequence, so that memory hardly grows: \
          what the table gives is nearly all program, network and sequences; rotary positions beyond the trained \
          length are new to the model.",
    cells,
    run,
    columns: &["f1", "precision", "recall", "seconds", "megabytes", "branch_positions", "epsilon_hat"],
    plot: Plot {
        x: "length",
        axis: Axis::Logarithmic,
        only: None,
        series: Some("variant"),
        figures: &["precision", "recall"],
    },
    note: None,
};

fn cells(size: Size) -> Vec<Cell> {
    numbered(size.pick(
        &[24.0, 48.0],
        &[64.0, 128.0, 256.0],
        &[64.0, 128.0, 256.0, 512.0, 1024.0],
        &[64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0],
    ))
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let scale = lab.scale;
    let setup = Setup::new(lab, base(lab, seed))?;
    let length = cell.value as usize;
    let sequences = setup.reported((scale.sequences / 2).max(2), length);
    let cases = setup.cases(sequences, TruthSpec::EXACT)?;
    let mut rows = Vec::new();
    for (variant, memory) in [("sparse", Memory::Lags(scale.memory)), ("full", Memory::All)] {
        // The full variant tests every earlier event, which takes time with the square of the length.
        if variant == "full" && length > lab.size.pick(48, 128, 256, 1024) {
            continue;
        }
        let row = Row::new(seed, &[("variant", variant.to_owned()), ("length", cell.name.clone())]);
        let method = trace_method(lab, setup.model(), scale.memory, seed).memory(memory);
        rows.push(with_peak(lab, || Ok(measured(row.clone(), &setup, &method, &cases)?.0))?);
    }
    Ok(rows)
}
