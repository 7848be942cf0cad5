//! Policies: when an attempt at an effect goes out, and whether another one follows (docs/spec/policies.md).
//!
//! `retry`, `breaker`, `concurrency` and `rate_limit` are state machines without clock, thread or randomness; `gate`
//! combines the last three into one decision about one attempt. `state` keeps what runs share: in memory, or in Redis.
//! Times are whole microseconds of a clock of the caller. A decision has a record for the journal.

pub mod breaker;
mod codes;
pub mod concurrency;
pub mod gate;
pub mod memory_state;
pub mod rate_limit;
pub mod record;
pub mod redis_state;
pub mod retry;
pub mod settings;
pub mod state;

pub use codes::{is_trouble, matches_code};
