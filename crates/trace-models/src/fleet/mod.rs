//! A vehicle fleet with named trouble codes and designed cascades: data whose causes a person can judge, and a perfect
//! model of itself.
//!
//! Every event is drawn in proportion to a weight: its share of the background, plus what recent events add by rules.
//!
//! ```text
//! P(X_t = v | past) = w_t(v) / Σ w_t
//! w_t(v) = b(v) + Σ_{k=1..h} κ(k) · r(x_{t-k} → v) · [v did not occur between t−k and t]        Σ b = 1
//! ```
//!
//! A rule is spent once its effect has happened, so that a cascade moves on instead of repeating itself. With `R` rules
//! an event, which is 0 for most types and at most 4, a prediction costs `O(h² R)` whatever `V` is: what is not the
//! effect of an active rule keeps its share of the background. The design depends on the number of types and on the
//! cascades that are left out, never on a seed: two cohorts with the same design are samples of one process.

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

/// How strongly a rule acts at each lag, κ(1) … κ(h).
const KERNEL: [f32; 6] = [1.0, 0.6, 0.35, 0.2, 0.1, 0.05];
