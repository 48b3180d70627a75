//! A graph over event types, in layers.

use rustc_hash::FxHashMap;
use trace_core::EventName;

use super::ink;
use super::svg::{Stroke, Svg};
use crate::layout::{Connection, Layout, NODE_HEIGHT, NODE_LETTERS, Point};
use crate::shorten::distinct;

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
    let letters = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let layout = Layout::new(names.len(), letters, &connections, &[]);
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
    let labels = distinct(&names, NODE_LETTERS);
    for (label, place) in labels.iter().zip(&layout.nodes) {
        svg.rounded(place.x + MARGIN, place.y + MARGIN, layout.node_width, NODE_HEIGHT);
        svg.text(place.x + MARGIN, place.y + MARGIN + 4.0, "middle", 0.0, 11.0, label);
    }
    svg.finish(layout.width + 2.0 * MARGIN + 20.0, layout.height + 2.0 * MARGIN, title)
}

/// Which way an edge runs: on to a later layer, back to an earlier one, or within one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    On,
    Back,
    Level,
}

/// A point by how far it lies along and across the layers.
fn turned(layout: &Layout, point: Point) -> (f64, f64) {
    if layout.down { (point.y, point.x) } else { (point.x, point.y) }
}

fn way(edge: &Edge, layout: &Layout) -> Way {
    let along = |node: usize| turned(layout, layout.nodes[node]).0;
    let distance = along(edge.to) - along(edge.from);
    match distance {
        _ if distance.abs() <= 1.0 => Way::Level,
        _ if distance < 0.0 => Way::Back,
        _ => Way::On,
    }
}

/// The edges at one side of a box: how far across each goes, its number, and whether it begins here.
type Side = Vec<(f64, usize, bool)>;

/// How far from the middle of its box's side each edge begins and ends: sorted by where it goes.
fn ports(edges: &[Edge], layout: &Layout) -> Vec<(f64, f64)> {
    let across = |point: Point| turned(layout, point).1;
    let mut sides: FxHashMap<(usize, bool), Side> = FxHashMap::default();
    for (index, edge) in edges.iter().enumerate().filter(|(_, edge)| edge.from != edge.to) {
        let route = layout.routes.get(&(edge.from, edge.to)).filter(|route| !route.is_empty());
        let first = route.map_or(layout.nodes[edge.to], |route| route[0]);
        let last = route.map_or(layout.nodes[edge.from], |route| route[route.len() - 1]);
        let way = way(edge, layout);
        sides.entry((edge.from, way != Way::Back)).or_default().push((across(first), index, true));
        sides.entry((edge.to, way != Way::On)).or_default().push((across(last), index, false));
    }
    let (room, widest) = if layout.down { (layout.node_width - 20.0, 12.0) } else { (NODE_HEIGHT - 6.0, 5.0) };
    let mut ports = vec![(0.0, 0.0); edges.len()];
    for mut side in sides.into_values() {
        side.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let gaps = (side.len() - 1) as f64;
        let step = (room / gaps.max(1.0)).min(widest);
        for (place, (_, index, start)) in side.iter().enumerate() {
            let offset = (place as f64 - gaps / 2.0) * step;
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
    if edge.from == edge.to {
        let from = moved(layout.nodes[edge.from]);
        let (x, y) = (from.x + layout.node_width / 2.0 - 20.0, from.y - NODE_HEIGHT / 2.0);
        let path = format!("M{:.1} {y:.1}c-4 -20 28 -20 24 -4", x - 12.0);
        return (path, Point { x: x + 12.0, y }, 90.0);
    }
    let place = |node: usize| turned(layout, moved(layout.nodes[node]));
    let text = |along: f64, across: f64| {
        let (x, y) = if layout.down { (across, along) } else { (along, across) };
        format!("{x:.1} {y:.1}")
    };
    let half = if layout.down { NODE_HEIGHT / 2.0 } else { layout.node_width / 2.0 };
    let way = way(edge, layout);
    let (leave, arrive) = match way {
        Way::On => (half, -half),
        Way::Back => (-half, half),
        Way::Level => (half, half),
    };
    let ((from_along, from_across), (to_along, to_across)) = (place(edge.from), place(edge.to));
    let mut last = (from_along + leave, from_across + start);
    let tip = (to_along + arrive, to_across + end);
    // The line ends inside the head.
    let stop = (tip.0 + arrive.signum() * 4.0, tip.1);
    let mut path = format!("M{}", text(last.0, last.1));
    let mut curve = |first: f64, second: f64, from: f64, to: (f64, f64)| {
        path += &format!("C{} {} {}", text(first, from), text(second, to.1), text(to.0, to.1));
    };
    if way == Way::Level {
        let out = last.0 + 34.0 + (stop.1 - last.1).abs() / 12.0;
        curve(out, out, last.1, stop);
    } else {
        let between = layout.routes.get(&(edge.from, edge.to)).map(Vec::as_slice).unwrap_or_default();
        for point in between.iter().map(|point| turned(layout, moved(*point))).chain([stop]) {
            let middle = f64::midpoint(last.0, point.0);
            curve(middle, middle, last.1, point);
            last = point;
        }
    }
    let angle = if way == Way::On { 0.0 } else { 180.0 } + if layout.down { 90.0 } else { 0.0 };
    let (x, y) = if layout.down { (tip.1, tip.0) } else { tip };
    (path, Point { x, y }, angle)
}
