//! What an event still says about later ones when the last event has had its say.
//!
//! ```text
//! M_k(u, v) = Σ_t 1[x_{t-k} = u] ( 1[x_t = v] − P(v | x_{t-1}) )         R_k = M_k / √( n(u) σ²(v) )
//! R_k ≈ U C_k Bᵀ            logits of v so many events after u:   n R_k / √( n(u) σ²(v) )
//! ```
//!
//! `P` is a bigram, so that what `u` does by way of the event in between drops out, `n(u)` counts `u`, and `σ²(v)` is what
//! chance alone would make of the sum. No single entry of a table says much; what all lags have in common does: the columns of `U` are
//! the leading directions of the causes of all lags together, those of `B` of the effects that are left. Few pairs of types are
//! tied closely (often the same that follow each other at once, which heads hear as an echo, see [`super::Echo`]); they would
//! drown the rest, so entries are cut off at twice their root mean square.
//!
//! How much of a direction of causes is chance is asked of the other half of the sequences: the slope `s` of its `C_k` on those of
//! the first half, which alone chose the directions. With both halves the direction of the same
//! rank speaks as loudly as `2 s / (1 + s)`. Where that is too quiet on average there is no undertone: in a log that is too short for
//! its types, and in one where what events say of later ones are ties of single pairs. Nor is one measured where the log echoes further
//! back than usual: what is left at each lag is then mostly the echo, which other heads hear already.
//!
//! Cost: a pass over the first [`EVENTS`] events, and for each lag some `6 V³` operations for at most [`TYPES`] types.

use rayon::prelude::*;

use super::corpus::{Corpus, Survey};
use super::directions::leading;
use super::sample::Sample;
use crate::Error;
use crate::kernels::product::{Matrix, MatrixMut, Old, multiply};
use crate::kernels::single;

/// Events looked at: as many as an `f32` can count.
const EVENTS: usize = 1 << 24;
/// The most frequent types, which alone are looked at.
const TYPES: usize = 2048;
/// Entries of the tables of all lags: where there are many lags there are fewer types.
const ENTRIES: usize = 8 * TYPES * TYPES;
/// Entries of a table are cut off at so many times their root mean square.
const CUT: f32 = 2.0;
/// What a bigram that was seen gives to those that were not, in counts.
const DISCOUNT: f32 = 0.75;
/// Counts from which on a type's own numbers are believed.
const BELIEVED: f32 = 100.0;
/// How loudly the directions of causes must speak on average: room that is filled with chance is worse than empty room.
const HEARD: f64 = 1.0 / 3.0;
/// The share of all squares below which a direction is none.
const NOTHING: f64 = 1e-9;
/// Rows of a product that are computed at a time.
const BLOCK: usize = 64;

/// What a network has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Directions of causes.
    pub(crate) causes: usize,
    /// Directions of effects.
    pub(crate) effects: usize,
    /// Lags, the first of which is 2.
    pub(crate) lags: usize,
}

/// What events say about later ones beyond what those in between say: in few numbers of each event, a few numbers of the
/// later one, and a matrix between them for each lag.
#[derive(Clone, Debug)]
pub(crate) struct Undertone {
    pub(crate) room: Room,
    /// A row of causes for each type, of spread 1 in all; zeros for types that were not looked at.
    pub(crate) causes: Vec<f32>,
    /// A row of effects for each type, likewise.
    pub(crate) effects: Vec<f32>,
    /// For lags 2, 3, …: causes × effects, which turns the numbers of a cause into logits of effects.
    pub(crate) lags: Vec<Vec<f32>>,
}

