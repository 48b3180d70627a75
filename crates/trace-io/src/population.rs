//! Population files: one JSON object with every type pair that had an opportunity.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trace_core::evidence::EvidenceRule;
use trace_core::{
    EventName, EvidenceBase, Opportunity, PopulationGraph, PopulationPair, PopulationRule, TypePair, Untestable,
    Verdict,
};

use crate::result::{ResultLine, ResultModel, RunSettings};
use crate::{Error, output};

/// The version of population files that this software writes.
pub const POPULATION_SCHEMA: &str = "trace.population/2";
/// The first version, which is read and never merged with this one.
const FIRST_SCHEMA: &str = "trace.population/1";

/// A population graph with what made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// The version of this file.
    pub schema: String,
    /// How many sequences were merged.
    pub sequences: u64,
    /// What made them.
    pub settings: RunSettings,
    /// The model that made them.
    pub model: ResultModel,
    /// What decided which pairs are kept; absent in files of the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Which evidence pairs hold; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceBase>,
    /// Every type pair that had an opportunity: what is kept first, then by score.
    #[serde(rename = "edges")]
    pub pairs: Vec<PopulationPair<EventName>>,
}

/// What decided which pairs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// What decided.
    pub by: DecidedBy,
    /// The expected share of kept pairs that are false, at most, where evidence decided.
    pub fdr: f64,
    /// The ratio that kept pairs exceed.
    pub least_ratio: f64,
}

/// What decides which pairs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// Q-values of sequences that the model was not trained on.
    Evidence,
    /// The lower bound of the effect size, with no error rate.
    EffectSize,
}

/// How many pairs of different types there are of each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerdictCounts {
    /// Pairs of different types.
    pub pairs: usize,
    /// Those that were tested.
    pub tested: usize,
    /// Those that are kept.
    pub kept: usize,
    /// Those that inhibit.
    pub inhibits: usize,
    /// Those that cannot be tested.
    pub untestable: usize,
    /// Of these, those where hardly anything else could have stood.
    pub always_so: usize,
    /// Of these, those that always carry the same time.
    pub same_time: usize,
}

impl Population {
    /// A graph over names, decided by a rule.
    pub fn new(
        graph: &PopulationGraph<EventName>,
        settings: &RunSettings,
        model: &ResultModel,
        rule: &EvidenceRule,
    ) -> Self {
        let rule = PopulationRule { evidence: *rule, ..PopulationRule::default() };
        let evident = graph.evidence.is_some_and(|base| base.is_enough());
        let decision = if evident {
            Decision { by: DecidedBy::Evidence, fdr: rule.evidence.fdr, least_ratio: rule.evidence.least_ratio }
        } else {
            // The score is a bound, and the ratio that it is held against is e to the cut.
            Decision { by: DecidedBy::EffectSize, fdr: rule.evidence.fdr, least_ratio: rule.cut.exp() }
        };
        Self {
            schema: POPULATION_SCHEMA.to_owned(),
            sequences: graph.sequences,
            settings: settings.clone(),
            model: model.clone(),
            decision: Some(decision),
            evidence: graph.evidence,
            pairs: graph.decided(&rule),
        }
    }

    /// The same graph, decided by another rule.
    #[must_use]
    pub fn decided(&self, rule: &EvidenceRule) -> Self {
        Self::new(&self.graph(), &self.settings, &self.model, rule)
    }

    /// The graph.
    pub fn graph(&self) -> PopulationGraph<EventName> {
        let key = |pair: &PopulationPair<EventName>| -> TypePair<EventName> {
            (pair.cause.clone(), pair.effect.clone(), pair.question)
        };
        let pairs = self.pairs.iter().map(|pair| (key(pair), pair.record())).collect();
        PopulationGraph { sequences: self.sequences, pairs, evidence: self.evidence }
    }

    /// Whether q-values decided.
    pub fn has_evidence(&self) -> bool {
        self.decision.is_some_and(|decision| decision.by == DecidedBy::Evidence)
    }

    /// Whether the file is of the first version.
    pub fn is_first_version(&self) -> bool {
        self.schema == FIRST_SCHEMA
    }

    /// How many pairs of different types there are of each verdict.
    pub fn counts(&self) -> VerdictCounts {
        let mut counts = VerdictCounts::default();
        for pair in self.pairs.iter().filter(|pair| pair.cause != pair.effect && pair.places > 0) {
            counts.pairs += 1;
            counts.kept += usize::from(pair.kept);
            counts.inhibits += usize::from(pair.verdict == Verdict::Inhibits);
            counts.untestable += usize::from(pair.verdict == Verdict::Untestable);
            counts.always_so += usize::from(pair.untestable() == Some(Untestable::AlwaysSo));
            counts.same_time += usize::from(pair.untestable() == Some(Untestable::SameTime));
        }
        counts.tested = counts.pairs - counts.untestable;
        counts
    }

