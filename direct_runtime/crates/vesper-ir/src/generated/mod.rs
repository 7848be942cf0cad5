//! Code that `schemas/generate.py` derives from the declared operations, effects and failure codes.
#![allow(
    clippy::too_many_lines,
    clippy::match_same_arms,
    reason = "these are tables, one entry an operation, however many there are and however alike"
)]

pub(crate) mod choices;
pub(crate) mod dispatch;
pub(crate) mod effects;
pub(crate) mod errors;
pub(crate) mod kernels;
pub(crate) mod ops;
pub(crate) mod signatures;
