//! The projection of a sample graph onto event types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SampleGraph;
use crate::{EventId, Lag};

/// All edges of one sequence from one type to another.
///
/// `K` is how types are told apart: [`EventId`] within one vocabulary, names in files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryEdge<K = EventId> {
    /// The causing type.
    pub cause: K,
    /// The caused type.
    pub effect: K,
    /// The strongest of the edges, in nats.
    pub strength: f64,
    /// Their mean strength; absent in files of early versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_strength: Option<f64>,
    /// How many there are.
    pub count: usize,
    /// The lags that occur among them, ascending.
    pub lags: Vec<Lag>,
}

/// `G_s`: which types caused which in one sequence. Cycles are allowed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryGraph {
    edges: Vec<SummaryEdge>,
}

impl SummaryGraph {
    /// Projects a sample graph; edges from a type to itself are left out unless `self_loops`.
    pub fn new(graph: &SampleGraph, self_loops: bool) -> Self {
        let mut types: BTreeMap<(EventId, EventId), SummaryEdge> = BTreeMap::new();
        for edge in graph.edges() {
            let (cause, effect) = (graph.events()[edge.cause.index()], graph.events()[edge.effect.index()]);
            if cause == effect && !self_loops {
                continue;
            }
            let summary = types.entry((cause, effect)).or_insert_with(|| SummaryEdge {
                cause,
                effect,
                strength: edge.strength,
                mean_strength: Some(0.0),
                count: 0,
                lags: Vec::new(),
            });
            summary.count += 1;
            let mean = summary.mean_strength.unwrap_or(0.0);
            summary.mean_strength = Some(mean + (edge.strength - mean) / summary.count as f64);
            summary.strength = summary.strength.max(edge.strength);
            if let Err(place) = summary.lags.binary_search(&edge.lag) {
                summary.lags.insert(place, edge.lag);
            }
        }
        Self { edges: types.into_values().collect() }
    }

    /// The edges, in order of cause and effect.
    pub fn edges(&self) -> &[SummaryEdge] {
        &self.edges
    }

    /// The edges with types called otherwise.
    pub fn named<L>(&self, name: impl Fn(EventId) -> L) -> Vec<SummaryEdge<L>> {
        let renamed = |edge: &SummaryEdge| SummaryEdge {
            cause: name(edge.cause),
            effect: name(edge.effect),
            strength: edge.strength,
            mean_strength: edge.mean_strength,
            count: edge.count,
            lags: edge.lags.clone(),
        };
        self.edges.iter().map(renamed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Position;
    use crate::graph::{Pair, Verdict};

    fn pair(cause: u32, effect: u32, strength: f64, kept: bool) -> Pair {
        Pair {
            cause: Position(cause),
            effect: Position(effect),
            lag: Lag(effect - cause),
            question: crate::Question::Whether,
            strength,
            std_error: 0.0,
            particles: 2,
            log_ratio: 1.0,
            probability: 0.5,
            probability_replaced: 0.1,
            effective_particles: None,
            overlap: None,
            verdict: Verdict::Promotes,
            hidden_cause_ratio: 1.0,
            tied: false,
            kept,
            required: false,
        }
    }

    #[test]
    fn edges_of_the_same_types_are_gathered() {
        // events: A B A B B
        let events = [0, 1, 0, 1, 1].map(EventId).to_vec();
        let pairs = vec![
            pair(0, 1, 0.2, true),
            pair(0, 3, 0.6, true),
            pair(1, 2, 0.01, false),
            pair(2, 3, 0.4, true),
            pair(3, 4, 0.3, true),
        ];
        let graph = SampleGraph::new(events, pairs, 0.05);
        let summary = SummaryGraph::new(&graph, false);
        assert_eq!(summary.edges().len(), 1);
        let edge = &summary.edges()[0];
        assert_eq!((edge.cause, edge.effect, edge.count), (EventId(0), EventId(1), 3));
        assert_eq!(edge.lags, [Lag(1), Lag(3)]);
        assert!((edge.strength - 0.6).abs() < 1e-15 && (edge.mean_strength.unwrap() - 0.4).abs() < 1e-15);
        assert_eq!(SummaryGraph::new(&graph, true).edges().len(), 2);
    }
}
