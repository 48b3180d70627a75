//! Progress of long commands: a bar with ETA on a terminal, plain lines when piped, nothing with `--quiet`.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use trace_causal::{Floors, Note, Progress, Shaping, Task, TrainLimit, TrainPlan, TrainProgress, Update};

use crate::commands::train::{describe, time};
use crate::output::say;

/// How often a plain line is written.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows what the library tells.
pub struct Terminal {
    quiet: bool,
    state: Mutex<State>,
}

/// What is under way.
struct State {
    bar: Option<ProgressBar>,
    last: Instant,
    start: Instant,
    done: u64,
    total: u64,
    floors: Floors,
}

impl Terminal {
    /// A terminal that is silent where `quiet`.
    pub fn new(quiet: bool) -> Self {
        let now = Instant::now();
        let state = State { bar: None, last: now, start: now, done: 0, total: 0, floors: Floors::default() };
        Self { quiet, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A bar, where there is a terminal to draw it on.
    fn bar(&self, total: u64, template: &str) -> Option<ProgressBar> {
        if self.quiet || !std::io::stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Some(bar)
    }

    fn start(&self, task: Task, total: u64) {
        let mut state = self.state();
        (state.done, state.total, state.start, state.last) = (0, total, Instant::now(), Instant::now());
        state.bar = self.bar(total, "{msg} {wide_bar} {pos}/{len}, {eta} left");
        if let Some(bar) = &state.bar {
            bar.set_message(word(task));
        }
    }

    fn advance(&self, task: Task, count: u64) {
        let mut state = self.state();
        state.done += count;
        if let Some(bar) = &state.bar {
            bar.inc(count);
        } else if state.last.elapsed() >= LINE_EVERY {
            state.last = Instant::now();
            let (done, total) = (state.done, state.total);
            let left = state.start.elapsed().as_secs_f64() / done.max(1) as f64 * total.saturating_sub(done) as f64;
            say(self.quiet, format_args!("{}: {done}/{total}, about {left:.0} s left", word(task)));
        }
    }

    fn step(&self, progress: &TrainProgress) {
        let mut state = self.state();
        let share = progress.share.min(1.0);
        if let Some(bar) = &state.bar {
            bar.set_position((share * 1000.0) as u64);
            bar.set_message(step_words(progress, &state.floors));
        } else if state.last.elapsed() >= LINE_EVERY {
            state.last = Instant::now();
            let words = step_words(progress, &state.floors);
            say(self.quiet, format_args!("training: {:.0} %, {words}", 100.0 * share));
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = self.state().bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Terminal {
    fn update(&self, update: &Update<'_>) {
        match update {
            Update::Read(summary) => say(self.quiet, summary.line()),
            Update::Started { task, sequences } => self.start(*task, *sequences),
            Update::Advanced { task, sequences } => self.advance(*task, *sequences),
            Update::Ended { .. } => self.finish(),
            Update::Training(plan) => {
                say(self.quiet, introduce(plan));
                let mut state = self.state();
                state.floors = plan.floors;
                state.last = Instant::now();
                state.bar = self.bar(1000, "training {bar:20} {percent} %  {msg}");
            }
            Update::Step(progress) => self.step(progress),
            Update::Trained(report) => {
                self.finish();
                say(self.quiet, describe(report));
            }
            Update::Note(note) => say(self.quiet, note_words(note)),
            _ => {}
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.finish();
    }
}

const fn word(task: Task) -> &'static str {
    match task {
        Task::Simulate => "simulating",
        _ => "discovering",
    }
}

/// A note, with flags where they help.
fn note_words(note: &Note) -> String {
    match note {
        Note::StartingOver => format!("{note} (--resume would continue it)"),
        Note::VacuousBound => format!("{note} (trace model info says more)"),
        Note::OneSequence { .. } => {
            format!("{note} (--gap or --max-length cuts it into pieces, some of which are then held out)")
        }
        Note::OtherShaping { trained, here } => format!(
            "note: the model was trained on a log read with {}; this one is read with {}",
            flags(trained),
            flags(here)
        ),
        note => note.to_string(),
    }
}

fn flags(shaping: &Shaping) -> String {
    let flag = |name: &str, value: Option<String>| value.map(|value| format!("--{name} {value}"));
    let flags: Vec<String> = [
        flag("gap", shaping.gap.map(|gap| gap.to_string())),
        shaping.collapse.then(|| "--collapse".to_owned()),
        flag("max-length", shaping.max_length.map(|length| length.to_string())),
    ]
    .into_iter()
    .flatten()
    .collect();
    if flags.is_empty() { "no such flags".to_owned() } else { flags.join(" ") }
}

fn introduce(plan: &TrainPlan) -> String {
    let mut text = format!("{} with {} parameters, ", plan.backbone, plan.parameters);
    text += &match plan.limit {
        TrainLimit::Steps(steps) => format!("{steps} steps"),
        TrainLimit::Minutes(minutes) => format!("{minutes} minutes"),
        TrainLimit::EarlyStop(steps) => format!("at most {steps} steps"),
    };
    text += &format!(" of {} sequences", plan.batch);
    if let Some(length) = plan.pieces {
        text += &format!("; sequences are cut into pieces of {length} events");
    }
    let mut floors = Vec::new();
    floors.extend(plan.floors.unigram.map(|loss| format!("event frequencies {loss:.3}")));
    floors.extend(plan.floors.ngram.map(|(order, loss)| format!("{order}-gram {loss:.3}")));
    floors.extend(plan.floors.entropy.map(|entropy| format!("the process itself {entropy:.3}")));
    if !floors.is_empty() {
        text += &format!("\nheld-out losses to compare with, in nats per event: {}", floors.join(", "));
    }
    text
}

fn step_words(progress: &TrainProgress, floors: &Floors) -> String {
    let mut text = format!("step {}, epoch {}, loss {:.3}", progress.step, progress.epoch, progress.loss);
    if let Some(loss) = progress.held_out_loss {
        text += &format!(", held-out {loss:.3}");
        match (floors.fitness(Some(loss)).epsilon_hat(floors.types), floors.unigram) {
            (Some(score), _) => text += &format!(" (oracle score {score:.3})"),
            (None, Some(unigram)) => text += &format!(" (frequencies {unigram:.3})"),
            (None, None) => {}
        }
    }
    text + &format!(", {:.0} events/s, {} left", progress.events_per_second, time(progress.seconds_left))
}
