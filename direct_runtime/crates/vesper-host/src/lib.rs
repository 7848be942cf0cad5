//! The Host: runs nodes with effects and journals what they do.
//!
//! `run` advances an execution and settles its requests: `policy` decides when an attempt goes out, a performer of
//! `effect` makes it, `journal` records it in the spelling of `typed_json`. `sources` provides time, random bytes and
//! kill points, which tests replace. The crate does not know Python: `vesper-py` binds it.

pub mod ambient;
pub mod backtest;
pub mod database;
pub mod effect;
pub mod encoded_forms;
pub mod files;
pub mod http;
pub mod interrupts;
pub mod journal;
pub mod messages;
pub mod model;
pub mod per_process;
pub mod policy;
pub mod postgres;
pub mod resp;
pub mod run;
pub mod runtime;
pub mod secret_store;
pub mod sources;
pub mod tls;
pub mod typed_json;
