//! The words of a known truth: why the answer of a pair of event types is what it is.

use std::fmt;

use serde::{Deserialize, Serialize};

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

impl fmt::Display for TruthClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Designed => "designed",
            Self::Order => "order",
            Self::Null => "null",
        })
    }
}
