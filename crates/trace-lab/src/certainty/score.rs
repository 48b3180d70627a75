//! One population graph against the truth, and its pairs for a closer look.

use std::fs;
use std::path::Path;

use serde_json::json;
use trace_core::evaluation::Figures;
use trace_core::evidence::{EvidenceRule, PairEvidence};
use trace_core::{EventId, PopulationGraph, PopulationPair, PopulationRule, Question, TruthClass, Verdict};

use super::LEAST_RATIO;
use super::world::{PairTruth, Truth};
use crate::Error;
use crate::rows::Row;

/// Nominal rates, and what they are called in names of figures.
pub(super) const RATES: [(f64, &str); 3] = [(0.05, "05"), (0.1, "10"), (0.2, "20")];
/// How often an effect is expected after its cause, up to which number, and what that is called.
pub(super) const STRATA: [(f64, &str); 4] =
    [(1.0, "below_1"), (5.0, "1_to_5"), (20.0, "5_to_20"), (f64::INFINITY, "more")];
/// Without evidence: the cut of the score, and the fewest opportunities.
const CUT: f64 = 0.3;
const LEAST_OPPORTUNITIES: u64 = 5;
/// P-values that should be this rare.
const LEVEL: f64 = 0.05;

/// A decided pair of different types with what it is.
type Judged = (PopulationPair<EventId>, PairTruth);

/// All pairs of different types that occur, decided by a rule.
fn judged(graph: &PopulationGraph, truth: &Truth, rule: EvidenceRule) -> Vec<Judged> {
    let pairs = graph.decided(&PopulationRule { evidence: rule, ..PopulationRule::default() });
    pairs
        .into_iter()
        .filter(|pair| pair.cause != pair.effect && pair.question == Question::Whether && pair.places > 0)
        .map(|pair| {
            let truth = truth.of(pair.cause, pair.effect);
            (pair, truth)
        })
        .collect()
}

/// Adds every figure of a population graph to a row.
pub(super) fn figures(mut row: Row, graph: &PopulationGraph, truth: &Truth) -> Row {
    let rule = EvidenceRule { least_ratio: LEAST_RATIO, ..EvidenceRule::default() };
    for (fdr, name) in RATES {
        let pairs = judged(graph, truth, EvidenceRule { fdr, ..rule });
        row = decisions(row, name, &pairs, |pair| pair.kept);
    }
    let pairs = judged(graph, truth, rule);
    row = decisions(row, "present", &pairs, |pair| pair.score > CUT && pair.opportunities >= LEAST_OPPORTUNITIES);
    row = levels(row, "null_p05", &pairs);
    row = levels(row, "null_p05_above_1", &judged(graph, truth, EvidenceRule { least_ratio: 1.0, ..rule }));
    let of = |class: TruthClass| pairs.iter().filter(|(_, truth)| truth.class == class).count() as f64;
    let untestable = |pairs: &mut dyn Iterator<Item = &Judged>| {
        let (mut all, mut untestable) = (0.0f64, 0.0);
        for (pair, _) in pairs {
            all += 1.0;
            untestable += f64::from(u8::from(pair.verdict == Verdict::Untestable));
        }
        untestable / all.max(1.0)
    };
    let ranked = pairs.iter().filter(|(_, truth)| truth.class != TruthClass::Order);
    let ranked = Figures::new(ranked.map(|(pair, truth)| {
        // A lucky place or two rank last.
        let score = if pair.opportunities < LEAST_OPPORTUNITIES { f64::MIN } else { pair.score };
        (pair.kept, truth.class == TruthClass::Designed, Some(score))
    }));
    if let Some(precision) = ranked.average_precision {
        row = row.with("average_precision", precision);
    }
    row.with("pairs", pairs.len() as f64)
        .with("designed", of(TruthClass::Designed))
        .with("null", of(TruthClass::Null))
        .with("untestable", untestable(&mut pairs.iter()))
        .with(
            "untestable_designed",
            untestable(&mut pairs.iter().filter(|(_, truth)| truth.class == TruthClass::Designed)),
        )
}

