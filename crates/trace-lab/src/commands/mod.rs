//! The commands, but for speed comparisons.

pub mod certainty;
pub mod discover;
pub mod encoder;
pub mod experiment;

use std::time::Instant;

use trace_lab::Report;

use crate::output::say;
use crate::{interrupt, speed};

/// Tells progress on standard error, and when to stop.
pub struct Listener {
    quiet: bool,
    start: Instant,
}

impl Listener {
    /// A listener whose clock starts now.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, start: Instant::now() }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }
}

impl Report for Listener {
    fn say(&self, line: &str) {
        say(self.quiet, format_args!("[{:>5.0} s] {line}", self.seconds()));
    }

    fn stop(&self) -> bool {
        interrupt::requested()
    }

    fn peak_of(&self, work: &mut dyn FnMut()) -> Option<u64> {
        // Linux starts counting anew when asked; elsewhere nothing is known.
        let reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
        work();
        speed::peak_bytes().filter(|_| reset)
    }
}