impl Undertone {
    /// Of what is trained on; `None` where too little is heard.
    pub(crate) fn measure(corpus: &dyn Corpus, survey: &Survey, room: Room) -> Result<Option<Self>, Error> {
        if room.lags == 0 || room.causes == 0 || room.effects == 0 {
            return Ok(None);
        }
        let most = TYPES.min((ENTRIES / room.lags).isqrt());
        let Sample { halves, types } = Sample::read(corpus, survey, most, EVENTS)?;
        let size = types.len();
        let bigram = Bigram::new(&halves, size);
        let jobs: Vec<(usize, usize)> =
            (0..2).flat_map(|half| (0..room.lags).map(move |lag| (half, lag + 2))).collect();
        let mut first: Vec<Vec<f32>> =
            jobs.into_par_iter().map(|(half, lag)| bigram.residuals(&halves[half], lag)).collect();
        let second = first.split_off(room.lags);
        let room = Room { causes: room.causes.min(size), effects: room.effects.min(size), ..room };

        let chosen = Directions::of(&cut(&first), size, room);
        let loudness = chosen.loudness(&chosen.within(&cut(&second)));
        if loudness.iter().sum::<f64>() <= HEARD * loudness.len() as f64 {
            return Ok(None);
        }
        for (all, other) in first.iter_mut().zip(&second) {
            single::add(all, other);
        }
        drop(second);
        let Directions { causes, effects, mut lags, .. } = Directions::of(&cut(&first), size, room);
        let rows = |directions: &[f32], count: usize, counts: &[f32]| {
            let weights: Vec<f32> = counts.iter().map(|n| (bigram.total * n).sqrt() / (n + BELIEVED)).collect();
            spread_out(directions, count, &weights, &types, survey.counts.len())
        };
        let (causes, cause_size) = rows(&causes, room.causes, &bigram.before);
        let (effects, effect_size) = rows(&effects, room.effects, &bigram.spread);
        for lag in &mut lags {
            for (row, loudness) in lag.chunks_exact_mut(room.effects).zip(&loudness) {
                single::scale(row, *loudness as f32 * cause_size * effect_size);
            }
        }
        Ok(Some(Self { room, causes, effects, lags }))
    }
}

/// What the last event says.
struct Bigram {
    size: usize,
    /// `P(v | u)`.
    table: Vec<f32>,
    /// How often each type came before another one.
    before: Vec<f32>,
    /// The variance that chance gives the count of each type.
    spread: Vec<f32>,
    total: f32,
}

impl Bigram {
    /// Absolute discounting; types that follow many others get most of what is given away.
    fn new(halves: &[Vec<Vec<u16>>; 2], size: usize) -> Self {
        let mut table = vec![0.0f32; size * size];
        for piece in halves.iter().flatten() {
            for (u, v) in piece.iter().zip(&piece[1.min(piece.len())..]) {
                if *u != Sample::OTHER && *v != Sample::OTHER {
                    table[*u as usize * size + *v as usize] += 1.0;
                }
            }
        }
        let mut follows = vec![0.0f32; size];
        for row in table.chunks_exact(size) {
            for (follows, count) in follows.iter_mut().zip(row) {
                *follows += f32::from(u8::from(*count > 0.0));
            }
        }
        let kinds = follows.iter().sum::<f32>().max(1.0);
        let (mut before, mut spread) = (Vec::with_capacity(size), vec![0.0f32; size]);
        for row in table.chunks_exact_mut(size) {
            let count: f32 = row.iter().sum();
            let given: f32 = row.iter().map(|count| count.min(DISCOUNT)).sum();
            for ((value, follows), spread) in row.iter_mut().zip(&follows).zip(&mut spread) {
                *value = ((*value - DISCOUNT).max(0.0) + given * follows / kinds) / count.max(1.0);
                *spread += count * *value * (1.0 - *value);
            }
            before.push(count);
        }
        let total = before.iter().sum();
        Self { size, table, before, spread, total }
    }

    /// `R_k` of one half, with the counts of both.
    fn residuals(&self, pieces: &[Vec<u16>], lag: usize) -> Vec<f32> {
        let size = self.size;
        let (mut table, mut last) = (vec![0.0f32; size * size], vec![0.0f32; size * size]);
        for piece in pieces {
            for at in lag..piece.len() {
                let [u, w, v] = [piece[at - lag], piece[at - 1], piece[at]];
                if u != Sample::OTHER && w != Sample::OTHER && v != Sample::OTHER {
                    table[u as usize * size + v as usize] += 1.0;
                    last[u as usize * size + w as usize] += 1.0;
                }
            }
        }
        let (last, bigram) = (Matrix::new(&last, size, size), Matrix::new(&self.table, size, size));
        multiply(MatrixMut::new(&mut table, size, size), Old::Add, -1.0, last, bigram);
        for (row, before) in table.chunks_exact_mut(size).zip(&self.before) {
            for (value, spread) in row.iter_mut().zip(&self.spread) {
                *value /= ((before + 1.0) * (spread + 1.0)).sqrt();
            }
        }
        table
    }
}

/// The tables without their largest entries.
fn cut(tables: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let one = |table: &Vec<f32>| {
        let most = CUT * (single::sum_of_squares(table) / table.len().max(1) as f64).sqrt() as f32;
        table.iter().map(|value| value.clamp(-most, most)).collect()
    };
    tables.par_iter().map(one).collect()
}

