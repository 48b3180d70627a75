//! Progress of long commands: a bar with ETA on a terminal, plain lines when piped, nothing with `--quiet`.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a plain line is written.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Progress of one stage.
pub struct Progress {
    what: &'static str,
    total: u64,
    done: AtomicU64,
    start: Instant,
    kind: Kind,
}

enum Kind {
    Quiet,
    Bar(ProgressBar),
    Lines { last: Mutex<Instant> },
}

impl Progress {
    /// A stage that does `what` to `total` things.
    pub fn new(what: &'static str, total: u64, quiet: bool) -> Self {
        let start = Instant::now();
        let kind = if quiet {
            Kind::Quiet
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}, {eta} left") {
                bar.set_style(style);
            }
            bar.set_message(what);
            Kind::Bar(bar)
        } else {
            Kind::Lines { last: Mutex::new(start) }
        };
        Self { what, total, done: AtomicU64::new(0), start, kind }
    }

    /// Some more are done.
    pub fn add(&self, count: u64) {
        let done = self.done.fetch_add(count, Ordering::Relaxed) + count;
        match &self.kind {
            Kind::Quiet => {}
            Kind::Bar(bar) => bar.inc(count),
            Kind::Lines { last } => {
                let Ok(mut last) = last.lock() else { return };
                if last.elapsed() >= LINE_EVERY {
                    *last = Instant::now();
                    let left = self.start.elapsed().as_secs_f64() / done.max(1) as f64
                        * self.total.saturating_sub(done) as f64;
                    eprintln!("{}: {done}/{}, about {left:.0} s left", self.what, self.total);
                }
            }
        }
    }

    /// The stage is over; takes the bar away.
    pub fn finish(&self) -> Duration {
        if let Kind::Bar(bar) = &self.kind {
            bar.finish_and_clear();
        }
        self.start.elapsed()
    }
}

/// Says something on standard error unless `--quiet`.
pub fn say(quiet: bool, message: impl std::fmt::Display) {
    if !quiet {
        eprintln!("{message}");
    }
}
