//! The paper's tables and figures, as experiments that anyone can run again.
//!
//! What holds for all of them was fixed before any was run: research/protocol.md.

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

use trace_causal::Backbone;
use trace_core::{DensityModel, Discovery, Proposal};
use trace_models::neural::shape::Shape;
use trace_report::figure::chart::Scale as Axis;
use trace_sim::{ProcessSpec, TruthSpec};

use crate::lab::Lab;
use crate::methods::Method;
use crate::rows::{Row, Rows};
use crate::scores::{Case, MethodScores};
use crate::setup::{Recipe, Setup};
use crate::simulator::SimulatorSpec;
use crate::{Error, Size};

/// One table or figure.
#[derive(Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// The process that it runs on.
    pub process: ProcessKind,
    /// What it shows.
    pub title: &'static str,
    /// What the paper reports.
    pub paper: &'static str,
    /// Why the figures here may differ.
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

/// The process that an experiment runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessKind {
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

/// The threshold of TRACE, in nats: fixed in advance, the same everywhere.
const THRESHOLD: f64 = trace_core::DEFAULT_THRESHOLD;
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

/// The shape of the network for a vocabulary.
const fn shape(size: Size, vocabulary: usize) -> Shape {
    match size {
        Size::Mini => Shape { layers: 1, hidden_size: 32, heads: 2, head_dim: 16, intermediate_size: 32 },
        _ if vocabulary <= 250 => Shape { hidden_size: 256, head_dim: 16, ..Shape::BASE },
        _ => Shape::BASE,
    }
}

/// A synthetic process with a LLaMA of the usual shape.
fn recipe(lab: &Lab<'_>, vocabulary: usize, memory: usize, decay: f64, seed: u64) -> Recipe {
    let scale = lab.scale;
    Recipe {
        simulator: SimulatorSpec::Scm(ProcessSpec { vocabulary, memory, redundancy: scale.redundancy, decay, seed }),
        length: scale.length,
        backbone: Backbone::Llama,
        shape: shape(lab.size, vocabulary),
        events: scale.events,
    }
}

/// What most experiments share.
fn base(lab: &Lab<'_>, seed: u64) -> Recipe {
    let scale = lab.scale;
    recipe(lab, scale.vocabulary, scale.memory, 1.0, seed)
}

/// TRACE with the draws of the paper: the same everywhere but where an experiment varies it.
fn trace_method<'m>(lab: &Lab<'_>, model: &'m dyn DensityModel, memory: usize, seed: u64) -> Discovery<'m> {
    Discovery::new(model)
        .proposal(Proposal::Uniform)
        .particles(lab.scale.particles)
        .memory(memory)
        .threshold(THRESHOLD)
        .seed(seed)
}

/// Sequences to report, with their truth.
fn reported(lab: &Lab<'_>, setup: &Setup) -> Result<Vec<Case>, Error> {
    first(setup, lab.scale.sequences)
}

/// The first of the sequences to report, with their truth, exact as far as there are not too many types.
fn first(setup: &Setup, count: usize) -> Result<Vec<Case>, Error> {
    let truth = TruthSpec::closest(setup.model().vocabulary_size());
    Ok(setup.cases(setup.reported(count, setup.recipe.length), truth)?)
}

/// Runs a method and puts everything that is measured of it into a row.
fn measured(row: Row, setup: &Setup, method: &dyn Method, cases: &[Case]) -> Result<(Row, MethodScores), Error> {
    let start = Instant::now();
    let scores = MethodScores::run(method, cases)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut row = row.with_all(scores.figures()).with("events", setup.recipe.events as f64);
    if let Some(score) = setup.epsilon_hat() {
        row = row.with("epsilon_hat", score);
    }
    let row = row.with("seconds", seconds).with("branch_positions", scores.branch_positions as f64);
    Ok((row, scores))
}

/// Runs a measurement, and adds the most memory that the program held meanwhile to its row.
fn with_peak(lab: &Lab<'_>, measure: impl Fn() -> Result<Row, Error>) -> Result<Row, Error> {
    let mut outcome = None;
    let peak = lab.reporter.peak_of(&mut || outcome = Some(measure()));
    let row = outcome.unwrap_or_else(|| Err(Error::Output("nothing was measured".to_owned())))?;
    Ok(match peak {
        Some(bytes) => row.with("megabytes", bytes as f64 / 1e6),
        None => row,
    })
}
