//! Scoring what methods found against the truth.

use rayon::prelude::*;
use trace_core::evaluation::{Candidate, Evaluation, Figures};
use trace_core::{Discovered, Error, EventId, EventSequence, SampleGraph};

use crate::methods::Method;
use trace_sim::TrueEdges;

/// A sequence and what is true of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// What happened.
    pub sequence: EventSequence,
    /// What caused what.
    pub truth: TrueEdges,
}

/// What one method found in some sequences, beside the truth.
#[derive(Clone, Debug)]
pub struct MethodScores {
    candidates: Vec<Vec<Candidate<EventId>>>,
    /// Branch positions that the model scored.
    pub branch_positions: u64,
}

impl MethodScores {
    /// Runs a method on every sequence.
    pub fn run(method: &dyn Method, cases: &[Case]) -> Result<Self, Error> {
        Ok(Self::judge(&find(method, cases)?, cases))
    }

    /// Holds what a method found in sequences against the truth.
    pub fn judge(found: &[Discovered], cases: &[Case]) -> Self {
        let candidates = found.iter().zip(cases).map(|(found, case)| candidates(&found.graph, &case.truth)).collect();
        Self { candidates, branch_positions: found.iter().map(|found| found.branch_positions).sum() }
    }

    /// From pairs that were scored elsewhere.
    pub fn new(candidates: Vec<Vec<Candidate<EventId>>>) -> Self {
        Self { candidates, branch_positions: 0 }
    }

    /// The same pairs, with edges decided by another threshold.
    #[must_use]
    pub fn at(&self, threshold: f64) -> Self {
        let mut scores = self.clone();
        for candidate in scores.candidates.iter_mut().flatten() {
            candidate.kept = candidate.strength.is_some_and(|strength| strength > threshold);
        }
        scores
    }

    /// The threshold with the best mean F1 on the summary graph, among some hundreds that lie between strengths: all of
    /// those between the strongest, and in growing steps below.
    pub fn best_threshold(&self) -> f64 {
        let mut strengths: Vec<f64> = self.candidates.iter().flatten().filter_map(|pair| pair.strength).collect();
        strengths.sort_by(|a, b| b.total_cmp(a));
        strengths.dedup();
        let thresholds = thresholds(&strengths);
        let scores: Vec<f64> = thresholds.par_iter().map(|threshold| self.at(*threshold).summary_f1()).collect();
        let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]).then(b.cmp(a)));
        best.map_or(0.0, |best| thresholds[best])
    }

    fn summary_f1(&self) -> f64 {
        self.evaluate().summary.mean("f1").unwrap_or(0.0)
    }

    /// All figures.
    pub fn evaluate(&self) -> Evaluation {
        let mut evaluation = Evaluation::default();
        for candidates in &self.candidates {
            evaluation.add(candidates, false);
        }
        evaluation
    }

    /// Figures by name, for a row of results: of the summary graph, of positions, and by lag.
    pub fn figures(&self) -> Vec<(String, f64)> {
        let evaluation = self.evaluate();
        let mut figures = Vec::new();
        for (part, means) in [("", evaluation.summary), ("positions_", evaluation.positions)] {
            for (name, mean, _, _) in means.iter() {
                figures.extend(mean.map(|mean| (format!("{part}{name}"), mean)));
            }
        }
        for (name, lags) in [("recall_lag_1", 1..=1), ("recall_lag_2", 2..=2), ("recall_later", 3..=u32::MAX)] {
            let pairs = self.candidates.iter().flatten().filter(|pair| lags.contains(&pair.lag.0));
            let recall = Figures::new(pairs.map(|pair| (pair.kept, pair.truth, None))).recall;
            figures.extend(recall.map(|recall| (name.to_owned(), recall)));
        }
        let late = |pair: &&Candidate<EventId>| pair.lag.0 > 1 && pair.truth;
        let late: Vec<_> = self.candidates.iter().flatten().filter(late).collect();
        let found = late.iter().filter(|pair| pair.kept).count();
        figures.push(("late_found".to_owned(), found as f64));
        figures.push(("late_true".to_owned(), late.len() as f64));
        let edges = self.candidates.iter().flatten().filter(|pair| pair.truth).count();
        figures.push(("true_edges".to_owned(), edges as f64 / self.candidates.len().max(1) as f64));
        figures
    }
}

/// What a method finds in every sequence.
pub fn find(method: &dyn Method, cases: &[Case]) -> Result<Vec<Discovered>, Error> {
    cases.par_iter().map(|case| method.run(&case.sequence)).collect()
}

/// Every pair that a method scored, with what is true of it.
fn candidates(graph: &SampleGraph, truth: &TrueEdges) -> Vec<Candidate<EventId>> {
    let event = |position: trace_core::Position| graph.events()[position.index()];
    let candidate = |pair: &trace_core::Pair| Candidate {
        types: (event(pair.cause), event(pair.effect)),
        lag: pair.lag,
        kept: pair.kept,
        strength: Some(pair.strength),
        truth: truth.contains_key(&(pair.cause, pair.effect)),
    };
    graph.pairs().iter().map(candidate).collect()
}

/// Thresholds between the strengths, from the strongest down to the weakest half, and one below all.
fn thresholds(strengths: &[f64]) -> Vec<f64> {
    let mut list = Vec::new();
    let mut at = 1.0f64;
    while (at as usize) < strengths.len() {
        let index = at as usize;
        list.push(f64::midpoint(strengths[index - 1], strengths[index]));
        at = (at * 1.03).max(at + 1.0);
    }
    list.extend(strengths.last().map(|weakest| weakest - 1e-9));
    list
}

#[cfg(test)]
mod tests {
    use trace_core::Lag;

    use super::*;

    fn pair(types: (u32, u32), lag: u32, strength: f64, truth: bool) -> Candidate<EventId> {
        let types = (EventId(types.0), EventId(types.1));
        Candidate { types, lag: Lag(lag), kept: false, strength: Some(strength), truth }
    }

    #[test]
    fn the_best_threshold_divides_true_from_false() {
        let pairs = (0..40).map(|i| pair((i, i + 100), 1 + i % 3, f64::from(i) / 40.0, i >= 25)).collect();
        let scores = MethodScores::new(vec![pairs]);
        let threshold = scores.best_threshold();
        assert!((24.0 / 40.0..25.0 / 40.0).contains(&threshold), "{threshold}");
        let figures = scores.at(threshold).figures();
        let of = |name: &str| figures.iter().find(|figure| figure.0 == name).map(|figure| figure.1);
        assert_eq!((of("f1"), of("positions_f1"), of("recall_lag_2")), (Some(1.0), Some(1.0), Some(1.0)));
        assert_eq!((of("late_found"), of("late_true"), of("true_edges")), (Some(10.0), Some(10.0), Some(15.0)));
    }
}
