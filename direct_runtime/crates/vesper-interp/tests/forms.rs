//! Kinds of `for` combined with statements and types: handlers, floats, times, bytes, enums and patterns.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

#[path = "support/flow.rs"]
mod flow;
#[path = "support/mod.rs"]
mod support;
#[path = "support/tree.rs"]
mod tree;
#[path = "support/values.rs"]
mod values;

use std::sync::Arc;

use flow::{build, gives, returns, step, with_handlers};
use serde_json::{Value as Json, json};
use support::{load, run};
use tree::{call, each, input, integer, local, order, sort_by};
use values::{integers, outcome, texts};
use vesper_ir::{Member, Value};

const DAY: i64 = 86_400_000_000;

fn array(items: Vec<Value>) -> Value {
    Value::Array(items.into())
}

fn floats(items: &[f64]) -> Value {
    array(items.iter().copied().map(Value::Float).collect())
}

fn durations(items: &[i64]) -> Value {
    array(items.iter().copied().map(Value::Duration).collect())
}

/// Returns the outcome of a kind of `for` on the items themselves.
fn of_items(kind: &str, of: &str, ty: Json, items: Value) -> String {
    outcome(&json!({"array": of}), &ty, &each(kind, local(0)), items)
}

/// Returns the outcome of these statements on the integers `xs`.
fn statements(body: Json, xs: &[i64]) -> String {
    let node = build(&json!({
        "inputs": [{"name": "xs", "type": {"array": "integer"}}],
        "outputs": {"success": [{"name": "result", "type": "integer"}], "error": []}, "body": body,
    }));
    run(&load(&node), &[integers(xs)])
        .1
        .replace("returned result=", "")
}

#[test]
fn failures_of_forms_reach_handlers() {
    let index = |number: u32| json!({"for": {"kind": "index_by", "locals": [number], "over": input("xs"), "value": local(number)}});
    let length = |of: Json| json!({"call": {"op": "map.length", "args": [of], "of": ["integer", "integer"]}});
    let caught = |value: Json, code: &str, xs: &[i64]| {
        let handlers = json!([gives("null_value", integer(1)), gives(code, integer(-7))]);
        let made = with_handlers(&step("made", value), handlers);
        statements(json!([made, returns(json!({"step": "made"}))]), xs)
    };
    assert_eq!(caught(length(index(0)), "duplicate_key", &[1, 2]), "2");
    assert_eq!(caught(length(index(0)), "duplicate_key", &[1, 1]), "-7");
    assert_eq!(
        caught(each("min", local(0)), "empty_collection", &[]),
        "-7",
        "none is the smallest of none"
    );
    assert_eq!(
        caught(each("sum", local(0)), "integer_overflow", &[i64::MAX, 1]),
        "-7"
    );
    let average = json!({"call": {"op": "decimal.floor", "args": [each("avg", local(0))]}});
    assert_eq!(caught(average.clone(), "empty_collection", &[1, 4]), "2");
    assert_eq!(caught(average, "any", &[]), "-7");
    // Inside a round; the loop continues to collect afterwards.
    let inverse = call(
        "integer.quot",
        &[
            integer(12),
            json!({"for": {"kind": "sum", "locals": [1], "over": {"array": {"of": "integer", "items": [local(0)]}}, "value": local(1)}}),
        ],
    );
    let inside = with_handlers(
        &step("one", inverse),
        json!([gives("division_by_zero", integer(0))]),
    );
    let rounds = json!({"loop": {
        "name": "rounds", "locals": [0], "over": input("xs"), "body": [inside], "collect": {"step": "one"}, "max": 9,
    }});
    let collected = json!({"field": {"name": "collected", "of": {"step": "rounds"}}});
    let sum = json!({"for": {"kind": "sum", "locals": [2], "over": collected, "value": local(2)}});
    assert_eq!(statements(json!([rounds, returns(sum)]), &[3, 0, 4]), "7");
}