/// `U`, `B` and `C_k` of some tables.
struct Directions {
    size: usize,
    room: Room,
    /// A row a direction.
    causes: Vec<f32>,
    effects: Vec<f32>,
    lags: Vec<Vec<f32>>,
}

impl Directions {
    fn of(tables: &[Vec<f32>], size: usize, room: Room) -> Self {
        let gram = gram(tables, size);
        let causes = leading(&gram, size, room.causes);
        let seen = seen_from(&causes, room.causes, tables, size);
        let mut gram = vec![0.0; size * size];
        for seen in &seen {
            let seen = Matrix::new(seen, room.causes, size);
            multiply(MatrixMut::new(&mut gram, size, size), Old::Add, 1.0, seen.transposed(), seen);
        }
        let effects = leading(&gram, size, room.effects);
        let mut found = Self { size, room, causes, effects, lags: Vec::new() };
        found.lags = found.project(&seen);
        found
    }

    /// What `C_k` is in other tables.
    fn within(&self, tables: &[Vec<f32>]) -> Vec<Vec<f32>> {
        self.project(&seen_from(&self.causes, self.room.causes, tables, self.size))
    }

    /// How loudly each direction of causes speaks, by what `C_k` is in the other half.
    fn loudness(&self, others: &[Vec<f32>]) -> Vec<f64> {
        let whole: f64 = self.lags.iter().map(|lag| single::sum_of_squares(lag)).sum();
        let one = |cause: usize| {
            let row = cause * self.room.effects..(cause + 1) * self.room.effects;
            let (mut both, mut square) = (0.0, 0.0);
            for (lag, other) in self.lags.iter().zip(others) {
                both += lag[row.clone()].iter().zip(&other[row.clone()]).map(|(a, b)| f64::from(a * b)).sum::<f64>();
                square += single::sum_of_squares(&lag[row.clone()]);
            }
            let slope = if square > NOTHING * whole { (both / square).clamp(0.0, 1.0) } else { 0.0 };
            2.0 * slope / (1.0 + slope)
        };
        (0..self.room.causes).map(one).collect()
    }

    fn project(&self, seen: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let Room { causes, effects, .. } = self.room;
        let one = |seen: &Vec<f32>| {
            let mut lag = vec![0.0; causes * effects];
            let (seen, to) = (Matrix::new(seen, causes, self.size), Matrix::new(&self.effects, effects, self.size));
            multiply(MatrixMut::new(&mut lag, causes, effects), Old::Replace, 1.0, seen, to.transposed());
            lag
        };
        seen.iter().map(one).collect()
    }
}

/// `Σ_k R_k R_kᵀ`.
fn gram(tables: &[Vec<f32>], size: usize) -> Vec<f32> {
    let mut gram = vec![0.0; size * size];
    gram.par_chunks_mut(BLOCK * size).enumerate().for_each(|(block, out)| {
        let rows = out.len() / size;
        for table in tables {
            let some = Matrix::new(&table[block * BLOCK * size..], rows, size);
            let all = Matrix::new(table, size, size);
            multiply(MatrixMut::new(out, rows, size), Old::Add, 1.0, some, all.transposed());
        }
    });
    gram
}

/// `Uᵀ R_k` of each table.
fn seen_from(causes: &[f32], count: usize, tables: &[Vec<f32>], size: usize) -> Vec<Vec<f32>> {
    let one = |table: &Vec<f32>| {
        let mut seen = vec![0.0; count * size];
        let (causes, table) = (Matrix::new(causes, count, size), Matrix::new(table, size, size));
        multiply(MatrixMut::new(&mut seen, count, size), Old::Replace, 1.0, causes, table);
        seen
    };
    tables.par_iter().map(one).collect()
}

