//! Families: event types that are outcomes of the same step.
//!
//! In many logs an event is a step *and* an outcome, such as `checkout:5xx` and `checkout:ok`. Two questions are then
//! kept apart, [`Question::Whether`] a step happens and [`Question::How`] it turns out. For the second, the alternatives
//! of an event `x` are the other members of its family `F(x)`, and an effect is read as its outcome given its step:
//!
//! ```text
//! alternatives of x:  F(x) \ {x}          P(x | its step) = p(x) / Σ_{v ∈ F(x)} p(v)
//! ```
//!
//! Memory: two numbers for each of the `V` types, and the names.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::numerics::log_sum_exp;
use crate::{EventId, EventScore, Vocabulary};

/// What is asked about a pair of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    /// Whether the effect happens, had any other event stood in place of the cause.
    #[default]
    Whether,
    /// How the effect's step turns out, had the cause's step turned out otherwise.
    How,
}

impl Question {
    /// The word for it, as in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whether => "whether",
            Self::How => "how",
        }
    }

    /// Whether this is the plain question, the only one in logs without families.
    pub const fn is_whether(&self) -> bool {
        matches!(self, Self::Whether)
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A step by its number in [`Families`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub u32);

impl StepId {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The step of every event type of a vocabulary, and the types of every step.
///
/// A type that is called as the step itself belongs to its family, as the step without an outcome. As data it is a list
/// with one record per type, in the order of their ids: `[{"step": "checkout", "outcome": "5xx"}, {"step": "pay"}]`.
///
/// ```
/// use trace_core::{EventId, Families};
///
/// let families = Families::of_separator(["pay", "checkout:ok", "checkout:5xx"], ":");
/// assert_eq!(families.members(EventId(1)), [EventId(1), EventId(2)]);
/// assert_eq!(families.step_name(families.step(EventId(2))), "checkout");
/// assert!(families.has_outcomes(EventId(1)) && !families.has_outcomes(EventId(0)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Families {
    /// The step and the outcome of each type, by its id.
    types: Vec<(StepId, Option<Arc<str>>)>,
    /// The name and the types of each step, in ascending order.
    steps: Vec<(Arc<str>, Vec<EventId>)>,
}

impl Families {
    /// Of steps and outcomes that are known, one for each type in the order of their ids.
    pub fn new<'n>(types: impl IntoIterator<Item = (&'n str, Option<&'n str>)>) -> Self {
        let mut made = Self { types: Vec::new(), steps: Vec::new() };
        let mut numbers: FxHashMap<Arc<str>, StepId> = FxHashMap::default();
        for (id, (name, outcome)) in types.into_iter().enumerate() {
            let step = numbers.get(name).copied().unwrap_or_else(|| {
                let (step, name) = (StepId(made.steps.len() as u32), Arc::<str>::from(name));
                numbers.insert(Arc::clone(&name), step);
                made.steps.push((name, Vec::new()));
                step
            });
            made.types.push((step, outcome.map(Arc::from)));
            made.steps[step.index()].1.push(EventId(id as u32));
        }
        made
    }

    /// Of names that are split at the *last* separator. A name without one, or with nothing before or after it, is a step
    /// of its own.
    pub fn of_separator<'n>(names: impl IntoIterator<Item = &'n str>, separator: &str) -> Self {
        Self::new(names.into_iter().map(|name| split(name, separator)))
    }

    /// Of a vocabulary, by what is said of each name: the lengths in bytes of its step and of what joins it to the
    /// outcome, or `None` for a step without an outcome.
    pub fn of_vocabulary(vocabulary: &Vocabulary, parts: impl Fn(&str) -> Option<(usize, usize)>) -> Self {
        let names: Vec<String> =
            (0..vocabulary.len()).map(|id| vocabulary.name(EventId(id as u32)).to_string()).collect();
        Self::new(names.iter().map(|name| {
            let parted = parts(name).and_then(|(step, sign)| Some((name.get(..step)?, name.get(step + sign..)?)));
            parted.map_or((name.as_str(), None), |(step, outcome)| (step, Some(outcome)))
        }))
    }

    /// The number of event types.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether there are no types at all.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// How many steps have at least two types.
    pub fn steps_with_outcomes(&self) -> usize {
        self.steps.iter().filter(|(_, members)| members.len() > 1).count()
    }

    /// Whether any step has at least two types, so that there is something to ask `how` about.
    pub fn any(&self) -> bool {
        self.steps.iter().any(|(_, members)| members.len() > 1)
    }

    /// The step of a type of the vocabulary.
    pub fn step(&self, event: EventId) -> StepId {
        self.types[event.index()].0
    }

    /// The outcome of a type of the vocabulary, where its name has one.
    pub fn outcome(&self, event: EventId) -> Option<&str> {
        self.types[event.index()].1.as_deref()
    }

    /// The types of the same step, itself included, in ascending order.
    pub fn members(&self, event: EventId) -> &[EventId] {
        &self.steps[self.step(event).index()].1
    }

    /// The first type of the same step, which stands for the step; an id that is no type stands for itself.
    pub fn representative(&self, event: EventId) -> EventId {
        if event.index() < self.types.len() { self.members(event)[0] } else { event }
    }

    /// The score of an event in a row of log-probabilities: of its step where the question is whether, and of its outcome
    /// given its step where it is how.
    pub fn score(&self, question: Question, row: &[f64], event: EventId) -> EventScore {
        if event.index() >= self.types.len() {
            return EventScore::from_row(row, event.index());
        }
        let members = self.members(event);
        match question {
            Question::Whether => {
                let step = log_sum_exp(members.iter().map(|member| row[member.index()]));
                let is_member = |id: usize| members.binary_search(&EventId(id as u32)).is_ok();
                let others = row.iter().enumerate().filter(|(id, _)| !is_member(*id)).map(|(_, value)| *value);
                EventScore::from_log_weights(step, log_sum_exp(others))
            }
            Question::How => {
                let others = members.iter().filter(|member| **member != event).map(|member| row[member.index()]);
                EventScore::from_log_weights(row[event.index()], log_sum_exp(others))
            }
        }
    }

    /// The types of the step of a type; an id that is no type is alone.
    pub fn step_of(&self, event: EventId) -> Cow<'_, [EventId]> {
        if event.index() < self.types.len() { self.members(event).into() } else { vec![event].into() }
    }

    /// Whether the step of a type has other outcomes.
    pub fn has_outcomes(&self, event: EventId) -> bool {
        self.members(event).len() > 1
    }

    /// What a step is called.
    pub fn step_name(&self, step: StepId) -> &str {
        &self.steps[step.index()].0
    }
}

