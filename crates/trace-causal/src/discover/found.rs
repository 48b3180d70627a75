//! What a discovery came to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use trace_core::Prior;
use trace_io::output::write_whole;
use trace_io::population::Population;
use trace_io::result::{ResultLine, ResultReader};
use trace_report::{Report, ReportOptions};

use super::pipeline::{Job, Sink, State};
use crate::Error;

/// What a discovery found.
#[derive(Debug)]
pub struct Found {
    results: Results,
    population: Option<Population>,
    counts: Counts,
}

/// The results of a discovery.
#[derive(Debug)]
pub enum Results {
    /// In memory, in log order.
    Memory(Vec<ResultLine>),
    /// In a file, in log order.
    File(PathBuf),
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    sequences: usize,
    edges: usize,
    tested: usize,
    excluded: usize,
    short: usize,
    unknown_events: usize,
    branch_positions: u64,
    seconds: f64,
}

impl Found {
    pub(super) fn new(
        job: &Job<'_>,
        state: &State,
        sink: Option<Sink>,
        out: Option<&Path>,
        short: usize,
        time: Duration,
    ) -> Self {
        let (tested, excluded) = pairs(job);
        let counts = Counts {
            sequences: state.done,
            edges: state.edges,
            tested,
            excluded,
            short,
            unknown_events: job.log.skipped.iter().map(Vec::len).sum(),
            branch_positions: state.branch_positions,
            seconds: time.as_secs_f64(),
        };
        let population = job.merges.then(|| state.population(job));
        let results = match sink {
            Some(Sink::Memory(lines)) => Results::Memory(lines),
            _ => Results::File(out.unwrap_or(Path::new("")).to_owned()),
        };
        Self { results, population, counts }
    }

    /// All of it was there already.
    pub(super) fn complete(job: &Job<'_>, out: Option<&Path>, short: usize) -> Result<Self, Error> {
        let population = job.population.map(Population::read).transpose()?;
        let state = State { done: job.log.sequences.len(), ..State::default() };
        let found = Self::new(job, &state, None, out, short, Duration::ZERO);
        let mut edges = 0;
        for line in found.lines()? {
            edges += line?.edges().count();
        }
        Ok(Self { population, counts: Counts { edges, ..found.counts }, ..found })
    }

    /// The results.
    pub const fn results(&self) -> &Results {
        &self.results
    }

    /// The results in log order, whether they are in memory or in a file.
    pub fn lines(&self) -> Result<Box<dyn Iterator<Item = Result<ResultLine, Error>> + '_>, Error> {
        Ok(match &self.results {
            Results::Memory(lines) => Box::new(lines.iter().cloned().map(Ok)),
            Results::File(path) => {
                let mut reader = ResultReader::open(path)?;
                Box::new(std::iter::from_fn(move || reader.next_result().transpose().map(|line| Ok(line?.1))))
            }
        })
    }

    /// The graph of all sequences together; always there where results are in memory or a population file was asked for.
    pub const fn population(&self) -> Option<&Population> {
        self.population.as_ref()
    }

    /// How many sequences were tested.
    pub const fn sequences(&self) -> usize {
        self.counts.sequences
    }

    /// How many pairs are edges.
    pub const fn edges(&self) -> usize {
        self.counts.edges
    }

    /// How many pairs were tested.
    pub const fn tested(&self) -> usize {
        self.counts.tested
    }

    /// How many pairs prior knowledge kept from being tested.
    pub const fn excluded(&self) -> usize {
        self.counts.excluded
    }

    /// How many sequences were too short to test.
    pub const fn too_short(&self) -> usize {
        self.counts.short
    }

    /// How many events were left out because the model does not know them.
    pub const fn unknown_events(&self) -> usize {
        self.counts.unknown_events
    }

    /// How many branch positions the model scored: the work that was done.
    pub const fn branch_positions(&self) -> u64 {
        self.counts.branch_positions
    }

    /// How long it took.
    pub const fn seconds(&self) -> f64 {
        self.counts.seconds
    }

    /// Writes one interactive page.
    pub fn report(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let mut report = Report::new(ReportOptions::default());
        if let Some(population) = &self.population {
            report.population(population);
        }
        for line in self.lines()? {
            report.add(&line?);
        }
        write_whole(path.as_ref(), |out| report.write(out))?;
        Ok(())
    }
}

/// How many pairs are tested, and how many prior knowledge excludes.
fn pairs(job: &Job<'_>) -> (usize, usize) {
    let (mut tested, mut excluded) = (0, 0);
    for sequence in &job.log.sequences {
        for (cause, effect) in job.settings.plan.tested_pairs(sequence.with_end(job.end()).len()) {
            if job.discovery.prior(sequence, cause, effect) == Prior::Excluded {
                excluded += 1;
            } else {
                tested += 1;
            }
        }
    }
    (tested, excluded)
}
