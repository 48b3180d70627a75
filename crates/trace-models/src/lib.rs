//! Density models for TRACE on CPUs, and their folders.
//!
//! * [`NgramModel`] – interpolated modified Kneser–Ney counts: the fallback for small logs, and the baseline that
//!   neural backbones must beat.
//! * [`neural`] – LLaMA, Mamba, GRU and LSTM, which can be trained and queried, and GPT-2, which can be queried, on the
//!   kernels of `trace-kernels`.
//! * [`Encoder`] – a BERT: not a density model, but its attention can be read.
//! * [`open`] – opens a model of any kind from its folder, which Hugging Face Transformers can read too.
//!
//! ```no_run
//! use trace_core::{Discovery, EventId, EventSequence};
//!
//! let opened = trace_models::open("model".as_ref())?;
//! let sequence = EventSequence::new("first", [0, 1, 2, 1].map(EventId).to_vec());
//! let found = Discovery::new(&*opened.model).run(&sequence)?;
//! println!("{} edges", found.graph.edges().count());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod cross_fit;
mod error;
pub mod folder;
pub mod neural;
pub mod ngram;
mod shards;
pub mod split;
pub mod tensors;

pub use error::Error;
pub use folder::{
    Description, ModelRecord, OpenEncoder, OpenModel, RECORD_SCHEMA, check_replaceable, is_encoder, open,
    open_described, open_encoder, write_folder,
};
pub use neural::Encoder;
pub use ngram::NgramModel;
pub use split::Split;
