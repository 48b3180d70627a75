//! Workflows: named business and hospital processes with cases that end, and a perfect model of themselves.
//!
//! A [`Specification`] is a short text of blocks – `sequence`, `choice`, `parallel`, `loop`, `once` – of steps, of the
//! outcomes of steps, and of rules by which one event changes the odds of a later one. Where a case is, is a function of
//! its events so far; an event that the workflow does not expect changes nothing about it. With `m(s)` the mass of the
//! steps that can come next, after the rules, and `n(s)` of the `V` types being outcomes of step `s`:
//!
//! ```text
//! P(X_t = s:o | past) = [ (1 − ν) m(s) + ν (1 − τ) n(s)/V ] · odds(o | past)
//! P(end at t  | past) =   (1 − ν) m(end) + ν τ                                         τ = 10⁻⁶
//! ```
//!
//! Any step can happen anywhere by noise `ν`, and then turns out as it would otherwise: the outcome of a step depends on
//! nothing but the rules. All times are drawn after the events and cause nothing.
//!
//! ```
//! use trace_sim::workflow::{ClassOptions, Preset, Question, TruthClass, Workflow, WorkflowSettings};
//!
//! let workflow = Workflow::new(&Preset::Services.specification()?, &WorkflowSettings::default())?;
//! let options = ClassOptions { cases: 20, ..ClassOptions::new(&workflow) };
//! let classes = workflow.classes(&options);
//! let id = |name: &str| workflow.event(name).ok_or("no such event");
//! let pair = &classes[&(id("pricing:5xx")?, id("catalog:5xx")?, Question::How)];
//! assert_eq!(pair.class, TruthClass::Designed);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod presets;
mod process;
mod scoring;
mod simulate;
mod specification;
mod store;
mod tree;
mod truth;

pub use presets::Preset;
pub use process::{Workflow, WorkflowSettings};
pub use simulate::Case;
pub use specification::{Rule, SEPARATOR, Specification};
pub use trace_core::{Question, TruthClass};
pub use truth::{ClassOptions, Classes, PairTruth, TrueEdge};
