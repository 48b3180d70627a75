//! The paper's synthetic process.

use std::io::Write;
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use trace_core::{DEFAULT_SEED, DensityModel, EventSequence, Particles};
use trace_io::truth::TruthLine;
use trace_models::{check_replaceable, write_folder};
use trace_sim::{Process, ProcessSpec, Simulated, TruthSpec};

use super::truth::{self, TruthKind, check_draws};
use super::{EVENTS_AT_A_TIME, Simulation, check_size, create};
use crate::Error;
use crate::error::Kept;
use crate::progress::{Control, Note, Task, Update};

/// What a synthetic process is asked to be, and how much of it is simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScmOptions {
    /// Number of event types.
    pub vocabulary: usize,
    /// How many past events the process looks at.
    pub memory: usize,
    /// Events in each sequence.
    pub length: usize,
    /// Number of sequences.
    pub sequences: usize,
    /// Shannon redundancy `1 − H/ln V`; 0 for a process where nothing causes anything.
    pub redundancy: f64,
    /// How fast influence fades with the lag: `e^(−decay·(lag−1))`.
    pub decay: f64,
    /// How the truth measures an effect.
    pub truth: TruthKind,
    /// Replacements that the truth tries; by default all up to 2000 types, else 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth_draws: Option<Particles>,
    /// Seed of the process and its sequences.
    pub seed: u64,
}

impl Default for ScmOptions {
    fn default() -> Self {
        Self {
            vocabulary: 1000,
            memory: 6,
            length: 64,
            sequences: 100,
            redundancy: 0.6,
            decay: 1.0,
            truth: TruthKind::default(),
            truth_draws: None,
            seed: DEFAULT_SEED,
        }
    }
}

/// Simulates a synthetic process into a folder.
pub fn simulate_scm(options: &ScmOptions, folder: &Path, control: &Control<'_>) -> Result<Simulation, Error> {
    check_size(options.sequences, options.length)?;
    check_draws(options.truth_draws)?;
    if options.truth != TruthKind::None && options.length < 2 {
        let reason = "1 leaves no truth to measure; expected longer sequences, or no truth";
        return Err(Error::option("length", reason));
    }
    check_replaceable(folder)?;
    let spec = ProcessSpec {
        vocabulary: options.vocabulary,
        memory: options.memory,
        redundancy: options.redundancy,
        decay: options.decay,
        seed: options.seed,
    };
    control.note(&Note::Calibrating { vocabulary: options.vocabulary });
    let mut process = Process::draw(&spec)?;
    let mut edges = 0;
    write_folder(folder, |folder| {
        edges = fill(folder, options, &mut process, control)?;
        Ok::<_, Error>(())
    })?;
    Ok(Simulation {
        sequences: options.sequences,
        events: options.sequences * options.length,
        types: options.vocabulary,
        edges,
        designed_pairs: 0,
        entropy: process.fitness().entropy.unwrap_or_default(),
    })
}

/// Writes everything into the folder and gives the process its entropy; returns the number of true edges.
fn fill(folder: &Path, options: &ScmOptions, process: &mut Process, control: &Control<'_>) -> Result<usize, Error> {
    let fault = |error| Error::from(trace_io::Error::io(folder)(error));
    let truth = truth::spec(options.truth, options.truth_draws, options.vocabulary, options.seed);
    let mut events_file = create(folder, "events.jsonl")?;
    let mut truth_file = truth.map(|_| create(folder, "truth.jsonl")).transpose()?;
    control.update(&Update::Started { task: Task::Simulate, sequences: options.sequences as u64 });
    let (mut entropy, mut edges) = (0.0, 0);
    let together = (EVENTS_AT_A_TIME / options.length).max(1);
    for first in (0..options.sequences).step_by(together) {
        if control.is_cancelled() {
            return Err(Error::Cancelled(Kept::Nothing));
        }
        let count = together.min(options.sequences - first);
        let simulated = process.simulate(options.seed, first, count, options.length);
        for (index, sequence) in (first..).zip(&simulated) {
            entropy += sequence.entropy;
            let ids: Vec<u32> = sequence.events.iter().map(|event| event.0).collect();
            // A window of a process that goes on.
            let line = json!({"id": format!("s{index}"), "events": ids, "open": true});
            writeln!(events_file, "{line}").map_err(fault)?;
        }
        if let (Some(truth), Some(file)) = (&truth, &mut truth_file) {
            for line in truths(truth, process, &simulated, first, control)? {
                edges += line.edges.len();
                serde_json::to_writer(&mut *file, &line).map_err(|error| fault(error.into()))?;
                writeln!(file).map_err(fault)?;
            }
        } else {
            control.update(&Update::Advanced { task: Task::Simulate, sequences: count as u64 });
        }
    }
    events_file.flush().map_err(fault)?;
    if let Some(file) = &mut truth_file {
        file.flush().map_err(fault)?;
    }
    control.update(&Update::Ended { task: Task::Simulate });
    let dependent = options.sequences * options.length.saturating_sub(options.memory);
    process.set_entropy(entropy, dependent, options.seed);
    let mut record = serde_json::Map::new();
    record.insert("simulated".to_owned(), json!("scm"));
    record.insert("options".to_owned(), json!(options));
    process.save(folder, &record)?;
    Ok(edges)
}

fn truths(
    truth: &TruthSpec,
    process: &Process,
    simulated: &[Simulated],
    first: usize,
    control: &Control<'_>,
) -> Result<Vec<TruthLine>, Error> {
    let one = |(offset, sequence): (usize, &Simulated)| {
        if control.is_cancelled() {
            return Err(Error::Cancelled(Kept::Nothing));
        }
        let sequence = EventSequence::new(format!("s{}", first + offset), sequence.events.clone());
        let line = truth::line(truth, process, &sequence)?;
        control.update(&Update::Advanced { task: Task::Simulate, sequences: 1 });
        Ok(line)
    };
    simulated.par_iter().enumerate().map(one).collect()
}
