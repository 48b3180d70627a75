//! Figures that need no threshold.

/// Runs of equal score, best first: how many of them are true and how many false.
fn runs(ranked: &[(f64, bool)]) -> Vec<(u64, u64)> {
    let mut sorted = ranked.to_vec();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    sorted
        .chunk_by(|a, b| a.0 == b.0)
        .map(|run| {
            let positives = run.iter().filter(|pair| pair.1).count() as u64;
            (positives, run.len() as u64 - positives)
        })
        .collect()
}

/// The chance that a random true pair outranks a random false one, ties counting half; `None` unless there are both.
pub fn area_under_roc(ranked: &[(f64, bool)]) -> Option<f64> {
    let (mut positives, mut negatives, mut won) = (0u64, 0u64, 0.0);
    for (true_here, false_here) in runs(ranked) {
        won += false_here as f64 * (positives as f64 + true_here as f64 / 2.0);
        positives += true_here;
        negatives += false_here;
    }
    (positives > 0 && negatives > 0).then(|| won / (positives as f64 * negatives as f64))
}

/// Mean precision over the ranks of true pairs, pairs of equal score taken together; `None` without true pairs.
pub fn average_precision(ranked: &[(f64, bool)]) -> Option<f64> {
    let (mut positives, mut seen, mut sum) = (0u64, 0u64, 0.0);
    for (true_here, false_here) in runs(ranked) {
        positives += true_here;
        seen += true_here + false_here;
        sum += true_here as f64 * positives as f64 / seen as f64;
    }
    (positives > 0).then(|| sum / positives as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_their_rank() {
        let ranked = [(0.5, true), (0.5, false), (0.1, false), (0.9, true)];
        assert!((area_under_roc(&ranked).unwrap() - 3.5 / 4.0).abs() < 1e-12);
        // at 0.9: precision 1, one positive; at 0.5: precision 2/3, one positive
        assert!((average_precision(&ranked).unwrap() - 5.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn one_class_has_no_ranking() {
        assert_eq!(area_under_roc(&[(0.1, true)]), None);
        assert_eq!(area_under_roc(&[]), None);
        assert_eq!(average_precision(&[(0.1, false)]), None);
    }
}
