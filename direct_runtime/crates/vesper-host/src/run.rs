//! The run loop: advances an execution and settles its requests.
//!
//! `running` is the loop, `settling` one request, `recovered` what the journal of a run that was taken over says of it,
//! `attempts` the policies around performing it. `grants` has the handles without which nothing is performed, `trace` the
//! spans of effects.

mod attempts;
mod bodies;
pub mod contract;
pub mod grants;
mod metrics;
pub mod outcome;
mod recovered;
pub mod running;
mod settling;
pub mod sizes;
pub mod trace;
