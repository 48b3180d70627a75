//! Evaluating: found edges against true ones.

use std::collections::BTreeSet;
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};
use trace_core::evaluation::{Candidate, Evaluation, FigureMeans, Figures};
use trace_core::{Lag, Pair, Position, Question, Verdict};
use trace_io::population::{Population, is_population};
use trace_io::result::{ResultLine, ResultReader};
use trace_io::truth::{TruthLine, read_truth, read_type_pairs};

use crate::Error;
use crate::merge::needs_all_pairs;

/// How results are evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvaluateOptions {
    /// Decide anew by this threshold, in nats; needs results with all pairs.
    pub threshold: Option<f64>,
    /// Count pairs of a type with itself in the summary.
    pub self_loops: bool,
    /// Which question is scored, where there are two.
    pub question: Question,
}

/// What an evaluation came to. Serializes as JSON.
#[derive(Clone, Debug)]
pub enum Evaluated {
    /// Of results, sequence by sequence.
    Results(Box<Scored>),
    /// Of a population graph.
    Population(Box<ScoredPopulation>),
}

impl Serialize for Evaluated {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Results(scored) => scored.as_json().serialize(serializer),
            Self::Population(scored) => scored.as_json().serialize(serializer),
        }
    }
}

/// Scores a result file, or a population file, against the truth.
pub fn evaluate(results: &Path, truth: &Path, options: &EvaluateOptions) -> Result<Evaluated, Error> {
    check_threshold(options.threshold)?;
    if results != Path::new("-") && is_population(results)? {
        return evaluate_population(results, truth, options).map(|scored| Evaluated::Population(Box::new(scored)));
    }
    let mut truths = read_truth(truth)?;
    let mut reader = ResultReader::open(results)?;
    let mut scored = Scored::new(options.self_loops).question(options.question);
    while let Some((number, mut line)) = reader.next_result()? {
        if let Some(threshold) = options.threshold
            && !line.move_threshold(threshold)
        {
            return Err(needs_all_pairs(&reader, number));
        }
        let Some(known) = truths.remove(&line.id) else {
            let reason = format!("no truth for sequence {:?} in {}", line.id, truth.display());
            return Err(reader.complain(number, reason).into());
        };
        scored.add(&line, &known).map_err(|reason| reader.complain(number, reason))?;
    }
    if scored.evaluation.sequences == 0 {
        return Err(trace_io::Error::file(results, "holds no result").into());
    }
    scored.unscored = truths.len();
    Ok(Evaluated::Results(Box::new(scored)))
}

/// Checks a threshold that decides anew.
pub(crate) fn check_threshold(threshold: Option<f64>) -> Result<(), Error> {
    match threshold.filter(|nats| !(nats.is_finite() && *nats >= 0.0)) {
        Some(nats) => {
            let reason = format!("{nats} is not a strength; expected a number of nats, 0 or more");
            Err(Error::option("threshold", reason))
        }
        None => Ok(()),
    }
}

/// Scores with what they are of.
#[derive(Clone, Debug, Default)]
pub struct Scored {
    /// The scores.
    pub evaluation: Evaluation,
    /// True edges between positions that the run did not test.
    pub outside: u64,
    /// Sequences that have a truth but no result.
    pub unscored: usize,
    /// How the truth was measured.
    pub truths: BTreeSet<String>,
    /// Whether the results measured something else than the truth did.
    pub other_divergence: bool,
    /// True edges that could not be tested, because there was no room for anything else; they count as missed.
    pub untestable: u64,
    /// True edges among the tested pairs.
    pub true_edges: u64,
    self_loops: bool,
    question: Question,
}

impl Scored {
    /// Nothing scored yet.
    pub fn new(self_loops: bool) -> Self {
        Self { self_loops, ..Self::default() }
    }

    /// The same for one of the two questions.
    #[must_use]
    pub fn question(self, question: Question) -> Self {
        Self { question, ..self }
    }

