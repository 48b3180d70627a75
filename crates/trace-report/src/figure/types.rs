//! A graph over event types, in layers.

use rustc_hash::FxHashMap;
use trace_core::EventName;

use super::ink;
use super::svg::{Stroke, Svg, shortened};
use crate::layout::{Connection, Layout, NODE_HEIGHT, NODE_WIDTH, Point};
use crate::sequence::MOST_LAID_OUT;

const MARGIN: f64 = 24.0;

/// An edge with its ends as node numbers.
struct Edge {
    from: usize,
    to: usize,
    weight: f64,
    log_ratio: f64,
}

/// Draws edges of cause, effect, weight and sign. Of very many only the strongest take part in the layout, but all are
/// drawn.
pub(super) fn draw<'e>(title: &str, edges: impl Iterator<Item = (&'e EventName, &'e EventName, f64, f64)>) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut numbers: FxHashMap<&EventName, usize> = FxHashMap::default();
    let mut number = |name: &'e EventName| {
        *numbers.entry(name).or_insert_with(|| {
            names.push(name.to_string());
            names.len() - 1
        })
    };
    let mut edges: Vec<Edge> = edges
        .map(|(cause, effect, weight, log_ratio)| Edge { from: number(cause), to: number(effect), weight, log_ratio })
        .collect();
    let connections: Vec<Connection> =
        edges.iter().map(|edge| Connection { from: edge.from, to: edge.to, weight: edge.weight }).collect();
    let layout = Layout::new(names.len(), &connections, MOST_LAID_OUT, &[]);
    edges.sort_by(|a, b| a.weight.total_cmp(&b.weight)); // strong ones on top
    let ports = ports(&edges, &layout);
    let heaviest = edges.last().map_or(1.0, |edge| edge.weight.max(1e-9));

    let mut svg = Svg::new();
    for (edge, (start, end)) in edges.iter().zip(ports) {
        let (ink, dashes) = ink(edge.log_ratio);
        let share = (edge.weight.max(0.0) / heaviest).sqrt();
        let stroke = Stroke { ink, width: 0.9 + 2.6 * share, opacity: 0.35 + 0.6 * share, dashes };
        let title = format!("{} → {}: {:.3}", names[edge.from], names[edge.to], edge.weight);
        let (path, tip, angle) = route(edge, &layout, start, end);
        svg.path(&path, &stroke, &title);
        svg.head(tip.x, tip.y, angle, ink, stroke.opacity);
    }
    for (name, place) in names.iter().zip(&layout.nodes) {
        svg.rounded(place.x + MARGIN, place.y + MARGIN, NODE_WIDTH, NODE_HEIGHT);
        svg.text(place.x + MARGIN, place.y + MARGIN + 4.0, "middle", 0.0, 11.0, &shortened(name, 18));
    }
    svg.finish(layout.width + 2.0 * MARGIN + 20.0, layout.height + 2.0 * MARGIN, title)
}

/// Which way an edge runs: from the right side of its cause to the left of its effect, back, or within a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    On,
    Back,
    Level,
}

fn way(edge: &Edge, layout: &Layout) -> Way {
    let distance = layout.nodes[edge.to].x - layout.nodes[edge.from].x;
    match distance {
        _ if distance.abs() <= 1.0 => Way::Level,
        _ if distance < 0.0 => Way::Back,
        _ => Way::On,
    }
}

/// How far from the middle of its box's side each edge begins and ends: sorted by where it goes.
fn ports(edges: &[Edge], layout: &Layout) -> Vec<(f64, f64)> {
    let mut sides: FxHashMap<(usize, bool), Vec<(f64, usize, bool)>> = FxHashMap::default();
    for (index, edge) in edges.iter().enumerate().filter(|(_, edge)| edge.from != edge.to) {
        let route = layout.routes.get(&(edge.from, edge.to)).filter(|route| !route.is_empty());
        let first = route.map_or(layout.nodes[edge.to].y, |route| route[0].y);
        let last = route.map_or(layout.nodes[edge.from].y, |route| route[route.len() - 1].y);
        let way = way(edge, layout);
        sides.entry((edge.from, way != Way::Back)).or_default().push((first, index, true));
        sides.entry((edge.to, way != Way::On)).or_default().push((last, index, false));
    }
    let mut ports = vec![(0.0, 0.0); edges.len()];
    for mut side in sides.into_values() {
        side.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let gaps = (side.len() - 1) as f64;
        let step = (NODE_HEIGHT - 6.0) / gaps.max(1.0);
        for (place, (_, index, start)) in side.iter().enumerate() {
            let offset = (place as f64 - gaps / 2.0) * step.min(5.0);
            if *start {
                ports[*index].0 = offset;
            } else {
                ports[*index].1 = offset;
            }
        }
    }
    ports
}

/// The path of an edge, the tip of its arrow, and where that points.
fn route(edge: &Edge, layout: &Layout, start: f64, end: f64) -> (String, Point, f64) {
    let moved = |point: Point| Point { x: point.x + MARGIN, y: point.y + MARGIN };
    let (from, to) = (moved(layout.nodes[edge.from]), moved(layout.nodes[edge.to]));
    let half = NODE_WIDTH / 2.0;
    if edge.from == edge.to {
        let (x, y) = (from.x + half - 20.0, from.y - NODE_HEIGHT / 2.0);
        let path = format!(
            "M{:.1} {y:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
            x - 12.0,
            x - 16.0,
            y - 20.0,
            x + 16.0,
            y - 20.0,
            x + 12.0,
            y - 4.0
        );
        return (path, Point { x: x + 12.0, y }, 90.0);
    }
    let way = way(edge, layout);
    let (leave, arrive) = match way {
        Way::On => (half, -half),
        Way::Back => (-half, half),
        Way::Level => (half, half),
    };
    let tip = Point { x: to.x + arrive, y: to.y + end };
    let mut last = Point { x: from.x + leave, y: from.y + start };
    // The line ends inside the head.
    let stop = Point { x: tip.x + arrive.signum() * 4.0, y: tip.y };
    let mut path = format!("M{:.1} {:.1}", last.x, last.y);
    if way == Way::Level {
        let out = last.x + 34.0 + (stop.y - last.y).abs() / 12.0;
        path += &format!("C{out:.1} {:.1} {out:.1} {:.1} {:.1} {:.1}", last.y, stop.y, stop.x, stop.y);
        return (path, tip, 180.0);
    }
    let between = layout.routes.get(&(edge.from, edge.to)).map(Vec::as_slice).unwrap_or_default();
    for point in between.iter().copied().map(moved).chain([stop]) {
        let middle = f64::midpoint(last.x, point.x);
        path += &format!("C{middle:.1} {:.1} {middle:.1} {:.1} {:.1} {:.1}", last.y, point.y, point.x, point.y);
        last = point;
    }
    (path, tip, if way == Way::Back { 180.0 } else { 0.0 })
}