/// What one way to decide came to.
fn decisions(row: Row, name: &str, pairs: &[Judged], kept: impl Fn(&PopulationPair<EventId>) -> bool) -> Row {
    let (mut all, mut classes, mut not_above) = (0.0f64, [0.0; 3], 0.0);
    for (pair, truth) in pairs {
        if kept(pair) {
            all += 1.0;
            classes[truth.class as usize] += 1.0;
            not_above += f64::from(u8::from(truth.ratio.is_none_or(|ratio| ratio <= LEAST_RATIO)));
        }
    }
    let designed = pairs.iter().filter(|(_, truth)| truth.class == TruthClass::Designed).count() as f64;
    let [hits, weak, wrong] = classes;
    let row = row
        .with(&format!("kept_{name}"), all)
        .with(&format!("kept_weak_{name}"), weak)
        .with(&format!("kept_null_{name}"), wrong)
        .with(&format!("fdr_{name}"), wrong / all.max(1.0))
        .with(&format!("fdr_of_ratio_{name}"), not_above / all.max(1.0));
    if designed > 0.0 { row.with(&format!("recall_{name}"), hits / designed) } else { row }
}

/// The share of nulls with a small p-value, of all and by how often the effect was expected.
fn levels(mut row: Row, name: &str, pairs: &[Judged]) -> Row {
    let mut strata = [(0.0f64, 0.0); STRATA.len()];
    for (pair, truth) in pairs {
        // The p-value of a pair that inhibits is that of the other side.
        if let (TruthClass::Null, Some(p), Some(sums)) = (truth.class, pair.p_value, &pair.evidence) {
            let small = p < LEVEL && pair.verdict != Verdict::Inhibits;
            let stratum = &mut strata[stratum(sums)];
            *stratum = (stratum.0 + 1.0, stratum.1 + f64::from(u8::from(small)));
        }
    }
    let all = strata.iter().fold((0.0, 0.0), |all, part| (all.0 + part.0, all.1 + part.1));
    // Pairs in too few sequences enter the family with p = 1: those that are tested were seen often, which is a choice.
    let nulls = pairs.iter().filter(|(_, truth)| truth.class == TruthClass::Null).count() as f64;
    if nulls > 0.0 {
        row = row.with(&format!("{name}_of_family"), all.1 / nulls);
    }
    for ((tested, small), part) in strata.into_iter().zip(STRATA.map(|part| part.1)).chain([(all, "all")]) {
        if tested > 0.0 {
            row = row.with(&format!("{name}_{part}"), small / tested).with(&format!("{name}_{part}_of"), tested);
        }
    }
    row
}

fn stratum(sums: &PairEvidence) -> usize {
    STRATA.iter().position(|(below, _)| sums.expected < *below).unwrap_or(STRATA.len() - 1)
}

/// Writes one line for every pair, with all sums of its evidence.
pub(super) fn dump(path: &Path, row: &Row, graph: &PopulationGraph, truth: &Truth) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let excess = row.value("excess_loss");
    let keys: serde_json::Map<String, serde_json::Value> =
        row.keys.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let unlisted = graph.evidence.map(|base| base.unlisted);
    trace_io::output::write_whole(path, |out| {
        for pair in graph.decided(&PopulationRule::default()) {
            let known = (pair.cause != pair.effect).then(|| truth.of(pair.cause, pair.effect));
            let mut line = keys.clone();
            let more = json!({
                "seed": row.seed,
                "excess_loss": excess,
                "unlisted": unlisted,
                "cause": pair.cause.0,
                "effect": pair.effect.0,
                "class": known.map_or("self", |known| word(known.class)),
                "true_ratio": known.and_then(|known| known.ratio),
                "largest": known.map(|known| known.largest),
                "places": pair.places,
                "opportunities": pair.opportunities,
                "sequences": pair.sequences,
                "overlap": pair.overlap,
                "tied": pair.tied,
                "score": pair.score,
                "mean_log_ratio": pair.mean_log_ratio,
                "log_ratio_spread": pair.log_ratio_spread,
                "verdict": pair.verdict,
                "p_value": pair.p_value,
                "q_value": pair.q_value,
                "evidence": pair.evidence,
            });
            if let serde_json::Value::Object(more) = more {
                line.extend(more);
            }
            writeln!(out, "{}", serde_json::Value::Object(line))?;
        }
        Ok(())
    })?;
    Ok(())
}

/// A class as files have it.
const fn word(class: TruthClass) -> &'static str {
    match class {
        TruthClass::Designed => "designed",
        TruthClass::Order => "weak",
        TruthClass::Null => "null",
    }
}
