//! Which layer each node stands in.

use super::cycles::Directed;

/// Rounds of moving nodes; each costs a look at every edge.
const ROUNDS: usize = 12;

/// Longest paths from the sources, then every node moves within the room its neighbors leave to where its edges are
/// shortest by weight.
pub(super) fn assign(count: usize, edges: &[Directed]) -> Vec<usize> {
    let mut before: Vec<Vec<(usize, f64)>> = vec![Vec::new(); count];
    let mut after: Vec<Vec<(usize, f64)>> = vec![Vec::new(); count];
    for edge in edges {
        before[edge.to].push((edge.from, edge.weight));
        after[edge.from].push((edge.to, edge.weight));
    }
    let order = topological(&before, &after);
    let mut layer = vec![0usize; count];
    for node in &order {
        layer[*node] = before[*node].iter().map(|(cause, _)| layer[*cause] + 1).max().unwrap_or(0);
    }
    for round in 0..ROUNDS {
        let mut moved = false;
        let nodes: Vec<usize> = if round % 2 == 0 { order.iter().rev().copied().collect() } else { order.clone() };
        for node in nodes {
            let first = before[node].iter().map(|(cause, _)| layer[*cause] + 1).max().unwrap_or(0);
            let last = after[node].iter().map(|(effect, _)| layer[*effect] - 1).min();
            // A node without effects stays as far left as it may.
            let Some(last) = last else { continue };
            let pull: f64 = after[node].iter().map(|(_, weight)| weight + 1e-6).sum::<f64>()
                - before[node].iter().map(|(_, weight)| weight + 1e-6).sum::<f64>();
            let best = if pull > 0.0 { last } else { first };
            moved |= best != layer[node];
            layer[node] = best;
        }
        if !moved {
            break;
        }
    }
    let least = layer.iter().copied().min().unwrap_or(0);
    for layer in &mut layer {
        *layer -= least;
    }
    layer
}

fn topological(before: &[Vec<(usize, f64)>], after: &[Vec<(usize, f64)>]) -> Vec<usize> {
    let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..before.len()).filter(|node| waiting[*node] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for (effect, _) in &after[order[next]] {
            waiting[*effect] -= 1;
            if waiting[*effect] == 0 {
                order.push(*effect);
            }
        }
        next += 1;
    }
    order
}
