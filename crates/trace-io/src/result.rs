//! Result files: one self-contained JSON object per sequence.

use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use trace_core::theory::ErrorBound;
use trace_core::{
    DensityModel, EventId, EventName, EventSequence, Pair, Plan, Position, Question, SampleGraph, SummaryEdge,
    SummaryGraph, ThresholdRule, Vocabulary,
};

use crate::Error;
use crate::lines::Lines;
use crate::log::Shaping;

/// The version of result lines that this software writes.
pub const RESULT_SCHEMA: &str = "trace.result/2";
/// The first version, which is read and never merged with this one.
const FIRST_SCHEMA: &str = "trace.result/1";

/// The settings that made a result. Results can be merged and compared when these are equal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSettings {
    /// The rival method that made the result, where it was not TRACE itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The settings of the method with every default filled in. A rival method may use only some of them.
    #[serde(flatten)]
    pub plan: Plan,
    /// A hash of the prior knowledge, where there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<String>,
    /// What was done to the log after reading.
    #[serde(default, skip_serializing_if = "is_unshaped")]
    pub shaping: Shaping,
}

fn is_unshaped(shaping: &Shaping) -> bool {
    *shaping == Shaping::default()
}

impl RunSettings {
    /// The settings of a plan, with nothing else said.
    pub fn new(plan: Plan) -> Self {
        Self { method: None, plan, knowledge: None, shaping: Shaping::default() }
    }

    /// Whether the method replaced events, and so compares probabilities with what they might have been.
    pub fn gives_ratios(&self) -> bool {
        self.method.as_deref().is_none_or(|method| method == "granger")
    }

    /// The settings in which two runs differ, as `name is a instead of b`; empty where they are equal.
    pub fn difference(&self, expected: &Self) -> String {
        let object = |settings| serde_json::to_value(settings).unwrap_or_default();
        let (found, expected) = (object(self), object(expected));
        let mut names: Vec<&String> = [&found, &expected]
            .into_iter()
            .filter_map(|settings| settings.as_object())
            .flat_map(|map| map.keys())
            .collect();
        names.sort_unstable();
        names.dedup();
        let fields = names.into_iter().filter_map(|name| {
            let (value, other) = (&found[name], &expected[name]);
            (value != other).then(|| format!("{name} is {value} instead of {other}"))
        });
        fields.collect::<Vec<_>>().join(", ")
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

/// What of a result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultOptions {
    /// Also pairs that were tested but not kept.
    pub all_pairs: bool,
    /// Also summary edges from a type to itself.
    pub self_loops: bool,
}

/// The result of one sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultLine {
    /// The version of this line.
    pub schema: String,
    /// The sequence.
    pub id: String,
    /// What made it.
    pub settings: RunSettings,
    /// The model that made it.
    pub model: ResultModel,
    /// What of it is written; absent in files of early versions, where it shows in the pairs alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<ResultOptions>,
    /// What happened.
    pub events: Vec<EventName>,
    /// The step of each event, where event types have families.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<EventName>>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Vec<f64>>,
    /// Positions in the log of events that the model does not know; they are not among `events`, and positions here
    /// count without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<u32>,
    /// The pairs of the sample graph: those that were kept, or all that were tested.
    #[serde(rename = "edges")]
    pub pairs: Vec<Pair>,
    /// Pairs of cause and effect that were not tested, because prior knowledge says that they are no edges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<(Position, Position)>,
    /// The summary graph.
    pub summary: Vec<SummaryEdge<EventName>>,
}

impl ResultLine {
    /// The result of one run.
    pub fn new(
        sequence: &EventSequence,
        graph: &SampleGraph,
        settings: &RunSettings,
        model: &ResultModel,
        vocabulary: &Vocabulary,
        options: ResultOptions,
    ) -> Self {
        let name = |id| vocabulary.name(id);
        Self {
            schema: RESULT_SCHEMA.to_owned(),
            id: sequence.id.clone(),
            settings: settings.clone(),
            model: model.clone(),
            options: Some(options),
            events: graph.events().iter().map(|event| name(*event)).collect(),
            steps: None,
            times: sequence.times.as_ref().map(|times| with_end(times, graph.events().len())),
            skipped: Vec::new(),
            pairs: graph.pairs().iter().filter(|pair| pair.kept || options.all_pairs).copied().collect(),
            excluded: graph.excluded().to_vec(),
            summary: SummaryGraph::new(graph, options.self_loops).named(name),
        }
    }

    /// Whether the line is of the first version.
    pub fn is_first_version(&self) -> bool {
        self.schema == FIRST_SCHEMA
    }

