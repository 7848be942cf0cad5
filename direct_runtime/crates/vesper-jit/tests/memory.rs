//! Memory of machine code, measured in a separate process.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

#[path = "../../vesper-interp/tests/support/mod.rs"]
mod support;
#[path = "../../vesper-interp/tests/support/tree.rs"]
mod tree;

use serde_json::json;
use support::load;
use tree::{call, input, integer, returning};
use vesper_jit::{Options, compile};

#[test]
fn code_that_is_dropped_frees_its_memory() {
    let inputs = json!([{"name": "x", "type": "integer"}]);
    let sum = call("integer.add", &[input("x"), integer(1)]);
    let program = load(&returning(&inputs, &json!("integer"), &sum));
    let resident = || {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = pages.split(' ').nth(1).map(str::parse::<usize>);
        pages.and_then(Result::ok).unwrap_or(0)
    };
    let make = |count: usize| {
        for _ in 0..count {
            drop(compile(program.plain_code(), None, &Options::default()).unwrap());
        }
    };
    make(50);
    let before = resident();
    make(400);
    // Each program would keep at least a page.
    let after = resident();
    assert!(after < before + 200, "{before} pages, then {after}");
}
