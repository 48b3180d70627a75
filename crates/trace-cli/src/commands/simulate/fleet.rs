//! `trace simulate fleet`: a vehicle fleet with designed cascades of trouble codes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use rayon::prelude::*;
use serde_json::{Map, json};
use trace_core::{DensityModel, EventId, EventSequence, Vocabulary};
use trace_io::truth::TruthEdge;
use trace_lab::truth::TruthSpec;
use trace_models::fleet::{Design, Fault, FleetLog, FleetSpec, Vehicle};
use trace_models::{check_replaceable, write_folder};

use super::truth::{self, check_draws};
use super::{EVENTS_AT_A_TIME, check_size};
use crate::cli::{FleetArgs, LogFormat};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Progress, say};

pub fn run(args: &FleetArgs, quiet: bool) -> anyhow::Result<()> {
    check_size(args.sequences, args.length)?;
    check_draws(args.truth_draws)?;
    let recording = FleetLog { length: args.length, noise: args.noise, drop: args.drop, seed: args.seed };
    recording.check()?;
    check_replaceable(&args.out)?;
    let spec = FleetSpec { types: args.types, without: args.without.iter().cloned().collect() };
    let mut design = Design::new(&spec)?;
    design.fleet.measure_entropy();
    interrupt::watch()?;
    let mut written = (0, 0);
    write_folder(&args.out, |folder| -> anyhow::Result<()> {
        written = Simulation::new(args, &design, recording).fill(folder, quiet)?;
        Ok(())
    })?;
    let (events, edges) = written;
    let truth = if edges > 0 { format!(", {edges} true edges") } else { String::new() };
    say(
        quiet,
        format_args!(
            "{}: {} vehicles, {events} events of {} types, {} designed pairs{truth}, entropy {:.3} nats an event",
            args.out.display(),
            args.sequences,
            args.types,
            design.pairs.len(),
            design.fleet.fitness().entropy.unwrap_or_default(),
        ),
    );
    Ok(())
}

/// Everything that vehicles are made from.
struct Simulation<'a> {
    args: &'a FleetArgs,
    design: &'a Design,
    recording: FleetLog,
    truth: Option<TruthSpec>,
    /// Event names, by id.
    names: Vec<String>,
}

/// One vehicle as it is written.
struct Written {
    log: String,
    truth: Option<String>,
    events: usize,
    edges: usize,
}

impl<'a> Simulation<'a> {
    fn new(args: &'a FleetArgs, design: &'a Design, recording: FleetLog) -> Self {
        let truth = truth::spec(args.truth, args.truth_draws, args.types, args.seed);
        let name = |id: usize| design.vocabulary.name(EventId(id as u32)).to_string();
        Self { args, design, recording, truth, names: (0..args.types).map(name).collect() }
    }

    /// Writes everything into the folder; returns how many events and true edges there are.
    fn fill(&self, folder: &Path, quiet: bool) -> anyhow::Result<(usize, usize)> {
        let create = |name: &str| -> Result<BufWriter<File>, trace_io::Error> {
            let path = folder.join(name);
            File::create(&path).map(BufWriter::new).map_err(trace_io::Error::io(path))
        };
        let mut log_file = match self.args.format {
            LogFormat::Jsonl => create("events.jsonl")?,
            LogFormat::Csv => {
                let mut file = create("events.csv")?;
                writeln!(file, "case_id,time,event")?;
                file
            }
        };
        let mut truth_file = self.truth.map(|_| create("truth.jsonl")).transpose()?;
        let progress = Progress::new("simulating", self.args.sequences as u64, quiet);
        let (mut events, mut edges) = (0, 0);
        let together = (EVENTS_AT_A_TIME / self.args.length).max(1);
        for first in (0..self.args.sequences).step_by(together) {
            let range = first..self.args.sequences.min(first + together);
            let written = range.into_par_iter().map(|index| self.vehicle(index, &progress));
            for vehicle in written.collect::<anyhow::Result<Vec<_>>>()? {
                log_file.write_all(vehicle.log.as_bytes())?;
                if let (Some(file), Some(line)) = (&mut truth_file, &vehicle.truth) {
                    writeln!(file, "{line}")?;
                }
                events += vehicle.events;
                edges += vehicle.edges;
            }
        }
        progress.finish();
        log_file.flush()?;
        if let Some(file) = &mut truth_file {
            file.flush()?;
        }
        let mut graph = create("graph.csv")?;
        write_pairs(&mut graph, &self.design.vocabulary, &self.design.pairs)?;
        self.design.fleet.save(folder, &self.design.vocabulary, &self.record())?;
        Ok((events, edges))
    }

    fn record(&self) -> Map<String, serde_json::Value> {
        let args = self.args;
        let record = json!({
            "command": "simulate fleet",
            "sequences": args.sequences,
            "length": args.length,
            "noise": args.noise,
            "drop": args.drop,
            "without": args.without,
            "seed": args.seed,
        });
        record.as_object().cloned().unwrap_or_default()
    }

    fn vehicle(&self, index: usize, progress: &Progress) -> anyhow::Result<Written> {
        if interrupt::requested() {
            return Err(Failure::interrupted("nothing was written"));
        }
        let id = format!("vehicle-{index:05}");
        let fleet = &self.design.fleet;
        let vehicle = self.recording.vehicle(fleet, index);
        let faults = self.recording.faults(index, vehicle.events.len());
        let recorded = self.recording.record(fleet, index, &vehicle, &faults);
        let log = match self.args.format {
            LogFormat::Jsonl => self.json_line(&id, &recorded)?,
            LogFormat::Csv => self.csv_rows(&id, &recorded),
        };
        let mut written = Written { log, truth: None, events: recorded.events.len(), edges: 0 };
        if let Some(truth) = &self.truth {
            // Measured where it happened, before anything was lost on the way into the log.
            let mut line = truth::line(truth, fleet, &EventSequence::new(&id, vehicle.events))?;
            line.edges = remaining(&line.edges, &faults);
            written.edges = line.edges.len();
            written.truth = Some(serde_json::to_string(&line)?);
        }
        progress.add(1);
        Ok(written)
    }

    fn json_line(&self, id: &str, vehicle: &Vehicle) -> anyhow::Result<String> {
        let names: Vec<&str> = vehicle.events.iter().map(|event| self.names[event.index()].as_str()).collect();
        Ok(serde_json::to_string(&json!({"id": id, "events": names, "times": vehicle.times}))? + "\n")
    }

    /// No name of ours has a comma or a quote.
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
    let places: Vec<Option<u32>> = faults
        .iter()
        .map(|fault| {
            let place = next;
            next += u32::from(*fault != Some(Fault::Dropped));
            fault.is_none().then_some(place)
        })
        .collect();
    let place = |position: u32| places[position as usize];
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
        let edge = |cause, effect| TruthEdge { cause, effect, strength: None, kept: true };
        // 0 dropped, 1 as it was, 2 replaced, 3 dropped, 4 and 5 as they were
        let faults = [Some(Fault::Dropped), None, Some(Fault::Replaced), Some(Fault::Dropped), None, None];
        let edges = [edge(0, 1), edge(1, 2), edge(1, 4), edge(2, 4), edge(3, 5), edge(4, 5)];
        assert_eq!(remaining(&edges, &faults), [edge(0, 2), edge(2, 3)]);
    }
}
