//! Compares branches from a cache with the complete sequences that they represent.

use super::architecture::{Network, Past};
use super::rows::Rows;

/// The token of the observed sequence at a position.
fn observed(position: usize, tokens: usize) -> u32 {
    ((position * position + 3 * position + 1) % tokens) as u32
}

/// Reads a sequence in two pieces, runs branches in groups of different starts, lengths and counts, and compares every
/// hidden row with that of the complete edited sequence.
pub(super) fn check<A: Network>(network: &A) {
    const READ: usize = 17;
    let (tokens, width) = (network.vocab_size(), network.hidden_size());
    let mut weights = network.layout().draw(5);
    for (index, weight) in weights.iter_mut().enumerate() {
        *weight += 0.1 * ((index * 31 % 19) as f32 / 19.0 - 0.5);
    }
    let mut tape = A::Tape::default();
    let close = |one: &[f32], other: &[f32], what: &str| {
        assert_eq!(one.len(), other.len(), "{what}");
        for (a, b) in one.iter().zip(other) {
            assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{what}: {a} against {b}");
        }
    };

    // Reading in pieces, reading at once and a training pass give the same rows.
    let whole = Rows::new(&[(0, READ, 1)], A::ORDER, |_, _, step| observed(step, tokens));
    network.forward(&weights, &whole, Past::Nothing, &mut tape);
    let expected = A::hidden(&tape).to_vec();
    network.forward(&weights, &whole, Past::Training, &mut tape);
    close(A::hidden(&tape), &expected, "training");
    let mut cache = network.cache(READ);
    let mut read = Vec::new();
    for (start, steps) in [(0, 6), (6, READ - 6)] {
        let piece = Rows::new(&[(start, steps, 1)], A::ORDER, |_, _, step| observed(start + step, tokens));
        network.forward(&weights, &piece, Past::Growing(&mut cache), &mut tape);
        read.extend_from_slice(A::hidden(&tape));
    }
    close(&read, &expected, "reading");

    let groups = [(3, 2, 2), (0, 4, 1), (READ, 1, 3), (9, 5, 20), (READ, 13, 1), (1, 5, 2)];
    let token = |group: usize, branch: usize, step: usize| ((group * 5 + branch * 11 + step * 3) % tokens) as u32;
    let branches = Rows::new(&groups, A::ORDER, token);
    network.forward(&weights, &branches, Past::Shared(&cache), &mut tape);
    let found = A::hidden(&tape).to_vec();

    // Every branch together with its past.
    let complete: Vec<(usize, usize)> =
        groups.iter().enumerate().flat_map(|(group, &(_, _, count))| (0..count).map(move |b| (group, b))).collect();
    let lengths: Vec<(usize, usize, usize)> =
        complete.iter().map(|&(group, _)| (0, groups[group].0 + groups[group].1, 1)).collect();
    let sequences = Rows::new(&lengths, A::ORDER, |sequence, _, step| {
        let (group, branch) = complete[sequence];
        step.checked_sub(groups[group].0).map_or(observed(step, tokens), |step| token(group, branch, step))
    });
    network.forward(&weights, &sequences, Past::Nothing, &mut tape);
    let hidden = A::hidden(&tape);
    let mut places = vec![Vec::new(); complete.len()];
    sequences.for_each(|group, _, _, row| places[group.index].push(row));
    let mut seen = 0;
    branches.for_each(|group, branch, step, row| {
        let sequence = complete.iter().position(|one| *one == (group.index, branch)).expect("a branch");
        let other = places[sequence][group.start + step];
        let what = format!("group {} branch {branch} step {step}", group.index);
        close(&found[row * width..][..width], &hidden[other * width..][..width], &what);
        seen += 1;
    });
    assert_eq!(seen, branches.len());
}

mod llama {
    use super::super::llama::{Llama, LlamaConfig};

    #[test]
    fn branches_are_complete_sequences() {
        super::check(&Llama::new(LlamaConfig {
            vocab_size: 13,
            hidden_size: 24,
            layers: 2,
            heads: 4,
            num_key_value_heads: 2,
            head_dim: 6,
            intermediate_size: 40,
            rope_theta: 10_000.0,
            rms_norm_eps: 1e-5,
            tie_word_embeddings: false,
            trained_length: 64,
        }));
    }
}

mod recurrent {
    use super::super::gru::Gru;
    use super::super::lstm::Lstm;
    use super::super::recurrent::RecurrentConfig;

    fn shape() -> RecurrentConfig {
        RecurrentConfig { vocab_size: 13, hidden_size: 24, layers: 3, rms_norm_eps: 1e-6, tie_word_embeddings: false }
    }

    #[test]
    fn branches_of_a_gru_are_complete_sequences() {
        super::check(&Gru::new(shape()));
    }

    #[test]
    fn branches_of_an_lstm_are_complete_sequences() {
        super::check(&Lstm::new(shape()));
    }
}
