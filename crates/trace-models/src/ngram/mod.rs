//! Interpolated modified Kneser–Ney n-grams (Chen & Goodman, 1999).
//!
//! For a context `c` (the last `n − 1` events, a begin token standing before the first) that was seen:
//!
//! ```text
//! p(w | c) = ( a(c,w) + G(c) · p(w | c shortened by its oldest event) ) / ( S(c) + G(c) )
//! a(c,w) = count − D(count),   S(c) = Σ_w a(c,w),   G(c) = Σ_w D(count)
//! ```
//!
//! with one discount `D` for counts 1, 2 and 3 or more of each context length, estimated from counts of counts.
//! Contexts shorter than the longest count *how many different events came before*, not how often: a type that only
//! follows one other type is not more likely elsewhere. The shortest context interpolates with `1/V`, so that every
//! type has a probability. The end of a case, where it is predicted, is one more type that nothing follows. Contexts that were never seen fall back to shorter ones.
//!
//! The complement `1 − p` follows the same recursion over the counts of the other types, so that near-certain events
//! keep their precision. Cost of one probability: at most `n` lookups, independent of `V`.

mod counts;
mod model;
mod store;
mod train;

pub use counts::NgramCounts;
pub use model::NgramModel;
pub(crate) use train::targets_of;
pub use train::{NgramSpec, TrainedNgram, train};
