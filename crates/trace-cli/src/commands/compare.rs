//! `trace compare`: which edges differ between two cohorts.

use trace_causal::shorten::distinct;
use trace_causal::table::render;
use trace_causal::{Change, CompareOptions, ComparisonFile, Difference, PairComparison};
use trace_io::output::{check_writable, same_file};

use crate::cli::CompareArgs;
use crate::failure::Failure;
use crate::output::{print, print_json};

/// Rows of each kind of change that are shown.
const MOST_ROWS: usize = 40;
/// Characters of a name that are shown.
const LONGEST_NAME: usize = 36;

type Pair = PairComparison<trace_causal::EventName>;

pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    if let Some(out) = &args.out {
        if same_file(out, &args.a) || same_file(out, &args.b) {
            return Err(Failure::usage(format!("{}: is read from, and would be written over", out.display())));
        }
        check_writable(out)?;
    }
    let options = CompareOptions { level: args.level, margin: args.margin };
    let compared = trace_causal::compare(&args.a, &args.b, &options)?;
    if let Some(path) = &args.out {
        compared.write_csv(path)?;
    }
    if args.json { print_json(&compared) } else { print(&as_text(&compared)) }
}

/// The kinds of change, and what they are called above their rows.
const KINDS: [(Change, &str); 6] = [
    (Change::Appears, "appear in B"),
    (Change::Vanishes, "vanish in B"),
    (Change::Strengthens, "strengthen in B"),
    (Change::Weakens, "weaken in B"),
    (Change::MoreOften, "as strong, but more often in B"),
    (Change::LessOften, "as strong, but less often in B"),
];

fn as_text(compared: &ComparisonFile) -> String {
    let mut text = format!(
        "A: {}, {} sequences\nB: {}, {} sequences\n\n",
        compared.a.file, compared.a.sequences, compared.b.file, compared.b.sequences
    );
    let titles = ["", "log ratio A → B", "difference", "edges per 100 sequences", "difference"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let mut hidden = 0;
    for (change, title) in KINDS {
        let pairs: Vec<&Pair> = compared.pairs.iter().filter(|pair| pair.change == change).collect();
        if pairs.is_empty() {
            continue;
        }
        rows.push(vec![format!("{} {title}", pairs.len())]);
        rows.extend(shown(&pairs[..pairs.len().min(MOST_ROWS)]));
        hidden += pairs.len().saturating_sub(MOST_ROWS);
    }
    if rows.len() > 1 {
        text += &render(&rows);
        if hidden > 0 {
            text += &format!("… and {hidden} more; --out FILE has them all\n");
        }
        text.push('\n');
    }
    let count = |change: Change| compared.pairs.iter().filter(|pair| pair.change == change).count();
    text += &format!(
        "{} edges in A or B: {} without a difference that could not be chance, {} too rare to say.\n",
        compared.pairs.len(),
        count(Change::Same),
        count(Change::Unknown),
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
        "note: one model read both cohorts. It expects of both what it has learned, so that a mechanism which one of them \
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

/// One row per pair, with names that fit a table and still differ.
fn shown(pairs: &[&Pair]) -> Vec<Vec<String>> {
    let names: Vec<String> = pairs.iter().flat_map(|pair| [pair.cause.to_string(), pair.effect.to_string()]).collect();
    let names = distinct(&names, LONGEST_NAME);
    pairs.iter().zip(names.chunks_exact(2)).map(|(pair, names)| row(pair, &names[0], &names[1])).collect()
}

fn row(pair: &Pair, cause: &str, effect: &str) -> Vec<String> {
    let values = |value: Option<Difference>, scale: f64, digits: usize| match value {
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
    vec![format!("  {cause} → {effect}"), ratios, ratio, counts, count]
}
