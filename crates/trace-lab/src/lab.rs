//! Running experiments: cell by cell, each kept as soon as it is finished.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use trace_report::figure::chart::{Chart, Scale as Axis, Series};

use crate::experiments::Experiment;
use crate::rows::Rows;
use crate::simulator::Simulators;
use crate::{Error, Scale, Size};

/// Where experiments are run, and how large.
pub struct Lab<'l> {
    /// The folder of results and of what they were made from.
    pub(crate) folder: PathBuf,
    /// The size of everything.
    pub(crate) size: Size,
    /// Its numbers, or others that were asked for.
    pub(crate) scale: Scale,
    /// The parts that are asked for, by name; all where there are none.
    pub(crate) only: Vec<String>,
    /// What is told while the work goes on.
    pub(crate) reporter: &'l dyn Report,
    pub(crate) simulators: Simulators,
}

/// Who listens while an experiment runs.
pub trait Report: Sync {
    /// A line of progress.
    fn say(&self, line: &str);
    /// Whether to stop.
    fn stop(&self) -> bool;
    /// Runs some work and tells the most memory, in bytes, that the program held meanwhile, where the system tells.
    fn peak_of(&self, work: &mut dyn FnMut()) -> Option<u64> {
        work();
        None
    }
}

/// What an experiment came to.
#[derive(Debug)]
pub struct Outcome {
    /// All rows.
    pub rows: Rows,
    /// The table for people.
    pub table: Vec<Vec<String>>,
    /// Files that were written.
    pub files: Vec<PathBuf>,
}

impl<'l> Lab<'l> {
    /// A laboratory of a size in a folder, which need not exist yet.
    pub fn new(folder: PathBuf, size: Size, reporter: &'l dyn Report) -> Self {
        Self { folder, size, scale: size.scale(), only: Vec::new(), reporter, simulators: Simulators::default() }
    }

    /// The same with other numbers than the size's own.
    #[must_use]
    pub const fn with_scale(mut self, scale: Scale) -> Self {
        self.scale = scale;
        self
    }

    /// The same for some parts of each experiment alone, by their names.
    #[must_use]
    pub fn with_only(mut self, names: Vec<String>) -> Self {
        self.only = names;
        self
    }

    /// Says something.
    pub(crate) fn say(&self, line: &str) {
        self.reporter.say(line);
    }

