//! The words of a known truth: what is asked of a pair of event types, and why its answer is what it is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is asked about a pair. In many logs an event is a step *and* its outcome, such as `lab test:high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    /// Whether an event happens, had another event stood in the cause's place.
    Whether,
    /// How a step turns out, had the cause's step turned out otherwise.
    How,
}

/// Why two event types of a simulated process depend on each other, or that they do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TruthClass {
    /// By a rule of the design.
    Designed,
    /// By the order of steps: prerequisites, branches, loops, once-only steps, competition.
    Order,
    /// Not at all, given everything else.
    Null,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whether => "whether",
            Self::How => "how",
        })
    }
}

impl fmt::Display for TruthClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Designed => "designed",
            Self::Order => "order",
            Self::Null => "null",
        })
    }
}
