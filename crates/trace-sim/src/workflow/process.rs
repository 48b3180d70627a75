//! The workflow as a process: what comes next, given what has happened.

use serde::{Deserialize, Serialize};
use trace_core::theory::Fitness;
use trace_core::{DEFAULT_MEMORY, EventId, EventName, Vocabulary};

use super::specification::{SEPARATOR, Specification, split};
use super::tree::{State, Tree};
use crate::Error;

/// The share of the noise that ends a case, so that the end is possible everywhere.
const END_OF_NOISE: f64 = 1e-6;
/// The least and the largest noise.
const NOISE: std::ops::RangeInclusive<f64> = 1e-4..=0.5;

/// How a workflow is to run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowSettings {
    /// Probability that any step happens at a place, whatever the workflow says.
    pub noise: f64,
    /// From 0, where all choices are even, over 0.5, where they are as written, to 1, where the most frequent path
    /// dominates. Outcomes are not choices.
    pub regularity: f64,
    /// Whether the rules are left out.
    pub null: bool,
}

impl Default for WorkflowSettings {
    fn default() -> Self {
        Self { noise: 0.02, regularity: 0.5, null: false }
    }
}

impl WorkflowSettings {
    /// Checks the options.
    pub fn check(&self) -> Result<(), Error> {
        if !NOISE.contains(&self.noise) {
            let (least, most) = (NOISE.start(), NOISE.end());
            let reason = format!("{} is out of range; expected a share from {least} to {most}", self.noise);
            return Err(Error::spec("noise", reason));
        }
        if !(0.0..=1.0).contains(&self.regularity) {
            let reason = format!("{} is out of range; expected a number from 0 to 1", self.regularity);
            return Err(Error::spec("regularity", reason));
        }
        Ok(())
    }
}

/// The process: a density model, a simulator and the truth.
#[derive(Clone, Debug)]
pub struct Workflow {
    pub(super) specification: Specification,
    pub(super) settings: WorkflowSettings,
    /// The noise of this copy; the truth also looks at cases without any.
    pub(super) noise: f64,
    tree: Tree,
    pub(super) steps: Vec<Step>,
    /// The step of each event type.
    pub(super) step_of: Vec<usize>,
    pub(super) rules: Vec<CompiledRule>,
    pub(super) fitness: Fitness,
}

/// A step and its outcomes, whose types follow each other.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) first: usize,
    odds: Vec<f64>,
    names: Vec<String>,
    pub(super) tied: bool,
}

impl Step {
    /// Its types.
    pub(super) const fn types(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.odds.len()
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CompiledRule {
    pub(super) cause: usize,
    cause_step: usize,
    pub(super) effect: Effect,
    factor: f64,
    pub(super) within: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Step(usize),
    Outcome(usize),
}

impl CompiledRule {
    /// Whether the rule holds at `position`.
    fn holds(&self, replay: &Replay) -> bool {
        let (event, after) = replay.latest[self.cause_step];
        after > 0 && event == self.cause && replay.length - (after - 1) <= self.within
    }
}

/// Where a case is: all that its events so far mean for the next one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Replay {
    state: State,
    /// For each step its latest event and one more than its position; 0 for none.
    latest: Vec<(usize, usize)>,
    length: usize,
}

impl Workflow {
    /// The workflow of a specification.
    pub fn new(specification: &Specification, settings: &WorkflowSettings) -> Result<Self, Error> {
        settings.check()?;
        let tree = Tree::new(specification, settings.regularity).map_err(|reason| Error::spec("spec", reason))?;
        let (mut steps, mut step_of) = (Vec::new(), Vec::new());
        for (name, outcomes) in &specification.steps {
            let first = step_of.len();
            let total: f64 = outcomes.values().sum();
            let (odds, names) = if outcomes.is_empty() {
                (vec![1.0], vec![name.clone()])
            } else {
                let names = outcomes.keys().map(|outcome| format!("{name}{SEPARATOR}{outcome}")).collect();
                (outcomes.values().map(|odds| odds / total).collect(), names)
            };
            step_of.extend(odds.iter().map(|_| steps.len()));
            steps.push(Step { first, odds, names, tied: specification.written.tied.contains(name) });
        }
        let mut workflow = Self {
            specification: specification.clone(),
            settings: *settings,
            noise: settings.noise,
            tree,
            steps,
            step_of,
            rules: Vec::new(),
            fitness: Fitness::default(),
        };
        if !settings.null {
            let rules = specification.rules().iter().filter_map(|rule| {
                let cause = workflow.event(&rule.cause)?.index();
                let effect = match split(&rule.effect) {
                    (_, Some(_)) => Effect::Outcome(workflow.event(&rule.effect)?.index()),
                    (step, None) => Effect::Step(specification.steps.keys().position(|name| name == step)?),
                };
                let cause_step = workflow.step_of[cause];
                Some(CompiledRule { cause, cause_step, effect, factor: rule.factor, within: rule.within })
            });
            workflow.rules = rules.collect();
        }
        Ok(workflow)
    }

