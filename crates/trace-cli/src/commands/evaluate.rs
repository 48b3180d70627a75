//! `trace evaluate`: found edges against true ones.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value, json};
use trace_core::Lag;
use trace_core::evaluation::{Candidate, Evaluation, FigureMeans, Figures};
use trace_io::Error;
use trace_io::population::{PopulationFile, is_population};
use trace_io::result::{ResultLine, ResultReader};
use trace_io::truth::{TruthLine, read_truth, read_type_pairs};

use super::check_threshold;
use crate::cli::EvaluateArgs;
use crate::failure::Failure;
use crate::table;

pub fn run(args: &EvaluateArgs) -> anyhow::Result<()> {
    check_threshold(args.threshold)?;
    let text = if args.results != Path::new("-") && is_population(&args.results)? {
        evaluate_population(args)?
    } else {
        let scored = evaluate_results(args)?;
        if args.json { serde_json::to_string_pretty(&scored.as_json())? + "\n" } else { scored.as_text() }
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Scores with what they are of.
#[derive(Default)]
pub struct Scored {
    pub evaluation: Evaluation,
    /// True edges between positions that the run did not test.
    outside: u64,
    /// Sequences that have a truth but no result.
    unscored: usize,
    /// How the truth was measured.
    truths: BTreeSet<String>,
    /// Whether the results measured something else than the truth did.
    other_divergence: bool,
    self_loops: bool,
}

impl Scored {
    /// Nothing scored yet.
    pub fn new(self_loops: bool) -> Self {
        Self { self_loops, ..Self::default() }
    }

    /// Adds one sequence; an error says what does not fit.
    pub fn add(&mut self, line: &ResultLine, truth: &TruthLine) -> Result<(), String> {
        let length = line.events.len();
        let logged = length + line.skipped.len();
        if let Some(edge) = truth.edges.iter().find(|edge| edge.effect as usize >= logged) {
            return Err(format!("the truth of {:?} has an effect at {} of {logged} events", line.id, edge.effect));
        }
        // The truth counts as the log does; what touches an event that was left out cannot be scored.
        let mut true_pairs: FxHashSet<(u32, u32)> = FxHashSet::default();
        for edge in &truth.edges {
            match (line.position_of(edge.cause), line.position_of(edge.effect)) {
                (Some(cause), Some(effect)) => _ = true_pairs.insert((cause, effect)),
                _ => self.outside += 1,
            }
        }
        let found: FxHashMap<(u32, u32), (bool, f64)> =
            line.edges.iter().map(|edge| ((edge.cause, edge.effect), (edge.is_kept(), edge.strength))).collect();
        let all_pairs = line.has_all_pairs();
        // Types by number of first appearance; names would be compared again and again.
        let mut ids = FxHashMap::default();
        let types: Vec<usize> = line
            .events
            .iter()
            .map(|name| {
                let next = ids.len();
                *ids.entry(name).or_insert(next)
            })
            .collect();
        let candidates: Vec<Candidate<usize>> = line
            .tested_pairs()
            .map(|(cause, effect)| {
                let pair = found.get(&(cause, effect));
                Candidate {
                    types: (types[cause as usize], types[effect as usize]),
                    lag: Lag(effect - cause),
                    kept: pair.is_some_and(|pair| pair.0),
                    strength: if all_pairs { pair.map(|pair| pair.1) } else { None },
                    truth: true_pairs.remove(&(cause, effect)),
                }
            })
            .collect();
        self.outside += true_pairs.len() as u64;
        self.evaluation.add(&candidates, self.self_loops);
        if let Some(divergence) = &truth.divergence {
            let draws = truth.draws.as_ref().map_or(String::new(), |draws| format!(", draws {}", plain(draws)));
            let threshold = truth.threshold.map_or(String::new(), |threshold| format!(", above {threshold} nats"));
            self.truths.insert(format!("{divergence}{draws}{threshold}"));
            self.other_divergence |= *divergence != line.settings.divergence;
        }
        Ok(())
    }

    fn as_json(&self) -> Value {
        let mut positions = figures(&self.evaluation.positions);
        let lags = self.evaluation.by_lag.iter().map(|(lag, means)| (lag.to_string(), figures(means).into()));
        positions.insert("by_lag".to_owned(), Value::Object(lags.collect()));
        json!({
            "sequences": self.evaluation.sequences,
            "truth": self.truths,
            "true_edges_outside_tested_pairs": self.outside,
            "sequences_without_result": self.unscored,
            "positions": positions,
            "summary": figures(&self.evaluation.summary),
        })
    }

    /// The table.
    pub fn as_text(&self) -> String {
        let cells = |means: &FigureMeans| {
            means.iter().map(|(name, mean, spread, _)| match (mean, spread) {
                (Some(mean), Some(spread)) if name == "shd" => format!("{mean:.1} ± {spread:.1}"),
                (Some(mean), Some(spread)) => format!("{mean:.3} ± {spread:.3}"),
                _ => "–".to_owned(),
            })
        };
        let mut rows =
            vec![["", "F1", "precision", "recall", "SHD", "AUROC", "avg. precision"].map(str::to_owned).to_vec()];
        let mut row = |name: String, means: &FigureMeans| {
            rows.push(std::iter::once(name).chain(cells(means)).collect());
        };
        row("positions".to_owned(), &self.evaluation.positions);
        for (lag, means) in &self.evaluation.by_lag {
            row(format!("  lag {lag}"), means);
        }
        row("summary graph".to_owned(), &self.evaluation.summary);
        let mut text = table::render(&rows);
        text += &format!("mean ± spread over {} sequences", self.evaluation.sequences);
        if !self.truths.is_empty() {
            text += &format!("; truth: {}", self.truths.iter().cloned().collect::<Vec<_>>().join(" and "));
        }
        text.push('\n');
        if self.other_divergence {
            text += "warning: results and truth measure different divergences, so their strengths do not compare\n";
        }
        if self.outside > 0 {
            text += &format!(
                "{} true edges lie outside the tested pairs (memory, context) and are not scored\n",
                self.outside
            );
        }
        if self.unscored > 0 {
            text += &format!("{} sequences have a truth but no result\n", self.unscored);
        }
        text
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn figures(means: &FigureMeans) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, mean, spread, count) in means.iter() {
        map.insert(name.to_owned(), json!(mean));
        map.insert(format!("{name}_std"), json!(spread));
        map.insert(format!("{name}_sequences"), json!(count));
    }
    map
}

fn evaluate_results(args: &EvaluateArgs) -> anyhow::Result<Scored> {
    let mut truths = read_truth(&args.truth)?;
    let mut reader = ResultReader::open(&args.results)?;
    let mut scored = Scored::new(args.self_loops);
    while let Some((number, mut line)) = reader.next_result()? {
        if let Some(threshold) = args.threshold {
            line.move_threshold(threshold).map_err(|reason| reader.complain(number, reason))?;
        }
        let Some(truth) = truths.remove(&line.id) else {
            let reason = format!("no truth for sequence {:?} in {}", line.id, args.truth.display());
            return Err(reader.complain(number, reason).into());
        };
        scored.add(&line, &truth).map_err(|reason| reader.complain(number, reason))?;
    }
    if scored.evaluation.sequences == 0 {
        return Err(Error::file(&args.results, "holds no result").into());
    }
    scored.unscored = truths.len();
    Ok(scored)
}

fn evaluate_population(args: &EvaluateArgs) -> anyhow::Result<String> {
    if args.threshold.is_some() {
        return Err(Failure::usage("--threshold: a population graph has a rule of its own"));
    }
    let file = PopulationFile::read(&args.results)?;
    if !args.truth.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
        return Err(Failure::usage(format!(
            "{}: expected a .csv file of cause,effect type pairs as the truth of a population graph",
            args.truth.display()
        )));
    }
    // Names in a CSV file are text, whatever they are in the graph.
    let loops = |cause: &str, effect: &str| args.self_loops || cause != effect;
    let mut truth: BTreeSet<(String, String)> = read_type_pairs(&args.truth)?
        .into_iter()
        .map(|(cause, effect)| (cause.to_string(), effect.to_string()))
        .filter(|(cause, effect)| loops(cause, effect))
        .collect();
    let mut by_score = Vec::new();
    let mut by_unsigned = Vec::new();
    for edge in &file.edges {
        let pair = (edge.cause.0.to_string(), edge.effect.0.to_string());
        if loops(&pair.0, &pair.1) {
            let truth = truth.remove(&pair);
            by_score.push((edge.kept, truth, Some(edge.score)));
            by_unsigned.push((edge.kept, truth, Some(edge.unsigned_score)));
        }
    }
    let (signed, unsigned) = (Figures::new(by_score), Figures::new(by_unsigned));
    if args.json {
        let figures: Map<String, Value> = Figures::NAMES
            .iter()
            .zip(signed.values())
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        let value = json!({
            "sequences": file.sequences,
            "true_edges_outside_tested_pairs": truth.len(),
            "population": figures,
            "unsigned": {"auroc": unsigned.auroc, "average_precision": unsigned.average_precision},
        });
        return Ok(serde_json::to_string_pretty(&value)? + "\n");
    }
    let cell = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
    let mut rows = vec![vec!["population of".to_owned(), format!("{} sequences", file.sequences)]];
    for (name, value) in Figures::NAMES.iter().zip(signed.values()) {
        rows.push(vec![(*name).to_owned(), cell(value)]);
    }
    rows.push(vec!["auroc (unsigned score)".to_owned(), cell(unsigned.auroc)]);
    rows.push(vec!["average_precision (unsigned score)".to_owned(), cell(unsigned.average_precision)]);
    let mut text = table::render(&rows);
    if !truth.is_empty() {
        text += &format!("{} true pairs never had an opportunity and are not scored\n", truth.len());
    }
    Ok(text)
}
