//! The laboratory: rival methods, and the paper's experiments from seeds to figures.
//!
//! [`methods`] holds TRACE and every method that it is compared with, behind one trait. [`experiments`] lists the
//! tables and figures; [`Lab`] runs one of them: it makes a process with a known truth, trains a backbone on fresh
//! sequences of it, runs methods on others, and scores what they found. What was made is kept in a folder, so that
//! experiments share backbones and an interrupted run goes on where it stopped.
//!
//! Backbones are trained by [`trace_causal::Train`], as every user trains them; only the masked encoder of one rival
//! ([`encoder`]) is not. Which sequences are trained on, chosen by and reported never overlaps: see [`setup`].
#![forbid(unsafe_code)]

pub mod certainty;
pub mod encoder;
mod error;
pub mod experiments;
mod lab;
pub mod methods;
mod page;
mod rows;
pub mod scores;
pub mod setup;
pub mod simulator;
mod size;
mod train;

pub use error::Error;
pub use lab::{Lab, Outcome, Report};
pub use page::write_page;
pub use rows::{Row, Rows};
pub use size::{Scale, Size};
