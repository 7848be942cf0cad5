//! The Host of `vesper-host` for Python: each submodule binds one part of it.
//!
//! `plans` converts the requests of a node, `performer` and `execution` are performers and engines of Python in the form
//! of the run loop, `watcher` passes its reports on, and `run` is the loop itself. Python's lock is held only inside
//! calls of these parts.

pub(crate) mod budgets;
#[allow(unsafe_code, reason = "enters the context of a run")]
pub(crate) mod context;
pub(crate) mod database;
pub(crate) mod errors;
pub(crate) mod execution;
pub(crate) mod forks;
pub(crate) mod generated;
pub(crate) mod http;
pub(crate) mod journal;
pub(crate) mod limits;
pub(crate) mod machine;
pub(crate) mod native_performer;
pub(crate) mod outcome;
pub(crate) mod owner;
pub(crate) mod performer;
pub(crate) mod plans;
pub(crate) mod policies;
pub(crate) mod run;
pub(crate) mod sealing;
pub(crate) mod secrets;
pub(crate) mod sizes;
pub(crate) mod sources;
pub(crate) mod spawned;
pub(crate) mod typed_json;
pub(crate) mod watcher;