    /// Adds one sequence; an error says what does not fit.
    pub fn add(&mut self, line: &ResultLine, truth: &TruthLine) -> Result<(), String> {
        let logged = line.events.len() + line.skipped.len();
        if let Some(edge) = truth.edges.iter().find(|edge| edge.effect.index() >= logged) {
            return Err(format!("the truth of {:?} has an effect at {} of {logged} events", line.id, edge.effect));
        }
        // The truth counts as the log does; what touches an event that was left out cannot be scored.
        let mut true_pairs: FxHashSet<(Position, Position)> = FxHashSet::default();
        for edge in truth.edges.iter().filter(|edge| edge.question.unwrap_or_default() == self.question) {
            match (line.position_of(edge.cause.0), line.position_of(edge.effect.0)) {
                (Some(cause), Some(effect)) => _ = true_pairs.insert((cause, effect)),
                _ => self.outside += 1,
            }
        }
        let found: FxHashMap<(Position, Position), &Pair> = line
            .pairs
            .iter()
            .filter(|pair| pair.question == self.question)
            .map(|pair| ((pair.cause, pair.effect), pair))
            .collect();
        let all_pairs = line.has_all_pairs();
        // How can be asked of outcomes alone; which these are is known where all pairs are there.
        let how = self.question == Question::How;
        let asked = |pair: &(Position, Position), true_pairs: &FxHashSet<(Position, Position)>| {
            !how || found.contains_key(pair) || true_pairs.contains(pair)
        };
        let (mut untestable, mut true_edges) = (0, 0);
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
        let tested: Vec<(Position, Position)> = line.tested_pairs().filter(|pair| asked(pair, &true_pairs)).collect();
        let candidates: Vec<Candidate<usize>> = tested
            .into_iter()
            .map(|(cause, effect)| {
                let pair = found.get(&(cause, effect));
                let truth = true_pairs.remove(&(cause, effect));
                true_edges += u64::from(truth);
                untestable += u64::from(truth && pair.is_some_and(|pair| pair.verdict == Verdict::Untestable));
                Candidate {
                    types: (types[cause.index()], types[effect.index()]),
                    lag: Lag(effect.0 - cause.0),
                    kept: pair.is_some_and(|pair| pair.kept),
                    strength: if all_pairs { Some(pair.map_or(0.0, |pair| pair.strength)) } else { None },
                    truth,
                }
            })
            .collect();
        self.outside += true_pairs.len() as u64;
        self.untestable += untestable;
        self.true_edges += true_edges;
        self.evaluation.add(&candidates, self.self_loops);
        if let Some(divergence) = truth.divergence {
            let draws = truth.draws.map_or(String::new(), |draws| format!(", draws {}", word(&draws)));
            let threshold = truth.threshold.map_or(String::new(), |threshold| format!(", above {threshold} nats"));
            self.truths.insert(format!("{}{draws}{threshold}", word(&divergence)));
            self.other_divergence |= divergence != line.settings.plan.divergence;
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
            "true_edges": self.true_edges,
            "true_edges_untestable": self.untestable,
            "sequences_without_result": self.unscored,
            "positions": positions,
            "summary": figures(&self.evaluation.summary),
        })
    }
}

/// A setting as files have it.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value).unwrap_or_default() {
        Value::String(text) => text,
        other => other.to_string(),
    }
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

/// A population graph against true type pairs.
#[derive(Clone, Debug)]
pub struct ScoredPopulation {
    /// How many sequences were merged.
    pub sequences: u64,
    /// By the signed score.
    pub signed: Figures,
    /// By the unsigned score.
    pub unsigned: Figures,
    /// True pairs that never had an opportunity.
    pub outside: usize,
    /// True pairs that could not be tested; they count as missed.
    pub untestable: usize,
}

impl ScoredPopulation {
    fn as_json(&self) -> Value {
        let figures: Map<String, Value> = Figures::NAMES
            .iter()
            .zip(self.signed.values())
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        json!({
            "sequences": self.sequences,
            "true_edges_outside_tested_pairs": self.outside,
            "true_edges_untestable": self.untestable,
            "population": figures,
            "unsigned": {"auroc": self.unsigned.auroc, "average_precision": self.unsigned.average_precision},
        })
    }
}

fn evaluate_population(results: &Path, truth: &Path, options: &EvaluateOptions) -> Result<ScoredPopulation, Error> {
    if options.threshold.is_some() {
        return Err(Error::option("threshold", "a population graph has a rule of its own"));
    }
    let file = Population::read(results)?;
    if !truth.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
        let place = truth.display();
        let reason =
            format!("{place}: expected a .csv file of cause,effect type pairs as the truth of a population graph");
        return Err(Error::request(reason));
    }
    // Names in a CSV file are text, whatever they are in the graph.
    let loops = |cause: &str, effect: &str| options.self_loops || cause != effect;
    let mut truth: BTreeSet<(String, String)> = read_type_pairs(truth, options.question)?
        .into_iter()
        .map(|(cause, effect)| (cause.to_string(), effect.to_string()))
        .filter(|(cause, effect)| loops(cause, effect))
        .collect();
    let mut by_score = Vec::new();
    let mut by_unsigned = Vec::new();
    let mut untestable = 0;
    for found in file.pairs.iter().filter(|found| found.question == options.question && found.places > 0) {
        let pair = (found.cause.to_string(), found.effect.to_string());
        if loops(&pair.0, &pair.1) {
            let truth = truth.remove(&pair);
            untestable += usize::from(truth && found.verdict == Verdict::Untestable);
            by_score.push((found.kept, truth, Some(found.score)));
            by_unsigned.push((found.kept, truth, Some(found.unsigned_score)));
        }
    }
    Ok(ScoredPopulation {
        sequences: file.sequences,
        signed: Figures::new(by_score),
        unsigned: Figures::new(by_unsigned),
        outside: truth.len(),
        untestable,
    })
}
