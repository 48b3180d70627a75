//! What many sequences say together, from a population file or from the results themselves.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use trace_core::evidence::{EvidenceRule, LEAST_SEQUENCES};
use trace_core::{EventName, Lag, Opportunity, PopulationGraph, PopulationPair, PopulationRule, Position, Verdict};
use trace_io::population::{Population, add_result};
use trace_io::result::{ResultLine, ResultModel, RunSettings};

use crate::column::Column;
use crate::layout::{Connection, Layout};
use crate::names::Names;
use crate::sequence::PageLayout;

/// Pairs that a page holds at most.
const MOST_PAIRS: usize = 3000;

/// A population graph as the page holds it.
#[derive(Debug, Serialize)]
pub(crate) struct PagePopulation {
    /// Whether pairs have scores; otherwise they are ranked by the number of sequences that have the edge.
    scored: bool,
    sequences: u64,
    /// Pairs that are in the graph but not in the page.
    left_out: usize,
    /// What a score must exceed, and the opportunities it must rest on.
    cut: f64,
    least: u64,
    count: usize,
    cause: Column,
    effect: Column,
    score: Column,
    sequences_with: Column,
    opportunities: Column,
    kept_count: Column,
    mean_strength: Column,
    mean_log_ratio: Column,
    lags: Vec<BTreeMap<Lag, u64>>,
    layout: PageLayout,
}

/// A type pair with its types as numbers of [`Names`].
type Pair = PopulationPair<u32>;

impl PagePopulation {
    /// The graph of a population file.
    pub(crate) fn from_file(file: &Population, names: &mut Names) -> Self {
        let possible = |pair: &&PopulationPair<EventName>| {
            pair.kept || (pair.mean_log_ratio > 0.0 && pair.verdict != Verdict::Untestable)
        };
        let pairs = file.pairs.iter().filter(possible).map(|pair| pair.clone().renamed(|name| names.number(&name)));
        let pairs = pairs.collect();
        Self::new(true, file.sequences, pairs, names)
    }

    fn new(scored: bool, sequences: u64, mut pairs: Vec<Pair>, names: &Names) -> Self {
        pairs.sort_by(|a, b| b.score.total_cmp(&a.score)); // stable
        let left_out = pairs.len().saturating_sub(MOST_PAIRS);
        pairs.truncate(MOST_PAIRS);
        let rule = PopulationRule::default();
        let count = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Self {
            scored,
            sequences,
            left_out,
            cut: if scored { rule.cut } else { 0.0 },
            least: if scored { LEAST_SEQUENCES } else { 0 },
            count: pairs.len(),
            cause: Column::counts(pairs.iter().map(|pair| pair.cause)),
            effect: Column::counts(pairs.iter().map(|pair| pair.effect)),
            score: Column::exact(pairs.iter().map(|pair| pair.score)),
            sequences_with: Column::counts(pairs.iter().map(|pair| count(pair.sequences))),
            opportunities: Column::counts(pairs.iter().map(|pair| count(pair.opportunities))),
            kept_count: Column::counts(pairs.iter().map(|pair| count(pair.kept_count))),
            mean_strength: Column::shown(pairs.iter().map(|pair| pair.mean_strength)),
            mean_log_ratio: Column::shown(pairs.iter().map(|pair| pair.mean_log_ratio)),
            layout: layout(&pairs, names),
            lags: pairs.into_iter().map(|pair| pair.lags).collect(),
        }
    }
}

fn layout(pairs: &[Pair], names: &Names) -> PageLayout {
    let mut types = Vec::new();
    let mut places: FxHashMap<u32, usize> = FxHashMap::default();
    let mut connections = [Vec::new(), Vec::new()];
    for pair in pairs {
        let mut place = |kind: u32| {
            *places.entry(kind).or_insert_with(|| {
                types.push(kind);
                types.len() - 1
            })
        };
        let connection = Connection { from: place(pair.cause), to: place(pair.effect), weight: pair.score };
        connections[usize::from(pair.kept)].push(connection);
    }
    let [hints, kept] = connections;
    let layout = Layout::new(types.len(), names.longest(&types), &kept, &hints);
    PageLayout::new(types, &layout)
}

/// The population of results that come without a population file.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// Edges that were kept, by types.
    kept: PopulationGraph<EventName>,
    /// All tested pairs, as long as all results hold theirs, with ratios of probabilities, and were made alike.
    scored: Scored,
}

#[derive(Debug, Default)]
enum Scored {
    #[default]
    Nothing,
    Graph(Box<(PopulationGraph<EventName>, RunSettings, ResultModel)>),
    Impossible,
}

impl Merged {
    /// Adds a result.
    pub(crate) fn add(&mut self, line: &ResultLine) {
        let name = |position: Position| line.events[position.index()].clone();
        self.kept.add_sequence(line.edges().map(|edge| Opportunity {
            tied: false,
            testable: true,
            ..Opportunity::new(name(edge.cause), name(edge.effect), edge)
        }));
        if matches!(self.scored, Scored::Nothing) {
            let start = (PopulationGraph::default(), line.settings.clone(), line.model.clone());
            self.scored = Scored::Graph(Box::new(start));
        }
        match &mut self.scored {
            Scored::Graph(known)
                if line.has_all_pairs()
                    && line.settings.gives_ratios()
                    && known.1 == line.settings
                    && known.2 == line.model =>
            {
                add_result(&mut known.0, line);
            }
            _ => self.scored = Scored::Impossible,
        }
    }

    /// The graph, unless there is nothing to merge.
    pub(crate) fn finish(self, names: &mut Names) -> Option<PagePopulation> {
        if self.kept.sequences < 2 {
            return None;
        }
        if let Scored::Graph(known) = &self.scored {
            let file = Population::new(&known.0, &known.1, &known.2, &EvidenceRule::default());
            return Some(PagePopulation::from_file(&file, names));
        }
        // Without the pairs that were not kept there is no score, and opportunities are unknown.
        let pairs = self.kept.decided(&PopulationRule::default()).into_iter().map(|pair| {
            let pair = pair.renamed(|name| names.number(&name));
            Pair { score: pair.sequences as f64, opportunities: 0, kept: true, ..pair }
        });
        let pairs = pairs.collect();
        Some(PagePopulation::new(false, self.kept.sequences, pairs, names))
    }
}
