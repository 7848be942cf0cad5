//! Policies: when an attempt at an effect goes out, and whether another one follows (docs/spec/policies.md).
//!
//! `retry`, `breaker`, `concurrency`, `rate_limit` and `tokens` are state machines without clock, thread or randomness;
//! `gate` combines the last four into one decision about one attempt, and `admission` follows it. `budget` decides what
//! requests to models may take. `state` keeps what runs share: in memory, or in Redis.
//! Times are whole microseconds of a clock of the caller. A decision has a record for the journal.

mod admission;
pub mod breaker;
pub mod budget;
mod codes;
pub mod concurrency;
pub mod gate;
pub mod memory_state;
pub mod rate_limit;
pub mod record;
mod redis_script;
pub mod redis_state;
pub mod retry;
pub mod settings;
pub mod state;
pub mod tokens;
mod waiters;

pub use admission::{Limiter, Place};
pub(crate) use admission::{duration, held_back};
pub use codes::{is_trouble, matches_code};
