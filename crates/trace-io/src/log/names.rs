//! Names and their numbers, by first appearance.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use trace_core::EventName;

/// The distinct names of a log, numbered as they appear.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    all: Vec<Arc<str>>,
    index: FxHashMap<Arc<str>, u32>,
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
