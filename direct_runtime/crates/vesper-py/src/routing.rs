//! The fast path of the router: requests of a node between `python_only` and `direct_only`.
//!
//! `route` serves requests and compares engines, `follower` compares long executions on a thread of its own,
//! `agreements` counts what both found, and `inflight_counters` survive a crash of the process.

pub(crate) mod agreements;
pub(crate) mod follower;
#[allow(unsafe_code, reason = "counts in a memory-mapped file")]
pub(crate) mod inflight_counters;
pub(crate) mod output_comparison;
pub(crate) mod route;
