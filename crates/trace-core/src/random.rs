//! Random streams that do not depend on the order of work.
//!
//! Every draw comes from a stream of its own, keyed by the user's seed, the sequence's id, what the draw is for and
//! where. Nothing is shared between candidates, so that results are the same bits for any number of threads, any
//! subset of sequences and any point of interruption.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What a stream's numbers are used for. The discriminants are part of the reproducibility promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// Replacement events at a position.
    Replacement = 1,
    /// The resampled history of a particle.
    History = 2,
    /// Parameters of a simulated process.
    Parameters = 3,
    /// Events of a simulated sequence.
    Simulation = 4,
    /// Calibration of a simulated process.
    Calibration = 5,
    // 6 was the split of a log, which ids decide now.
    /// Fresh weights of a network.
    Weights = 7,
    /// The order of training sequences.
    Shuffle = 8,
    /// What a masked model is asked about in training.
    Mask = 9,
    /// Which sequences of a large log are looked at.
    Sample = 10,
}

/// Keys that all streams of one sequence share.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
    name: u64,
}

impl Streams {
    /// The streams of the sequence called `id` under the user's `seed`.
    pub fn new(seed: u64, id: &str) -> Self {
        // FNV-1a: short, stable across versions and platforms, and collisions only make two sequences share draws.
        let name = id
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self { seed, name }
    }

    /// The stream for one purpose at one place.
    pub fn stream(&self, purpose: Purpose, position: u32, particle: u32) -> ChaCha8Rng {
        let mut key = [0u8; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&self.name.to_le_bytes());
        key[16..20].copy_from_slice(&(purpose as u32).to_le_bytes());
        key[20..24].copy_from_slice(&position.to_le_bytes());
        key[24..28].copy_from_slice(&particle.to_le_bytes());
        ChaCha8Rng::from_seed(key)
    }

    /// One number that belongs to the sequence.
    pub fn number(&self, purpose: Purpose) -> u64 {
        self.stream(purpose, 0, 0).next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_every_key_and_repeat() {
        let streams = Streams::new(7, "v1");
        let first = |s: Streams, p, a, b| s.stream(p, a, b).next_u64();
        let all = [
            first(streams, Purpose::Replacement, 0, 0),
            first(streams, Purpose::Replacement, 1, 0),
            first(streams, Purpose::Replacement, 0, 1),
            first(streams, Purpose::History, 0, 0),
            first(Streams::new(8, "v1"), Purpose::Replacement, 0, 0),
            first(Streams::new(7, "v2"), Purpose::Replacement, 0, 0),
        ];
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                assert_ne!(a, b);
            }
        }
        assert_eq!(all[0], first(streams, Purpose::Replacement, 0, 0));
    }
}
