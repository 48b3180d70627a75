//! Names and their numbers, by first appearance.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use trace_core::EventName;

use super::{OUTCOME_SIGN, shorten};

/// The distinct names of a log, numbered as they appear.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    all: Vec<Arc<str>>,
    index: FxHashMap<Arc<str>, u32>,
    /// How many bytes of a name are its step, where an outcome was joined to it.
    steps: FxHashMap<u32, usize>,
}

/// Why a step with its outcome has no number.
pub(super) enum Refused {
    /// There are no numbers left.
    TooMany,
    /// Something else has the same name.
    Ambiguous(String),
}

impl Names {
    /// The number of a name, which is added if it is new; `None` when there are no numbers left.
    pub(super) fn intern(&mut self, name: &str) -> Option<u32> {
        if let Some(number) = self.index.get(name) {
            return Some(*number);
        }
        // The last number is not given out: it stands for folded types.
        let number = u32::try_from(self.all.len()).ok().filter(|number| *number < u32::MAX)?;
        let name: Arc<str> = name.into();
        self.all.push(Arc::clone(&name));
        self.index.insert(name, number);
        Some(number)
    }

    /// The number of a step with its outcome. Every name must mean one step and one outcome.
    pub(super) fn intern_step(&mut self, step: &str, outcome: Option<&str>) -> Result<u32, Refused> {
        let name = outcome.map_or_else(|| step.to_owned(), |outcome| format!("{step}{OUTCOME_SIGN}{outcome}"));
        let length = outcome.map(|_| step.len());
        let known = self.len();
        let number = self.intern(&name).ok_or(Refused::TooMany)?;
        if self.len() > known {
            self.steps.extend(length.map(|length| (number, length)));
        } else if self.steps.get(&number).copied() != length {
            let reason = format!(
                "two events of different steps and outcomes are both called {:?}, with {OUTCOME_SIGN:?} between step and \
                 outcome; expected names that differ",
                shorten(&name)
            );
            return Err(Refused::Ambiguous(reason));
        }
        Ok(number)
    }

    /// How many bytes of a name are its step, where an outcome was joined to it.
    pub(super) fn step_length(&self, name: &str) -> Option<usize> {
        self.steps.get(self.index.get(name)?).copied()
    }

    /// The name with a number.
    pub(super) fn get(&self, number: u32) -> Option<&Arc<str>> {
        self.all.get(number as usize)
    }

    /// The name with a number, as an event's; a number that was not given out names itself.
    pub(super) fn name(&self, number: u32) -> EventName {
        self.get(number).map_or(EventName::Number(u64::from(number)), |name| EventName::Text(Arc::clone(name)))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}
