//! Merging: results and population graphs of many sequences into one.

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

use rustc_hash::{FxBuildHasher, FxHashSet};
use trace_core::evidence::EvidenceRule;
use trace_core::{EventName, Hint, OptionName, PopulationGraph};
use trace_io::population::{Population, add_result, is_population};
use trace_io::result::{ResultModel, ResultReader, RunSettings};

use crate::Error;
use crate::export::check_rule;
use crate::progress::{Control, Note};

/// Merges result files that hold all pairs, and population files, into one population graph, decided by a rule. What was
/// made with other settings or another model is refused. Evidence is kept where all of it is on the same pairs of types,
/// as that of shards of one log is.
pub fn merge(files: &[PathBuf], rule: &EvidenceRule, control: &Control<'_>) -> Result<Population, Error> {
    check_rule(rule)?;
    let mut merged = Merged::default();
    let mut paths = BTreeSet::new();
    for path in files {
        if path.canonicalize().is_ok_and(|path| !paths.insert(path)) {
            let reason = format!("{}: given twice; its sequences would count double", path.display());
            return Err(Error::request(reason));
        }
        if path != Path::new("-") && is_population(path)? {
            let file = Population::read(path)?;
            merged.must_match(&file.settings, &file.model, path, None)?;
            merged.same_version(file.is_first_version(), path)?;
            merged.graph.merge(&file.graph());
        } else {
            merged.add_results(path)?;
        }
    }
    let Some((settings, model, _)) = &merged.origin else {
        return Err(Error::request("the files hold no result"));
    };
    if merged.repeated > 0 {
        control.note(&Note::RepeatedSequences(merged.repeated));
    }
    Ok(Population::new(&merged.graph, settings, model, rule))
}

/// What was merged so far, and what made it.
#[derive(Default)]
struct Merged {
    graph: PopulationGraph<EventName>,
    /// Hashes of the sequences of result files, and how many of them came again.
    seen: FxHashSet<u64>,
    repeated: u64,
    origin: Option<(RunSettings, ResultModel, String)>,
    first_version: Option<bool>,
}

impl Merged {
    fn add_results(&mut self, path: &Path) -> Result<(), Error> {
        let mut reader = ResultReader::open(path)?;
        let mut any = false;
        while let Some((number, line)) = reader.next_result()? {
            self.must_match(&line.settings, &line.model, path, Some(number))?;
            self.same_version(line.is_first_version(), path)?;
            if !line.has_all_pairs() {
                return Err(needs_all_pairs(&reader, number));
            }
            if !self.seen.insert(FxBuildHasher.hash_one((&line.id, &line.events))) {
                self.repeated += 1;
            }
            add_result(&mut self.graph, &line);
            any = true;
        }
        if any { Ok(()) } else { Err(trace_io::Error::file(path, "holds no result").into()) }
    }

    /// What the first version calls a log ratio is the mean of logarithms; the two do not add up.
    fn same_version(&mut self, first: bool, path: &Path) -> Result<(), Error> {
        if *self.first_version.get_or_insert(first) == first {
            return Ok(());
        }
        let reason = "is of another version than the files before it, so the two cannot be merged; run discovery again";
        Err(trace_io::Error::file(path, reason).into())
    }

    fn must_match(
        &mut self,
        settings: &RunSettings,
        model: &ResultModel,
        path: &Path,
        line: Option<u64>,
    ) -> Result<(), Error> {
        let here = line.map_or_else(|| path.display().to_string(), |line| format!("{}: line {line}", path.display()));
        match &self.origin {
            None => {
                self.origin = Some((settings.clone(), model.clone(), here));
                Ok(())
            }
            Some((first, _, at)) if first != settings => Err(Error::request(format!(
                "{here}: made with other settings than {at}, so the two cannot be merged: {}",
                settings.difference(first)
            ))),
            Some((_, first, at)) if first != model => {
                Err(Error::request(format!("{here}: made with another model than {at}, so the two cannot be merged")))
            }
            Some(_) => Ok(()),
        }
    }
}

/// The error for a result that holds only the pairs that were kept, where all are needed.
pub(crate) fn needs_all_pairs(reader: &ResultReader, line: u64) -> Error {
    let reason = "holds only the edges that were kept; expected results with all tested pairs";
    let hint = Hint::new(OptionName("all_pairs"), "keeps them when results are made");
    reader.complain(line, reason).hint(hint).into()
}
