//! Event names, each stored once.

use rustc_hash::FxHashMap;
use trace_core::EventName;

/// Names by number of first appearance. A number and its decimal text are two names, as they are in results.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: FxHashMap<EventName, u32>,
    texts: Vec<String>,
}

impl Names {
    /// The number of a name.
    pub(crate) fn number(&mut self, name: &EventName) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(name.clone(), number);
        self.texts.push(name.to_string());
        number
    }

    /// The length of the longest of some names, in letters.
    pub(crate) fn longest(&self, numbers: &[u32]) -> usize {
        numbers.iter().map(|number| self.texts[*number as usize].chars().count()).max().unwrap_or(0)
    }

    /// What each number stands for.
    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }
}
