//! Results of TRACE to look at.
//!
//! [`Report`] writes one self-contained page: the timeline of a sequence with arcs from cause to effect, its type
//! graph, tables, explanations in words, a threshold that moves. [`figure`] draws the same graphs as SVG and PNG for
//! papers. Both stand on one [`layout`].
//!
//! ```
//! use trace_report::{Report, ReportOptions};
//!
//! let line = r#"{"schema": "trace.result/1", "id": "v1",
//!     "settings": {"intervention": "atomic", "proposal": "uniform", "divergence": "event", "history": "observed",
//!                  "particles": 16, "memory": 1, "context": 0, "threshold": 0.05, "seed": 7},
//!     "model": {"backbone": "ngram", "held_out_loss": 1.9, "unigram_loss": 4.1, "epsilon_hat": null},
//!     "events": ["P0562", "U0100"],
//!     "edges": [{"cause": 0, "effect": 1, "lag": 1, "strength": 0.41, "std_error": 0.02, "particles": 16,
//!                "log_ratio": 1.3, "probability": 0.62, "probability_replaced": 0.17}],
//!     "summary": [{"cause": "P0562", "effect": "U0100", "strength": 0.41, "count": 1, "lags": [1]}]}"#;
//! let mut report = Report::new(ReportOptions { title: Some("Fleet".to_owned()), ..ReportOptions::default() });
//! report.add(&serde_json::from_str(line)?);
//! let mut page = Vec::new();
//! report.write(&mut page)?;
//! assert!(page.starts_with(b"<!doctype html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod column;
pub mod figure;
mod html;
pub mod layout;
mod names;
mod population;
mod report;
mod sequence;
pub mod shorten;

pub use report::{DEFAULT_SEQUENCES, Report, ReportOptions, Total};
