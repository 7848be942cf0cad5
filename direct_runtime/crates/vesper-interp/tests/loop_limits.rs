//! Loops at their limits: a million items, adversarial keys and the deepest nesting.
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

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use support::{load, run};
use tree::{each, input, integer, local, order, returning, sort_by};
use values::{integers, outcome};
use vesper_ir::Value;

fn of_integers(ty: &Json, expression: &Json, items: &[i64]) -> String {
    outcome(&json!({"array": "integer"}), ty, expression, integers(items))
}

#[test]
fn a_loop_builds_a_million_items_and_no_more() {
    const LIMIT: i64 = 1_000_000;
    let inputs = json!([{"name": "xs", "type": {"array": "integer"}}]);
    let too_many = || integers(&(0..=LIMIT).collect::<Vec<_>>());
    // Not traced too: a million items take time.
    let of = |op: &str, types: Json, built: Json, xs: Value| {
        let length = json!({"call": {"op": op, "args": [built], "of": types}});
        let program = load(&returning(&inputs, &json!("integer"), &length));
        support::shown_outcome(&program, &program.run(vec![xs], None))
    };
    let integer_type = json!(["integer"]);
    let array = |xs: Value| of("array.length", integer_type.clone(), each("array", local(0)), xs);
    assert_eq!(array(too_many()), "failed too_large at 2");
    let just = integers(&(0..LIMIT).collect::<Vec<_>>());
    assert_eq!(array(just), "returned result=1000000");
    let sorts = sort_by(order("descending"), local(0));
    assert_eq!(
        of("array.length", integer_type.clone(), sorts, too_many()),
        "failed too_large at 3"
    );
    let counts = each("count_by", local(0));
    assert_eq!(
        of("map.length", json!(["integer", "integer"]), counts, too_many()),
        "failed too_large at 2"
    );
    let one_group = each("group_by", integer(0));
    assert_eq!(
        of(
            "map.length",
            json!(["integer", {"array": "integer"}]),
            one_group,
            too_many()
        ),
        "failed too_large at 2"
    );
    // Equal members count once.
    let members = |value: Json| of("set.length", integer_type.clone(), each("set", value), too_many());
    assert_eq!(members(local(0)), "failed too_large at 2");
    assert_eq!(members(integer(1)), "returned result=1");
}

#[test]
fn hostile_keys_take_time_in_proportion() {
    // Long keys that are equal, or differ only at the end.
    let start = Instant::now();
    let items: Vec<i64> = (0..100_000).collect();
    let long = "x".repeat(60_000);
    let key = json!({"literal": {"type": "string", "value": long}});
    for (kind, ty) in [
        ("distinct_by", json!({"array": "integer"})),
        ("count_by", json!({"map": ["string", "integer"]})),
    ] {
        let found = of_integers(&ty, &each(kind, key.clone()), &items);
        assert!(found.len() < 70_000, "{kind}");
    }
    let ty = json!({"array": "integer"});
    let found = of_integers(&ty, &sort_by(order("descending"), key), &items);
    assert!(found.starts_with("[0,1,2,"), "stable");
    assert!(start.elapsed() < Duration::from_mins(1), "{:?}", start.elapsed());
}

#[test]
fn the_deepest_nesting_of_what_a_fold_starts_with_and_of_its_value() {
    let inputs = json!([{"name": "xs", "type": {"array": "integer"}}]);
    for operand in ["with", "value"] {
        let folds = (0..511).fold(integer(1), |inner, level| {
            let mut fold = json!({"for": {
                "kind": "fold", "locals": [2 * level, 2 * level + 1], "over": input("xs"),
                "with": integer(0), "value": local(2 * level + 1),
            }});
            fold["for"][operand] = inner;
            fold
        });
        let program = load(&returning(&inputs, &json!("integer"), &folds));
        assert_eq!(run(&program, &[integers(&[7])]).1, "returned result=1");
    }
}
