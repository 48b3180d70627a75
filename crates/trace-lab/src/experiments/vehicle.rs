//! The named vehicle fleet: time, memory and graph at a vocabulary of tens of thousands.

use trace_causal::Backbone;
use trace_core::{Discovery, Proposal};
use trace_models::neural::shape::Shape;
use trace_sim::TruthSpec;

use super::{Axis, Cell, Experiment, Plot, ProcessKind, THRESHOLD, measured, with_peak};
use crate::lab::Lab;
use crate::rows::Row;
use crate::setup::{Recipe, Setup};
use crate::simulator::SimulatorSpec;
use crate::{Error, Size};

pub const VEHICLE: Experiment = Experiment {
    name: "vehicle",
    process: ProcessKind::Fleet,
    title: "A vehicle fleet with named trouble codes",
    paper: "V about 29,100, a 120M-parameter Transformer with a training loss of 1.91; graphs shown, no truth",
    why: "The paper's fleet is a manufacturer's own; this one is simulated, so that its truth is known, by 512 draws \
          where there are more than 2,000 types.",
    cells,
    run,
    columns: &[
        "f1",
        "precision",
        "recall",
        "positions_f1",
        "seconds_per_sequence",
        "megabytes",
        "types",
        "epsilon_hat",
    ],
    plot: Plot { x: "backbone", axis: Axis::Linear, only: None, series: None, figures: &["f1", "precision", "recall"] },
    note: None,
};

/// How far back the fleet's process looks.
const MEMORY: usize = 4;

fn cells(_size: Size) -> Vec<Cell> {
    ["llama", "ngram"].map(|name| Cell { name: name.to_owned(), value: 0.0 }).to_vec()
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let types = lab.size.pick(300, 500, 29_100, 29_100);
    let events = lab.size.pick(60_000, 500_000, 1_000_000, 20_000_000);
    let length = lab.size.pick(20, 40, 40, 128);
    let shape = lab.size.pick(Shape::TINY, Shape::SMALL, Shape::SMALL, Shape::LARGE);
    let backbone = if cell.name == "ngram" { Backbone::Ngram } else { Backbone::Llama };
    let recipe = Recipe { simulator: SimulatorSpec::Fleet { types, seed }, length, backbone, shape, events };
    let setup = Setup::new(lab, recipe)?;
    let sequences = setup.reported(lab.scale.sequences, length);
    let count = sequences.len();
    let cases = setup.cases(sequences, TruthSpec::closest(types))?;
    // Most types are rare: a uniform draw is one that the model has hardly seen.
    let method = Discovery::new(setup.model())
        .proposal(Proposal::Unigram)
        .particles(lab.scale.particles)
        .memory(MEMORY)
        .threshold(THRESHOLD)
        .seed(seed);
    let row = Row::new(seed, &[("backbone", cell.name.clone())]);
    let row = with_peak(lab, || Ok(measured(row.clone(), &setup, &method, &cases)?.0))?;
    let seconds = row.value("seconds").unwrap_or(0.0) / count.max(1) as f64;
    Ok(vec![row.with("seconds_per_sequence", seconds).with("types", types as f64)])
}
