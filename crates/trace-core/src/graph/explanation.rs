//! What led to one event: its direct causes and the chains behind them, back to the roots.
//!
//! Chains follow promoting edges only, those without which the effect would have been less likely. A chain is as
//! strong as its weakest link; of all paths from an ancestor to the event, its chain is the strongest one, among equals
//! the one with the fewest links, and among those the one whose first step is the shortest. A *root* is an ancestor that
//! no promoting edge leads to.
//!
//! Cost: every edge before the event once.

use crate::graph::{Pair, SampleGraph, Verdict};
use crate::{EventId, Position};

/// Why one event happened, as far as the graph says.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The event.
    pub position: Position,
    /// Edges that promoted it, strongest first.
    pub direct: Vec<Pair>,
    /// Edges that made it less likely: it happened in spite of them; strongest first.
    pub despite: Vec<Pair>,
    /// Pairs that cannot be tested, nearest first: there was no room for anything else, so the log cannot say whether
    /// they matter.
    pub untestable: Vec<Pair>,
    /// One chain for each root, strongest first.
    pub roots: Vec<Chain>,
    /// The events on any chain to it, in order.
    pub ancestors: Vec<Position>,
}

/// A path of promoting edges, from a root to the event.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The edges, in order of time.
    pub edges: Vec<Pair>,
    /// The strength of the weakest.
    pub strength: f64,
}

impl Chain {
    /// Where it starts.
    pub fn root(&self) -> Option<Position> {
        self.edges.first().map(|edge| edge.cause)
    }

    /// The types along it, for comparing chains of different sequences.
    pub fn types(&self, events: &[EventId]) -> Vec<EventId> {
        let ends = self.edges.last().map(|edge| edge.effect);
        self.edges.iter().map(|edge| edge.cause).chain(ends).map(|position| events[position.index()]).collect()
    }
}

/// The best way on from a position.
#[derive(Clone, Copy)]
struct Step {
    strength: f64,
    links: usize,
    edge: Pair,
}

impl Explanation {
    /// Explains the event at `position` by the edges of a graph.
    pub fn new(graph: &SampleGraph, position: Position) -> Self {
        let into: Vec<&Pair> = graph.edges().filter(|edge| edge.effect == position).collect();
        let strongest = |promoting: bool| {
            let mut edges: Vec<Pair> =
                into.iter().filter(|edge| (edge.log_ratio > 0.0) == promoting).map(|edge| **edge).collect();
            edges.sort_by(|a, b| b.strength.total_cmp(&a.strength).then(b.cause.cmp(&a.cause)));
            edges
        };
        let untestable = |pair: &&Pair| pair.effect == position && pair.verdict == Verdict::Untestable && !pair.kept;
        let mut untestable: Vec<Pair> = graph.pairs().iter().filter(untestable).copied().collect();
        untestable.sort_by_key(|pair| (pair.lag, pair.question.name()));
        let steps = steps(graph, position);
        let mut caused = vec![false; position.index() + 1];
        for edge in graph.edges().filter(|edge| edge.log_ratio > 0.0 && edge.effect <= position) {
            caused[edge.effect.index()] = true;
        }
        let mut roots: Vec<Chain> =
            (0..position.index()).filter(|at| !caused[*at]).filter_map(|at| chain(&steps, at)).collect();
        roots.sort_by(|a, b| b.strength.total_cmp(&a.strength).then(a.edges.len().cmp(&b.edges.len())));
        let ancestors = (0..).zip(&steps).filter(|(_, step)| step.is_some()).map(|(at, _)| Position(at)).collect();
        Self { position, direct: strongest(true), despite: strongest(false), untestable, roots, ancestors }
    }
}

/// The best step from every position before the event, where one leads there.
fn steps(graph: &SampleGraph, target: Position) -> Vec<Option<Step>> {
    let mut leaving: Vec<Vec<&Pair>> = vec![Vec::new(); target.index()];
    for edge in graph.edges().filter(|edge| edge.log_ratio > 0.0 && edge.effect <= target) {
        leaving[edge.cause.index()].push(edge);
    }
    let mut steps: Vec<Option<Step>> = vec![None; target.index()];
    for (at, edges) in leaving.iter_mut().enumerate().rev() {
        edges.sort_by_key(|edge| edge.effect);
        let mut best: Option<Step> = None;
        for edge in edges.iter() {
            let (strength, links) = if edge.effect == target {
                (edge.strength, 1)
            } else if let Some(next) = steps[edge.effect.index()] {
                (edge.strength.min(next.strength), next.links + 1)
            } else {
                continue;
            };
            // Edges come with their lags ascending, so that equals leave the shortest first step in place.
            let better = best.is_none_or(|b| strength > b.strength || (strength == b.strength && links < b.links));
            if better {
                best = Some(Step { strength, links, edge: **edge });
            }
        }
        steps[at] = best;
    }
    steps
}

