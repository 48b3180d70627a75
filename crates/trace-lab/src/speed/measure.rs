//! One discovery, timed; and what comparisons share.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use trace_core::{Discovery, EventId, EventSequence, Memory, Particles, Proposal};
use trace_models::neural::train::OptimizerKind;
use trace_models::neural::{NetworkConfig, NeuralNetwork};

/// One discovery, measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct Measured {
    /// How long it took.
    pub seconds: f64,
    /// The most memory this process has held.
    pub peak_bytes: Option<u64>,
    /// Branch positions that were scored.
    pub rows: u64,
    /// Floating-point operations that they took.
    pub operations: f64,
    /// `(cause, effect, probability, mean probability after replacement)` of every pair.
    pub pairs: Vec<(u32, u32, f64, f64)>,
}

/// Random weights whose predictions are far from flat: a head of its own is drawn ten times wider than for training.
pub fn random_weights(config: &NetworkConfig, seed: u64) -> Vec<f32> {
    let mut weights = config.fresh_state(seed, OptimizerKind::AdamW).weights;
    for entry in config.layout().entries() {
        if entry.name == "lm_head.weight" {
            weights[entry.range()].iter_mut().for_each(|weight| *weight *= 10.0);
        }
    }
    weights
}

/// Numbers without structure, below `most`.
pub fn arbitrary(count: usize, most: usize, salt: u64) -> Vec<u32> {
    let mut state = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % most as u64) as u32
        })
        .collect()
}

/// Times discovery on one sequence.
pub fn discover(
    network: &dyn NeuralNetwork,
    events: &[u32],
    particles: Particles,
    memory: Option<usize>,
    context: usize,
) -> anyhow::Result<Measured> {
    let sequence = EventSequence::new("bench", events.iter().map(|event| EventId(*event)).collect());
    let mut discovery =
        Discovery::new(network).proposal(Proposal::Uniform).particles(particles).context(context).seed(7);
    discovery = match memory {
        Some(memory) => discovery.memory(memory),
        None => discovery.memory(Memory::All),
    };
    let start = Instant::now();
    let found = discovery.run(&sequence).map_err(trace_lab::Error::from)?;
    let seconds = start.elapsed().as_secs_f64();
    let size = network.vocabulary_size();
    // How far rows look back on average.
    let row = network.config().row_operations(usize::midpoint(context, events.len()), size);
    let pairs = found
        .graph
        .pairs()
        .iter()
        .map(|pair| (pair.cause.0, pair.effect.0, pair.probability, pair.probability_replaced))
        .collect();
    Ok(Measured {
        seconds,
        peak_bytes: peak_bytes(),
        rows: found.branch_positions,
        operations: row * (found.branch_positions as f64 + events.len() as f64),
        pairs,
    })
}

/// The most memory this process has held since it started, where the system tells.
pub fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Bytes for people.
pub fn bytes(count: Option<u64>) -> String {
    match count {
        None => "unknown".to_owned(),
        Some(count) if count < 1 << 30 => format!("{:.0} MB", count as f64 / 1e6),
        Some(count) => format!("{:.2} GB", count as f64 / 1e9),
    }
}
