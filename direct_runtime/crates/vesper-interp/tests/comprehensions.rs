//! The meaning of `let`, `for`, `array`, `record` and `field`: results, first failure and marks in loops.
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

use serde_json::{Value as Json, json};
use support::{load, run};
use tree::{call, each, each_where, flatten, input, integer, local, returning};
use values::{decimals, integers, map_of, outcome, set_of, texts};
use vesper_ir::Value;

fn is_positive() -> Json {
    call("integer.greater", &[local(0), integer(0)])
}

/// Overflows for the largest integer and gives `x + 1` for the rest.
fn next() -> Json {
    call("integer.add", &[local(0), integer(1)])
}

#[test]
fn arrays_sets_and_maps_are_built() {
    let xs = json!({"array": "integer"});
    let doubled = call("integer.multiply", &[local(0), integer(2)]);
    let of = |ty: Json, expression: Json, items: &[i64]| outcome(&xs, &ty, &expression, integers(items));
    assert_eq!(
        of(xs.clone(), each("array", doubled.clone()), &[3, 1, 2]),
        "[6,2,4]"
    );
    assert_eq!(of(xs.clone(), each("array", doubled.clone()), &[]), "[]");
    assert_eq!(
        of(
            xs.clone(),
            each_where("array", is_positive(), doubled.clone()),
            &[3, -1, 2]
        ),
        "[6,4]"
    );
    let members = json!({"set": "integer"});
    assert_eq!(
        of(members.clone(), each("set", doubled.clone()), &[3, 1, 3, 2]),
        "{2,4,6}"
    );
    assert_eq!(of(members, each("set", doubled.clone()), &[]), "{}");
    let map =
        json!({"for": {"kind": "map", "locals": [0], "over": input("xs"), "key": doubled, "value": next()}});
    let ty = json!({"map": ["integer", "integer"]});
    assert_eq!(of(ty.clone(), map.clone(), &[3, 1, -2]), "{-4:-1,2:2,6:4}");
    assert_eq!(of(ty.clone(), map.clone(), &[]), "{}");
    // xs, x, 2, x * 2, x, 1, x + 1, for
    assert_eq!(
        of(ty.clone(), map.clone(), &[3, 1, 3]),
        "failed duplicate_key at 7"
    );
    // Key and value are computed before the entry.
    let zero = call("integer.multiply", &[local(0), integer(0)]);
    let clash =
        json!({"for": {"kind": "map", "locals": [0], "over": input("xs"), "key": zero, "value": next()}});
    assert_eq!(
        of(ty.clone(), clash.clone(), &[1, 2]),
        "failed duplicate_key at 7"
    );
    assert_eq!(of(ty, clash, &[1, i64::MAX]), "failed integer_overflow at 6");
}

