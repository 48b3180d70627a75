//! How the best threshold moves with the vocabulary.

use trace_core::Intervention;

use super::{Axis, Cell, Experiment, Plot, ProcessKind, reported, trace_method, vocabulary};
use crate::lab::Lab;
use crate::rows::{Row, Rows};
use crate::scores::MethodScores;
use crate::{Error, Size};

pub const SCALING_LAW: Experiment = Experiment {
    name: "scaling-law",
    process: ProcessKind::Synthetic,
    title: "The best threshold over the size of the vocabulary",
    paper: "the staircase's best threshold is 1.72e-2 / V (exponent -0.96)",
    why: "Under the exact truth of the event no such law shows: at its best threshold the staircase keeps lag 1, \
          where it equals TRACE, and gives up the rest. The paper's law fits a truth with many more edges: under the \
          full truth of table1 the staircase at 1.72e-2 / V is precise, under that of the event it is not.",
    cells,
    run,
    columns: &["best_threshold", "f1", "epsilon_hat"],
    plot: Plot {
        x: "vocabulary",
        axis: Axis::Logarithmic,
        only: None,
        series: Some("method"),
        figures: &["log10_best_threshold"],
    },
    note: Some(exponents),
};

fn cells(size: Size) -> Vec<Cell> {
    vocabulary::cells(size)
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let setup = vocabulary::setup(lab, cell, seed)?;
    let cases = reported(lab, &setup)?;
    let atomic = trace_method(lab, setup.model(), lab.scale.memory, seed);
    let mut rows = Vec::new();
    for (name, method) in [("trace", atomic), ("staircase", atomic.intervention(Intervention::Staircase))] {
        let scores = MethodScores::run(&method, &cases)?;
        let best = scores.best_threshold();
        let row = Row::new(seed, &[("method", name.to_owned()), ("vocabulary", cell.name.clone())])
            .with("best_threshold", best)
            .with("log10_best_threshold", best.max(1e-12).log10())
            .with_all(scores.at(best).figures());
        rows.push(match setup.epsilon_hat() {
            Some(score) => row.with("epsilon_hat", score),
            None => row,
        });
    }
    Ok(rows)
}

/// The exponents that fit the rows best.
fn exponents(rows: &Rows) -> Option<String> {
    let fit = |method: &str| {
        let points: Vec<(f64, f64)> = rows
            .rows()
            .iter()
            .filter(|row| row.key("method") == Some(method))
            .filter_map(|row| {
                Some((row.key("vocabulary")?.parse::<f64>().ok()?.log10(), row.value("log10_best_threshold")?))
            })
            .collect();
        slope(&points)
    };
    let (atomic, staircase) = (fit("trace")?, fit("staircase")?);
    Some(format!(
        "Fitted exponents of the best threshold over V: {staircase:.2} for the staircase, {atomic:.2} for TRACE."
    ))
}

/// The slope of the least-squares line.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (x, y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    (spread > 0.0).then(|| points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / spread)
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn a_power_law_has_its_exponent() {
        let points: Vec<(f64, f64)> = [1.0, 2.0, 3.0].map(|x| (x, 4.0 - 0.96 * x)).to_vec();
        assert!((slope(&points).unwrap() + 0.96).abs() < 1e-12);
        assert_eq!(slope(&points[..1]), None);
    }
}
