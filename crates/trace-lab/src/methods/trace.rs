//! TRACE, and the paper's construction: both are [`Discovery`], with one intervention or the other.

use trace_core::{Discovered, Discovery, Error, EventSequence, Intervention};

use super::{Method, MethodName};

impl Method for Discovery<'_> {
    fn name(&self) -> MethodName {
        match self.settings().intervention {
            Intervention::Atomic => MethodName::Trace,
            Intervention::Staircase => MethodName::Staircase,
        }
    }

    fn threshold(&self) -> f64 {
        self.plan().map_or(f64::NAN, |plan| plan.threshold)
    }

    fn run(&self, sequence: &EventSequence) -> Result<Discovered, Error> {
        Self::run(self, sequence)
    }
}