#[test]
fn reductions_give_their_results() {
    let xs = json!({"array": "integer"});
    let ty = json!("integer");
    let of = |expression: Json, items: &[i64]| outcome(&xs, &ty, &expression, integers(items));
    assert_eq!(of(each("sum", local(0)), &[1, 2, 3]), "6");
    assert_eq!(of(each("sum", local(0)), &[]), "0");
    assert_eq!(
        of(each("sum", local(0)), &[i64::MAX, 1, -1]),
        "failed integer_overflow at 2"
    );
    assert_eq!(
        of(each("sum", local(0)), &[i64::MAX, -1, 1]),
        i64::MAX.to_string()
    );
    assert_eq!(of(each("count", next()), &[5, 5]), "2");
    assert_eq!(of(each_where("count", is_positive(), local(0)), &[5, -5, 1]), "2");
    assert_eq!(
        of(each("count", next()), &[5, i64::MAX]),
        "failed integer_overflow at 3"
    );
    assert_eq!(of(each("min", local(0)), &[3, 1, 2]), "1");
    assert_eq!(of(each("max", local(0)), &[3, 1, 2]), "3");
    assert_eq!(of(each("min", local(0)), &[]), "failed empty_collection at 2");
    assert_eq!(
        of(each_where("max", is_positive(), local(0)), &[-1]),
        "failed empty_collection at 5"
    );

    let ty = json!("boolean");
    let of = |expression: Json, items: &[i64]| outcome(&xs, &ty, &expression, integers(items));
    assert_eq!(of(each("forall", is_positive()), &[]), "true");
    assert_eq!(of(each("forall", is_positive()), &[1, 2]), "true");
    assert_eq!(of(each("forall", is_positive()), &[1, -2]), "false");
    assert_eq!(of(each("exists", is_positive()), &[]), "false");
    assert_eq!(of(each("exists", is_positive()), &[-1, -2]), "false");
    assert_eq!(of(each("exists", is_positive()), &[-1, 2]), "true");
    // Both stop as early as they can.
    let next_is_positive = call("integer.greater", &[next(), integer(0)]);
    assert_eq!(
        of(each("forall", next_is_positive.clone()), &[-5, i64::MAX]),
        "false"
    );
    assert_eq!(
        of(each("exists", next_is_positive.clone()), &[5, i64::MAX]),
        "true"
    );
    assert_eq!(
        of(each("forall", next_is_positive), &[5, i64::MAX]),
        "failed integer_overflow at 3"
    );
}

#[test]
fn decimals_keep_their_scales_and_the_first_of_equals_wins() {
    let xs = json!({"array": "decimal"});
    let of =
        |kind: &str, items: &[&str]| outcome(&xs, &json!("decimal"), &each(kind, local(0)), decimals(items));
    assert_eq!(of("sum", &[]), "0");
    assert_eq!(of("sum", &["1.50", "2.5"]), "4.00");
    assert_eq!(of("sum", &["9E+999", "9E+999"]), "failed decimal_overflow at 2");
    assert_eq!(of("min", &["2", "1.0", "1.00", "1"]), "1.0");
    assert_eq!(of("max", &["0.5", "1.00", "1.0"]), "1.00");
    let xs = json!({"array": "string"});
    let of = |kind: &str| {
        let items = texts(&["b", "\u{ffff}", "\u{10000}", "a", "é"]);
        outcome(&xs, &json!("string"), &each(kind, local(0)), items)
    };
    assert_eq!(of("min"), "\"a\"");
    assert_eq!(of("max"), "\"\u{10000}\"", "by code point, not by UTF-16");
}

#[test]
fn sets_and_maps_are_gone_through_in_their_order() {
    let out = json!({"array": "string"});
    let keys = each("array", local(0));
    assert_eq!(
        outcome(&json!({"set": "string"}), &out, &keys, set_of(&["b", "c", "a"])),
        "[\"a\",\"b\",\"c\"]"
    );
    let map = json!({"map": ["string", "integer"]});
    let entries = || map_of(&[("b", 1), ("c", 2), ("a", 3)]);
    assert_eq!(outcome(&map, &out, &keys, entries()), "[\"a\",\"b\",\"c\"]");
    let values = json!({"for": {"kind": "array", "locals": [0, 1], "over": input("xs"), "value": local(1)}});
    assert_eq!(
        outcome(&map, &json!({"array": "integer"}), &values, entries()),
        "[3,1,2]"
    );
    let inverted = json!({"for": {
        "kind": "map", "locals": [0, 1], "over": input("xs"), "key": local(1), "value": local(0),
    }});
    let ty = json!({"map": ["integer", "string"]});
    assert_eq!(
        outcome(&map, &ty, &inverted, entries()),
        "{1:\"b\",2:\"c\",3:\"a\"}"
    );
}

