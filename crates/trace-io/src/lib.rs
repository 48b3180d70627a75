//! The files of TRACE: event logs in, results, truths and population graphs out and in, exports out.
//!
//! Everything that comes from a file is checked here, and every complaint names the file and the line. Everything
//! that goes to a file is either complete or not there: whole files are written under a temporary name, and results
//! grow in `FILE.partial` until they are done. The formats are documented in the repository's
//! `docs/reference/formats.md`.
#![forbid(unsafe_code)]

pub mod comparison;
mod error;
pub mod export;
pub mod knowledge;
mod lines;
pub mod log;
pub mod output;
pub mod population;
pub mod result;
pub mod truth;

pub use error::Error;
