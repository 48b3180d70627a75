//! More and more replacements for each cause.

use trace_core::Particles;

use super::{Axis, Cell, Experiment, Plot, ProcessKind, base, measured, reported, trace_method};
use crate::lab::Lab;
use crate::rows::Row;
use crate::setup::Setup;
use crate::{Error, Size};

pub const PARTICLES: Experiment = Experiment {
    name: "particles",
    process: ProcessKind::Synthetic,
    title: "Accuracy over the number of replacements",
    paper: "saturates above N = 256",
    why: "Replacing one event and keeping the others as observed leaves less to average over than the paper's \
          staircase, so that it saturates earlier; `auto` stops where a pair is decided.",
    cells,
    run,
    columns: &["f1", "precision", "recall", "positions_f1", "branch_positions", "seconds", "epsilon_hat"],
    plot: Plot { x: "particles", axis: Axis::Linear, only: None, series: None, figures: &["f1", "positions_f1"] },
    note: None,
};

fn cells(size: Size) -> Vec<Cell> {
    let counts: &[usize] =
        size.pick(&[4, 16], &[8, 32, 128], &[8, 16, 32, 64, 128, 256, 512], &[8, 16, 32, 64, 128, 256, 512]);
    // Names, so that the figure gives `auto` a place of its own beside the numbers.
    let mut cells: Vec<Cell> =
        counts.iter().map(|count| Cell { name: format!("N = {count}"), value: *count as f64 }).collect();
    cells.push(Cell { name: "auto".to_owned(), value: f64::NAN });
    cells
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let setup = Setup::new(lab, base(lab, seed))?;
    let particles = if cell.value.is_nan() { Particles::Auto } else { Particles::Fixed(cell.value as usize) };
    let method = trace_method(lab, setup.model(), lab.scale.memory, seed).particles(particles);
    let row = Row::new(seed, &[("particles", cell.name.clone())]);
    Ok(vec![measured(row, &setup, &method, &reported(lab, &setup)?)?.0])
}
