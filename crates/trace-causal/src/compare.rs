//! Comparing two cohorts: which edges differ between their population graphs.

use std::path::Path;

use serde::{Deserialize, Serialize};
use trace_core::CompareRule;
use trace_io::comparison::ComparisonFile;
use trace_io::output::same_file;
use trace_io::population::Population;
use trace_io::result::RunSettings;

use crate::Error;

/// What two models of the same cohort may well differ by: the cut of the population rule.
const MARGIN_OF_TWO_MODELS: f64 = 0.3;

/// How cohorts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompareOptions {
    /// Expected share of false findings among those reported, at most.
    pub level: f64,
    /// Log ratios that differ by no more than this count as equal; by default 0 for one model, 0.3 for two.
    pub margin: Option<f64>,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { level: CompareRule::default().level, margin: None }
    }
}

/// Compares two population files.
pub fn compare(a: &Path, b: &Path, options: &CompareOptions) -> Result<ComparisonFile, Error> {
    if !(options.level > 0.0 && options.level < 1.0) {
        let reason = format!("{} is out of range; expected a share between 0 and 1", options.level);
        return Err(Error::option("level", reason));
    }
    if let Some(margin) = options.margin.filter(|margin| !(margin.is_finite() && *margin >= 0.0)) {
        return Err(Error::option("margin", format!("{margin} is out of range; expected nats, 0 or more")));
    }
    if same_file(a, b) {
        return Err(Error::request(format!("{}: given twice; expected two cohorts", b.display())));
    }
    let (first, second) = (Population::read(a)?, Population::read(b)?);
    let settings = |population: &Population| {
        let mut settings: RunSettings = population.settings.clone();
        settings.plan.seed = 0; // other draws of the same are comparable
        settings
    };
    let (settings_a, settings_b) = (settings(&first), settings(&second));
    if settings_a != settings_b {
        return Err(Error::request(format!(
            "{}: made with other settings than {}, so the two cannot be compared: {}",
            b.display(),
            a.display(),
            settings_b.difference(&settings_a)
        )));
    }
    let default = if first.model == second.model { 0.0 } else { MARGIN_OF_TWO_MODELS };
    let margin = options.margin.unwrap_or(default);
    let mut rule = CompareRule { level: options.level, margin, ..CompareRule::default() };
    // What is an edge is what the first file says.
    if let Some(decision) = first.decision.filter(|_| first.has_evidence()) {
        (rule.population.evidence.fdr, rule.population.evidence.least_ratio) = (decision.fdr, decision.least_ratio);
    }
    Ok(ComparisonFile::new((a, &first), (b, &second), &rule))
}
