//! A vehicle fleet with named trouble codes and designed cascades: data whose causes people can understand, and a
//! perfect model of itself.
//!
//! One of the last `h` events decides the next event: the event at lag `k` with probability `κ(k)`. It causes one of
//! the effects of its rules, with the probabilities of their shares; otherwise the next event is drawn from the
//! background.
//!
//! ```text
//! P(X_t = v | past) = A_t(v) + (1 − Σ_u A_t(u)) · b(v)                                Σ b = 1
//! A_t(v) = Σ_{k=1..h} κ(k) · r(x_{t-k} → v) · [v did not occur between t−k and t]       Σ κ · Σ_v r(u → v) < 1
//! ```
//!
//! A rule becomes inactive once its effect has occurred, so that a cascade proceeds instead of repeating itself; its
//! probability then goes to the background. Causes do not compete: an event in the window changes the probability of
//! its own effects, and hardly that of others. Therefore the true edges are the designed ones. With `R` rules per event
//! (0 for most types, at most 4), a prediction costs `O(h² R)`, independent of `V`: a type that is not the effect of an
//! active rule keeps its share of the background. The design depends on the number of types and on the omitted
//! cascades, but not on a seed: two cohorts with the same design are samples of the same process.

mod cascades;
mod codes;
mod components;
mod design;
mod process;
mod scoring;
mod simulate;
mod store;

pub use cascades::{CASCADES, Cascade};
pub use design::{Design, FleetSpec, MAX_TYPES, MIN_TYPES};
pub use process::Fleet;
pub use simulate::{Fault, FleetLog, Vehicle};

/// The probability that the event at each lag decides the next event, κ(1) … κ(h).
const KERNEL: [f32; 4] = [0.48, 0.26, 0.14, 0.08];
