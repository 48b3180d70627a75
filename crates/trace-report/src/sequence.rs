//! One result as the page holds it.

use rustc_hash::FxHashMap;
use serde::Serialize;
use trace_core::{LEAST_EFFECTIVE, Pair, Position, Question};
use trace_io::result::ResultLine;

use crate::column::Column;
use crate::layout::{Connection, Layout};
use crate::names::Names;

/// A sequence with every pair that its result holds.
#[derive(Debug, Serialize)]
pub(crate) struct PageSequence {
    id: String,
    settings: usize,
    model: usize,
    events: Column,
    times: Option<Column>,
    /// Events of the log that the model does not know.
    skipped: usize,
    /// Pairs that prior knowledge excluded.
    excluded: usize,
    /// Edges that the run kept.
    kept: usize,
    /// Whether every tested pair is there, so that a threshold may fall too.
    all_pairs: bool,
    self_loops: bool,
    pairs: PagePairs,
    layout: PageLayout,
}

#[derive(Debug, Serialize)]
struct PagePairs {
    count: usize,
    cause: Column,
    lag: Column,
    strength: Column,
    std_error: Column,
    particles: Column,
    log_ratio: Column,
    probability: Column,
    probability_replaced: Column,
    /// How much room there was for anything else; nothing where it is not known for any pair.
    overlap: Option<Column>,
    /// 1: kept, 2: tied, 4: required, 8: untestable, 16: too few draws carry weight to decide, 32: how.
    flags: Column,
}

impl PageSequence {
    pub(crate) fn new(line: &ResultLine, settings: usize, model: usize, names: &mut Names) -> Self {
        let events: Vec<u32> = line.events.iter().map(|name| names.number(name)).collect();
        let pairs = &line.pairs;
        let known = pairs.iter().any(|pair| pair.overlap.is_some());
        let overlap = || Column::shown(pairs.iter().map(|pair| pair.overlap.unwrap_or(f64::NAN)));
        Self {
            id: line.id.clone(),
            settings,
            model,
            times: line.times.as_ref().map(|times| Column::exact(times.iter().copied())),
            skipped: line.skipped.len(),
            excluded: line.excluded.len(),
            kept: line.edges().count(),
            all_pairs: line.has_all_pairs(),
            self_loops: line.has_self_loops(),
            layout: layout(line, &events, names),
            events: Column::counts(events),
            pairs: PagePairs {
                count: pairs.len(),
                cause: Column::counts(pairs.iter().map(|pair| pair.cause.0)),
                lag: Column::counts(pairs.iter().map(|pair| pair.lag.0)),
                strength: Column::exact(pairs.iter().map(|pair| pair.strength)),
                std_error: Column::shown(pairs.iter().map(|pair| pair.std_error)),
                particles: Column::counts(pairs.iter().map(|pair| pair.particles)),
                log_ratio: Column::shown(pairs.iter().map(|pair| pair.log_ratio)),
                probability: Column::shown(pairs.iter().map(|pair| pair.probability)),
                probability_replaced: Column::shown(pairs.iter().map(|pair| pair.probability_replaced)),
                overlap: known.then(overlap),
                flags: Column::counts(pairs.iter().map(flags)),
            },
        }
    }
}

fn flags(pair: &Pair) -> u32 {
    let few = pair.effective_particles.is_some_and(|draws| draws < LEAST_EFFECTIVE);
    let marks = [pair.kept, pair.tied, pair.required, !pair.is_testable(), few, pair.question == Question::How];
    (0..).zip(marks).map(|(place, mark)| u32::from(mark) << place).sum()
}

/// Places of types: those of edges that were kept, and below them those that a lower threshold would bring in.
fn layout(line: &ResultLine, events: &[u32], names: &Names) -> PageLayout {
    let mut types = Vec::new();
    let mut places: FxHashMap<u32, usize> = FxHashMap::default();
    let mut strongest: FxHashMap<(usize, usize), (f64, bool)> = FxHashMap::default();
    for pair in &line.pairs {
        let mut place = |position: Position| {
            let kind = events[position.index()];
            *places.entry(kind).or_insert_with(|| {
                types.push(kind);
                types.len() - 1
            })
        };
        let types = (place(pair.cause), place(pair.effect));
        let known = strongest.entry(types).or_insert((f64::NEG_INFINITY, false));
        known.0 = known.0.max(pair.strength);
        known.1 |= pair.kept;
    }
    let mut pairs: Vec<_> = strongest.into_iter().collect();
    pairs.sort_by_key(|pair| pair.0); // the map has no order of its own
    let connections = |kept: bool| {
        let chosen = pairs.iter().filter(move |(_, known)| known.1 == kept);
        chosen.map(|((from, to), known)| Connection { from: *from, to: *to, weight: known.0 }).collect::<Vec<_>>()
    };
    let mut hints = connections(false);
    hints.sort_by(|a, b| b.weight.total_cmp(&a.weight)); // stable
    let layout = Layout::new(types.len(), names.longest(&types), &connections(true), &hints);
    PageLayout::new(types, &layout)
}

/// Places of types, in whole pixels.
#[derive(Debug, Serialize)]
pub(crate) struct PageLayout {
    types: Vec<u32>,
    node_width: i64,
    down: bool,
    /// Edges to draw at first.
    legible: usize,
    x: Vec<i64>,
    y: Vec<i64>,
    /// For edges that pass other layers: cause, effect (indices into `types`), then x and y of each point.
    routes: Vec<Vec<i64>>,
}

impl PageLayout {
    pub(crate) fn new(types: Vec<u32>, layout: &Layout) -> Self {
        let whole = |number: f64| number.round() as i64;
        let mut routes: Vec<Vec<i64>> = layout
            .routes
            .iter()
            .filter(|(_, points)| !points.is_empty())
            .map(|((from, to), points)| {
                let points = points.iter().flat_map(|point| [whole(point.x), whole(point.y)]);
                [*from as i64, *to as i64].into_iter().chain(points).collect()
            })
            .collect();
        routes.sort_unstable(); // the map has no order of its own
        Self {
            legible: Layout::legible(types.len()),
            types,
            node_width: whole(layout.node_width),
            down: layout.down,
            x: layout.nodes.iter().map(|point| whole(point.x)).collect(),
            y: layout.nodes.iter().map(|point| whole(point.y)).collect(),
            routes,
        }
    }
}
