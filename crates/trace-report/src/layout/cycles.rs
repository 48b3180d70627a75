//! Turning edges around until none closes a cycle.

use super::Connection;

/// An edge of the acyclic graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Directed {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) weight: f64,
    /// Whether the connection points the other way.
    pub(super) turned: bool,
}

/// Takes connections in the order given, strongest first; one whose effect already leads to its cause is turned
/// around, so that of a cycle the weakest edge gives way.
pub(super) fn break_cycles(count: usize, connections: &[Connection]) -> Vec<Directed> {
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); count];
    connections
        .iter()
        .map(|connection| {
            let turned = reaches(&after, connection.to, connection.from);
            let (from, to) = if turned { (connection.to, connection.from) } else { (connection.from, connection.to) };
            after[from].push(to);
            Directed { from, to, weight: connection.weight, turned }
        })
        .collect()
}

fn reaches(after: &[Vec<usize>], start: usize, goal: usize) -> bool {
    let mut seen = vec![false; after.len()];
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        if node == goal {
            return true;
        }
        if !std::mem::replace(&mut seen[node], true) {
            open.extend(&after[node]);
        }
    }
    false
}