    /// An error if the run was asked to stop.
    pub(crate) fn check_stop(&self) -> Result<(), Error> {
        if self.reporter.stop() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Runs what is not finished of an experiment, and writes its table and figure.
    pub fn run(&self, experiment: &Experiment) -> Result<Outcome, Error> {
        fs::create_dir_all(&self.folder).map_err(Error::io(&self.folder))?;
        let path = |ending: &str| self.folder.join(format!("{}.{ending}", experiment.name));
        let mut cells = (experiment.cells)(self.size);
        cells.retain(|cell| self.only.is_empty() || self.only.contains(&cell.name));
        let mut rows = Rows::open(&path("rows.jsonl"))?;
        let finished = (1..=self.scale.seeds).all(|seed| cells.iter().all(|cell| rows.has(&cell.name, seed)));
        self.check_record(experiment, finished)?;
        for seed in 1..=self.scale.seeds {
            for cell in &cells {
                if rows.has(&cell.name, seed) {
                    continue;
                }
                self.check_stop()?;
                self.say(&format!("{}: {}, seed {seed}", experiment.name, cell.name));
                let new = (experiment.run)(self, cell, seed)?;
                rows.add(&cell.name, seed, new)?;
            }
        }
        let table = rows.table(experiment.columns);
        let files = vec![path("csv"), path("svg")];
        fs::write(&files[0], rows.csv()?).map_err(Error::io(&files[0]))?;
        fs::write(&files[1], chart(experiment, &rows).svg()).map_err(Error::io(&files[1]))?;
        Ok(Outcome { rows, table, files })
    }

    /// What the command line needs to ask for this size and these numbers, but for the seeds.
    fn flags(&self) -> String {
        let usual = self.size.scale();
        let mut flags = String::new();
        if self.size != Size::Standard {
            flags += &format!(" --{}", self.size.name());
        }
        if (self.scale.events, self.scale.most_events) != (usual.events, usual.most_events) {
            flags += &format!(" --events {}", self.scale.events);
        }
        if self.scale.redundancy != usual.redundancy {
            flags += &format!(" --redundancy {}", self.scale.redundancy);
        }
        flags
    }

    /// Writes down what is about to be run, or refuses to mix it with something else. Where all of it is `finished`,
    /// the machine that did it stays on record.
    fn check_record(&self, experiment: &Experiment, finished: bool) -> Result<(), Error> {
        let path = self.folder.join(format!("{}.json", experiment.name));
        let (mut seeds, mut machine) = (self.scale.seeds, machine());
        // More seeds may be added to a folder of results: they are listed apart.
        let scale = format!("{:?}", Scale { seeds: self.size.scale().seeds, ..self.scale });
        if let Ok(text) = fs::read_to_string(&path) {
            let old: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            let same = [("size", self.size.name()), ("scale", &scale), ("version", env!("CARGO_PKG_VERSION"))];
            if same.iter().any(|(key, now)| old[key] != *now) {
                return Err(Error::Mixed { path });
            }
            seeds = seeds.max(old["seeds"].as_array().map_or(0, |old| old.len() as u64));
            machine = match old["machine"].as_str() {
                Some(before) if finished || before.contains(&machine) => before.to_owned(),
                Some(before) => format!("{before}; {machine}"),
                None => machine,
            };
        }
        let record = json!({
            "experiment": experiment.name,
            "size": self.size.name(),
            "scale": scale,
            "flags": self.flags(),
            "seeds": (1..=seeds).collect::<Vec<u64>>(),
            "version": env!("CARGO_PKG_VERSION"),
            "machine": machine,
        });
        let text = serde_json::to_string_pretty(&record).map_err(|error| Error::Output(error.to_string()))?;
        fs::write(&path, text + "\n").map_err(Error::io(&path))
    }
}

/// Processor and system, as far as the machine tells.
fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?.to_owned();
        Some(line.split(':').nth(1)?.trim().to_owned())
    });
    let threads = rayon::current_num_threads();
    let (system, kind) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("{}, {threads} threads, {system} {kind}", cpu.as_deref().unwrap_or("unknown processor"))
}

/// The figure of an experiment's rows.
fn chart(experiment: &Experiment, rows: &Rows) -> Chart {
    let plot = &experiment.plot;
    let mut series: Vec<Series> = Vec::new();
    let mut labels: Vec<String> = Vec::new();
    for group in rows.groups() {
        let Some(x) = group.key(plot.x) else { continue };
        if plot.only.is_some_and(|(key, value)| group.key(key) != Some(value)) {
            continue;
        }
        // What is no number gets a place of its own.
        let place = x.parse::<f64>().unwrap_or_else(|_| {
            let known = labels.iter().position(|label| label == x);
            known.unwrap_or_else(|| {
                labels.push(x.to_owned());
                labels.len() - 1
            }) as f64
        });
        for figure in plot.figures {
            let Some(moments) = group.moments(figure) else { continue };
            let part = plot.series.and_then(|key| group.key(key)).unwrap_or("");
            let name = [part, &figure.replace('_', " ")].join(" ").trim().to_owned();
            let point = (place, moments.mean, if moments.count > 1 { moments.spread() } else { 0.0 });
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                None => series.push(Series { name, points: vec![point] }),
            }
        }
    }
    Chart {
        title: experiment.title.to_owned(),
        x: plot.x.replace('_', " "),
        axis: if labels.is_empty() { plot.axis.clone() } else { Axis::Named(labels) },
        series,
    }
}
