//! The paper's first table: every method on the same backbone and sequences.

use trace_core::evaluation::Candidate;
use trace_core::{Divergence, EventId, EventSequence, Intervention, Lag, Memory, Particles, Position, Threshold};
use trace_sim::{TrueEdges, TruthSpec};

use super::{Axis, Cell, Experiment, Plot, ProcessKind, base, trace_method};
use crate::lab::Lab;
use crate::methods::{
    Absent, Attention, Bigram, BigramCounts, Frequency, Granger, Method, MethodName, Random, Saliency, Shapley, Span,
};
use crate::rows::Row;
use crate::scores::{Case, MethodScores, find};
use crate::setup::Setup;
use crate::{Error, Size};

pub const TABLE1: Experiment = Experiment {
    name: "table1",
    process: ProcessKind::Synthetic,
    title: "Every method on the same backbone",
    paper: "summary F1: Random 0.01, Frequency 0.09, Attention 0.50, Saliency 0.67, Shapley 0.60, Neural Granger \
            0.69, TRACE 0.91 (V = 1000, L = 64, oracle score 0.05, N = 128)",
    why: "The paper measures its truth with ten draws and seems to compare whole distributions (about 170 edges per \
          sequence); the truth here is exact and of the event that happened, unless the row says otherwise.",
    cells,
    run,
    columns: &[
        "f1",
        "precision",
        "recall",
        "shd",
        "positions_f1",
        "recall_lag_1",
        "recall_lag_2",
        "recall_later",
        "late_found",
        "used_threshold",
        "true_edges",
        "epsilon_hat",
    ],
    plot: Plot {
        x: "method",
        axis: Axis::Linear,
        only: Some(("truth", "event")),
        series: Some("threshold"),
        figures: &["f1"],
    },
    note: None,
};

/// A method as a row of the table has it.
#[derive(Clone, Copy)]
struct Variant {
    name: MethodName,
    divergence: Divergence,
    /// Replacements that draw until a pair is decided, as `trace discover` does, instead of the paper's number.
    auto: bool,
}

impl Variant {
    const fn default(name: MethodName) -> Self {
        Self { name, divergence: Divergence::Event, auto: false }
    }

    const fn full(name: MethodName) -> Self {
        Self { name, divergence: Divergence::Full, auto: false }
    }
}

/// Beside the methods: TRACE as `trace discover` runs it, and what compares whole distributions, as the truth that
/// the paper seems to use does.
const VARIANTS: [(&str, Variant); 3] = [
    ("trace, auto", Variant { auto: true, ..Variant::default(MethodName::Trace) }),
    ("staircase, full", Variant::full(MethodName::Staircase)),
    ("trace, full", Variant::full(MethodName::Trace)),
];
const TRUTH: &str = "the exact truth";

fn cells(_size: Size) -> Vec<Cell> {
    let methods =
        MethodName::ALL.into_iter().map(MethodName::name).chain(VARIANTS.map(|(name, _)| name)).chain([TRUTH]);
    methods.map(|name| Cell { name: name.to_owned(), value: 0.0 }).collect()
}

/// The method of a cell; none for the truth itself.
fn method_of(cell: &Cell) -> Option<Variant> {
    let variant = VARIANTS.iter().find(|(name, _)| *name == cell.name).map(|(_, variant)| *variant);
    variant.or_else(|| MethodName::ALL.into_iter().find(|method| method.name() == cell.name).map(Variant::default))
}

fn run(lab: &Lab<'_>, cell: &Cell, seed: u64) -> Result<Vec<Row>, Error> {
    let setup = Setup::new(lab, base(lab, seed))?;
    let scale = lab.scale;
    let reported = truths(&setup, &setup.reported(scale.sequences, scale.length), seed)?;
    let Some(variant) = method_of(cell) else {
        return Ok(the_truth_itself(&reported, &cell.name, seed));
    };
    let chosen_by = truths(&setup, &setup.chosen_by(scale.sequences, scale.length), seed)?;
    with_method(lab, &setup, variant, seed, &mut |method| {
        // What is found does not depend on the truth it is held against.
        let found = find(method, &reported[0].1)?;
        let found_to_choose = find(method, &chosen_by[0].1)?;
        let fit: Vec<_> = setup.epsilon_hat().map(|score| ("epsilon_hat".to_owned(), score)).into_iter().collect();
        let mut rows = Vec::new();
        for ((truth, cases), (_, cases_to_choose)) in reported.iter().zip(&chosen_by) {
            let best = MethodScores::judge(&found_to_choose, cases_to_choose).best_threshold();
            let scores = MethodScores::judge(&found, cases);
            let row = |rule: &str, scores: &MethodScores, threshold: f64| {
                let keys =
                    [("truth", (*truth).to_owned()), ("threshold", rule.to_owned()), ("method", cell.name.clone())];
                let row = Row::new(seed, &keys).with_all(scores.figures()).with("used_threshold", threshold);
                row.with_all(fit.clone())
            };
            rows.push(row("its own", &scores, method.threshold()));
            rows.push(row("chosen on other sequences", &scores.at(best), best));
        }
        Ok(rows)
    })
}