/// A name's step and outcome.
fn split<'n>(name: &'n str, separator: &str) -> (&'n str, Option<&'n str>) {
    match name.rsplit_once(separator) {
        Some((step, outcome)) if !step.trim().is_empty() && !outcome.trim().is_empty() => (step, Some(outcome)),
        _ => (name, None),
    }
}

/// One type as data.
#[derive(Serialize, Deserialize)]
struct TypeRecord<'n> {
    step: Cow<'n, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Cow<'n, str>>,
}

impl Serialize for Families {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.types.iter().map(|(step, outcome)| TypeRecord {
            step: self.step_name(*step).into(),
            outcome: outcome.as_deref().map(Into::into),
        }))
    }
}

impl<'de> Deserialize<'de> for Families {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let types = Vec::<TypeRecord<'_>>::deserialize(deserializer)?;
        Ok(Self::new(types.iter().map(|record| (record.step.as_ref(), record.outcome.as_deref()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[u32]) -> Vec<EventId> {
        numbers.iter().copied().map(EventId).collect()
    }

    #[test]
    fn names_are_split_at_the_last_separator() {
        let names = ["db:read:ok", "pay", "db:read:5xx", "db:write:ok", "pay:ok", ":odd", "odd:", "a: "];
        let families = Families::of_separator(names, ":");
        assert_eq!((families.len(), families.steps(), families.steps_with_outcomes()), (8, 6, 2));
        assert_eq!(families.members(EventId(2)), ids(&[0, 2]));
        assert_eq!(families.step_name(families.step(EventId(0))), "db:read");
        assert_eq!((families.outcome(EventId(2)), families.outcome(EventId(1))), (Some("5xx"), None));
        assert_eq!(families.members(EventId(1)), ids(&[1, 4]), "a bare step belongs to its family");
        assert!(!families.has_outcomes(EventId(3)), "one outcome is none");
        for whole in 5..8 {
            assert_eq!(families.step_name(families.step(EventId(whole))), names[whole as usize]);
        }
        assert!(families.any());
        assert!(!Families::of_separator(["a:x", "b:x"], ":").any());
        assert_eq!(Families::of_separator(["a -> b -> c"], " -> ").outcome(EventId(0)), Some("c"));
    }

    #[test]
    fn what_is_known_is_not_split_again() {
        let families = Families::new([("a:b", None), ("a:b", Some("c:d")), ("a", Some("b"))]);
        assert_eq!(families.members(EventId(0)), ids(&[0, 1]));
        assert_eq!(families.outcome(EventId(1)), Some("c:d"));
        assert_eq!(families.members(EventId(2)), ids(&[2]));
    }

    #[test]
    fn of_a_vocabulary() {
        let mut vocabulary = Vocabulary::named();
        for name in ["a:b:c", "a:b", "x:y", "ü:1"] {
            vocabulary.intern(&name.into());
        }
        let parts = |name: &str| match name {
            "a:b:c" => Some((3, 1)),
            "ü:1" => Some((1, 1)), // not a place between letters
            _ => None,
        };
        let families = Families::of_vocabulary(&vocabulary, parts);
        assert_eq!(families.members(EventId(0)), ids(&[0, 1]));
        assert_eq!(families.step_name(families.step(EventId(2))), "x:y");
        assert_eq!(families.step_name(families.step(EventId(3))), "ü:1");
    }

    #[test]
    fn as_data_there_and_back() {
        let families = Families::new([("pay", None), ("checkout", Some("ok")), ("checkout", Some("5xx"))]);
        let text = serde_json::to_string(&families).unwrap();
        assert_eq!(text, r#"[{"step":"pay"},{"step":"checkout","outcome":"ok"},{"step":"checkout","outcome":"5xx"}]"#);
        assert_eq!(serde_json::from_str::<Families>(&text).unwrap(), families);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::from_value::<Families>(value).unwrap(), families);
        assert!(serde_json::from_str::<Families>(r#"["pay"]"#).is_err());
        assert_eq!(serde_json::to_string(&[Question::Whether, Question::How]).unwrap(), r#"["whether","how"]"#);
    }
}
