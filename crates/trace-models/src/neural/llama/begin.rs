//! How a fresh LLaMA starts: with what chance would take long to find.

use super::super::attention::Heads;
use super::super::train::{Echo, Room, Undertone};
use super::{Layer, Llama, LlamaConfig};
use crate::kernels::single;

/// Spread of fresh embeddings.
pub(super) const EMBEDDED: f32 = 0.3;
/// Size of fresh rows as the norms see it. All of it comes from one number that all embeddings share: beside it, what
/// else a row holds hardly changes its size, and a norm divides all rows by nearly the same. Logits can then be sums of what
/// each event says for itself, which a norm of the other numbers alone would put out of proportion.
pub(super) const SIZE: f32 = 4.0;
/// The shared number as fresh heads see it.
const SEEN: f32 = 4.0;
/// One in so many numbers of a row is kept for heads and feed-forward layers: the head of the network starts without them
/// and never learns to read them.
const PRIVATE: usize = 4;
/// How loudly the heads of a fresh network that see the private numbers pass on what they see.
const WHISPERED: f32 = 0.1;
/// The same where they start with an undertone, which already says what there is to hear.
const MUTED: f32 = 0.03;
/// Spread of what the private numbers start with then: the larger they are, the less a step changes of it.
pub(super) const KNOWN: f32 = 1.2;
/// One in so many public numbers is for the effects of an undertone.
const EFFECTS: usize = 6;
/// Size of the head of the network in these.
const ANSWERED: f32 = 0.3;
/// How loud heads that carry rows are at least and at most.
pub(super) const QUIETEST: f64 = 2.0;
const LOUDEST: f64 = 8.0;

/// Numbers of a row of this width that are not private.
pub(in crate::neural) const fn public_part(width: usize) -> usize {
    width - width / PRIVATE
}

impl Llama {
    /// Every event starts with the same large number in its first place, and the heads of the first layer turn it into a
    /// look back. As many as it takes to carry the public part of a row look as far back as the corpus echoes ([`Echo`]), and
    /// pass on what they see unchanged and that loudly, so that what is learnt of an event that has just happened holds
    /// for one that happened earlier too, until training finds out where it does not. The others look one,
    /// two, … events back at the private part alone, which learns nothing but what matters there: in the public part, that
    /// would be drowned by what matters of the last event. Where heads look depends on no event at first, and feed-forward
    /// and deeper layers add nothing, as anything random would only have to be unlearnt.
    ///
    /// With an [`Undertone`] the private part, those others, and some of the public part start with what the corpus says of events
    /// further apart than one.
    pub(super) fn begin_with(&self, weights: &mut [f32], echo: &Echo, undertone: Option<&Undertone>) {
        let width = self.config.width;
        let root = (width as f32).sqrt();
        let public = self.public();
        if !self.config.tied {
            for row in weights[self.head.clone()].chunks_exact_mut(width) {
                row[0] = 0.0;
                row[public..].fill(0.0);
            }
        }
        for row in weights[self.embedding.clone()].chunks_exact_mut(width) {
            row[0] = SIZE * root;
        }
        // Gains undo what the norms do.
        let set_gains = |gains: &mut [f32], first: f32, private: f32| {
            gains.fill(SIZE);
            gains[public..].fill(private);
            gains[0] = first / root;
        };
        // As the head's columns are zero too, neither ever has a gradient.
        set_gains(&mut weights[self.norm.clone()], 1.0, 0.0);
        let spread = if undertone.is_some() { KNOWN } else { EMBEDDED };
        for layer in &self.layers {
            set_gains(&mut weights[layer.norm.clone()], SEEN, SIZE / spread);
            set_gains(&mut weights[layer.mlp_norm.clone()], 1.0, SIZE / spread);
            weights[layer.out.clone()].fill(0.0);
            weights[layer.down.clone()].fill(0.0);
        }
        if let Some(layer) = self.layers.first() {
            self.begin_looking(&mut weights[layer.qkv.clone()], echo);
            self.begin_passing(weights, layer, echo, undertone);
            if let Some(undertone) = undertone {
                self.begin_knowing(weights, layer, undertone);
            }
        }
    }

    /// How much of an undertone there is room for.
    pub(super) fn room_for_undertone(&self) -> Option<Room> {
        let (width, public) = (self.config.width, self.public());
        (public < width).then(|| Room {
            causes: self.heads.width.min(width - public),
            effects: public / EFFECTS,
            lags: self.heads.keys - self.carriers(),
        })
    }

    /// Numbers of a row that the head of the network reads; all, where no attention head is left for the others.
    pub(super) fn public(&self) -> usize {
        let LlamaConfig { width, key_heads, head_width, tied, .. } = self.config;
        let public = public_part(width);
        if tied || public.div_ceil(head_width) >= key_heads { width } else { public }
    }

    /// Key heads that carry the public numbers of a row in a fresh network.
    pub(super) fn carriers(&self) -> usize {
        self.public().div_ceil(self.heads.width)
    }

