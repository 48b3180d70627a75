//! Business and hospital workflows, whose cases end.

use std::io::Write;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use trace_core::{DEFAULT_SEED, DEFAULT_THRESHOLD, DensityModel, Divergence, EventId, Particles, TruthClass};
use trace_io::truth::{TruthEdge, TruthLine};
use trace_models::{check_replaceable, write_folder};
use trace_sim::workflow::{ClassOptions, Classes, Preset, Specification, Workflow, WorkflowSettings};

use super::{EVENTS_AT_A_TIME, Simulation, check_size, create};
use crate::Error;
use crate::error::Kept;
use crate::progress::{Control, Task, Update};

/// Events of a case, roughly; for sizes of pieces and of the whole.
const TYPICAL_LENGTH: usize = 32;
/// The largest lag of a truth.
const LONGEST_MEMORY: usize = 64;

/// Which workflow is to run, and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowOptions {
    /// A workflow that comes with the software.
    pub preset: Preset,
    /// A file with another workflow, instead of the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<PathBuf>,
    /// Number of cases.
    pub sequences: usize,
    /// Noise, regularity, and whether the rules are left out.
    #[serde(flatten)]
    pub settings: WorkflowSettings,
    /// The largest lag of the truth; by default the longest window of a rule, and at least that of a discovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<usize>,
    /// Whether the true edges of each case are measured.
    pub truth: bool,
    /// Seed of the cases.
    pub seed: u64,
}

impl Default for WorkflowOptions {
    fn default() -> Self {
        Self {
            preset: Preset::default(),
            spec: None,
            sequences: 1000,
            settings: WorkflowSettings::default(),
            memory: None,
            truth: true,
            seed: DEFAULT_SEED,
        }
    }
}

impl WorkflowOptions {
    /// The workflow itself.
    pub fn workflow(&self) -> Result<Workflow, Error> {
        let specification = match &self.spec {
            Some(path) => Specification::read(path)?,
            None => self.preset.specification()?,
        };
        Ok(Workflow::new(&specification, &self.settings)?)
    }
}

/// Simulates a workflow into a folder.
pub fn simulate_workflow(options: &WorkflowOptions, folder: &Path, control: &Control<'_>) -> Result<Simulation, Error> {
    check_size(options.sequences, TYPICAL_LENGTH)?;
    if let Some(memory) = options.memory.filter(|memory| !(1..=LONGEST_MEMORY).contains(memory)) {
        let reason = format!("{memory} is out of range; expected 1 to {LONGEST_MEMORY}");
        return Err(Error::option("memory", reason));
    }
    check_replaceable(folder)?;
    let mut workflow = options.workflow()?;
    workflow.measure_entropy();
    let memory = options.memory.unwrap_or_else(|| workflow.memory());
    let classes = workflow.classes(&ClassOptions { memory, ..ClassOptions::new(&workflow) });
    let vocabulary = workflow.vocabulary();
    let names = (0..vocabulary.len()).map(|id| vocabulary.name(EventId(id as u32)).to_string()).collect();
    let run = WorkflowRun { options, workflow: &workflow, names, memory, control };
    let (mut events, mut edges) = (0, 0);
    write_folder(folder, |folder| {
        (events, edges) = run.fill(folder)?;
        run.write_pairs(folder, &classes)
    })?;
    Ok(Simulation {
        sequences: options.sequences,
        events,
        types: workflow.vocabulary_size(),
        edges,
        designed_pairs: classes.values().filter(|pair| pair.class == TruthClass::Designed).count(),
        entropy: workflow.fitness().entropy.unwrap_or_default(),
    })
}

/// Everything that cases are made from.
struct WorkflowRun<'w> {
    options: &'w WorkflowOptions,
    workflow: &'w Workflow,
    /// Event names, by id.
    names: Vec<String>,
    memory: usize,
    control: &'w Control<'w>,
}

/// One case as it is written.
struct Written {
    log: String,
    truth: Option<String>,
    events: usize,
    edges: usize,
}

