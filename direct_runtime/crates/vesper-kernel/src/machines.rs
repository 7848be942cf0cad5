//! The pure state machines. None reads a clock or performs anything.

pub mod bus;
pub mod interrupts;
pub mod pipeline;
pub mod processes;
pub mod quotas;
pub mod rate_limits;
pub mod registry;
pub mod sessions;
