//! Truth files: JSON Lines of true edges.

use std::path::Path;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer, Serialize};
use trace_core::{Divergence, EventName, Particles, Position, Question, TruthClass};

use crate::Error;
use crate::lines::Lines;

/// The true edges of one sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TruthLine {
    /// The sequence.
    #[serde(deserialize_with = "text_or_number")]
    pub id: String,
    /// How strength was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<Divergence>,
    /// How many replacements were tried: a number, or `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draws: Option<Particles>,
    /// What a strength had to exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The edges.
    pub edges: Vec<TruthEdge>,
}

/// Ids may be numbers, as in logs.
fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(EventName::deserialize(deserializer)?.to_string())
}

/// One true edge.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TruthEdge {
    /// Position of the cause.
    pub cause: Position,
    /// Position of the effect.
    pub effect: Position,
    /// Its strength, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<f64>,
    /// What the edge answers, where the truth tells questions apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Why it is one, where the truth says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<TruthClass>,
    /// In results with all pairs that stand in for a truth: whether the pair is an edge.
    #[serde(default = "yes", skip_serializing)]
    pub kept: bool,
}

impl TruthEdge {
    /// An edge of which nothing more is known.
    pub const fn new(cause: Position, effect: Position, strength: Option<f64>) -> Self {
        Self { cause, effect, strength, question: None, class: None, kept: true }
    }
}

const fn yes() -> bool {
    true
}

/// Reads a truth file, by sequence id.
pub fn read_truth(path: &Path) -> Result<FxHashMap<String, TruthLine>, Error> {
    let mut lines = Lines::open(path)?;
    let mut all: FxHashMap<String, TruthLine> = FxHashMap::default();
    while let Some((number, mut line)) = lines.next_json::<TruthLine>(r#"a truth like {"id": "v1", "edges": […]}"#)? {
        if let Some(edge) = line.edges.iter().find(|edge| edge.cause >= edge.effect) {
            let reason = format!("the cause at {} does not come before its effect at {}", edge.cause, edge.effect);
            return Err(Error::line(&lines.file, number, reason));
        }
        line.edges.retain(|edge| edge.kept);
        let id = line.id.clone();
        if all.insert(id.clone(), line).is_some() {
            return Err(Error::line(&lines.file, number, format!("id {id:?} occurs twice")));
        }
    }
    if all.is_empty() {
        return Err(Error::file(path, "holds no truth; expected one line per sequence"));
    }
    Ok(all)
}

/// Reads true type pairs from a CSV file with a header that has `cause` and `effect`.
///
/// Where a column `class` tells why pairs depend on each other, only designed ones are taken; where a column `question`
/// tells what a pair answers, only those that answer this one.
pub fn read_type_pairs(path: &Path, question: Question) -> Result<Vec<(EventName, EventName)>, Error> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(false)
        .from_path(path)
        .map_err(|error| Error::file(path, error.to_string()))?;
    let header = reader.headers().map_err(|error| Error::file(path, error.to_string()))?.clone();
    let column = |name: &str| {
        header.iter().position(|field| field.trim() == name).ok_or_else(|| {
            Error::file(
                path,
                format!("expected a header with cause and effect, found {:?}", header.iter().collect::<Vec<_>>()),
            )
        })
    };
    let (cause, effect) = (column("cause")?, column("effect")?);
    let optional = |name: &str| header.iter().position(|field| field.trim() == name);
    let only = [(optional("class"), "designed"), (optional("question"), question.name())];
    let mut pairs = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| Error::file(path, error.to_string()))?;
        if only.iter().any(|(column, word)| column.is_some_and(|column| record[column].trim() != *word)) {
            continue;
        }
        pairs.push((EventName::from(&record[cause]), EventName::from(&record[effect])));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use super::*;

    #[test]
    fn edges_may_say_what_they_answer_and_why() {
        let plain: TruthEdge = serde_json::from_str(r#"{"cause": 1, "effect": 2}"#).unwrap();
        assert_eq!(plain, TruthEdge::new(Position(1), Position(2), None));
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"cause":1,"effect":2}"#);
        let how = TruthEdge { question: Some(Question::How), class: Some(TruthClass::Designed), ..plain };
        let text = serde_json::to_string(&how).unwrap();
        assert_eq!(text, r#"{"cause":1,"effect":2,"question":"how","class":"designed"}"#);
        assert_eq!(serde_json::from_str::<TruthEdge>(&text).unwrap(), how);
        assert!(serde_json::from_str::<TruthEdge>(&text.replace("how", "why")).is_err());
    }

    #[test]
    fn only_designed_pairs_are_true() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pairs.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_type_pairs(&path, Question::Whether).unwrap()
        };
        let pair = |cause: &str, effect: &str| (EventName::from(cause), EventName::from(effect));
        assert_eq!(read("cause,effect\na,b\nb,c\n"), [pair("a", "b"), pair("b", "c")]);
        let text = "cause,effect,question,class\na,b,whether,designed\nb,c,how,designed\nc,d,whether,null\n";
        assert_eq!(read(text), [pair("a", "b")]);
    }
}
