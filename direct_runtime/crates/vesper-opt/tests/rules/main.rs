//! Each rule on small nodes: what it makes of them, and where it must leave them alone.
//!
//! Nodes and results are written as listings (docs/spec/optimizer.md).
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

#[path = "../../../vesper-interp/tests/support/document.rs"]
mod document;
mod expression;
#[path = "../../../vesper-interp/tests/support/flow.rs"]
mod flow;
mod node;
#[path = "../../../vesper-interp/tests/support/tree.rs"]
mod tree;

mod common;
mod constants;
mod dead_steps;
mod decimal_ranges;
mod flow_guards;
mod flow_ranges;
mod guards;
mod intervals;
mod invariants;
mod jump_tables;
mod listing;
mod loop_states;
mod proofs;
mod selects;
