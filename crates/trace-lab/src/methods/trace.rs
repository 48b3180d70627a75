//! Our own method, and the paper's: both are [`Discovery`], with one intervention or the other.

use trace_core::{Discovered, Discovery, Error, EventSequence, Intervention};

use super::{Kind, Method};

impl Method for Discovery<'_> {
    fn kind(&self) -> Kind {
        match self.settings().intervention {
            Intervention::Atomic => Kind::Trace,
            Intervention::Staircase => Kind::Staircase,
        }
    }

    fn threshold(&self) -> f64 {
        self.plan().map_or(f64::NAN, |plan| plan.threshold)
    }

    fn run(&self, sequence: &EventSequence) -> Result<Discovered, Error> {
        Self::run(self, sequence)
    }
}
