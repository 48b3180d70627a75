//! Simulated processes with a known causal truth.
//!
//! * [`Process`] – the paper's synthetic process.
//! * [`Fleet`] – a vehicle fleet with designed cascades of trouble codes.
//! * [`Workflow`] – business and hospital workflows, whose cases end.
//! * [`TruthSpec`] – the true edges of a simulated sequence, measured by interventions on its process.
//!
//! Each process is also a density model, the perfect model of the sequences that it simulates, and can be stored in a
//! model folder.
//!
//! ```
//! use trace_core::{Discovery, EventSequence};
//! use trace_sim::{Process, ProcessSpec};
//!
//! let spec = ProcessSpec { vocabulary: 20, memory: 2, redundancy: 0.5, decay: 1.0, seed: 1 };
//! let process = Process::draw(&spec)?;
//! let sequence = process.simulate(1, 0, 1, 12).remove(0);
//! let found = Discovery::new(&process).run(&EventSequence::new("first", sequence.events))?;
//! assert!(found.graph.edges().count() > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod fleet;
mod scm;
mod truth;
pub mod workflow;

pub use fleet::Fleet;
pub use scm::{Process, ProcessSpec, Simulated};
use trace_core::DensityModel;
pub use trace_models::Error;
use trace_models::{Description, OpenModel};
pub use truth::{TrueEdges, TruthSpec};
use workflow::Workflow;

/// Whether a model folder holds a simulated process, which [`open`] opens.
pub fn is_process(description: &Description) -> bool {
    matches!(description.model_type(), Process::MODEL_TYPE | Fleet::MODEL_TYPE | Workflow::MODEL_TYPE)
}

/// Opens the folder of a simulated process.
pub fn open(description: Description) -> Result<OpenModel, Error> {
    let (model, parameters): (Box<dyn DensityModel>, usize) = match description.model_type() {
        Fleet::MODEL_TYPE => {
            let fleet = Fleet::open(&description)?;
            let parameters = fleet.parameters();
            (Box::new(fleet), parameters)
        }
        Workflow::MODEL_TYPE => {
            let workflow = Workflow::open(&description)?;
            let parameters = workflow.parameters();
            (Box::new(workflow), parameters)
        }
        _ => {
            let process = Process::open(&description)?;
            let parameters = process.parameters();
            (Box::new(process), parameters)
        }
    };
    description.complete(model, parameters)
}
