//! The projection of a sample graph onto event types.

use std::collections::BTreeMap;

use super::SampleGraph;
use crate::{EventId, Lag};

/// All edges of one sequence from one type to another.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryEdge {
    /// The causing type.
    pub cause: EventId,
    /// The caused type.
    pub effect: EventId,
    /// The strongest of the edges, in nats.
    pub strength: f64,
    /// Their mean strength.
    pub mean_strength: f64,
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
                mean_strength: 0.0,
                count: 0,
                lags: Vec::new(),
            });
            summary.count += 1;
            summary.mean_strength += (edge.strength - summary.mean_strength) / summary.count as f64;
            summary.strength = summary.strength.max(edge.strength);
            if let Err(place) = summary.lags.binary_search(&edge.lag()) {
                summary.lags.insert(place, edge.lag());
            }
        }
        Self { edges: types.into_values().collect() }
    }

    /// The edges, in order of cause and effect.
    pub fn edges(&self) -> &[SummaryEdge] {
        &self.edges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Position;
    use crate::graph::Edge;

    fn pair(cause: u32, effect: u32, strength: f64, kept: bool) -> Edge {
        Edge {
            cause: Position(cause),
            effect: Position(effect),
            strength,
            std_error: 0.0,
            particles: 2,
            log_ratio: 1.0,
            probability: 0.5,
            probability_replaced: 0.1,
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
        assert!((edge.strength - 0.6).abs() < 1e-15 && (edge.mean_strength - 0.4).abs() < 1e-15);
        assert_eq!(SummaryGraph::new(&graph, true).edges().len(), 2);
    }
}
