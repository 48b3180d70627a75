//! The named vehicle fleet: time, memory and graph at a vocabulary of tens of thousands.

use trace_core::{Error as CoreError, Proposal};
use trace_models::neural::shape::{Shape, Trainee};

use super::{Axis, Cell, Experiment, Ground, OURS, Plot, measured};
use crate::lab::Lab;
use crate::rows::Row;
use crate::stand::{Backbone, Recipe, Stand, WorldSpec};
use crate::truth::TruthSpec;
use crate::{Error, Size};

pub const VEHICLE: Experiment = Experiment {
    name: "vehicle",
    ground: Ground::Fleet,
    title: "A vehicle fleet with named trouble codes",
    paper: "V about 29,100, a 120M-parameter Transformer with a training loss of 1.91; graphs shown, no truth",
    why: "The paper's fleet is a manufacturer's own; this one is simulated, so that its truth is known, \
          by 512 draws where there are more than 2,000 types.",
    cells,
    run,
    columns: &["f1", "precision", "recall", "positions_f1", "seconds_a_sequence", "megabytes", "types", "epsilon_hat"],
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
    let backbone = if cell.name == "ngram" { Backbone::Ngram } else { Backbone::Network(Trainee::Llama, shape) };
    let recipe = Recipe { world: WorldSpec::Fleet { types, seed }, length, backbone, events, marks: false };
    let stand = Stand::new(lab, recipe)?;
    let sequences = stand.reported(lab.scale.sequences, length);
    let count = sequences.len();
    let cases = stand.cases(sequences, TruthSpec::closest(types))?;
    // Most types are rare: a uniform draw is one that the model has hardly seen.
    let method = trace_core::Discovery::new(&*stand.model)
        .proposal(Proposal::Unigram)
        .particles(lab.scale.particles)
        .memory(MEMORY)
        .threshold(OURS)
        .seed(seed);
    let row = Row::new(seed, &[("backbone", cell.name.clone())]);
    let mut outcome = Err(Error::Method(CoreError::TooShort { length, needed: length }));
    let peak = lab.reporter.peak_of(&mut || outcome = measured(row.clone(), &stand, &method, &cases));
    let row = outcome?.0;
    let seconds = row.value("seconds").unwrap_or(0.0) / count.max(1) as f64;
    let row = row.with("seconds_a_sequence", seconds).with("types", types as f64);
    Ok(vec![match peak {
        Some(bytes) => row.with("megabytes", bytes as f64 / 1e6),
        None => row,
    }])
}
