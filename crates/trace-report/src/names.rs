//! Event names, each stored once.

use rustc_hash::FxHashMap;
use trace_core::{END, EventName};

/// What people call the end of a case; the script knows it by the same words.
const END_IN_WORDS: &str = "end of the case";

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
        let text = name.to_string();
        self.texts.push(if text == END { END_IN_WORDS.to_owned() } else { text });
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
