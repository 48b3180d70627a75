//! The paper's tables and figures, as experiments that anyone can run again.
//!
//! What holds for all of them was fixed before any was run: docs/protocol.md.

mod backbones;
mod drops;
mod epsilon;
mod length;
mod memory;
mod noise;
mod particles;
mod scaling_law;
mod table1;
mod threshold;
mod vehicle;
mod vocabulary;

use std::time::Instant;

use trace_core::{DensityModel, Discovery, Proposal};
use trace_models::ProcessSpec;
use trace_models::neural::shape::{Shape, Trainee};
use trace_report::figure::chart::Scale as Axis;

use crate::lab::Lab;
use crate::methods::Method;
use crate::rows::{Row, Rows};
use crate::stand::{Backbone, Recipe, Stand, WorldSpec};
use crate::trial::{Case, Trial};
use crate::truth::TruthSpec;
use crate::{Error, Size};

/// One table or figure.
#[derive(Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it runs on.
    pub ground: Ground,
    /// What it shows.
    pub title: &'static str,
    /// What the paper reports.
    pub paper: &'static str,
    /// Why ours may differ.
    pub why: &'static str,
    /// Its parts, each finished at once.
    pub cells: fn(Size) -> Vec<Cell>,
    /// Runs one part for one seed.
    pub run: fn(&Lab<'_>, &Cell, u64) -> Result<Vec<Row>, Error>,
    /// The figures that its table shows.
    pub columns: &'static [&'static str],
    /// Its figure.
    pub plot: Plot,
    /// What else its rows say, in a sentence.
    pub note: Option<fn(&Rows) -> Option<String>>,
}

/// What an experiment runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// The synthetic process, whose redundancy and number of events may be chosen.
    Synthetic,
    /// The named vehicle fleet, which has its own.
    Fleet,
}

/// A part of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Its name.
    pub name: String,
    /// What varies, as a number.
    pub value: f64,
}

/// What a figure shows.
#[derive(Debug)]
pub struct Plot {
    /// The key of the horizontal axis.
    pub x: &'static str,
    /// How it runs.
    pub axis: Axis,
    /// A key and the value that rows must have of it to be shown.
    pub only: Option<(&'static str, &'static str)>,
    /// The key that tells lines apart.
    pub series: Option<&'static str>,
    /// The figures on the vertical axis.
    pub figures: &'static [&'static str],
}

/// All experiments, in the order of the paper.
pub const ALL: [&Experiment; 12] = [
    &table1::TABLE1,
    &vocabulary::VOCABULARY,
    &epsilon::EPSILON,
    &length::LENGTH,
    &memory::MEMORY,
    &particles::PARTICLES,
    &threshold::THRESHOLD,
    &scaling_law::SCALING_LAW,
    &noise::NOISE,
    &drops::DROPS,
    &backbones::BACKBONES,
    &vehicle::VEHICLE,
];

/// An experiment by name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    ALL.into_iter().find(|experiment| experiment.name == name)
}

/// The threshold of our default, in nats: fixed in advance, the same everywhere.
const OURS: f64 = trace_core::DEFAULT_THRESHOLD;
/// Figures that most tables show.
const COLUMNS: &[&str] = &[
    "f1",
    "precision",
    "recall",
    "shd",
    "positions_f1",
    "recall_lag_1",
    "recall_lag_2",
    "recall_later",
    "events",
    "epsilon_hat",
];

/// Cells named by a number.
fn numbered(values: &[f64]) -> Vec<Cell> {
    values.iter().map(|value| Cell { name: value.to_string(), value: *value }).collect()
}

/// The shape of the network for a vocabulary and a memory.
fn shape(size: Size, vocabulary: usize, memory: usize) -> Shape {
    match size {
        Size::Mini => Shape { layers: 1, width: 32, heads: 2, head_width: 16, feed_forward: 32 },
        _ if vocabulary <= 250 => Shape { width: 256, head_width: 20, ..Shape::BASE }.reaching(memory),
        _ => Shape::BASE.reaching(memory),
    }
}

/// A synthetic process with a LLaMA of the usual shape.
fn recipe(lab: &Lab<'_>, vocabulary: usize, memory: usize, decay: f64, seed: u64) -> Recipe {
    let scale = lab.scale;
    let world = WorldSpec::Scm(ProcessSpec { vocabulary, memory, redundancy: scale.redundancy, decay, seed });
    let backbone = Backbone::Network(Trainee::Llama, shape(lab.size, vocabulary, memory));
    Recipe { world, length: scale.length, backbone, events: scale.events, marks: false }
}

/// What most experiments share.
fn base(lab: &Lab<'_>, seed: u64) -> Recipe {
    let scale = lab.scale;
    Recipe { marks: true, ..recipe(lab, scale.vocabulary, scale.memory, 1.0, seed) }
}

/// Our default with the draws of the paper: the same everywhere but where an experiment varies it.
fn ours<'m>(lab: &Lab<'_>, model: &'m dyn DensityModel, memory: usize, seed: u64) -> Discovery<'m> {
    Discovery::new(model)
        .proposal(Proposal::Uniform)
        .particles(lab.scale.particles)
        .memory(memory)
        .threshold(OURS)
        .seed(seed)
}

/// Sequences to report, with their truth.
fn reported(lab: &Lab<'_>, stand: &Stand) -> Result<Vec<Case>, Error> {
    first(stand, lab.scale.sequences)
}

/// The first of the sequences to report, with their truth, exact as far as there are not too many types.
fn first(stand: &Stand, count: usize) -> Result<Vec<Case>, Error> {
    let truth = TruthSpec::closest(stand.model.vocabulary_size());
    Ok(stand.cases(stand.reported(count, stand.recipe.length), truth)?)
}

/// Runs a method and puts everything that is measured of it into a row.
fn measured(row: Row, stand: &Stand, method: &dyn Method, cases: &[Case]) -> Result<(Row, Trial), Error> {
    let start = Instant::now();
    let trial = Trial::run(method, cases)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut row = row.with_all(trial.figures()).with("events", stand.recipe.events as f64);
    if let Some(score) = stand.epsilon_hat() {
        row = row.with("epsilon_hat", score);
    }
    let row = row.with("seconds", seconds).with("branch_positions", trial.branch_positions as f64);
    Ok((row, trial))
}