/// Sequences under a truth, by its name.
type UnderTruth = (&'static str, Vec<Case>);

/// The same sequences under each truth, the exact one of the event first.
fn truths(setup: &Setup, sequences: &[EventSequence], seed: u64) -> Result<Vec<UnderTruth>, Error> {
    let of = |divergence, draws| setup.cases(sequences.to_vec(), TruthSpec { divergence, draws, seed });
    let ten = Particles::Fixed(TruthSpec::PAPER_DRAWS);
    Ok(vec![
        ("event", setup.cases(sequences.to_vec(), TruthSpec::EXACT)?),
        ("event, 10 draws", of(Divergence::Event, ten)?),
        ("full", of(Divergence::Full, Particles::All)?),
        ("full, 10 draws", of(Divergence::Full, ten)?),
    ])
}

/// What the exact truth scores against the others.
fn the_truth_itself(truths: &[UnderTruth], name: &str, seed: u64) -> Vec<Row> {
    let row = |(truth, cases): &UnderTruth| {
        let found = truths[0].1.iter().zip(cases).map(|(exact, case)| decided(exact, &case.truth)).collect();
        let keys = [("truth", (*truth).to_owned()), ("threshold", "its own".to_owned()), ("method", name.to_owned())];
        Row::new(seed, &keys).with_all(MethodScores::new(found).figures())
    };
    truths.iter().map(row).collect()
}

/// Pairs of a sequence that either truth knows, decided by the exact one.
fn decided(exact: &Case, truth: &TrueEdges) -> Vec<Candidate<EventId>> {
    let mut pairs: Vec<_> =
        exact.truth.keys().chain(truth.keys().filter(|pair| !exact.truth.contains_key(pair))).collect();
    pairs.sort_unstable();
    let events = &exact.sequence.events;
    let candidate = |pair: &&(Position, Position)| Candidate {
        types: (events[pair.0.index()], events[pair.1.index()]),
        lag: Lag(pair.1.0 - pair.0.0),
        kept: exact.truth.contains_key(*pair),
        strength: None,
        truth: truth.contains_key(*pair),
    };
    pairs.iter().map(candidate).collect()
}

/// What is done with a method.
type Body<'b> = dyn FnMut(&dyn Method) -> Result<Vec<Row>, Error> + 'b;

/// Runs `body` with a method as the table has it.
fn with_method(
    lab: &Lab<'_>,
    setup: &Setup,
    variant: Variant,
    seed: u64,
    body: &mut Body<'_>,
) -> Result<Vec<Row>, Error> {
    let scale = lab.scale;
    let span = Span { memory: Memory::Lags(scale.memory), context: 0 };
    let model = setup.model();
    let mut discovery = trace_method(lab, model, scale.memory, seed).divergence(variant.divergence);
    if variant.auto {
        discovery = discovery.particles(Particles::Auto);
    }
    match variant.name {
        MethodName::Random => body(&Random { span, threshold: Random::THRESHOLD, seed }),
        MethodName::Frequency => body(&Frequency::new(span, model.frequencies().unwrap_or_default(), None)),
        MethodName::Bigram => {
            let mut counts = BigramCounts::default();
            for events in setup.trained_on(lab)? {
                counts.add(&events);
            }
            body(&Bigram { span, counts, threshold: Bigram::THRESHOLD })
        }
        MethodName::Attention => {
            let encoder = setup.encoder(lab)?;
            body(&Attention { span, encoder: &encoder, threshold: Attention::THRESHOLD })
        }
        MethodName::Saliency => {
            let network = setup.network()?;
            body(&Saliency { span, network: &*network, threshold: Saliency::THRESHOLD })
        }
        MethodName::Shapley => {
            let orders = (scale.particles / 4).max(4);
            body(&Shapley { span, model, orders, absent: Absent::Drawn, threshold: Shapley::THRESHOLD, seed })
        }
        MethodName::Granger => body(&Granger { discovery, threshold: Granger::THRESHOLD }),
        MethodName::Staircase => {
            body(&discovery.intervention(Intervention::Staircase).threshold(Threshold::ScalingLaw))
        }
        MethodName::Trace => body(&discovery),
    }
}
