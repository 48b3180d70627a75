//! The laboratory: rival methods, and the paper's experiments from seeds to figures.
//!
//! [`methods`] holds every way to tell what caused what that ours is compared with, behind one trait. [`experiments`]
//! lists the tables and figures; [`Lab`] runs one of them: it makes a process with a known truth, trains a backbone
//! on fresh sequences of it, runs methods on others, and scores what they found. What was made is kept in a folder, so
//! that experiments share backbones and an interrupted run goes on where it stopped.
//!
//! Which sequences are trained on, chosen by and reported never overlaps: see [`stand`].

mod error;
pub mod experiments;
mod lab;
pub mod methods;
mod page;
mod rows;
mod size;
pub mod stand;
mod train;
pub mod trial;
pub mod truth;

pub use error::Error;
pub use lab::{Lab, Outcome, Report};
pub use page::write_page;
pub use rows::{Row, Rows};
pub use size::{Scale, Size};
