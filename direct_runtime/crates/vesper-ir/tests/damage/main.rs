//! Damaged documents: every damage to the shape of a document with all constructs is refused, at its place.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

mod base;
mod declarations;
#[path = "../../../vesper-interp/tests/support/document.rs"]
mod document;
#[path = "../../../vesper-interp/tests/support/flow.rs"]
mod flow;
mod limits;
mod resolved;
mod shape;
#[path = "../../../vesper-interp/tests/support/tree.rs"]
mod tree;
mod typing;
mod words;