    /// Lets the heads of a fresh layer look back.
    fn begin_looking(&self, qkv: &mut [f32], echo: &Echo) {
        let width = self.config.width;
        let Heads { queries, keys, width: head_width } = self.heads;
        let (carriers, half) = (self.carriers(), head_width / 2);
        let (query_rows, rest) = qkv.split_at_mut(queries * head_width * width);
        let key_rows = &mut rest[..keys * head_width * width];
        // Keys that no query asks for yet may stay random: that is what queries can learn from.
        query_rows.fill(0.0);
        let carrying = self.rotary.look_back(echo.shares());
        let watching = |place: usize| {
            let mut shares = vec![0.0; place + 1];
            shares[place] = 1.0;
            self.rotary.look_back(&shares)
        };
        for head in 0..queries {
            let key = self.key_of(head);
            let look = if key < carriers { carrying.clone() } else { watching(key - carriers) };
            for (i, (query, size)) in look.into_iter().enumerate() {
                let set = |at: usize, value: f32, table: &mut [f32]| {
                    let row = &mut table[at * width..][..width];
                    row.fill(0.0);
                    row[0] = value / SEEN;
                };
                set(head * head_width + i, query.0, query_rows);
                set(head * head_width + half + i, query.1, query_rows);
                set(key * head_width + i, size, key_rows);
                set(key * head_width + half + i, 0.0, key_rows);
            }
        }
    }

    /// Lets the heads of a fresh layer pass on what they see: carriers a number of the row each to its own place, the others
    /// a random mixture of the private numbers to the public ones, or, where there is an undertone, the first private
    /// numbers as they are, so quietly that hardly anything is heard yet.
    fn begin_passing(&self, weights: &mut [f32], layer: &Layer, echo: &Echo, undertone: Option<&Undertone>) {
        let width = self.config.width;
        let Heads { queries, keys, width: head_width } = self.heads;
        let (public, carried, out_columns) = (self.public(), self.carriers() * head_width, queries * head_width);
        let values = &mut weights[layer.qkv.clone()][(queries + keys) * head_width * width..];
        let drawn = values.to_vec();
        values.fill(0.0);
        let louder = (width as f32 / (width - public).max(1) as f32).sqrt();
        for (place, row) in values.chunks_exact_mut(width).enumerate() {
            if place >= carried && undertone.is_some() {
                if let Some(value) = row.get_mut(public + place % head_width) {
                    *value = 1.0;
                }
            } else if place >= carried {
                for (value, drawn) in row.iter_mut().zip(&drawn[place * width..]).skip(public) {
                    *value = louder * drawn;
                }
            } else if (1..public).contains(&place) {
                row[place] = 1.0;
            }
        }
        // Query heads that share values share the room to pass them on.
        let share = (queries / keys) as f32;
        let loudness = echo.total().clamp(QUIETEST, LOUDEST) as f32;
        let whispered = if undertone.is_some() { MUTED } else { WHISPERED };
        let whisper =
            whispered * (width as f32 / (keys * head_width).saturating_sub(carried).max(1) as f32).sqrt() / share;
        let out = &mut weights[layer.out.clone()];
        for column in 0..out_columns {
            let place = self.key_of(column / head_width) * head_width + column % head_width;
            if place >= carried {
                // Numbers that the values do not use any more are as random as others.
                for (to, drawn) in (1..public).zip(&drawn[place * width..]) {
                    out[to * out_columns + column] = whisper * drawn;
                }
            } else if (1..public).contains(&place) {
                out[place * out_columns + column] = loudness / share;
            }
        }
    }

    /// Lets events start with their numbers of an undertone in the private part, and the heads that look at one event each
    /// turn them into numbers that the head of the network reads as logits.
    fn begin_knowing(&self, weights: &mut [f32], layer: &Layer, undertone: &Undertone) {
        let width = self.config.width;
        let Heads { queries, keys, width: head_width } = self.heads;
        let (public, carriers, out_columns) = (self.public(), self.carriers(), queries * head_width);
        let Room { causes, effects, .. } = undertone.room;
        let answers = public - effects..public;
        for row in weights[self.embedding.clone()].chunks_exact_mut(width) {
            row[answers.clone()].fill(0.0);
            single::scale(&mut row[public..], KNOWN / EMBEDDED);
        }
        let rows = weights[self.embedding.clone()].chunks_exact_mut(width);
        for (row, known) in rows.zip(undertone.causes.chunks_exact(causes)) {
            for (number, known) in row[public..].iter_mut().zip(known) {
                *number = KNOWN * known;
            }
        }
        let rows = weights[self.head.clone()].chunks_exact_mut(width);
        for (row, answer) in rows.zip(undertone.effects.chunks_exact(effects)) {
            for (number, answer) in row[answers.clone()].iter_mut().zip(answer) {
                *number = ANSWERED * answer;
            }
        }
        let share = (queries / keys) as f32;
        let out = &mut weights[layer.out.clone()];
        for column in 0..out_columns {
            let Some(lag) = self.key_of(column / head_width).checked_sub(carriers) else { continue };
            let cause = column % head_width;
            if cause < causes {
                for (effect, to) in answers.clone().enumerate() {
                    let logit = undertone.lags[lag][cause * effects + effect];
                    out[to * out_columns + column] = logit / (ANSWERED * share);
                }
            }
        }
    }

    /// The key head of a query head.
    const fn key_of(&self, head: usize) -> usize {
        head / (self.heads.queries / self.heads.keys)
    }
}
