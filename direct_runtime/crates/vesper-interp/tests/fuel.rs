//! What an execution spends, and how it ends where that is not there.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

#[path = "support/mod.rs"]
mod support;
#[path = "support/tree.rs"]
mod tree;
#[path = "support/values.rs"]
mod values;

use std::time::Duration;

use serde_json::{Value as Json, json};
use support::{load, shown_outcome};
use tree::{each, local, returning};
use values::integers;
use vesper_interp::{Advanced, Limits};

/// The outcome over three items with so much fuel, of a run and of an observed one, and how many marks that has.
fn outcomes(ty: Json, expression: Json, fuel: u64) -> (String, String, usize) {
    let limits = Limits {
        fuel,
        ..Limits::default()
    };
    let program = load(&returning(
        &json!([{"name": "xs", "type": {"array": "integer"}}]),
        &ty,
        &expression,
    ));
    let xs = || vec![integers(&[3, 1, 2])];
    let run = program.run_within(xs(), None, limits);
    let mut execution = program.start_within(xs(), None, true, limits).unwrap();
    let Advanced::Done(observed, marks) = execution.advance(None).unwrap() else {
        panic!("it asks for nothing");
    };
    (
        shown_outcome(&program, &run),
        shown_outcome(&program, &observed),
        marks.len(),
    )
}

#[test]
fn an_item_costs_a_unit() {
    let sum = || each("sum", local(0));
    let (run, observed, marks) = outcomes(json!("integer"), sum(), 3);
    assert_eq!(run, "returned result=6");
    assert_eq!(observed, run);
    assert!(marks > 0);
    for fuel in 0..3 {
        let (run, observed, _) = outcomes(json!("integer"), sum(), fuel);
        assert_eq!(run, "limit fuel");
        assert_eq!(observed, "limit fuel");
    }
}

#[test]
fn what_ends_early_spends_for_what_it_took() {
    let first = || {
        each(
            "exists",
            tree::call("integer.greater", &[local(0), tree::integer(2)]),
        )
    };
    assert_eq!(outcomes(json!("boolean"), first(), 1).0, "returned result=true");
    assert_eq!(outcomes(json!("boolean"), first(), 0).0, "limit fuel");
}

#[test]
fn time_that_is_up_ends_it() {
    let program = load(&returning(
        &json!([{"name": "xs", "type": {"array": "integer"}}]),
        &json!("integer"),
        &each("sum", local(0)),
    ));
    let limits = Limits {
        time: Some(Duration::ZERO),
        ..Limits::default()
    };
    let late = program.run_within(vec![integers(&[1])], None, limits);
    assert_eq!(shown_outcome(&program, &late), "limit time");
    let nothing = program.run_within(vec![integers(&[])], None, limits);
    assert_eq!(shown_outcome(&program, &nothing), "returned result=0");
}
