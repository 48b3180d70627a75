//! Result files: one self-contained JSON object a sequence.

use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use trace_core::theory::ErrorBound;
use trace_core::{
    DensityModel, Divergence, Edge, EventId, EventSequence, History, Intervention, Memory, Particles, Plan, Position,
    Proposal, SampleGraph, SummaryGraph, Threshold, Vocabulary,
};

use crate::Error;
use crate::lines::Lines;
use crate::name::Name;

/// The version of result lines that this software writes.
pub const RESULT_SCHEMA: &str = "trace.result/1";

/// A number, or a word in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CountOrWord {
    /// How many.
    Count(u64),
    /// `auto` or `all`.
    Word(String),
}

/// The settings that made a result. Results are comparable when these are equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultSettings {
    /// The rival method that made the result, where it was not our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// `atomic` or `staircase`; `none` for methods that replace nothing.
    pub intervention: String,
    /// `uniform`, `unigram` or `model`; `none` for methods that replace nothing.
    pub proposal: String,
    /// `event` or `full`; `none` for methods that compare no distributions.
    pub divergence: String,
    /// `observed` or `sampled`.
    pub history: String,
    /// `auto`, `all` or a number.
    pub particles: CountOrWord,
    /// `all` or a number.
    pub memory: CountOrWord,
    /// Length of the prefix that takes no part.
    pub context: u64,
    /// What a strength had to exceed, in nats.
    pub threshold: f64,
    /// Where that came from: `fixed`, `scaling-law` or `bound`.
    #[serde(default = "fixed")]
    pub threshold_rule: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// A hash of the prior knowledge, where there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<String>,
}

fn fixed() -> String {
    "fixed".to_owned()
}

impl ResultSettings {
    /// Whether the method replaced events, and so compares probabilities with what they might have been.
    pub fn gives_ratios(&self) -> bool {
        self.intervention != "none"
    }

    /// The settings of a plan.
    pub fn new(plan: &Plan) -> Self {
        let word = |word: &str| word.to_owned();
        Self {
            method: None,
            intervention: word(match plan.intervention {
                Intervention::Atomic => "atomic",
                Intervention::Staircase => "staircase",
            }),
            proposal: word(match plan.proposal {
                Proposal::Uniform => "uniform",
                Proposal::Unigram => "unigram",
                Proposal::Model => "model",
            }),
            divergence: word(divergence_word(plan.divergence)),
            history: word(match plan.history {
                History::Observed => "observed",
                History::Sampled => "sampled",
            }),
            particles: match plan.particles {
                Particles::Auto => CountOrWord::Word(word("auto")),
                Particles::All => CountOrWord::Word(word("all")),
                Particles::Fixed(count) => CountOrWord::Count(count as u64),
            },
            memory: match plan.memory {
                Memory::All => CountOrWord::Word(word("all")),
                Memory::Lags(lags) => CountOrWord::Count(lags as u64),
            },
            context: plan.context as u64,
            threshold: plan.threshold,
            threshold_rule: word(match plan.threshold_rule {
                Threshold::Fixed(_) => "fixed",
                Threshold::ScalingLaw => "scaling-law",
                Threshold::Bound => "bound",
            }),
            seed: plan.seed,
            knowledge: None,
        }
    }

    /// The pairs of positions that a run with these settings tests in a sequence of `length` events, as far as prior
    /// knowledge does not exclude them.
    pub fn tested_pairs(&self, length: usize) -> impl Iterator<Item = (u32, u32)> + Clone + use<> {
        let history = if self.history == "sampled" { History::Sampled } else { History::Observed };
        let first = trace_core::first_cause(usize::try_from(self.context).unwrap_or(usize::MAX), history);
        let memory = match self.memory {
            CountOrWord::Count(lags) => Memory::Lags(usize::try_from(lags).unwrap_or(usize::MAX)),
            CountOrWord::Word(_) => Memory::All,
        };
        (first..length).flat_map(move |cause| {
            let lags = memory.within(length - 1 - cause);
            (1..=lags).map(move |lag| (cause as u32, (cause + lag) as u32))
        })
    }
}

