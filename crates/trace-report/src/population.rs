//! What many sequences say together, from a population file or from the results themselves.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use trace_core::evidence::{EvidenceRule, LEAST_SEQUENCES};
use trace_core::{
    EventName, EvidenceBase, Lag, Opportunity, PopulationGraph, PopulationPair, PopulationRule, Position, Question,
    Untestable, Verdict,
};
use trace_io::population::{Decision, Population, VerdictCounts, add_result};
use trace_io::result::{ResultLine, ResultModel, RunSettings};

use crate::column::Column;
use crate::layout::{Connection, Layout};
use crate::names::Names;
use crate::sequence::PageLayout;

/// Pairs that a page holds at most.
const MOST_PAIRS: usize = 3000;
/// Pairs that cannot be tested, of which a page holds at most so many more.
const MOST_UNTESTABLE: usize = 1000;

/// A population graph as the page holds it.
#[derive(Debug, Serialize)]
pub(crate) struct PagePopulation {
    /// Whether pairs have scores; otherwise they are ranked by the number of sequences that have the edge.
    scored: bool,
    /// Whether results were merged here, so that there is no evidence.
    merged: bool,
    sequences: u64,
    /// What decided which pairs are kept; absent in files of the first version and where there are no scores.
    decision: Option<Decision>,
    /// Which evidence there is.
    evidence: Option<EvidenceBase>,
    /// How many pairs of different types there are of each verdict, in the page or not.
    counts: VerdictCounts,
    /// How many types were asked about themselves, and how many of these are kept.
    own: [usize; 2],
    /// Pairs that are in the graph but not in the page.
    left_out: usize,
    /// What a score must exceed, and the sequences it must rest on.
    cut: f64,
    least: u64,
    count: usize,
    cause: Column,
    effect: Column,
    /// 1: kept, 2: required, 4: how, 8: promotes, 16: inhibits, 32: untestable as it is always so, 64: as both always
    /// carry the same time, 128: as it is too rare.
    flags: Column,
    score: Column,
    ratio: Column,
    p_value: Column,
    q_value: Column,
    overlap: Column,
    tied: Column,
    hidden_cause_ratio_low: Column,
    sequences_with: Column,
    opportunities: Column,
    places: Column,
    kept_count: Column,
    mean_strength: Column,
    mean_log_ratio: Column,
    lags: Vec<BTreeMap<Lag, u64>>,
    layout: PageLayout,
}

/// A type pair with its types as numbers of [`Names`].
type Pair = PopulationPair<u32>;

/// What the page says of a population as a whole.
struct About {
    scored: bool,
    merged: bool,
    sequences: u64,
    decision: Option<Decision>,
    evidence: Option<EvidenceBase>,
    counts: VerdictCounts,
}

impl PagePopulation {
    /// The graph of a population file.
    pub(crate) fn from_file(file: &Population, names: &mut Names) -> Self {
        Self::decided(file, false, names)
    }

    fn decided(file: &Population, merged: bool, names: &mut Names) -> Self {
        let against = inhibiting(file);
        let pairs = file.pairs.iter().filter(|pair| pair.places > 0 || pair.kept).map(|pair| {
            let mut pair = pair.clone();
            if let Some((p, q)) = against.get(&(&pair.cause, &pair.effect, pair.question.is_whether())) {
                (pair.p_value, pair.q_value) = (Some(*p), Some(*q));
            }
            pair.renamed(|name| names.number(&name))
        });
        let about = About {
            scored: true,
            merged,
            sequences: file.sequences,
            decision: file.decision,
            evidence: file.evidence,
            counts: file.counts(),
        };
        let pairs = pairs.collect();
        Self::new(&about, pairs, names)
    }

