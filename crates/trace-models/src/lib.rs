//! Density models for TRACE, on plain CPUs, and the folders they live in.
//!
//! * [`Process`] – the paper's synthetic process, a perfect model of the sequences it simulates.
//! * [`Fleet`] – a vehicle fleet with designed cascades of trouble codes, a perfect model of itself too.
//! * [`NgramModel`] – interpolated modified Kneser–Ney counts: the fallback for small logs, and the floor that
//!   neural backbones must beat.
//! * [`neural`] – LLaMA, Mamba, GRU and LSTM, trained and queried, and GPT-2, queried, on kernels of our own.
//! * [`Encoder`] – a BERT: no density model, but one whose attention can be read.
//! * [`open`] – a model of any kind from its folder, which Hugging Face Transformers reads too.
//!
//! ```
//! use trace_core::{Discovery, EventSequence};
//! use trace_models::{Process, ProcessSpec};
//!
//! let spec = ProcessSpec { vocabulary: 20, memory: 2, redundancy: 0.5, decay: 1.0, seed: 1 };
//! let process = Process::draw(&spec)?;
//! let sequence = process.simulate(1, 0, 1, 12).remove(0);
//! let found = Discovery::new(&process).run(&EventSequence::new("first", sequence.events))?;
//! assert!(found.graph.edges().count() > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
pub mod fleet;
mod folder;
mod kernels;
pub mod measure;
pub mod neural;
pub mod ngram;
mod scm;
mod shards;
mod tensors;

pub use error::Error;
pub use fleet::Fleet;
pub use folder::{
    ModelRecord, OpenEncoder, OpenModel, RECORD_SCHEMA, check_replaceable, is_encoder, open, open_encoder, write_folder,
};
pub use kernels::product::{allow_tile_unit, tile_unit};
pub use neural::Encoder;
pub use ngram::NgramModel;
pub use scm::{Process, ProcessSpec, Simulated};
