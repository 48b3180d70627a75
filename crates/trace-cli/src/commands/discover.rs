//! `trace discover` and `trace explain`.

use trace_causal::{Discover, DiscoverOptions, EvidenceRule, Explain, Found, Log, Model, Population, ResultOptions};

use crate::cli::{DiscoverArgs, ExplainArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{print, print_json, say};
use crate::progress::Terminal;

/// Pairs of a population that are shown at the end of a run.
const STRONGEST: usize = 10;

pub fn run(args: &DiscoverArgs, quiet: bool) -> Result<(), Failure> {
    check_paths(args)?;
    let terminal = Terminal::new(quiet);
    let mut model = Model::open_on(&args.model, &args.device)?;
    if let Some(limit) = args.ram_limit {
        model.set_ram_limit(limit.0);
    }
    let log = Log::open_with(&args.log.path, &args.log.options())?;
    let cancel = interrupt::watch()?;
    let options = DiscoverOptions {
        settings: args.method.settings(),
        result: ResultOptions { all_pairs: args.all_pairs, self_loops: args.self_loops },
        cases: args.cases.clone(),
        unknown: args.unknown.unknown(),
        decision: EvidenceRule { fdr: args.fdr, least_ratio: args.least_ratio, ..EvidenceRule::default() },
        sample: args.sample,
        shard: args.shard,
    };
    let mut discover = Discover::with_options(&model, options).to_file(&args.out).resume(args.resume);
    if let Some(path) = &args.knowledge {
        discover = discover.knowledge(path);
    }
    if let Some(path) = &args.population {
        discover = discover.population_file(path);
    }
    let found = discover.progress(&terminal).cancel(&cancel).run(&log)?;
    say(quiet, describe(args, &found));
    Ok(())
}

/// Refuses to write into the model, whose folder the library does not know.
fn check_paths(args: &DiscoverArgs) -> Result<(), Failure> {
    let model = args.model.canonicalize().ok();
    for output in std::iter::once(&args.out).chain(&args.population) {
        if model.is_some() && output.parent().and_then(|folder| folder.canonicalize().ok()) == model {
            return Err(Failure::usage(format!("{}: would be written into the model", output.display())));
        }
    }
    Ok(())
}

/// What was done, for people.
fn describe(args: &DiscoverArgs, found: &Found) -> String {
    let mut text = format!(
        "{}: {} sequences, {} edges; {} branch positions scored in {:.1} s",
        args.out.display(),
        found.sequences(),
        found.edges(),
        found.branch_positions(),
        found.seconds()
    );
    if found.too_short() > 0 {
        text += &format!("; {} sequences too short to test were skipped", found.too_short());
    }
    if found.unknown_events() > 0 {
        text += &format!("; {} events the model does not know were left out", found.unknown_events());
    }
    let (tested, excluded) = (found.tested(), found.excluded());
    if excluded > 0 {
        text += &format!("; {excluded} of {} pairs excluded by knowledge", tested + excluded);
    }
    if found.edges() * 2 > tested {
        text += &format!(
            "\nnote: {:.0} % of the tested pairs are edges: in a log this regular almost every event depends on those \
             before it; the strongest say most, and a population graph ranks them",
            100.0 * found.edges() as f64 / tested as f64
        );
    }
    if let Some(population) = found.population() {
        text += &claims(population);
    }
    text
}

/// What a population claims, for people.
fn claims(population: &Population) -> String {
    let counts = population.counts();
    let mut text = format!(
        "\n{} pairs of types: {} tested, {} kept, {} inhibit, {} cannot be tested",
        counts.pairs, counts.tested, counts.kept, counts.inhibits, counts.untestable
    );
    if counts.always_so > 0 {
        text += &format!(" ({} are always so here)", counts.always_so);
    }
    let seen = population.evidence.map_or(0, |evidence| evidence.trained_on);
    match (population.decision, population.evidence) {
        (Some(decision), Some(evidence)) if population.has_evidence() => {
            text += &format!(
                "\nkept: more than {} times as likely; at most {} % of them are expected to be false\n\
                 p-values from {} sequences that the model had not seen",
                decision.least_ratio,
                100.0 * decision.fdr,
                evidence.sequences
            );
            if seen > 0 {
                text += &format!(" ({seen} more it was trained on)");
            }
        }
        _ if seen > 0 => {
            text += &format!(
                "\nno p-values: the model was trained on all {seen} sequences; `trace train --cross-fit` leaves some \
                 unseen\nkept by a lower bound of the effect size, at no error rate"
            );
        }
        _ => {
            text += "\nno p-values: they need atomic replacement in the observed history, and sequences that the model \
                     has not\nseen (`trace train --cross-fit`); kept by a lower bound of the effect size, at no error rate";
        }
    }
    if counts.kept > 0 {
        text += &format!("\n{}", population.strongest(STRONGEST).to_string().trim_end());
    }
    text
}

pub fn explain(args: &ExplainArgs, quiet: bool) -> Result<(), Failure> {
    let terminal = Terminal::new(quiet);
    let model = Model::open(&args.model)?;
    let log = Log::open_with(&args.log.path, &args.log.options())?;
    let mut explain = Explain::new(&model)
        .settings(args.method.settings())
        .knowledge(args.knowledge.clone())
        .unknown(args.unknown.unknown())
        .at(args.at.as_deref().unwrap_or_default())
        .at_end(args.at_end);
    if let Some(id) = &args.case {
        explain = explain.case(id);
    }
    let explained = explain.progress(&terminal).run(&log)?;
    if args.json {
        return print_json(&explained);
    }
    print(&explained.text(args.chains))?;
    if explained.explanation.roots.len() > args.chains {
        say(quiet, "note: --chains shows more chains");
    }
    Ok(())
}