#[test]
fn loops_nest_and_locals_keep_their_values() {
    // for x in xs: for y in xs where y > x: [x, y + sum(z in xs: x * z)], with a let around the sum.
    let product = call("integer.multiply", &[local(0), local(3)]);
    let sum = json!({"for": {"kind": "sum", "locals": [3], "over": input("xs"), "value": product}});
    let body =
        json!({"array": {"items": [local(0), call("integer.add", &[local(1), local(2)])], "of": "integer"}});
    let bound = json!({"let": {"local": 2, "value": sum, "body": body}});
    let inner = json!({"for": {
        "kind": "array", "locals": [1], "over": input("xs"),
        "where": call("integer.greater", &[local(1), local(0)]), "value": bound,
    }});
    let ty = json!({"array": {"array": {"array": "integer"}}});
    assert_eq!(
        outcome(
            &json!({"array": "integer"}),
            &ty,
            &each("array", inner),
            integers(&[1, 2, 3])
        ),
        "[[[1,8],[1,9]],[[2,15]],[]]"
    );
    // A let bound to a name, and one bound to a loop over another let.
    let squares = each("array", call("integer.multiply", &[local(0), local(0)]));
    let total = json!({"for": {"kind": "sum", "locals": [2], "over": local(1), "value": local(2)}});
    let twice = call("integer.add", &[total, call("array.at", &[local(1), integer(0)])]);
    let mut twice = twice;
    twice["call"]["args"][1]["call"]["of"] = json!(["integer"]);
    let expression = json!({"let": {"local": 1, "value": squares, "body": twice}});
    assert_eq!(
        outcome(
            &json!({"array": "integer"}),
            &json!("integer"),
            &expression,
            integers(&[2, 3])
        ),
        "17"
    );
}

#[test]
fn records_are_made_and_taken_apart() {
    let record = |qty: Json| {
        json!({"record": {"fields": [
            {"name": "qty", "value": qty},
            {"name": "note", "value": {"literal": {"type": {"optional": "string"}, "value": null}}},
        ]}})
    };
    let ty = json!({"record": [{"name": "qty", "type": "integer"}, {"name": "note", "type": {"optional": "string"}}]});
    let xs = json!({"array": "integer"});
    let rows = each("array", record(next()));
    assert_eq!(
        outcome(&xs, &json!({"array": ty}), &rows, integers(&[1, 2])),
        "[(qty=2,note=null),(qty=3,note=null)]"
    );
    let quantity = json!({"field": {"name": "qty", "of": local(1)}});
    let sum = json!({"for": {"kind": "sum", "locals": [1], "over": rows, "value": quantity}});
    assert_eq!(outcome(&xs, &json!("integer"), &sum, integers(&[1, 2])), "5");
    let unwrapped = json!({"call": {
        "op": "optional.unwrap", "of": ["string"], "args": [{"field": {"name": "note", "of": record(integer(1))}}],
    }});
    assert_eq!(
        outcome(&xs, &json!("string"), &unwrapped, integers(&[])),
        "failed null_value at 4"
    );
    let nothing = json!({"array": {"items": [], "of": ty}});
    assert_eq!(outcome(&xs, &json!({"array": ty}), &nothing, integers(&[])), "[]");
}

#[test]
fn marks_are_made_each_time() {
    // sum(x in xs where x > 0: if x > 10 then 10 else x) as a step, then exists(x in xs: x > 100) as a postcondition.
    let clamp = json!({"if": {
        "condition": call("integer.greater", &[local(0), integer(10)]), "then": integer(10), "else": local(0),
    }});
    let mut table = Vec::new();
    let step = flatten(&each_where("sum", is_positive(), clamp), &mut table);
    let returned = flatten(&json!({"step": "total"}), &mut table);
    let exists = json!({"for": {
        "kind": "exists", "locals": [1], "over": input("xs"), "value": call("integer.greater", &[local(1), integer(100)]),
    }});
    let clause = flatten(&exists, &mut table);
    let program = load(&json!({
        "node_id": "test_v1", "type": "function", "inputs": [{"name": "xs", "type": {"array": "integer"}}],
        "outputs": {"success": [{"name": "result", "type": "integer"}]}, "constants": [], "expressions": table,
        "constraints": [], "preconditions": [], "postconditions": [{"holds": clause}],
        "body": [
            {"step": {"name": "total", "value": step}},
            {"return": {"success": [{"name": "result", "value": returned}]}},
        ],
    }));
    assert_eq!((step, clause), (10, 16));
    let (marks, outcome) = run(&program, &[integers(&[5, -1, 101])]);
    assert_eq!(
        marks,
        [
            "3:true", "6:false", "3:false", "3:true", "6:true", "10:15", "16:true"
        ]
    );
    assert_eq!(outcome, "returned result=15");
    let (marks, outcome) = run(&program, &[integers(&[-1])]);
    assert_eq!(marks, ["3:false", "10:0", "16:false"]);
    assert_eq!(outcome, "broken postcondition 0: xs=[-1]");
}

