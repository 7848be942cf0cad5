//! Loaded nodes and the ways in which Python calls them.
//!
//! `program` loads a node, `execution` runs one that makes requests, `entry` and `fast_entry` call one without effects,
//! `ending` is the end of such a call without outputs, and `frameless_call` runs machine code that needs no frame.

pub(crate) mod ending;
#[allow(unsafe_code, reason = "makes outcome objects without calling Python")]
pub(crate) mod entry;
pub(crate) mod execution;
#[allow(unsafe_code, reason = "defines C functions that Python calls without PyO3")]
pub(crate) mod fast_entry;
#[allow(unsafe_code, reason = "guards data by the global lock")]
pub(crate) mod frame_pool;
#[allow(
    unsafe_code,
    reason = "borrows lists and strings, and fills dicts, without counting references"
)]
pub(crate) mod frameless_call;
pub(crate) mod outcome;
pub(crate) mod program;
