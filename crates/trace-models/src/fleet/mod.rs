//! A vehicle fleet with named trouble codes and designed cascades: data whose causes a person can judge, and a perfect
//! model of itself.
//!
//! One of the last `h` events decides the next one, the event `k` before with probability `κ(k)`; it brings about one of
//! the effects that its rules name, by their shares, or else leaves the next event to the background.
//!
//! ```text
//! P(X_t = v | past) = A_t(v) + (1 − Σ_u A_t(u)) · b(v)                                Σ b = 1
//! A_t(v) = Σ_{k=1..h} κ(k) · r(x_{t-k} → v) · [v did not occur between t−k and t]       Σ κ · Σ_v r(u → v) < 1
//! ```
//!
//! A rule is spent once its effect has happened, so that a cascade moves on instead of repeating itself; what it decided
//! then goes to the background. Causes do not compete: another event in the window changes how probable its own effects
//! are, and those of others hardly. So the true edges are the designed ones. With `R` rules an event, which is 0 for most
//! types and at most 4, a prediction costs `O(h² R)` whatever `V` is: what is not the effect of an active rule keeps its
//! share of the background. The design depends on the number of types and on the cascades that are left out, never on a
//! seed: two cohorts with the same design are samples of one process.

mod cascades;
mod codes;
mod components;
mod design;
mod process;
mod scoring;
mod simulate;
mod store;

pub use cascades::{CASCADES, Cascade};
pub use design::{Design, FleetSpec, LEAST_TYPES, MOST_TYPES};
pub use process::Fleet;
pub use simulate::{Fault, FleetLog, Vehicle};

/// The probability that the event at each lag decides, κ(1) … κ(h).
const KERNEL: [f32; 4] = [0.48, 0.26, 0.14, 0.08];
