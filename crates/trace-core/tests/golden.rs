//! Strengths worked out by hand, so that a formula cannot change in the fast path and its reference together.
//!
//! Three types A, B, C. The probability of A at position q is a table of the two events before it; B and C share the
//! rest equally. At q = 2 of the sequence A A A the relevant entries are
//!
//! ```text
//! P(A | x_0, x_1)      x_1 = A    B     C
//!            x_0 = A      0.8   0.5   0.4
//!                  B      0.6   0.3   0.2
//!                  C      0.4   0.2   0.1
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use std::ops::Range;

use trace_core::{
    DensityModel, Discovery, Divergence, EventId, EventSequence, Intervention, ModelError, Pair, Particles, Proposal,
    Verdict,
};

const TABLE: [[f64; 3]; 3] = [[0.8, 0.5, 0.4], [0.6, 0.3, 0.2], [0.4, 0.2, 0.1]];

struct Table;

impl DensityModel for Table {
    fn vocabulary_size(&self) -> usize {
        3
    }

    fn backbone(&self) -> &'static str {
        "table"
    }

    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        for (q, row) in positions.zip(rows.chunks_exact_mut(3)) {
            let p = if q < 2 { 0.5 } else { TABLE[events[q - 2].index()][events[q - 1].index()] };
            row.copy_from_slice(&[p.ln(), ((1.0 - p) / 2.0).ln(), ((1.0 - p) / 2.0).ln()]);
        }
        Ok(())
    }

    fn frequencies(&self) -> Option<&[f64]> {
        Some(&[1.0, 2.0, 1.0])
    }
}

fn d(a: f64, b: f64) -> f64 {
    a * (a / b).ln() + (1.0 - a) * ((1.0 - a) / (1.0 - b)).ln()
}

fn pair(discovery: Discovery<'_>, cause: u32) -> Pair {
    let sequence = EventSequence::new("s", vec![EventId(0); 3]);
    let found = discovery.memory(2).threshold(0.05).run(&sequence).unwrap();
    *found.graph.pairs().iter().find(|pair| (pair.cause.0, pair.effect.0) == (cause, 2)).unwrap()
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
}

#[test]
fn atomic_event_uniform_by_enumeration() {
    let discovery = Discovery::new(&Table).proposal(Proposal::Uniform);
    // The cause at lag 1 becomes B or C with x_0 = A: probabilities 0.5, 0.4; randomised branch first.
    let edge = pair(discovery, 1);
    near(edge.strength, f64::midpoint(d(0.5, 0.8), d(0.4, 0.8)));
    near(edge.strength, 0.302_526_026_145_549);
    near(edge.log_ratio, (0.8f64 / 0.45).ln());
    assert!(edge.log_ratio > 0.0, "A promoted A");
    near(edge.probability, 0.8);
    near(edge.probability_replaced, 0.45);
    assert_eq!((edge.particles, edge.std_error, edge.verdict), (2, 0.0, Verdict::Promotes));
    // The cause at lag 2 with the event between as observed: 0.6, 0.4.
    near(pair(discovery, 0).strength, f64::midpoint(d(0.6, 0.8), d(0.4, 0.8)));
    // A is predicted with 0.5 at the first two places; at lag 2 the event between says nothing.
    near(edge.overlap.unwrap(), 0.5);
}

#[test]
fn atomic_event_by_frequencies() {
    let edge = pair(Discovery::new(&Table).proposal(Proposal::Unigram), 1);
    near(edge.strength, d(0.5, 0.8) * 2.0 / 3.0 + d(0.4, 0.8) / 3.0);
    near(edge.probability_replaced, 0.5 * 2.0 / 3.0 + 0.4 / 3.0);
}

#[test]
fn atomic_event_by_the_models_own_prediction() {
    // The prediction at position 1 is 0.5, 0.25, 0.25, of which the last two are alternatives.
    let edge = pair(Discovery::new(&Table).proposal(Proposal::Model), 1);
    near(edge.strength, d(0.5, 0.8) / 2.0 + d(0.4, 0.8) / 2.0);
}

#[test]
fn plausible_alternatives_are_weighed_by_what_lies_between() {
    // In A B A A the event at 1 is asked about the one at 3. B or C or A may have stood there with 0.25, 0.25 and 0.5 of
    // the prediction 0.5, and A followed with 0.5 (A B), 0.4 (A C) and 0.8 (A A). The effect is an A, so C alone is left.
    let sequence = EventSequence::new("s", [0, 1, 0, 0].map(EventId).to_vec());
    let found = Discovery::new(&Table).proposal(Proposal::Plausible).memory(2).run(&sequence).unwrap();
    let edge = found.graph.pairs().iter().find(|pair| (pair.cause.0, pair.effect.0) == (1, 3)).unwrap();
    near(edge.probability, 0.6);
    near(edge.probability_replaced, 0.4);
    near(edge.overlap.unwrap(), 0.25 * 0.4 / (0.25 * 0.4 + 0.25 * 0.5 + 0.5 * 0.8));
    // As an effect of the first A, a self-pair: B and C are alternatives, and B between says 0.25 and 0.25 and 0.35.
    let edge = found.graph.pairs().iter().find(|pair| (pair.cause.0, pair.effect.0) == (0, 2)).unwrap();
    near(edge.probability, 0.5);
    near(edge.probability_replaced, f64::midpoint(0.3, 0.2));
}

