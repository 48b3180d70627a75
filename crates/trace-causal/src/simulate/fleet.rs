//! A vehicle fleet with designed cascades of trouble codes.

use std::io::Write;
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use trace_core::{DEFAULT_SEED, DensityModel, EventId, EventSequence, Particles, Position, Vocabulary};
use trace_io::truth::TruthEdge;
use trace_models::{check_replaceable, write_folder};
use trace_sim::TruthSpec;
use trace_sim::fleet::{Design, Fault, FleetLog, FleetSpec, Vehicle};

use super::truth::{self, TruthKind, check_draws};
use super::{EVENTS_AT_A_TIME, Simulation, check_size, create};
use crate::Error;
use crate::error::Kept;
use crate::progress::{Control, Task, Update};

/// What a log is written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object per vehicle.
    #[default]
    Jsonl,
    /// One row per event.
    Csv,
}

/// What a fleet is asked to be, and how much of it is simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetOptions {
    /// Number of event types.
    pub types: usize,
    /// Number of vehicles.
    pub sequences: usize,
    /// Events of a vehicle, on average.
    pub length: usize,
    /// Share of events that the log has wrong.
    pub noise: f64,
    /// Share of events that the log lacks.
    pub drop: f64,
    /// Parts whose cascades are left out.
    pub without: Vec<String>,
    /// How the truth measures an effect.
    pub truth: TruthKind,
    /// Replacements that the truth tries; by default all up to 2000 types, else 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth_draws: Option<Particles>,
    /// What the log is written as.
    pub format: LogFormat,
    /// Seed of the vehicles.
    pub seed: u64,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self {
            types: FleetSpec::default().types,
            sequences: 1000,
            length: 60,
            noise: 0.0,
            drop: 0.0,
            without: Vec::new(),
            truth: TruthKind::default(),
            truth_draws: None,
            format: LogFormat::default(),
            seed: DEFAULT_SEED,
        }
    }
}

/// Simulates a fleet into a folder.
pub fn simulate_fleet(options: &FleetOptions, folder: &Path, control: &Control<'_>) -> Result<Simulation, Error> {
    check_size(options.sequences, options.length)?;
    check_draws(options.truth_draws)?;
    let recording = FleetLog { length: options.length, noise: options.noise, drop: options.drop, seed: options.seed };
    recording.check()?;
    check_replaceable(folder)?;
    let spec = FleetSpec { types: options.types, without: options.without.iter().cloned().collect() };
    let mut design = Design::new(&spec)?;
    design.fleet.measure_entropy();
    let fleet = FleetRun::new(options, &design, recording, control);
    let (mut events, mut edges) = (0, 0);
    write_folder(folder, |folder| {
        (events, edges) = fleet.fill(folder)?;
        Ok::<_, Error>(())
    })?;
    Ok(Simulation {
        sequences: options.sequences,
        events,
        types: options.types,
        edges,
        designed_pairs: design.pairs.len(),
        entropy: design.fleet.fitness().entropy.unwrap_or_default(),
    })
}

/// Everything that vehicles are made from.
struct FleetRun<'f> {
    options: &'f FleetOptions,
    design: &'f Design,
    recording: FleetLog,
    truth: Option<TruthSpec>,
    /// Event names, by id.
    names: Vec<String>,
    control: &'f Control<'f>,
}

/// One vehicle as it is written.
struct Written {
    log: String,
    truth: Option<String>,
    events: usize,
    edges: usize,
}

impl<'f> FleetRun<'f> {
    fn new(options: &'f FleetOptions, design: &'f Design, recording: FleetLog, control: &'f Control<'f>) -> Self {
        let truth = truth::spec(options.truth, options.truth_draws, options.types, options.seed);
        let name = |id: usize| design.vocabulary.name(EventId(id as u32)).to_string();
        Self { options, design, recording, truth, names: (0..options.types).map(name).collect(), control }
    }