/// What a divergence is called in files.
pub const fn divergence_word(divergence: Divergence) -> &'static str {
    match divergence {
        Divergence::Event => "event",
        Divergence::Full => "full",
    }
}

/// The model that made a result, and how far it can be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultModel {
    /// Architecture.
    pub backbone: String,
    /// Held-out cross-entropy, in nats per event.
    pub held_out_loss: Option<f64>,
    /// Cross-entropy of event frequencies on the same events.
    pub unigram_loss: Option<f64>,
    /// The oracle score; null where the process's entropy is unknown, as for every real log.
    pub epsilon_hat: Option<f64>,
    /// What the excess loss guarantees, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<ResultBound>,
    /// A hash of the model's folder, where it came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// The error bound of a model whose excess loss is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultBound {
    /// Excess loss, in nats per event.
    pub epsilon: f64,
    /// Noise floor of a strength, in nats.
    pub noise_floor: f64,
    /// True strengths above this are guaranteed to be told from none.
    pub identifiability_margin: f64,
    /// Whether that promises nothing, because no strength can be that large.
    pub vacuous: bool,
}

impl ResultModel {
    /// What results say of a model, with the hash of its folder where it came from one.
    pub fn new(model: &dyn DensityModel, fingerprint: Option<String>) -> Self {
        let fitness = model.fitness();
        let bound = fitness.epsilon().map(|epsilon| {
            let bound = ErrorBound::new(epsilon);
            ResultBound {
                epsilon,
                noise_floor: bound.noise_floor,
                identifiability_margin: bound.identifiability_margin(),
                vacuous: bound.is_vacuous(),
            }
        });
        Self {
            backbone: model.backbone().to_owned(),
            held_out_loss: fitness.held_out_loss,
            unigram_loss: fitness.unigram_loss,
            epsilon_hat: fitness.epsilon_hat(model.vocabulary_size()),
            bound,
            fingerprint,
        }
    }
}

/// One pair of positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultEdge {
    /// Position of the cause.
    pub cause: u32,
    /// Position of the effect.
    pub effect: u32,
    /// Their distance.
    pub lag: u32,
    /// Strength in nats.
    pub strength: f64,
    /// Its Monte-Carlo standard error.
    pub std_error: f64,
    /// Replacements tried.
    pub particles: u32,
    /// Signed log ratio.
    pub log_ratio: f64,
    /// The effect's probability with the cause as observed.
    pub probability: f64,
    /// And with the cause replaced.
    pub probability_replaced: f64,
    /// Whether both carry the same timestamp.
    #[serde(default)]
    pub tied: bool,
    /// With `--all-pairs`: whether the pair is an edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
    /// What prior knowledge says of the pair, where it says anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<KnownEdge>,
}

/// What prior knowledge says of a pair that was tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KnownEdge {
    /// It is an edge, however strong.
    Required,
}

impl ResultEdge {
    /// Whether the pair is an edge of the graph.
    pub fn is_kept(&self) -> bool {
        self.kept.unwrap_or(true)
    }

    fn as_edge(&self) -> Edge {
        Edge {
            cause: Position(self.cause),
            effect: Position(self.effect),
            strength: self.strength,
            std_error: self.std_error,
            particles: self.particles,
            log_ratio: self.log_ratio,
            probability: self.probability,
            probability_replaced: self.probability_replaced,
            kept: self.is_kept(),
            required: self.knowledge.is_some(),
        }
    }

