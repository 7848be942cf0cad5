//! The run loop: advances an execution and settles its requests.
//!
//! `running` is the loop, `wave` the requests that an execution makes together, `settling` one of them, `recovered` what the journal of a run that was taken over says of it,
//! `attempts` the policies around performing it, `budgets` what requests to models may take, `waiting` one that is not performed but waited for. `grants` has the handles
//! without which nothing is performed, `trace` the spans of effects.

mod attempts;
mod bodies;
mod budgets;
pub mod contract;
pub mod grants;
mod metrics;
pub mod outcome;
mod recovered;
pub mod running;
mod settling;
pub mod sizes;
pub mod trace;
mod waiting;
mod wave;