/// Directions as rows of types, each type's numbers times its weight, and the size that was divided out so that their spread is 1.
fn spread_out(directions: &[f32], count: usize, weights: &[f32], types: &[usize], all: usize) -> (Vec<f32>, f32) {
    let mut rows = vec![0.0; all * count];
    for (place, (event, weight)) in types.iter().zip(weights).enumerate() {
        for (direction, value) in rows[event * count..][..count].iter_mut().enumerate() {
            *value = weight * directions[direction * types.len() + place];
        }
    }
    let size = (single::sum_of_squares(&rows) / (types.len() * count).max(1) as f64).sqrt() as f32;
    if size > 0.0 {
        single::scale(&mut rows, 1.0 / size);
    }
    (rows, size)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use trace_core::EventId;

    use super::*;

    const ROOM: Room = Room { causes: 1, effects: 4, lags: 3 };

    /// Sequences of 24 types, whose event `lag` events earlier decides, with some probability, in which half of the types the next one
    /// lies: types with even numbers are followed by the lower half.
    fn sequences(lag: usize, probability: f64) -> Vec<Vec<EventId>> {
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let mut one = || {
            let mut events: Vec<EventId> = Vec::new();
            for at in 0..50 {
                let any = random.random_range(0..12);
                let decided = at >= lag && random.random::<f64>() < probability;
                let low = if decided { events[at - lag].0.is_multiple_of(2) } else { random.random() };
                events.push(EventId(if low { any } else { any + 12 }));
            }
            events
        };
        (0..800).map(|_| one()).collect()
    }

    fn measured_in(corpus: &Vec<Vec<EventId>>, room: Room) -> Option<Undertone> {
        let survey = Survey::new(corpus, 25, 0.1, 1).expect("a corpus");
        Undertone::measure(corpus, &survey, room).expect("a corpus")
    }

    fn measured(corpus: &Vec<Vec<EventId>>) -> Option<Undertone> {
        measured_in(corpus, ROOM)
    }

    /// Logits of `v`, so many events after `u`.
    fn logit(undertone: &Undertone, lag: usize, u: usize, v: usize) -> f64 {
        let Room { causes, effects, .. } = undertone.room;
        let mut sum = 0.0;
        for i in 0..causes {
            for j in 0..effects {
                let between = undertone.lags[lag - 2][i * effects + j];
                sum += f64::from(undertone.causes[u * causes + i] * between * undertone.effects[v * effects + j]);
            }
        }
        sum
    }

    #[test]
    fn what_an_event_says_of_a_later_one_is_heard_at_its_lag() {
        let undertone = measured(&sequences(3, 0.5)).expect("something is heard");
        let contrast = |lag: usize| -> f64 {
            let one = |u: usize, v: usize| {
                let sign = if u.is_multiple_of(2) == (v < 12) { 1.0 } else { -1.0 };
                sign * logit(&undertone, lag, u, v)
            };
            (0..24).flat_map(|u| (0..24).map(move |v| (u, v))).map(|(u, v)| one(u, v)).sum::<f64>() / 576.0
        };
        // The process's own is half the log of 0.75 over 0.25, less what the cut and the doubt about rare types take away.
        let own = 0.5 * 3f64.ln();
        assert!((0.5 * own..1.3 * own).contains(&contrast(3)), "{} of {own}", contrast(3));
        assert!(contrast(2).abs() < 0.1 * own && contrast(4).abs() < 0.1 * own);
        assert!(
            undertone.causes[24 * ROOM.causes..].iter().all(|number| *number == 0.0),
            "a type that never occurs says nothing"
        );
    }

    #[test]
    fn what_the_last_event_says_is_not_heard_again() {
        let loudest = |undertone: Option<Undertone>| {
            let pairs = || (0..24).flat_map(|u| (0..24).map(move |v| (u, v)));
            let of = |undertone: &Undertone| {
                let logits = (2..5).flat_map(|lag| pairs().map(move |(u, v)| logit(undertone, lag, u, v).abs()));
                logits.fold(0.0, f64::max)
            };
            undertone.as_ref().map_or(0.0, of)
        };
        let nothing = loudest(measured(&sequences(1, 0.0)));
        let last = loudest(measured(&sequences(1, 0.5)));
        let second = loudest(measured(&sequences(2, 0.5)));
        assert!(nothing < 0.15 && last < 0.15 && second > 0.3, "{nothing} {last} {second}");
    }

    #[test]
    fn room_that_would_mostly_be_filled_with_chance_stays_empty() {
        let corpus = sequences(3, 0.5);
        assert!(measured_in(&corpus, Room { causes: 2, ..ROOM }).is_some(), "half of it is heard");
        assert!(measured_in(&corpus, Room { causes: 12, ..ROOM }).is_none(), "there is but one direction");
    }

    #[test]
    fn corpora_with_hardly_anything_in_them_are_no_error() {
        assert!(measured(&vec![vec![EventId(3)], vec![EventId(4)]]).is_none());
        assert!(measured(&vec![vec![EventId(0); 9], vec![EventId(0); 9], vec![EventId(0); 9]]).is_none());
    }
}
