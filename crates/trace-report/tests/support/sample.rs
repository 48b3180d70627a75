//! Made-up results.

use serde_json::{Value, json};
use trace_io::population::Population;
use trace_io::result::ResultLine;
use trace_report::{Report, ReportOptions};

/// Trouble codes of a vehicle.
pub const CODES: [&str; 16] = [
    "B1318 Battery voltage low",
    "P0562 System voltage low",
    "U0100 Lost communication with ECM",
    "U0121 Lost communication with ABS",
    "C0035 Wheel speed sensor, left front",
    "C0040 Wheel speed sensor, right front",
    "P0300 Random misfire",
    "P0301 Misfire in cylinder 1",
    "P0171 System too lean",
    "P0420 Catalyst efficiency",
    "P0217 Engine too hot",
    "P0601 Memory checksum",
    "P0700 Transmission control",
    "P0730 Incorrect gear ratio",
    "P0455 Evaporative leak",
    "P2135 Throttle correlation",
];

/// Numbers that look random and are always the same.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    pub fn share(&mut self) -> f64 {
        self.below(1_000_000) as f64 / 1e6
    }
}

/// A result with every pair up to a lag, kept above 0.05.
pub fn result(id: &str, events: &[String], memory: usize, seed: u64) -> ResultLine {
    let mut numbers = Numbers(seed);
    let mut edges = Vec::new();
    for cause in 0..events.len() {
        for effect in cause + 1..events.len().min(cause + memory + 1) {
            // Most are weak; a few are strong.
            let strength = 0.9 * numbers.share().powi(9) + 0.02 * numbers.share();
            let promotes = numbers.below(6) > 0;
            let log_ratio = if promotes { 1.0 } else { -1.0 } * (0.1 + strength * 3.0);
            let likelier = 0.05 + 0.9 * numbers.share();
            let probability = if promotes { likelier } else { likelier * f64::exp(log_ratio) };
            edges.push(json!({
                "cause": cause, "effect": effect, "lag": effect - cause, "strength": strength, "std_error": 0.01,
                "particles": 32, "log_ratio": log_ratio, "probability": probability,
                "probability_replaced": probability * f64::exp(-log_ratio), "tied": effect % 7 == 0, "kept": true,
            }));
        }
    }
    let mut line: ResultLine = serde_json::from_value(json!({
        "schema": "trace.result/1", "id": id,
        "settings": {"intervention": "atomic", "proposal": "unigram", "divergence": "event", "history": "observed",
                     "particles": "auto", "memory": memory, "context": 0, "threshold": 0.05, "seed": 7},
        "model": {"backbone": "llama", "held_out_loss": 1.9, "unigram_loss": 4.1, "epsilon_hat": null},
        "events": events, "edges": edges, "summary": [],
    }))
    .unwrap();
    assert!(line.move_threshold(0.05));
    line
}

/// A vehicle with 30 codes.
pub fn vehicle(id: &str, seed: u64) -> ResultLine {
    let mut numbers = Numbers(seed + 7700);
    let events: Vec<String> = (0..30).map(|_| CODES[numbers.below(16) as usize].to_owned()).collect();
    result(id, &events, 4, seed)
}

/// Many types, many events.
pub fn long(id: &str, events: usize, types: u64, seed: u64) -> ResultLine {
    let mut numbers = Numbers(seed + 9900);
    let events: Vec<String> = (0..events).map(|_| format!("Alarm {:03}", numbers.below(types))).collect();
    result(id, &events, 6, seed)
}

/// A report of these results.
pub fn report(lines: &[ResultLine]) -> Report {
    let mut report = Report::new(ReportOptions { title: Some("A fleet".to_owned()), ..ReportOptions::default() });
    for line in lines {
        report.add(line);
    }
    report
}

/// A type pair of a population file: `changes` replace or add keys.
pub fn type_pair(cause: &str, effect: &str, ratio: f64, q: f64, changes: &Value) -> Value {
    let log_ratio = ratio.ln();
    let verdict = match (q <= 0.1, log_ratio) {
        (true, r) if r > 1.2_f64.ln() => "promotes",
        (true, r) if r < -(1.2_f64.ln()) => "inhibits",
        _ => "none",
    };
    let mut pair = json!({
        "cause": cause, "effect": effect, "verdict": verdict, "kept": verdict == "promotes", "p_value": q / 10.0,
        "q_value": q, "ratio": ratio, "sequences": 200, "opportunities": 400, "places": 500, "tied": 0.2,
        "overlap": 0.75, "hidden_cause_ratio": 2.0, "hidden_cause_ratio_low": 1.5, "kept_count": 300,
        "mean_strength": 0.3, "strength_spread": 0.1, "mean_log_ratio": log_ratio, "log_ratio_spread": 0.2,
        "score": log_ratio - 0.1, "unsigned_score": 0.2, "lags": {"1": 200, "2": 100},
    });
    if let (Some(pair), Some(changes)) = (pair.as_object_mut(), changes.as_object()) {
        pair.extend(changes.clone());
    }
    pair
}

/// A population file of these pairs, decided by evidence or, without any, by the effect size.
pub fn population(pairs: &[Value], evident: bool) -> Population {
    let line = vehicle("any", 1);
    let by = if evident { "evidence" } else { "effect-size" };
    let unseen = if evident { 900 } else { 0 };
    let mut pairs = pairs.to_vec();
    if !evident {
        for pair in &mut pairs {
            pair["p_value"] = Value::Null;
            pair["q_value"] = Value::Null;
        }
    }
    serde_json::from_value(json!({
        "schema": "trace.population/2", "sequences": 1000, "settings": line.settings, "model": line.model,
        "decision": {"by": by, "fdr": 0.1, "least_ratio": 1.2},
        "evidence": {"pairs": "0000000000000001", "unlisted": 0, "sequences": unseen, "trained_on": 1000 - unseen},
        "edges": pairs,
    }))
    .unwrap()
}

/// A report of a population file and these results.
pub fn report_with(population: &Population, lines: &[ResultLine]) -> Report {
    let mut report = Report::new(ReportOptions { title: Some("A hospital".to_owned()), ..ReportOptions::default() });
    report.population(population);
    for line in lines {
        report.add(line);
    }
    report
}