#[test]
fn floats_and_durations_are_added_from_the_left() {
    let of = |kind: &str, items: &[f64]| of_items(kind, "float", json!("float"), floats(items));
    assert_eq!(of("sum", &[0.1; 10]), "0.9999999999999999");
    assert_eq!(of("sum", &[]), "0.0");
    assert_eq!(of("sum", &[1e16, 1.0, -1e16]), "0.0");
    assert_eq!(of("avg", &[1.0, 2.0]), "1.5");
    assert_eq!(of("avg", &[]), "failed empty_collection at 2");
    let of = |items: &[i64]| of_items("sum", "duration", json!("duration"), durations(items));
    assert_eq!(of(&[DAY, 1_500_000]), "P1DT1.5S");
    assert_eq!(of(&[]), "PT0S");
    let most = 3_652_059 * DAY;
    assert_eq!(of(&[most, 1, -1]), "failed time_overflow at 2");
    assert_eq!(of(&[most, -1, 1]), "P3652059D");
}

#[test]
fn every_ordered_type_has_a_least_and_a_greatest_value_and_can_be_sorted() {
    let sorts = |of: &str, items: Value| {
        let ty = json!({"array": of});
        outcome(&ty, &ty, &sort_by(order("ascending"), local(0)), items)
    };
    let both = |of: &str, items: Value| {
        let least = of_items("min", of, json!(of), items.clone());
        (least, of_items("max", of, json!(of), items))
    };
    let given = floats(&[f64::NAN, 0.0, f64::INFINITY, -0.0, -1.0]);
    assert_eq!(sorts("float", given.clone()), "[-1.0,-0.0,0.0,Infinity,NaN]");
    assert_eq!(both("float", given), ("-1.0".to_owned(), "NaN".to_owned()));
    let given = durations(&[1_000_000, -1_000_000, 0]);
    assert_eq!(sorts("duration", given.clone()), "[-PT1S,PT0S,PT1S]");
    assert_eq!(both("duration", given), ("-PT1S".to_owned(), "PT1S".to_owned()));
    let given = array([3, -1, 0].map(Value::Date).to_vec());
    assert_eq!(sorts("date", given.clone()), "[1969-12-31,1970-01-01,1970-01-04]");
    assert_eq!(
        both("date", given),
        ("1969-12-31".to_owned(), "1970-01-04".to_owned())
    );
    let given = array([DAY, -DAY].map(Value::Timestamp).to_vec());
    assert_eq!(
        both("timestamp", given),
        (
            "1969-12-31T00:00:00Z".to_owned(),
            "1970-01-02T00:00:00Z".to_owned()
        )
    );
    let bytes = |parts: &[&[u8]]| array(parts.iter().map(|part| Value::Bytes(Arc::from(*part))).collect());
    let given = bytes(&[b"\xff", b"a\x00", b"a", b""]);
    assert_eq!(sorts("bytes", given.clone()), "[,YQ==,YQA=,/w==]");
    assert_eq!(both("bytes", given), (String::new(), "/w==".to_owned()));
    // Keys of these kinds can group and index.
    let days = json!({"map": ["date", "integer"]});
    let given = array([1, 0, 1].map(Value::Date).to_vec());
    assert_eq!(
        of_items("count_by", "date", days, given),
        "{1970-01-01:1,1970-01-02:2}"
    );
}

#[test]
fn nan_equals_nothing_wherever_it_is() {
    let ty = json!({"array": "float"});
    let given = floats(&[f64::NAN, 1.0, f64::NAN, 1.0, -0.0, 0.0]);
    let shown = "[NaN,1.0,NaN,-0.0]";
    assert_eq!(
        outcome(&ty, &ty, &each("distinct_by", local(0)), given.clone()),
        shown
    );
    let distinct = json!({"call": {"op": "array.distinct", "args": [input("xs")], "of": ["float"]}});
    assert_eq!(outcome(&ty, &ty, &distinct, given), shown);
    let deep = json!({"array": ty});
    let given = array(vec![
        floats(&[f64::NAN]),
        floats(&[2.0]),
        floats(&[f64::NAN]),
        floats(&[2.0]),
    ]);
    assert_eq!(
        outcome(&deep, &deep, &each("distinct_by", local(0)), given),
        "[[NaN],[2.0],[NaN]]"
    );
    let equal = json!({"call": {"op": "array.equal", "args": [input("xs"), input("xs")], "of": ["float"]}});
    assert_eq!(
        outcome(&ty, &json!("boolean"), &equal, floats(&[f64::NAN])),
        "false"
    );
    assert_eq!(outcome(&ty, &json!("boolean"), &equal, floats(&[0.5])), "true");
}

