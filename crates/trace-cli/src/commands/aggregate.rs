//! `trace aggregate`: results of many sequences into one graph over types.

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::path::Path;

use rustc_hash::{FxBuildHasher, FxHashSet};
use trace_core::{EventName, PopulationGraph};
use trace_io::output;
use trace_io::population::{PopulationFile, add_result, is_population};
use trace_io::result::{ResultModel, ResultReader, ResultSettings};

use super::keep_inputs;
use crate::cli::AggregateArgs;
use crate::failure::Failure;
use crate::progress::say;

pub fn run(args: &AggregateArgs, quiet: bool) -> anyhow::Result<()> {
    keep_inputs(&args.out, &args.files)?;
    output::check_writable(&args.out)?;
    let mut merged = Merged::default();
    let mut paths = BTreeSet::new();
    for path in &args.files {
        if path.canonicalize().is_ok_and(|path| !paths.insert(path)) {
            return Err(Failure::usage(format!("{}: given twice; its sequences would count double", path.display())));
        }
        if path != Path::new("-") && is_population(path)? {
            let file = PopulationFile::read(path)?;
            merged.must_match(&file.settings, &file.model, path, None)?;
            merged.graph.merge(&file.graph());
        } else {
            merged.add_results(path)?;
        }
    }
    let Some((settings, model, _)) = &merged.origin else {
        return Err(Failure::usage("the files hold no result"));
    };
    let file = PopulationFile::new(&merged.graph, settings, model);
    file.write(&args.out)?;
    if merged.repeated > 0 {
        say(
            quiet,
            format_args!(
                "warning: {} sequences occur in several files with the same id and events, and count each time",
                merged.repeated
            ),
        );
    }
    say(
        quiet,
        format_args!(
            "{}: {} sequences, {} type pairs, {} kept",
            args.out.display(),
            file.sequences,
            file.edges.len(),
            file.edges.iter().filter(|edge| edge.kept).count()
        ),
    );
    Ok(())
}

/// What was merged so far, and what made it.
#[derive(Default)]
struct Merged {
    graph: PopulationGraph<EventName>,
    /// Hashes of the sequences of result files, and how many of them came again.
    seen: FxHashSet<u64>,
    repeated: u64,
    origin: Option<(ResultSettings, ResultModel, String)>,
}

impl Merged {
    fn add_results(&mut self, path: &Path) -> anyhow::Result<()> {
        let mut reader = ResultReader::open(path)?;
        let mut any = false;
        while let Some((number, line)) = reader.next_result()? {
            self.must_match(&line.settings, &line.model, path, Some(number))?;
            if !line.has_all_pairs() {
                return Err(reader
                    .complain(number, "holds only the edges that were kept; expected results made with --all-pairs")
                    .into());
            }
            if !self.seen.insert(FxBuildHasher.hash_one((&line.id, &line.events))) {
                self.repeated += 1;
            }
            add_result(&mut self.graph, &line, |position| line.events[position].0.clone());
            any = true;
        }
        if any { Ok(()) } else { Err(trace_io::Error::file(path, "holds no result").into()) }
    }

    fn must_match(
        &mut self,
        settings: &ResultSettings,
        model: &ResultModel,
        path: &Path,
        line: Option<u64>,
    ) -> anyhow::Result<()> {
        let here = line.map_or_else(|| path.display().to_string(), |line| format!("{}: line {line}", path.display()));
        match &self.origin {
            None => {
                self.origin = Some((settings.clone(), model.clone(), here));
                Ok(())
            }
            Some((first, _, at)) if first != settings => Err(Failure::usage(format!(
                "{here}: made with other settings than {at}, so the two cannot be merged: {}",
                difference(settings, first)
            ))),
            Some((_, first, at)) if first != model => {
                Err(Failure::usage(format!("{here}: made with another model than {at}, so the two cannot be merged")))
            }
            Some(_) => Ok(()),
        }
    }
}

/// The settings that differ, as `name a instead of b`.
pub fn difference(found: &ResultSettings, expected: &ResultSettings) -> String {
    let object = |settings| serde_json::to_value(settings).unwrap_or_default();
    let (found, expected) = (object(found), object(expected));
    let names = [&found, &expected].into_iter().filter_map(|settings| settings.as_object()).flat_map(|map| map.keys());
    let names: BTreeSet<&String> = names.collect();
    let fields = names.into_iter().filter_map(|name| {
        let (value, other) = (&found[name], &expected[name]);
        (value != other).then(|| format!("{name} is {value} instead of {other}"))
    });
    fields.collect::<Vec<_>>().join(", ")
}