fn chain(steps: &[Option<Step>], from: usize) -> Option<Chain> {
    let first = steps[from]?;
    let mut edges = vec![first.edge];
    let mut at = first.edge.effect.index();
    while let Some(step) = steps.get(at).copied().flatten() {
        edges.push(step.edge);
        at = step.edge.effect.index();
    }
    Some(Chain { edges, strength: first.strength })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lag;

    fn edge(cause: u32, effect: u32, strength: f64, log_ratio: f64) -> Pair {
        Pair {
            cause: Position(cause),
            effect: Position(effect),
            lag: Lag(effect - cause),
            question: crate::Question::Whether,
            strength,
            std_error: 0.0,
            particles: 10,
            log_ratio,
            probability: 0.5,
            probability_replaced: 0.1,
            effective_particles: None,
            overlap: None,
            verdict: Verdict::Promotes,
            hidden_cause_ratio: 1.0,
            tied: false,
            kept: strength > 0.05,
            required: false,
        }
    }

    fn explain(edges: &[(u32, u32, f64, f64)], at: u32) -> Explanation {
        let events = (0..10).map(EventId).collect();
        let edges = edges.iter().map(|(c, e, s, r)| edge(*c, *e, *s, *r)).collect();
        Explanation::new(&SampleGraph::new(events, edges, 0.05), Position(at))
    }

    fn path(chain: &Chain) -> Vec<u32> {
        chain.edges.iter().map(|e| e.cause.0).chain(chain.edges.last().map(|e| e.effect.0)).collect()
    }

    #[test]
    fn a_chain_is_as_strong_as_its_weakest_link() {
        // 0 → 5 is direct and weak; 0 → 2 → 5 is the stronger way.
        let found = explain(&[(0, 5, 0.1, 1.0), (0, 2, 0.4, 1.0), (2, 5, 0.3, 1.0), (1, 5, 0.2, 1.0)], 5);
        assert_eq!(found.roots.iter().map(path).collect::<Vec<_>>(), [vec![0, 2, 5], vec![1, 5]]);
        assert_eq!(found.roots.iter().map(|chain| chain.strength).collect::<Vec<_>>(), [0.3, 0.2]);
        assert_eq!(found.direct.iter().map(|edge| edge.cause.0).collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!(found.ancestors, [0, 1, 2].map(Position));
        assert_eq!(found.roots[0].types(&(0..10).map(EventId).collect::<Vec<_>>()), [0, 2, 5].map(EventId));
    }

    #[test]
    fn what_cannot_be_tested_is_listed_and_leads_nowhere() {
        let always = |cause, effect| Pair { overlap: Some(0.0), ..edge(cause, effect, 0.9, 1.0) }.decided(0.05);
        let pairs = vec![always(0, 3), edge(1, 3, 0.2, 1.0), always(2, 3), always(0, 1)];
        let found = Explanation::new(&SampleGraph::new((0..4).map(EventId).collect(), pairs, 0.05), Position(3));
        assert_eq!(found.untestable.iter().map(|pair| pair.cause.0).collect::<Vec<_>>(), [2, 0]);
        assert_eq!(found.roots.iter().map(path).collect::<Vec<_>>(), [vec![1, 3]]);
    }

    #[test]
    fn equals_take_fewer_links_then_the_shorter_first_step() {
        let found = explain(&[(0, 1, 0.3, 1.0), (1, 5, 0.3, 1.0), (0, 5, 0.3, 1.0)], 5);
        assert_eq!(found.roots.iter().map(path).collect::<Vec<_>>(), [vec![0, 5]]);
        let found = explain(&[(0, 3, 0.3, 1.0), (3, 5, 0.3, 1.0), (0, 2, 0.3, 1.0), (2, 5, 0.3, 1.0)], 5);
        assert_eq!(found.roots.iter().map(path).collect::<Vec<_>>(), [vec![0, 2, 5]]);
    }

    #[test]
    fn what_hinders_is_told_apart_and_leads_nowhere() {
        let found = explain(&[(0, 1, 0.4, 1.0), (1, 3, 0.4, -1.0), (2, 3, 0.01, 1.0)], 3);
        assert!(found.direct.is_empty() && found.roots.is_empty() && found.ancestors.is_empty());
        assert_eq!(found.despite.iter().map(|edge| edge.cause.0).collect::<Vec<_>>(), [1]);
        // An event that something only hinders is still a root.
        let found = explain(&[(0, 1, 0.4, -1.0), (1, 3, 0.4, 1.0)], 3);
        assert_eq!(found.roots.iter().map(path).collect::<Vec<_>>(), [vec![1, 3]]);
    }
}