    /// The pairs that are edges, best score first.
    pub fn edges(&self) -> impl Iterator<Item = &PopulationPair<EventName>> {
        self.pairs.iter().filter(|pair| pair.kept)
    }

    /// The strongest edges between different types, best score first, as a table for people.
    pub fn strongest(&self, most: usize) -> Strongest<'_> {
        Strongest { pairs: self.edges().filter(|pair| pair.cause != pair.effect).take(most).collect() }
    }

    /// Reads a population file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read(path).map_err(Error::io(path))?;
        let mut population: Self = serde_json::from_slice(&text).map_err(|error| {
            let cut = if error.is_eof() { "; the file is cut off" } else { "" };
            Error::file(path, format!("expected a population graph as JSON: {error}{cut}"))
        })?;
        if population.is_first_version() {
            for pair in &mut population.pairs {
                pair.verdict = if pair.kept { Verdict::Promotes } else { Verdict::None };
                pair.ratio = pair.mean_log_ratio.exp();
                pair.places = pair.opportunities;
            }
        }
        let Self { schema, pairs, .. } = &population;
        if schema != POPULATION_SCHEMA && schema != FIRST_SCHEMA {
            return Err(Error::file(path, format!("expected schema {POPULATION_SCHEMA:?}, found {schema:?}")));
        }
        if let Some(pair) = pairs.iter().find(|pair| !pair.is_possible()) {
            let reason = format!("edge {} → {} has no opportunity, or impossible sums", pair.cause, pair.effect);
            return Err(Error::file(path, reason));
        }
        Ok(population)
    }

    /// Writes the file, all at once.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        output::write_json(path, self)
    }
}

/// Edges of a population, one per line.
#[derive(Clone, Debug)]
pub struct Strongest<'p> {
    /// The edges.
    pub pairs: Vec<&'p PopulationPair<EventName>>,
}

impl fmt::Display for Strongest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |pair: &PopulationPair<EventName>| {
            let how = if pair.question.is_whether() { "" } else { ", how" };
            format!("{} → {}{how}", short(&pair.cause), short(&pair.effect))
        };
        let widest = self.pairs.iter().map(|pair| name(pair).chars().count()).max().unwrap_or(0);
        for pair in &self.pairs {
            let PopulationPair { ratio, sequences, q_value, .. } = pair;
            let times = if *ratio < 1000.0 { format!("{ratio:.1}") } else { "> 1000".to_owned() };
            let sure = q_value.map_or(String::new(), |q| match q {
                q if q < 1e-4 => ", q < 0.0001".to_owned(),
                q => format!(", q = {q:.4}"),
            });
            writeln!(f, "{times:>7} ×  {:<widest$}  {sequences} sequences{sure}", name(pair))?;
        }
        Ok(())
    }
}

/// Letters of a name that a table shows.
const LONGEST_NAME: usize = 28;

/// A name without its middle where it is too long.
fn short(name: &EventName) -> String {
    let letters: Vec<char> = name.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if letters.len() <= LONGEST_NAME {
        return letters.into_iter().collect();
    }
    let (start, end) = (LONGEST_NAME / 2 + 1, LONGEST_NAME / 2 - 2);
    letters[..start].iter().chain(&['…']).chain(&letters[letters.len() - end..]).collect()
}

/// Whether a file is a population graph rather than results, by its schema.
pub fn is_population(path: &Path) -> Result<bool, Error> {
    use std::io::Read;
    // What is looked at in a pipe is gone from it; pipes are taken to hold results.
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        return Ok(false);
    }
    let file = std::fs::File::open(path).map_err(Error::io(path))?;
    let mut start = Vec::new();
    file.take(4096).read_to_end(&mut start).map_err(Error::io(path))?;
    let text = String::from_utf8_lossy(&start);
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).take(200).collect();
    Ok(compact.contains(r#""schema":"trace.population/"#))
}

/// Adds one result, which must hold all its tested pairs, to a graph.
pub fn add_result(graph: &mut PopulationGraph<EventName>, line: &ResultLine) {
    graph.add_sequence(line.pairs.iter().map(|pair| {
        let (cause, effect) = line.types_of(pair);
        Opportunity::new(cause, effect, pair)
    }));
}