    fn new(edge: &Edge, sequence: &EventSequence, all_pairs: bool) -> Self {
        let Position(cause) = edge.cause;
        let Position(effect) = edge.effect;
        Self {
            cause,
            effect,
            lag: edge.lag().0,
            strength: edge.strength,
            std_error: edge.std_error,
            particles: edge.particles,
            log_ratio: edge.log_ratio,
            probability: edge.probability,
            probability_replaced: edge.probability_replaced,
            tied: sequence.tied(edge.cause, edge.effect),
            kept: all_pairs.then_some(edge.kept),
            knowledge: edge.required.then_some(KnownEdge::Required),
        }
    }
}

/// The summary graph as results have it.
fn summarise(graph: &SampleGraph, self_loops: bool, name: impl Fn(EventId) -> Name) -> Vec<ResultSummary> {
    SummaryGraph::new(graph, self_loops)
        .edges()
        .iter()
        .map(|edge| ResultSummary {
            cause: name(edge.cause),
            effect: name(edge.effect),
            strength: edge.strength,
            mean_strength: Some(edge.mean_strength),
            count: edge.count as u64,
            lags: edge.lags.iter().map(|lag| lag.0).collect(),
        })
        .collect()
}

/// All edges of one sequence between two types.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultSummary {
    /// The causing type.
    pub cause: Name,
    /// The caused type.
    pub effect: Name,
    /// The strongest edge.
    pub strength: f64,
    /// Their mean strength.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_strength: Option<f64>,
    /// How many edges.
    pub count: u64,
    /// Their lags.
    pub lags: Vec<u32>,
}

/// The result of one sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultLine {
    /// The version of this line.
    pub schema: String,
    /// The sequence.
    pub id: String,
    /// What made it.
    pub settings: ResultSettings,
    /// The model that made it.
    pub model: ResultModel,
    /// What happened.
    pub events: Vec<Name>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Vec<f64>>,
    /// Positions in the log of events that the model does not know; they are not among `events`, and positions here
    /// count without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<u32>,
    /// The sample graph.
    pub edges: Vec<ResultEdge>,
    /// Pairs of cause and effect that were not tested, because prior knowledge says that they are no edges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<(u32, u32)>,
    /// The summary graph.
    pub summary: Vec<ResultSummary>,
}

/// What of a result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultOptions {
    /// Also pairs that were tested but not kept.
    pub all_pairs: bool,
    /// Also summary edges from a type to itself.
    pub self_loops: bool,
}

impl ResultLine {
    /// The result of one run.
    pub fn new(
        sequence: &EventSequence,
        graph: &SampleGraph,
        settings: &ResultSettings,
        model: &ResultModel,
        vocabulary: &Vocabulary,
        options: ResultOptions,
    ) -> Self {
        let name = |id| Name(vocabulary.name(id));
        let edges = graph
            .pairs()
            .iter()
            .filter(|pair| pair.kept || options.all_pairs)
            .map(|pair| ResultEdge::new(pair, sequence, options.all_pairs))
            .collect();
        let summary = summarise(graph, options.self_loops, name);
        Self {
            schema: RESULT_SCHEMA.to_owned(),
            id: sequence.id.clone(),
            settings: settings.clone(),
            model: model.clone(),
            events: sequence.events.iter().map(|event| name(*event)).collect(),
            times: sequence.times.clone(),
            skipped: Vec::new(),
            edges,
            excluded: graph.excluded().iter().map(|(cause, effect)| (cause.0, effect.0)).collect(),
            summary,
        }
    }

