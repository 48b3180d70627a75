//! `trace compare`: which edges differ between two cohorts.

use std::io::Write;

use trace_core::CompareRule;
use trace_io::comparison::{ComparedPair, ComparedValue, ComparisonFile};
use trace_io::output;
use trace_io::population::PopulationFile;
use trace_io::result::ResultSettings;

use super::aggregate::difference;
use super::keep_inputs;
use crate::cli::CompareArgs;
use crate::failure::Failure;
use crate::table;

/// What two models of the same cohort may well differ by: the cut of the population rule.
const MARGIN_OF_TWO_MODELS: f64 = 0.3;
/// Rows of each kind of change that are shown.
const MOST_ROWS: usize = 40;
/// Characters of a name that are shown.
const LONGEST_NAME: usize = 36;

pub fn run(args: &CompareArgs) -> anyhow::Result<()> {
    check(args)?;
    let (a, b) = (PopulationFile::read(&args.a)?, PopulationFile::read(&args.b)?);
    let settings = |file: &PopulationFile| ResultSettings { seed: 0, ..file.settings.clone() };
    if settings(&a) != settings(&b) {
        return Err(Failure::usage(format!(
            "{}: made with other settings than {}, so the two cannot be compared: {}",
            args.b.display(),
            args.a.display(),
            difference(&settings(&b), &settings(&a))
        )));
    }
    let usual = if a.model == b.model { 0.0 } else { MARGIN_OF_TWO_MODELS };
    let rule = CompareRule { level: args.level, margin: args.margin.unwrap_or(usual), ..CompareRule::default() };
    let compared = ComparisonFile::new((&args.a, &a), (&args.b, &b), &rule);
    if let Some(path) = &args.out {
        compared.write_csv(path)?;
    }
    let text = if args.json { serde_json::to_string_pretty(&compared)? + "\n" } else { as_text(&compared) };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn check(args: &CompareArgs) -> anyhow::Result<()> {
    if !(args.level > 0.0 && args.level < 1.0) {
        let level = args.level;
        return Err(Failure::usage(format!("--level: {level} is out of range; expected a share between 0 and 1")));
    }
    if let Some(margin) = args.margin.filter(|margin| !(margin.is_finite() && *margin >= 0.0)) {
        return Err(Failure::usage(format!("--margin: {margin} is out of range; expected nats, 0 or more")));
    }
    if output::same_file(&args.a, &args.b) {
        return Err(Failure::usage(format!("{}: given twice; expected two cohorts", args.b.display())));
    }
    if let Some(out) = &args.out {
        keep_inputs(out, [&args.a, &args.b])?;
        output::check_writable(out)?;
    }
    Ok(())
}

/// The kinds of change, and what they are called above their rows.
const KINDS: [(&str, &str); 6] = [
    ("appears", "appear in B"),
    ("vanishes", "vanish in B"),
    ("strengthens", "strengthen in B"),
    ("weakens", "weaken in B"),
    ("more often", "as strong, but more often in B"),
    ("less often", "as strong, but less often in B"),
];

fn as_text(compared: &ComparisonFile) -> String {
    let mut text = format!(
        "A: {}, {} sequences\nB: {}, {} sequences\n\n",
        compared.a.file, compared.a.sequences, compared.b.file, compared.b.sequences
    );
    let mut rows =
        vec![["", "log ratio A → B", "difference", "edges a 100 sequences", "difference"].map(str::to_owned).to_vec()];
    let mut hidden = 0;
    for (change, title) in KINDS {
        let pairs: Vec<&ComparedPair> = compared.pairs.iter().filter(|pair| pair.change == change).collect();
        if pairs.is_empty() {
            continue;
        }
        rows.push(vec![format!("{} {title}", pairs.len())]);
        rows.extend(pairs.iter().take(MOST_ROWS).map(|pair| row(pair)));
        hidden += pairs.len().saturating_sub(MOST_ROWS);
    }
    if rows.len() > 1 {
        text += &table::render(&rows);
        if hidden > 0 {
            text += &format!("… and {hidden} more; --out FILE has them all\n");
        }
        text.push('\n');
    }
    let count = |change: &str| compared.pairs.iter().filter(|pair| pair.change == change).count();
    text += &format!(
        "{} edges in A or B: {} without a difference that could not be chance, {} too rare to say.\n",
        compared.pairs.len(),
        count("same"),
        count("unknown"),
    );
    text += &format!(
        "{} differences tested with sequences as the independent unit; at most {} % of those reported are expected to be \
         false (Benjamini–Hochberg), and intervals allow for the choice. A difference counts only if the effect also \
         follows the cause more often, or less often, than before.\n",
        compared.tested,
        100.0 * compared.level
    );
    text + &remarks(compared)
}

/// What to know before believing it.
fn remarks(compared: &ComparisonFile) -> String {
    let mut text = String::new();
    if compared.margin > 0.0 {
        text += &format!("Log ratios that differ by no more than {} nats count as equal.\n", compared.margin);
    }
    text += if compared.same_model {
        "note: one model read both cohorts. It expects of both what it has learnt, so that a mechanism which one of them \
         lacks shows as edges that are found less often rather than as weaker ones.\n"
    } else {
        "note: two models read the cohorts. How far their log ratios differ by their training alone is not part of the \
         intervals.\n"
    };
    for cohort in [&compared.a, &compared.b].into_iter().filter(|cohort| !cohort.by_sequence) {
        text += &format!(
            "note: {} does not say how pairs are spread over sequences; its intervals are wider than they would be.\n",
            cohort.file
        );
    }
    text
}

fn row(pair: &ComparedPair) -> Vec<String> {
    let edge = format!("  {} → {}", shown(&pair.cause.0.to_string()), shown(&pair.effect.0.to_string()));
    let values = |value: Option<ComparedValue>, scale: f64, digits: usize| match value {
        None => ("–".to_owned(), "–".to_owned()),
        Some(value) => (
            format!("{:.digits$} → {:.digits$}", scale * value.a, scale * value.b),
            format!(
                "{:+.digits$} [{:+.digits$}, {:+.digits$}]",
                scale * value.difference,
                scale * value.low,
                scale * value.high
            ),
        ),
    };
    let (ratios, ratio) = values(pair.log_ratio, 1.0, 2);
    let (counts, count) = values(pair.edges_per_sequence, 100.0, 1);
    vec![edge, ratios, ratio, counts, count]
}

/// A name that fits a table and a terminal.
fn shown(name: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    if name.chars().count() <= LONGEST_NAME {
        name.chars().map(plain).collect()
    } else {
        name.chars().take(LONGEST_NAME - 1).map(plain).chain(['…']).collect()
    }
}
