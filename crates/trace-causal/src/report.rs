//! Reporting: one page to look at.

use std::path::Path;

use rustc_hash::FxHashMap;
use trace_core::{EventName, Position, TypePair};
use trace_io::output::{check_writable, same_file, write_whole};
use trace_io::population::{Population, is_population};
use trace_io::result::{ResultLine, ResultReader};
use trace_report::{Report, ReportOptions, Total};

use crate::Error;

/// Writes one interactive page of a result file, and of a population file where there is one. All results must be of
/// one model and one set of settings, and so must the population.
pub fn report(results: &Path, population: Option<&Path>, options: ReportOptions, out: &Path) -> Result<Total, Error> {
    if std::iter::once(results).chain(population).any(|input| same_file(out, input)) {
        return Err(Error::request(format!("{}: is read from, and would be written over", out.display())));
    }
    if options.max_sequences == Some(0) {
        return Err(Error::option("max_sequences", "0 leaves nothing to show; expected 1 or more"));
    }
    if results != Path::new("-") && is_population(results)? {
        let reason = format!("{}: is a population graph; expected results", results.display());
        return Err(Error::request(reason).hint("population", Some("FILE"), "shows it beside them"));
    }
    check_writable(out)?;
    let mut wanted = options.cases.clone();
    let mut report = Report::new(options);
    let merged = population.map(|path| Ok::<_, Error>((path, Population::read(path)?))).transpose()?;
    if let Some((_, file)) = &merged {
        report.population(file);
    }
    let mut check = merged.as_ref().map(|(path, file)| Covered::new(path, file));
    let mut reader = ResultReader::open(results)?;
    let mut first: Option<ResultLine> = None;
    while let Some((number, line)) = reader.next_result()? {
        wanted.retain(|id| *id != line.id);
        match &first {
            Some(first) if first.model != line.model => {
                let reason = "was made with another model than the lines before it";
                return Err(reader.complain(number, reason).into());
            }
            Some(first) if first.settings != line.settings => {
                let difference = line.settings.difference(&first.settings);
                let reason = format!("was made with other settings than the lines before it: {difference}");
                return Err(reader.complain(number, reason).into());
            }
            Some(_) => {}
            None => first = Some(line.clone()),
        }
        if let Some(check) = &mut check {
            check.add(&line)?;
        }
        report.add(&line);
    }
    if let Some(id) = wanted.first() {
        return Err(Error::option("case", format!("{} has no sequence {id:?}", results.display())));
    }
    let total = report.total();
    if total.sequences == 0 {
        return Err(trace_io::Error::file(results, "holds no result").into());
    }
    if let Some(check) = &check {
        check.finish()?;
    }
    write_whole(out, |out| report.write(out))?;
    Ok(total)
}

/// Checks that a population can be that of results: same model and settings, and no pair that it does not have.
struct Covered<'c> {
    path: &'c Path,
    population: &'c Population,
    /// Places that are left for results to have, and kept ones among those that count.
    left: FxHashMap<TypePair<EventName>, (u64, u64)>,
    sequences: u64,
}

impl<'c> Covered<'c> {
    fn new(path: &'c Path, population: &'c Population) -> Self {
        let pairs = population.pairs.iter();
        let left = pairs
            .map(|pair| {
                let types = (pair.cause.clone(), pair.effect.clone(), pair.question);
                (types, (pair.places.max(pair.opportunities), pair.kept_count))
            })
            .collect();
        Self { path, population, left, sequences: 0 }
    }

    fn add(&mut self, line: &ResultLine) -> Result<(), Error> {
        if line.model != self.population.model {
            return Err(self.fault("was made with another model than the results"));
        }
        if line.settings != self.population.settings {
            let difference = self.population.settings.difference(&line.settings);
            return Err(self.fault(&format!("was made with other settings than the results: {difference}")));
        }
        self.sequences += 1;
        for pair in &line.pairs {
            let name = |position: Position| line.events[position.index()].clone();
            let types = (name(pair.cause), name(pair.effect), pair.question);
            // Places at the same time, or with no room for anything else, are there but do not count as kept.
            let counts = self.population.is_first_version() || (!pair.tied && pair.is_testable());
            let kept = u64::from(pair.kept && counts);
            match self.left.get_mut(&types) {
                Some((places, edges)) if *places > 0 && *edges >= kept => {
                    *places -= 1;
                    *edges -= kept;
                }
                _ => return Err(self.other_log()),
            }
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), Error> {
        if self.sequences > self.population.sequences { Err(self.other_log()) } else { Ok(()) }
    }

    fn other_log(&self) -> Error {
        self.fault("is of another log than the results: it lacks pairs that they have")
    }

    fn fault(&self, reason: &str) -> Error {
        trace_io::Error::file(self.path, reason).into()
    }
}
