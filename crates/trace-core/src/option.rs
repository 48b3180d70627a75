//! Options by name, and hints at them: what an error says would help, in words that fit every door.

use std::borrow::Cow;
use std::fmt;

/// An option by its one name, in snake case, which every door writes in its own way: `--time-column`, `time_column=…`,
/// `.time_column(…)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OptionName(pub &'static str);

impl fmt::Display for OptionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// What would help: an option, the value to give it where a certain one is meant, and what it then does.
///
/// As text it is `the option bad_rows = skip leaves such rows out`; a door may write `--bad-rows skip leaves such rows
/// out` instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The option.
    pub option: OptionName,
    /// The value, if a certain one is meant.
    pub value: Option<Cow<'static, str>>,
    /// What the option then does: a verb and its object, such as `names it`.
    pub effect: Cow<'static, str>,
}

impl Hint {
    /// An option with a value that the user knows, or that needs none.
    pub const fn new(option: OptionName, effect: &'static str) -> Self {
        Self { option, value: None, effect: Cow::Borrowed(effect) }
    }

    /// An option with a certain value.
    pub const fn with_value(option: OptionName, value: &'static str, effect: &'static str) -> Self {
        Self { option, value: Some(Cow::Borrowed(value)), effect: Cow::Borrowed(effect) }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the option {}", self.option)?;
        if let Some(value) = &self.value {
            write!(f, " = {value}")?;
        }
        write!(f, " {}", self.effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_in_words() {
        let column = Hint::new(OptionName("time_column"), "names it");
        assert_eq!(column.to_string(), "the option time_column names it");
        let unit = Hint::with_value(OptionName("time_unit"), "ns", "makes seconds of it");
        assert_eq!(unit.to_string(), "the option time_unit = ns makes seconds of it");
    }
}
