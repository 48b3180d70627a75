//! TRACE: what caused what in an event sequence?
//!
//! A model that was trained to predict the next event already holds the conditional probabilities that independence
//! tests need. Edit one past event, watch how much the probability of a later one moves, and keep the edges whose effect
//! is real (Math & Lienhart, 2026). This crate is the library behind every door – the command line, and whatever else
//! you build: each recipe once, with options that are plain data, a [`Progress`] listener and a [`Cancel`] handle.
//!
//! | you have | you want | |
//! |---|---|---|
//! | a file of events | to read it | [`Log`] |
//! | a log | a model of it | [`Train`] |
//! | a folder | the model in it | [`Model`] |
//! | a log and a model | the graph of every sequence, and of all together | [`Discover`] |
//! | the same | why one event happened | [`Explain`] |
//! | results of several runs | one population graph | [`merge`] |
//! | two cohorts | what differs | [`compare`] |
//! | results and a truth | scores | [`evaluate`] |
//! | results | files for other tools; a page | [`export`](export()), [`report`](report()) |
//! | nothing | sequences whose truth is known | [`simulate_scm`], [`simulate_fleet`], [`simulate_workflow`] |
//!
//! Training and discovering on one's own CSV, with progress and a way to stop:
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("events.csv");
//! # let rows = (0..400).map(|i| format!("v{},{}\n", i / 8, ["door", "light", "fan", "lamp"][(i * i / 3 + i) % 4]));
//! # std::fs::write(&path, "case,event\n".to_owned() + &rows.collect::<String>())?;
//! use trace_causal::{Backbone, Cancel, Discover, Log, Train, Update};
//!
//! let log = Log::open(&path)?;
//! let stop = Cancel::new(); // stop.cancel() from any thread ends a run
//! let show = |update: &Update| if let Update::Step(step) = update { eprintln!("loss {}", step.loss) };
//! let model = Train::new().backbone(Backbone::Gru).steps(20).progress(&show).cancel(&stop).run(&log)?;
//! let found = Discover::new(&model).memory(3).cancel(&stop).run(&log)?;
//! for result in found.lines()? {
//!     let result = result?;
//!     println!("{}: {} edges", result.id, result.edges().count());
//! }
//! println!("{} pairs of types", found.population().map_or(0, |population| population.pairs.len()));
//! # assert_eq!(found.sequences(), 50);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every message that names an option names it as data ([`OptionName`], [`Hint`]), so that a command line can write
//! `--time-column` where a notebook writes `time_column=`.
#![forbid(unsafe_code)]

/// The Rust of the guide is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust.md")]
struct Guide;

mod compare;
mod device;
mod discover;
mod error;
mod evaluate;
mod explain;
mod export;
mod knowledge;
mod log;
mod merge;
mod model;
mod progress;
mod report;
mod simulate;
pub mod table;
mod train;

pub use compare::{CompareOptions, compare};
pub use discover::{Discover, DiscoverOptions, Found, Results, Shard};
pub use error::{Error, ErrorKind, Kept};
pub use evaluate::{EvaluateOptions, Evaluated, Scored, ScoredPopulation, evaluate};
pub use explain::{DEFAULT_CHAINS, Explain, Explained, Prediction};
pub use export::{ExportFormat, ExportOptions, GraphKind, Output, export};
pub use log::Log;
pub use merge::merge;
pub use model::{HalfInfo, Model, ModelInfo};
pub use progress::{Cancel, Control, Note, Progress, Task, Update};
pub use report::report;
pub use simulate::{
    FleetOptions, LogFormat, ScmOptions, Simulation, TruthKind, WorkflowOptions, simulate_fleet, simulate_scm,
    simulate_workflow,
};
pub use trace_core::Error as MethodError;
pub use trace_core::evidence::EvidenceRule;
pub use trace_core::{
    Chain, Change, DensityModel, Difference, Divergence, EventId, EventName, EventSequence, Explanation, Families,
    Hint, History, Intervention, Lag, Memory, ModelError, OptionName, Pair, PairComparison, Particles, PopulationPair,
    Position, Proposal, Question, SampleGraph, Settings, StepId, Threshold, Verdict, Vocabulary, evaluation,
    hidden_cause_ratio, theory,
};
pub use trace_io::comparison::ComparisonFile;
pub use trace_io::log::{BadRows, ColumnChoice, Format, LogOptions, RARE, Shaping, Summary, TimeUnit, Unknown};
pub use trace_io::population::{DecidedBy, Decision, Population, VerdictCounts};
pub use trace_io::result::{ResultLine, ResultOptions, ResultReader, RunSettings};
pub use trace_kernels::matmul::allow_tile_unit;
pub use trace_models::Error as ModelsError;
pub use trace_models::neural::train::{OptimizerKind, Schedule, TrainProgress};
pub use trace_report::{ReportOptions, Total, shorten};
pub use trace_sim::fleet::{CASCADES, Cascade};
pub use trace_sim::workflow::{Preset, WorkflowSettings};
pub use train::{
    Backbone, Floors, NetworkOptions, Order, Size, Train, TrainLimit, TrainOptions, TrainPlan, TrainReport,
};