    /// Writes everything into the folder; returns how many events and true edges there are.
    fn fill(&self, folder: &Path) -> Result<(usize, usize), Error> {
        let fault = |error| Error::from(trace_io::Error::io(folder)(error));
        let mut log_file = match self.options.format {
            LogFormat::Jsonl => create(folder, "events.jsonl")?,
            LogFormat::Csv => {
                let mut file = create(folder, "events.csv")?;
                writeln!(file, "case_id,time,event").map_err(fault)?;
                file
            }
        };
        let mut truth_file = self.truth.map(|_| create(folder, "truth.jsonl")).transpose()?;
        let sequences = self.options.sequences;
        self.control.update(&Update::Started { task: Task::Simulate, sequences: sequences as u64 });
        let (mut events, mut edges) = (0, 0);
        let together = (EVENTS_AT_A_TIME / self.options.length).max(1);
        for first in (0..sequences).step_by(together) {
            let range = first..sequences.min(first + together);
            let written = range.into_par_iter().map(|index| self.vehicle(index));
            for vehicle in written.collect::<Result<Vec<_>, Error>>()? {
                log_file.write_all(vehicle.log.as_bytes()).map_err(fault)?;
                if let (Some(file), Some(line)) = (&mut truth_file, &vehicle.truth) {
                    writeln!(file, "{line}").map_err(fault)?;
                }
                events += vehicle.events;
                edges += vehicle.edges;
            }
        }
        self.control.update(&Update::Ended { task: Task::Simulate });
        log_file.flush().map_err(fault)?;
        if let Some(file) = &mut truth_file {
            file.flush().map_err(fault)?;
        }
        let mut graph = create(folder, "graph.csv")?;
        write_pairs(&mut graph, &self.design.vocabulary, &self.design.pairs).map_err(fault)?;
        let mut record = serde_json::Map::new();
        record.insert("simulated".to_owned(), json!("fleet"));
        record.insert("options".to_owned(), json!(self.options));
        self.design.fleet.save(folder, &self.design.vocabulary, &record)?;
        Ok((events, edges))
    }

    fn vehicle(&self, index: usize) -> Result<Written, Error> {
        if self.control.is_cancelled() {
            return Err(Error::Cancelled(Kept::Nothing));
        }
        let id = format!("vehicle-{index:05}");
        let fleet = &self.design.fleet;
        let vehicle = self.recording.vehicle(fleet, index);
        let faults = self.recording.faults(index, vehicle.events.len());
        let recorded = self.recording.record(fleet, index, &vehicle, &faults);
        let log = match self.options.format {
            LogFormat::Jsonl => self.json_line(&id, &recorded),
            LogFormat::Csv => self.csv_rows(&id, &recorded),
        };
        let mut written = Written { log, truth: None, events: recorded.events.len(), edges: 0 };
        if let Some(truth) = &self.truth {
            // Measured where it happened, before anything was lost on the way into the log.
            let mut line = truth::line(truth, fleet, &EventSequence::new(&id, vehicle.events))?;
            line.edges = remaining(&line.edges, &faults);
            written.edges = line.edges.len();
            let text = serde_json::to_string(&line).map_err(|error| Error::request(error.to_string()))?;
            written.truth = Some(text);
        }
        self.control.update(&Update::Advanced { task: Task::Simulate, sequences: 1 });
        Ok(written)
    }

    fn json_line(&self, id: &str, vehicle: &Vehicle) -> String {
        let names: Vec<&str> = vehicle.events.iter().map(|event| self.names[event.index()].as_str()).collect();
        // A window of a life that goes on.
        format!("{}\n", json!({"id": id, "events": names, "times": vehicle.times, "open": true}))
    }

    /// No name of a code has a comma or a quote.
    fn csv_rows(&self, id: &str, vehicle: &Vehicle) -> String {
        let mut rows = String::with_capacity(vehicle.events.len() * 64);
        for (event, time) in vehicle.events.iter().zip(&vehicle.times) {
            rows.push_str(&format!("{id},{time},{}\n", self.names[event.index()]));
        }
        rows
    }
}

/// The edges between events that were recorded as they happened, at their places in the record.
fn remaining(edges: &[TruthEdge], faults: &[Option<Fault>]) -> Vec<TruthEdge> {
    let mut next = 0;
    let places: Vec<Option<Position>> = faults
        .iter()
        .map(|fault| {
            let place = next;
            next += u32::from(*fault != Some(Fault::Dropped));
            fault.is_none().then_some(Position(place))
        })
        .collect();
    let place = |position: Position| places[position.index()];
    edges
        .iter()
        .filter_map(|edge| Some(TruthEdge { cause: place(edge.cause)?, effect: place(edge.effect)?, ..*edge }))
        .collect()
}

fn write_pairs(out: &mut impl Write, vocabulary: &Vocabulary, pairs: &[(EventId, EventId)]) -> std::io::Result<()> {
    writeln!(out, "cause,effect")?;
    for (cause, effect) in pairs {
        writeln!(out, "{},{}", vocabulary.name(*cause), vocabulary.name(*effect))?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_keep_to_the_events_that_remain() {
        let edge = |cause, effect| TruthEdge::new(Position(cause), Position(effect), None);
        // 0 dropped, 1 as it was, 2 replaced, 3 dropped, 4 and 5 as they were
        let faults = [Some(Fault::Dropped), None, Some(Fault::Replaced), Some(Fault::Dropped), None, None];
        let edges = [edge(0, 1), edge(1, 2), edge(1, 4), edge(2, 4), edge(3, 5), edge(4, 5)];
        assert_eq!(remaining(&edges, &faults), [edge(0, 2), edge(2, 3)]);
    }
}