    /// The text that it is made from.
    pub const fn specification(&self) -> &Specification {
        &self.specification
    }

    /// How it runs.
    pub const fn settings(&self) -> &WorkflowSettings {
        &self.settings
    }

    /// The names of its event types.
    pub fn vocabulary(&self) -> Vocabulary {
        let mut vocabulary = Vocabulary::named();
        for name in self.steps.iter().flat_map(|step| &step.names) {
            vocabulary.intern(&EventName::from(name.as_str()));
        }
        vocabulary
    }

    /// The type with this name.
    pub fn event(&self, name: &str) -> Option<EventId> {
        let place = self.steps.iter().flat_map(|step| &step.names).position(|other| other == name)?;
        Some(EventId(place as u32))
    }

    /// The outcomes of the step that a type belongs to, the type itself included.
    pub fn family(&self, event: EventId) -> impl Iterator<Item = EventId> + use<> {
        self.steps[self.step_of[event.index()]].types().map(|id| EventId(id as u32))
    }

    /// The lags at which events are looked at for the truth: the longest window of a rule, and at least as many as a
    /// discovery looks at. The order of steps reaches further back.
    pub fn memory(&self) -> usize {
        let windows = self.specification.rules().iter().map(|rule| rule.within);
        windows.max().unwrap_or(0).max(DEFAULT_MEMORY)
    }

    /// Number of parameters: odds and rules.
    pub fn parameters(&self) -> usize {
        self.step_of.len() + self.rules.len()
    }

    /// The same, where nothing happens out of order.
    pub(super) fn without_noise(&self) -> Self {
        Self { noise: 0.0, ..self.clone() }
    }

    /// The number of event types.
    pub(super) fn types(&self) -> usize {
        self.step_of.len()
    }

    /// The start of a case.
    pub(super) fn replay(&self) -> Replay {
        Replay { state: self.tree.fresh(), latest: vec![(0, 0); self.steps.len()], length: 0 }
    }

    /// The case goes on by an event. The end of a case is none.
    pub(super) fn push(&self, replay: &mut Replay, event: EventId) {
        if let Some(step) = self.step_of.get(event.index()) {
            self.tree.advance(&mut replay.state, *step);
            replay.length += 1;
            replay.latest[*step] = (event.index(), replay.length);
        }
    }

    /// The probability that an event of this type is noise, where nothing else makes it happen.
    pub(super) fn noise_of(&self, event: usize, row: &[f64]) -> f64 {
        let types = self.steps[self.step_of[event]].types();
        let step: f64 = row[types.clone()].iter().sum();
        let share = if step > 0.0 { row[event] / step } else { 0.0 };
        self.noise * (1.0 - END_OF_NOISE) * types.len() as f64 / self.types() as f64 * share
    }

    /// The probability of each event type next, and of the end behind them. `masses` is room to work in.
    pub(super) fn probabilities(&self, replay: &Replay, masses: &mut Vec<f64>, row: &mut [f64]) {
        let types = self.types();
        masses.clear();
        masses.resize(self.steps.len(), 0.0);
        let end = self.tree.offer(&replay.state, masses);
        for step in &self.steps {
            row[step.types()].copy_from_slice(&step.odds);
        }
        for rule in self.rules.iter().filter(|rule| rule.holds(replay)) {
            match rule.effect {
                Effect::Step(step) => masses[step] *= rule.factor,
                Effect::Outcome(event) => row[event] *= rule.factor,
            }
        }
        let total = end + masses.iter().sum::<f64>();
        let noise = self.noise * (1.0 - END_OF_NOISE) / types as f64;
        for (step, mass) in self.steps.iter().zip(masses.iter()) {
            let odds = &mut row[step.types()];
            let scale = (1.0 - self.noise) * mass / total + noise * odds.len() as f64;
            let scale = scale / odds.iter().sum::<f64>();
            for value in odds {
                *value *= scale;
            }
        }
        row[types] = (1.0 - self.noise) * end / total + self.noise * END_OF_NOISE;
    }
}