    /// The pairs that were kept.
    pub fn edges(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.kept)
    }

    /// The pairs of positions that were tested.
    pub fn tested_pairs(&self) -> impl Iterator<Item = (Position, Position)> + use<'_> {
        let excluded: FxHashSet<(Position, Position)> = self.excluded.iter().copied().collect();
        self.settings.plan.tested_pairs(self.events.len()).filter(move |pair| !excluded.contains(pair))
    }

    /// Whether the line holds every tested pair, kept or not.
    pub fn has_all_pairs(&self) -> bool {
        // Of some the question how is asked too, or alone; of which is not said in the line.
        let places: FxHashSet<(Position, Position)> = self.pairs.iter().map(|pair| (pair.cause, pair.effect)).collect();
        self.options.is_none_or(|options| options.all_pairs)
            && (self.settings.plan.question == Some(Question::How) || places.len() == self.tested_pairs().count())
    }

    /// The types of an edge: its events, or their steps where the question is whether a step happens.
    pub fn types_of(&self, pair: &Pair) -> (EventName, EventName) {
        let name = |position: Position| match &self.steps {
            Some(steps) if pair.question == Question::Whether => steps[position.index()].clone(),
            _ => self.events[position.index()].clone(),
        };
        (name(pair.cause), name(pair.effect))
    }

    /// Whether the summary has edges from a type to itself; a line of an early version shows it only where it has some.
    pub fn has_self_loops(&self) -> bool {
        self.options.map_or_else(|| self.summary.iter().any(|edge| edge.cause == edge.effect), |it| it.self_loops)
    }

    /// Where a position of the log is among `events`; `None` if it was left out.
    pub fn position_of(&self, logged: u32) -> Option<Position> {
        match self.skipped.binary_search(&logged) {
            Ok(_) => None,
            Err(before) => Some(Position(logged - before as u32)),
        }
    }

    /// The sample graph, with types numbered in order of their first appearance, and their names.
    pub fn graph(&self) -> (SampleGraph, Vec<&EventName>) {
        let mut names: Vec<&EventName> = Vec::new();
        let mut ids: FxHashMap<&EventName, EventId> = FxHashMap::default();
        let mut events = Vec::with_capacity(self.events.len());
        for name in &self.events {
            events.push(*ids.entry(name).or_insert_with(|| {
                names.push(name);
                EventId(names.len() as u32 - 1)
            }));
        }
        let graph = SampleGraph::new(events, self.pairs.clone(), self.settings.plan.threshold);
        (graph.with_excluded(self.excluded.clone()), names)
    }

    /// Decides anew what is kept; `false` where that cannot be, because only the pairs that were kept are there.
    #[must_use]
    pub fn move_threshold(&mut self, threshold: f64) -> bool {
        if !self.has_all_pairs() {
            return false;
        }
        self.settings.plan.threshold = threshold;
        self.settings.plan.threshold_rule = ThresholdRule::Fixed;
        let self_loops = self.has_self_loops();
        for pair in &mut self.pairs {
            *pair = pair.decided(threshold);
        }
        let (graph, names) = self.graph();
        self.summary = SummaryGraph::new(&graph, self_loops).named(|id| names[id.index()].clone());
        true
    }

    /// What is wrong with the line, if anything.
    fn fault(&self) -> Option<String> {
        if self.schema != RESULT_SCHEMA && self.schema != FIRST_SCHEMA {
            return Some(format!("expected schema {RESULT_SCHEMA:?}, found {:?}", self.schema));
        }
        if self.steps.as_ref().is_some_and(|steps| steps.len() != self.events.len()) {
            return Some("steps: expected one for each event".to_owned());
        }
        if !self.skipped.is_sorted_by(|a, b| a < b) {
            return Some("skipped: expected ascending positions".to_owned());
        }
        let length = self.events.len();
        let fits = |cause: Position, effect: Position| cause < effect && effect.index() < length;
        if let Some((cause, effect)) = self.excluded.iter().find(|(cause, effect)| !fits(*cause, *effect)) {
            return Some(format!("excluded: {cause} → {effect} does not fit a sequence of {length} events"));
        }
        let wrong = |pair: &&Pair| !fits(pair.cause, pair.effect) || pair.lag.0 != pair.effect.0 - pair.cause.0;
        self.pairs.iter().find(wrong).map(|pair| {
            let Pair { cause, effect, lag, .. } = pair;
            format!("edge {cause} → {effect} with lag {lag} does not fit a sequence of {length} events")
        })
    }
}

/// Times of all events; the end of a case, where it is an event, comes right after the last one.
fn with_end(times: &[f64], events: usize) -> Vec<f64> {
    let last = times.last().copied().unwrap_or(0.0);
    times.iter().copied().chain(std::iter::repeat(last)).take(events).collect()
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
        let Some((number, mut line)) = self.lines.next_json::<ResultLine>("a result")? else { return Ok(None) };
        if line.schema == FIRST_SCHEMA {
            for pair in &mut line.pairs {
                *pair = pair.as_it_was_kept();
            }
        }
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