impl WorkflowRun<'_> {
    /// Writes log, truth and model; returns how many events and true edges there are.
    fn fill(&self, folder: &Path) -> Result<(usize, usize), Error> {
        let fault = |error| Error::from(trace_io::Error::io(folder)(error));
        let mut log_file = create(folder, "events.jsonl")?;
        let mut truth_file = self.options.truth.then(|| create(folder, "truth.jsonl")).transpose()?;
        let sequences = self.options.sequences;
        self.control.update(&Update::Started { task: Task::Simulate, sequences: sequences as u64 });
        let (mut events, mut edges) = (0, 0);
        let together = EVENTS_AT_A_TIME / TYPICAL_LENGTH;
        for first in (0..sequences).step_by(together) {
            let range = first..sequences.min(first + together);
            let written = range.into_par_iter().map(|index| self.case(index));
            for case in written.collect::<Result<Vec<_>, Error>>()? {
                writeln!(log_file, "{}", case.log).map_err(fault)?;
                if let (Some(file), Some(line)) = (&mut truth_file, &case.truth) {
                    writeln!(file, "{line}").map_err(fault)?;
                }
                events += case.events;
                edges += case.edges;
            }
        }
        self.control.update(&Update::Ended { task: Task::Simulate });
        log_file.flush().map_err(fault)?;
        if let Some(file) = &mut truth_file {
            file.flush().map_err(fault)?;
        }
        let mut record = serde_json::Map::new();
        record.insert("simulated".to_owned(), json!("workflow"));
        record.insert("workflow".to_owned(), json!(self.workflow.specification().name()));
        record.insert("options".to_owned(), json!(self.options));
        self.workflow.save(folder, &record)?;
        Ok((events, edges))
    }

    fn case(&self, index: usize) -> Result<Written, Error> {
        if self.control.is_cancelled() {
            return Err(Error::Cancelled(Kept::Nothing));
        }
        let id = format!("case-{index:05}");
        let case = self.workflow.case(self.options.seed, index);
        let names: Vec<&str> = case.events.iter().map(|event| self.names[event.index()].as_str()).collect();
        let log = json!({"id": id, "events": names, "times": case.times}).to_string();
        let mut written = Written { log, truth: None, events: case.events.len(), edges: 0 };
        if self.options.truth {
            let edges = self.workflow.true_edges(&case.events, self.memory).into_iter().map(|edge| TruthEdge {
                question: Some(edge.question),
                class: Some(edge.class),
                ..TruthEdge::new(edge.cause, edge.effect, Some(edge.strength))
            });
            let line = TruthLine {
                id,
                divergence: Some(Divergence::Event),
                draws: Some(Particles::All),
                threshold: Some(DEFAULT_THRESHOLD),
                edges: edges.collect(),
            };
            written.edges = line.edges.len();
            let text = serde_json::to_string(&line).map_err(|error| Error::request(error.to_string()))?;
            written.truth = Some(text);
        }
        self.control.update(&Update::Advanced { task: Task::Simulate, sequences: 1 });
        Ok(written)
    }

    /// Names have no comma and no quote.
    fn write_pairs(&self, folder: &Path, classes: &Classes) -> Result<(), Error> {
        let fault = |error| Error::from(trace_io::Error::io(folder)(error));
        let mut file = create(folder, "truth-pairs.csv")?;
        writeln!(file, "cause,effect,question,class,log_ratio").map_err(fault)?;
        for ((cause, effect, question), pair) in classes {
            let (cause, effect) = (&self.names[cause.index()], &self.names[effect.index()]);
            let ratio = pair.log_ratio.map_or(String::new(), |ratio| format!("{ratio:.4}"));
            writeln!(file, "{cause},{effect},{question},{},{ratio}", pair.class).map_err(fault)?;
        }
        file.flush().map_err(fault)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use super::*;
    use crate::Model;

    #[test]
    fn the_folder_is_the_oracle_of_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let options = WorkflowOptions { preset: Preset::Services, sequences: 20, ..WorkflowOptions::default() };
        let out = folder.path().join("flow");
        let made = simulate_workflow(&options, &out, &Control::new()).unwrap();
        let model = Model::open(&out).unwrap();
        assert!(model.is_process() && model.density().predicts_end());
        assert_eq!(model.vocabulary().len(), made.types);
        assert_eq!(model.fitness().entropy, Some(made.entropy));
        let workflow = options.workflow().unwrap();
        let events = workflow.case(options.seed, 3).events;
        let row = |model: &dyn DensityModel| {
            let mut row = vec![0.0; model.row_size()];
            model.forward(&events, events.len()..events.len() + 1, &mut row).unwrap();
            row
        };
        assert_eq!(row(model.density()), row(&workflow));
        let truths = trace_io::truth::read_truth(&out.join("truth.jsonl")).unwrap();
        assert_eq!(truths.len(), 20);
        assert_eq!(truths.values().map(|line| line.edges.len()).sum::<usize>(), made.edges);
        let pairs =
            trace_io::truth::read_type_pairs(&out.join("truth-pairs.csv"), trace_core::Question::Whether).unwrap();
        assert_eq!(pairs.len(), workflow.specification().rules().len());
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<WorkflowOptions>(&text).unwrap(), options);
    }
}
