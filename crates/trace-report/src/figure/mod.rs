//! Static figures for papers: the same graphs as the page, as SVG and PNG.
//!
//! [`timeline`] draws a sample graph, [`summary`] and [`population`] draw graphs over types; each returns an SVG
//! document, and [`png`] turns one into pixels with a font of its own, so that figures look alike on every machine.

pub mod chart;
mod raster;
mod svg;
mod timeline;
mod types;

pub use raster::{Error, png};
use rustc_hash::FxHashMap;
pub use timeline::timeline;
use trace_core::{EventName, Position};
use trace_io::population::Population;
use trace_io::result::ResultLine;

/// Ink for edges that promote their effect.
const PROMOTING: &str = "#1a6a96";
/// Ink for edges whose effect happened in spite of the cause; these are dashed, too.
const DESPITE: &str = "#b8530f";
/// Ink for text.
const INK: &str = "#1c2127";
/// Ink for lines that are not edges.
const LINE: &str = "#c9c6bf";

/// The ink of an edge, and its dashes.
const fn ink(log_ratio: f64) -> (&'static str, Option<&'static str>) {
    if log_ratio < 0.0 { (DESPITE, Some("5 3.5")) } else { (PROMOTING, None) }
}

/// The type graph of one sequence: its edges that were kept, gathered by type.
pub fn summary(line: &ResultLine) -> String {
    // The summary has no sign; it is that of the edges it gathers.
    let mut signs: FxHashMap<(&EventName, &EventName), f64> = FxHashMap::default();
    for edge in line.edges() {
        let name = |position: Position| &line.events[position.index()];
        *signs.entry((name(edge.cause), name(edge.effect))).or_default() += edge.log_ratio;
    }
    let edges = line.summary.iter().map(|edge| {
        let sign = signs.get(&(&edge.cause, &edge.effect)).copied().unwrap_or(0.0);
        (&edge.cause, &edge.effect, edge.strength, sign)
    });
    types::draw(&format!("Type graph of {}", line.id), edges)
}

/// The population graph: type pairs that the rule keeps.
pub fn population(file: &Population) -> String {
    let edges = file.edges().map(|edge| (&edge.cause, &edge.effect, edge.score, edge.mean_log_ratio));
    types::draw(&format!("Population graph of {} sequences", file.sequences), edges)
}