#[test]
fn of_the_constants_a_clause_mentions_sets_and_maps_are_left_out() {
    let of = json!(["string"]);
    let in_set =
        json!({"call": {"op": "set.is_member", "args": [input("x"), {"constant": "members"}], "of": of}});
    let in_map = json!({"call": {"op": "map.is_key", "args": [input("x"), {"constant": "rates"}], "of": ["string", "integer"]}});
    let in_array =
        json!({"call": {"op": "array.is_item", "args": [input("x"), {"constant": "list"}], "of": of}});
    let mut table = Vec::new();
    let clause = flatten(&json!({"or": [{"or": [in_set, in_map]}, in_array]}), &mut table);
    let program = load(&json!({
        "node_id": "test_v1", "type": "function", "inputs": [{"name": "x", "type": "string"}],
        "outputs": {"success": []}, "expressions": table,
        "constants": [
            {"name": "members", "type": {"set": "string"}, "value": ["a"]},
            {"name": "rates", "type": {"map": ["string", "integer"]}, "value": [["b", 1]]},
            {"name": "list", "type": {"array": "string"}, "value": ["c", "c"]},
        ],
        "constraints": [], "preconditions": [{"holds": clause}], "postconditions": [],
        "body": [{"return": {"success": []}}],
    }));
    for name in ["a", "b", "c"] {
        assert_eq!(run(&program, &[Value::Text(name.into())]).1, "returned ");
    }
    assert_eq!(
        run(&program, &[Value::Text("d".into())]).1,
        "broken precondition 0: x=\"d\" list=[\"c\",\"c\"]"
    );
}

#[test]
fn the_deepest_nesting_loads_and_runs() {
    // Each level binds a local; 511 levels over a literal are the limit.
    let lets = (0..511).fold(
        integer(1),
        |body, number| json!({"let": {"local": number, "value": integer(0), "body": body}}),
    );
    let none = json!([]);
    let program = load(&returning(&none, &json!("integer"), &lets));
    assert_eq!(run(&program, &[]).1, "returned result=1");
    // Each `for` sums the one inside it once.
    let xs = json!([{"name": "xs", "type": {"array": "integer"}}]);
    let sums = (0..511).fold(integer(1), |value, number| {
        json!({"for": {"kind": "sum", "locals": [number], "over": input("xs"), "value": value}})
    });
    let program = load(&returning(&xs, &json!("integer"), &sums));
    assert_eq!(run(&program, &[integers(&[7])]).1, "returned result=1");
}

#[test]
fn long_loops_take_linear_time() {
    let items: Vec<i64> = (0..200_000).rev().collect();
    let map = json!({"for": {"kind": "map", "locals": [0], "over": input("xs"), "key": local(0), "value": local(0)}});
    let length = json!({"call": {"op": "map.length", "args": [map], "of": ["integer", "integer"]}});
    let start = std::time::Instant::now();
    assert_eq!(
        outcome(
            &json!({"array": "integer"}),
            &json!("integer"),
            &length,
            integers(&items)
        ),
        "200000"
    );
    assert!(
        start.elapsed() < std::time::Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}