    /// The pairs of positions that were tested.
    pub fn tested_pairs(&self) -> impl Iterator<Item = (u32, u32)> + use<'_> {
        let excluded: FxHashSet<(u32, u32)> = self.excluded.iter().copied().collect();
        self.settings.tested_pairs(self.events.len()).filter(move |pair| !excluded.contains(pair))
    }

    /// Whether the line holds every tested pair, kept or not.
    pub fn has_all_pairs(&self) -> bool {
        let tested = self.tested_pairs().count();
        self.edges.len() == tested && self.edges.iter().all(|edge| edge.kept.is_some())
    }

    /// Where a position of the log is among `events`; `None` if it was left out.
    pub fn position_of(&self, logged: u32) -> Option<u32> {
        match self.skipped.binary_search(&logged) {
            Ok(_) => None,
            Err(before) => Some(logged - before as u32),
        }
    }

    /// The sample graph, with types numbered in order of their first appearance, and their names.
    pub fn graph(&self) -> (SampleGraph, Vec<&Name>) {
        let mut names: Vec<&Name> = Vec::new();
        let mut ids: FxHashMap<&Name, EventId> = FxHashMap::default();
        let mut events = Vec::with_capacity(self.events.len());
        for name in &self.events {
            events.push(*ids.entry(name).or_insert_with(|| {
                names.push(name);
                EventId(names.len() as u32 - 1)
            }));
        }
        let pairs = self.edges.iter().map(ResultEdge::as_edge).collect();
        let excluded = self.excluded.iter().map(|(cause, effect)| (Position(*cause), Position(*effect))).collect();
        (SampleGraph::new(events, pairs, self.settings.threshold).with_excluded(excluded), names)
    }

    /// Decides anew what is kept; an error says why that cannot be.
    pub fn move_threshold(&mut self, threshold: f64) -> Result<(), String> {
        if !self.has_all_pairs() {
            return Err(
                "holds only the edges that were kept; a threshold can be moved in results made with --all-pairs"
                    .to_owned(),
            );
        }
        self.settings.threshold = threshold;
        self.settings.threshold_rule = fixed();
        // Whether the run kept self-loops shows only where it found some.
        let self_loops = self.summary.iter().any(|edge| edge.cause == edge.effect);
        for edge in &mut self.edges {
            edge.kept = Some(edge.knowledge == Some(KnownEdge::Required) || edge.strength > threshold);
        }
        let (graph, names) = self.graph();
        self.summary = summarise(&graph, self_loops, |id| names[id.index()].clone());
        Ok(())
    }

    /// What is wrong with the line, if anything.
    fn fault(&self) -> Option<String> {
        if self.schema != RESULT_SCHEMA {
            return Some(format!("expected schema {RESULT_SCHEMA:?}, found {:?}", self.schema));
        }
        if !self.skipped.is_sorted_by(|a, b| a < b) {
            return Some("skipped: expected ascending positions".to_owned());
        }
        let length = self.events.len();
        if let Some((cause, effect)) =
            self.excluded.iter().find(|(cause, effect)| cause >= effect || *effect as usize >= length)
        {
            return Some(format!("excluded: {cause} → {effect} does not fit a sequence of {length} events"));
        }
        for edge in &self.edges {
            if edge.cause >= edge.effect || edge.effect as usize >= length || edge.lag != edge.effect - edge.cause {
                return Some(format!(
                    "edge {} → {} with lag {} does not fit a sequence of {length} events",
                    edge.cause, edge.effect, edge.lag
                ));
            }
        }
        None
    }
}

/// Reads result lines one at a time.
pub struct ResultReader {
    lines: Lines,
    seen: FxHashSet<String>,
}

impl ResultReader {
    /// Opens a result file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { lines: Lines::open(path)?, seen: FxHashSet::default() })
    }

    /// What to call the file in messages.
    pub fn name(&self) -> &str {
        &self.lines.file
    }

    /// The next result and its line.
    pub fn next_result(&mut self) -> Result<Option<(u64, ResultLine)>, Error> {
        let Some((number, line)) = self.lines.next_json::<ResultLine>("a result")? else { return Ok(None) };
        if let Some(reason) = line.fault() {
            return Err(Error::line(&self.lines.file, number, reason));
        }
        if !self.seen.insert(line.id.clone()) {
            return Err(Error::line(&self.lines.file, number, format!("id {:?} occurs twice", line.id)));
        }
        Ok(Some((number, line)))
    }

    /// For errors about the line that was just read.
    pub fn complain(&self, line: u64, reason: impl Into<String>) -> Error {
        Error::line(&self.lines.file, line, reason)
    }
}