#[test]
fn enums_and_records_of_operations_are_types_like_any_other() {
    let week =
        json!({"enum": ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]});
    let counts = json!({"map": [week, "integer"]});
    let days = json!({"array": "date"});
    let weekday = |of: Json| json!({"call": {"op": "date.weekday", "args": [of]}});
    // 1970-01-01 was a Thursday.
    let given = array([0, 7, 1, -3].map(Value::Date).to_vec());
    assert_eq!(
        outcome(
            &days,
            &counts,
            &each("count_by", weekday(local(0))),
            given.clone()
        ),
        "{monday:1,thursday:2,friday:1}"
    );
    let sunday = json!({"literal": {"type": week, "value": "friday"}});
    let is_friday = json!({"call": {"op": "enum.equal", "args": [weekday(local(0)), sunday], "of": [week]}});
    assert_eq!(
        outcome(&days, &json!("boolean"), &each("exists", is_friday), given),
        "true"
    );
    // A record created by an operation, with an enum in it.
    let pair = json!({"record": [{"name": "index", "type": "integer"}, {"name": "value", "type": week}]});
    let pairs = json!({"array": pair});
    let given = || json!({"array": week});
    let enumerate = json!({"call": {"op": "array.enumerate", "args": [input("xs")], "of": [week]}});
    let members = array(vec![Value::Member(Member(6)), Value::Member(Member(0))]);
    assert_eq!(
        outcome(&given(), &pairs, &enumerate, members.clone()),
        "[(index=0,value=sunday),(index=1,value=monday)]"
    );
    let itself = json!({"call": {"op": "array.equal", "args": [enumerate, enumerate], "of": [pair]}});
    assert_eq!(outcome(&given(), &json!("boolean"), &itself, members), "true");
}

#[test]
fn patterns_are_read_wherever_they_stand() {
    let matches = |of: Json, pattern: &str| {
        call(
            "regex.matches",
            &[of, json!({"literal": {"type": "string", "value": pattern}})],
        )
    };
    let first = || {
        let get = json!({"call": {"op": "array.at", "args": [input("xs"), integer(0)], "of": ["string"]}});
        get
    };
    let body = json!([
        with_handlers(
            &json!({"branch": {
                "name": "chosen",
                "arms": [{"when": matches(first(), "^a+$"), "body": [], "value": integer(1)}],
                "else": [step("inner", matches(first(), "^b+$"))],
                "otherwise": json!({"if": {"condition": {"step": "inner"}, "then": integer(2), "else": integer(3)}}),
            }}),
            json!([gives("index_out_of_range", {
                let found = matches(json!({"literal": {"type": "string", "value": "xyz"}}), "y");
                json!({"if": {"condition": found, "then": integer(4), "else": integer(5)}})
            })]),
        ),
        {"loop": {
            "name": "rounds", "locals": [0], "over": input("xs"), "max": 9, "where": matches(local(0), "[0-9]"),
            "body": [step("numbers", json!({"call": {"op": "regex.find_all", "args": [
                local(0), {"literal": {"type": "string", "value": "[0-9]+"}},
            ]}}))],
            "collect": {"call": {"op": "array.length", "args": [{"step": "numbers"}], "of": ["string"]}},
        }},
        returns(call("integer.add", &[
            json!({"step": "chosen"}),
            call("integer.multiply", &[integer(10), json!({"for": {
                "kind": "sum", "locals": [1], "over": {"field": {"name": "collected", "of": {"step": "rounds"}}},
                "value": local(1),
            }})]),
        ])),
    ]);
    let node = build(&json!({
        "inputs": [{"name": "xs", "type": {"array": "string"}}],
        "outputs": {"success": [{"name": "result", "type": "integer"}], "error": []}, "body": body,
    }));
    let program = load(&node);
    let of = |items: &[&str]| run(&program, &[texts(items)]).1;
    assert_eq!(of(&["aa"]), "returned result=1");
    assert_eq!(of(&["bb", "1 22", "x", "3"]), "returned result=32");
    assert_eq!(of(&["ab"]), "returned result=3");
    assert_eq!(of(&[]), "returned result=4");
}