#[test]
fn atomic_full_compares_distributions_observed_first() {
    let edge = pair(Discovery::new(&Table).proposal(Proposal::Uniform).divergence(Divergence::Full), 1);
    // B and C split the rest equally, so the whole divergence is that of A against not-A, here observed first.
    near(edge.strength, f64::midpoint(d(0.8, 0.5), d(0.8, 0.4)));
}

#[test]
fn an_effect_despite_its_cause_has_a_negative_ratio() {
    // In A C A the event A came although C stood before it: P = 0.4; with B before it 0.5. An A there would say something
    // of A after A.
    let sequence = EventSequence::new("s", [0, 2, 0].map(EventId).to_vec());
    let found = Discovery::new(&Table).proposal(Proposal::Uniform).memory(1).threshold(0.01).run(&sequence).unwrap();
    let edge = found.graph.pairs()[1];
    near(edge.strength, d(0.5, 0.4));
    near(edge.log_ratio, (0.4f64 / 0.5).ln());
    assert_eq!(edge.verdict, Verdict::Inhibits);
}

/// The staircase draws; with all nine combinations of two independent positions its mean would be the table's. Nine
/// thousand draws come close enough to tell it from any other formula.
#[test]
fn staircase_at_lag_two_replaces_what_lies_between_in_both_branches() {
    let discovery =
        Discovery::new(&Table).proposal(Proposal::Uniform).intervention(Intervention::Staircase).particles(9000);
    let mut expected = 0.0;
    for between in 0..3 {
        for replaced in &TABLE[1..] {
            expected += d(replaced[between], TABLE[0][between]) / 6.0;
        }
    }
    let edge = pair(discovery, 0);
    assert!((edge.strength - expected).abs() < 4.0 * edge.std_error, "{} {expected}", edge.strength);
    assert!(edge.std_error < 0.002);
    // The other direction is far away.
    let mut backwards = 0.0;
    for between in 0..3 {
        for replaced in &TABLE[1..] {
            backwards += d(TABLE[0][between], replaced[between]) / 6.0;
        }
    }
    assert!((edge.strength - backwards).abs() > 6.0 * edge.std_error);
    // At lag 1 nothing lies between, and the 9,000 draws without replacement are 3,000 of each type.
    near(pair(discovery, 1).strength, f64::midpoint(d(0.5, 0.8), d(0.4, 0.8)));
}

/// Five types; the last event says how probable A is.
struct Five;

impl DensityModel for Five {
    fn vocabulary_size(&self) -> usize {
        5
    }

    fn backbone(&self) -> &'static str {
        "five"
    }

    fn forward(&self, events: &[EventId], positions: Range<usize>, rows: &mut [f64]) -> Result<(), ModelError> {
        for (q, row) in positions.zip(rows.chunks_exact_mut(5)) {
            let p: f64 = if q == 0 { 0.2 } else { [0.8, 0.7, 0.5, 0.4, 0.1][events[q - 1].index()] };
            row.fill(((1.0 - p) / 4.0).ln());
            row[0] = p.ln();
        }
        Ok(())
    }
}

#[test]
fn three_draws_of_four_have_a_quarter_of_the_variance_left() {
    let sequence = EventSequence::new("s", vec![EventId(0); 2]);
    let found =
        Discovery::new(&Five).proposal(Proposal::Uniform).particles(Particles::Fixed(3)).run(&sequence).unwrap();
    let edge = found.graph.pairs()[0];
    let values = [0.7, 0.5, 0.4, 0.1].map(|p| d(p, 0.8));
    // Which three were drawn can be told from their mean.
    let left = (0..4)
        .find(|left| ((values.iter().sum::<f64>() - values[*left]) / 3.0 - edge.strength).abs() < 1e-12)
        .expect("a mean of three of the four values");
    let drawn: Vec<f64> = (0..4).filter(|i| *i != left).map(|i| values[i]).collect();
    let variance = drawn.iter().map(|value| (value - edge.strength).powi(2)).sum::<f64>() / 2.0;
    // Two more draws at the bound stand for what three draws may have missed.
    let reach = -0.2f64.ln() - edge.strength;
    near(edge.std_error, ((variance / 3.0 + 2.0 * (reach / 3.0).powi(2)) * (1.0 - 3.0 / 4.0)).sqrt());
}