    fn new(about: &About, pairs: Vec<Pair>, names: &Names) -> Self {
        let own = |kept: bool| pairs.iter().filter(|pair| pair.cause == pair.effect && (pair.kept || !kept)).count();
        let own = [own(false), own(true)];
        let all = pairs.len();
        let (mut never, mut pairs): (Vec<Pair>, Vec<Pair>) =
            pairs.into_iter().partition(|pair| pair.verdict == Verdict::Untestable && !pair.kept);
        // Claims first, and then what is nearest to being one.
        let claimed = |pair: &Pair| pair.kept || pair.verdict == Verdict::Inhibits;
        pairs.sort_by(|a, b| claimed(b).cmp(&claimed(a)).then(b.score.total_cmp(&a.score))); // stable
        pairs.truncate(MOST_PAIRS);
        let layout = layout(&pairs, names);
        never.sort_by_key(|pair| std::cmp::Reverse(pair.places)); // stable
        never.truncate(MOST_UNTESTABLE);
        pairs.append(&mut never);
        let About { scored, merged, sequences, decision, evidence, counts } = *about;
        let count = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let or_none = |value: Option<f64>| value.unwrap_or(f64::NAN);
        Self {
            scored,
            merged,
            sequences,
            decision,
            evidence,
            counts,
            own,
            left_out: all - pairs.len(),
            cut: if scored { PopulationRule::default().cut } else { 0.0 },
            least: if scored { LEAST_SEQUENCES } else { 0 },
            count: pairs.len(),
            cause: Column::counts(pairs.iter().map(|pair| pair.cause)),
            effect: Column::counts(pairs.iter().map(|pair| pair.effect)),
            flags: Column::counts(pairs.iter().map(flags)),
            score: Column::exact(pairs.iter().map(|pair| pair.score)),
            ratio: Column::exact(pairs.iter().map(|pair| pair.ratio)),
            p_value: Column::exact(pairs.iter().map(|pair| or_none(pair.p_value))),
            q_value: Column::exact(pairs.iter().map(|pair| or_none(pair.q_value))),
            overlap: Column::shown(pairs.iter().map(|pair| or_none(pair.overlap))),
            tied: Column::shown(pairs.iter().map(|pair| pair.tied)),
            hidden_cause_ratio_low: Column::shown(pairs.iter().map(|pair| pair.hidden_cause_ratio_low)),
            sequences_with: Column::counts(pairs.iter().map(|pair| count(pair.sequences))),
            opportunities: Column::counts(pairs.iter().map(|pair| count(pair.opportunities))),
            places: Column::counts(pairs.iter().map(|pair| count(pair.places))),
            kept_count: Column::counts(pairs.iter().map(|pair| count(pair.kept_count))),
            mean_strength: Column::shown(pairs.iter().map(|pair| pair.mean_strength)),
            mean_log_ratio: Column::exact(pairs.iter().map(|pair| pair.mean_log_ratio)),
            layout,
            lags: pairs.into_iter().map(|pair| pair.lags).collect(),
        }
    }
}

/// The p- and q-values of inhibiting for pairs whose ratio says so and of which nothing is claimed; files hold those of
/// promoting there.
fn inhibiting(file: &Population) -> FxHashMap<(&EventName, &EventName, bool), (f64, f64)> {
    let Some(decision) = file.decision.filter(|_| file.has_evidence()) else { return FxHashMap::default() };
    let rule = EvidenceRule { fdr: 1.0, least_ratio: decision.least_ratio, ..EvidenceRule::default() };
    let open: FxHashMap<(EventName, EventName, bool), (f64, f64)> = file
        .decided(&rule)
        .pairs
        .into_iter()
        .filter(|pair| pair.verdict == Verdict::Inhibits)
        .filter_map(|pair| {
            Some(((pair.cause, pair.effect, pair.question.is_whether()), (pair.p_value?, pair.q_value?)))
        })
        .collect();
    let unclaimed = file.pairs.iter().filter(|pair| pair.verdict == Verdict::None);
    unclaimed
        .filter_map(|pair| {
            let whether = pair.question.is_whether();
            let values = open.get(&(pair.cause.clone(), pair.effect.clone(), whether))?;
            Some(((&pair.cause, &pair.effect, whether), *values))
        })
        .collect()
}

fn flags(pair: &Pair) -> u32 {
    let verdict = match (pair.verdict, pair.untestable()) {
        (Verdict::Promotes, _) => 8,
        (Verdict::Inhibits, _) => 16,
        (_, Some(Untestable::AlwaysSo)) => 32,
        (_, Some(Untestable::SameTime)) => 64,
        (_, Some(Untestable::TooRare)) => 128,
        _ => 0,
    };
    u32::from(pair.kept) | u32::from(pair.required) << 1 | u32::from(pair.question == Question::How) << 2 | verdict
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
            return Some(PagePopulation::decided(&file, true, names));
        }
        // Without the pairs that were not kept there is no score, and opportunities are unknown.
        let pairs = self.kept.decided(&PopulationRule::default()).into_iter().map(|pair| {
            let pair = pair.renamed(|name| names.number(&name));
            Pair { score: pair.sequences as f64, opportunities: 0, kept: true, ..pair }
        });
        let pairs: Vec<Pair> = pairs.collect();
        let about = About {
            scored: false,
            merged: true,
            sequences: self.kept.sequences,
            decision: None,
            evidence: None,
            counts: VerdictCounts::default(),
        };
        Some(PagePopulation::new(&about, pairs, names))
    }
}
