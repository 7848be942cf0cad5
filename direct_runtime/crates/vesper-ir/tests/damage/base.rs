//! A document with every kind of declaration, statement and expression, and edits of it.

use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use crate::document::document;
use crate::flow::{build, gives, request_step, with_handlers};
use crate::tree::{call, input, integer, local};

fn codes() -> Json {
    json!({"enum": ["closed", "late"]})
}

fn point() -> Json {
    json!({"record": [{"name": "n", "type": "integer"}, {"name": "note", "type": {"optional": "string"}}]})
}

fn raises(code: &str) -> Json {
    json!({"raise": {"error": [{"name": "error_code", "value": {"literal": {"type": codes(), "value": code}}}]}})
}

fn of(name: &str) -> Json {
    json!({"step": name})
}

fn steps() -> Vec<Json> {
    let record = json!({"record": {"fields": [
        {"name": "n", "value": input("x")},
        {"name": "note", "value": {"literal": {"type": {"optional": "string"}, "value": null}}},
    ]}});
    let choice = json!({"if": {"condition": {"constant": "yes"}, "then": input("x"), "else": integer(2)}});
    let folded = json!({"for": {
        "kind": "fold", "locals": [3, 4, 5], "over": input("rates"), "with": integer(2),
        "where": call("integer.less", &[local(4), integer(9)]), "value": call("integer.add", &[local(5), local(4)]),
    }});
    let mapped = json!({"for": {
        "kind": "map", "locals": [6, 7], "over": input("rates"), "key": local(7), "value": local(6),
    }});
    let step = |name: &str, value: Json| json!({"step": {"name": name, "value": value}});
    vec![
        step("made", record),
        step("field", json!({"field": {"name": "n", "of": of("made")}})),
        step("choice", choice),
        step(
            "bound",
            json!({"let": {"local": 2, "value": input("x"), "body": local(2)}}),
        ),
        step("folded", folded),
        step("mapped", mapped),
        step(
            "array",
            json!({"array": {"items": [input("x"), integer(1)], "of": "integer"}}),
        ),
        step("time", json!({"now": "timestamp"})),
        step(
            "both",
            json!({"and": [{"constant": "yes"}, {"or": [{"constant": "yes"}, {"constant": "yes"}]}]}),
        ),
        step(
            "member",
            json!({"call": {"op": "set.is_member", "args": [input("x"), {"constant": "lucky"}], "of": ["integer"]}}),
        ),
    ]
}

fn flow() -> Vec<Json> {
    let request = json!({"request": {
        "name": "fetched", "effect": "http_request", "class": "keyed", "fixed": {"method": "GET", "provider": "p"},
        "key": input("s"), "arguments": [{"name": "endpoint", "value": input("s")}],
        "result": {"result": point()}, "sensitive": ["note"],
        "policy": {"attempts": 3, "jitter": "full", "retry_on": ["timeout"], "timeout_us": 0},
    }});
    let called = json!({"call": {
        "name": "called", "node": "other_v1", "inputs": [{"name": "a", "value": integer(1)}],
        "result": {"result": {"record": [{"name": "out", "type": "integer"}]}},
    }});
    let repeated = json!({"loop": {
        "name": "rounds", "locals": [0], "max": 1_000_000, "over": of("array"),
        "state": [{"local": 1, "name": "n", "value": integer(1)}],
        "where": call("integer.less", &[local(0), integer(9)]),
        "while": call("integer.less", &[local(1), integer(900)]),
        "body": [request_step("inside")],
        "collect": local(0),
        "next": [{"local": 1, "value": of("inside")}],
        "stop_when": call("integer.less", &[local(0), local(1)]),
    }});
    let branch = json!({"branch": {
        "name": "last",
        "arms": [
            {"when": call("integer.less", &[input("x"), integer(3)]), "body": [raises("late")]},
            {"when": {"constant": "yes"}, "body": [request_step("inner")], "value": of("inner")},
        ],
        "else": [request_step("other")], "otherwise": integer(8),
    }});
    vec![
        json!({"require": {"holds": call("integer.less", &[integer(0), input("x")])}}),
        with_handlers(
            &request,
            json!([{"codes": ["http_4xx", "timeout"], "body": [raises("closed")]}]),
        ),
        called,
        repeated,
        with_handlers(&branch, json!([gives("division_by_zero", integer(0))])),
        json!({"return": {"success": [{"name": "result", "value": of("last")}]}}),
    ]
}

/// Returns the whole document.
pub(crate) fn base() -> Json {
    static WHOLE: LazyLock<Json> = LazyLock::new(whole);
    WHOLE.clone()
}

fn whole() -> Json {
    let node = json!({
        "node_id": "whole_v1", "type": "workflow", "audit": "basic", "audit_fields": "{}", "sensitive": ["s"],
        "capabilities": {"denied": ["network"], "required": ["time"]},
        "declassified": {"result": "a reason", "error.error_code": "another", "made": "a third"},
        "policy": {"attempts": 1, "memory_limit_mb": 5, "total_timeout_us": 9},
        "machines": [{"name": "door", "initial": "open", "states": ["open", "shut"], "transitions": [["open", "shut"]]}],
        "calls": [{
            "node": "other_v1", "hash": "0".repeat(64), "error": [], "success": [{"name": "out", "type": "integer"}],
            "inputs": [{"name": "a", "type": "integer", "optional": false}],
        }],
        "inputs": [
            {"name": "x", "type": "integer", "default": 1}, {"name": "s", "type": "string"},
            {"name": "rates", "type": {"map": ["string", "integer"]}, "default": [["a", 1], ["b", 2]]},
            {"name": "p", "type": point(), "default": {"n": 1, "note": "a"}},
        ],
        "outputs": {
            "success": [{"name": "result", "type": "integer"}], "error": [{"name": "error_code", "type": codes()}],
        },
        "constants": [
            {"name": "yes", "type": "boolean", "value": true},
            {"name": "lucky", "type": {"set": "integer"}, "value": [-3, 7]},
            {"name": "table", "type": {"array": {"optional": "integer"}}, "value": [1, null]},
        ],
        "constraints": [{"input": "x", "holds": call("integer.less", &[integer(0), input("x")])}],
        "preconditions": [{"holds": call("integer.less", &[input("x"), integer(99)])}],
        "body": steps().into_iter().chain(flow()).collect::<Vec<_>>(),
        "postconditions": [{"holds": call("integer.less", &[json!({"output": "result"}), integer(99)])}],
        "invariants": [{"holds": {"call": {"op": "optional.is_null", "args": [{"error": "error_code"}], "of": [codes()]}}}],
    });
    let mut whole: Json = serde_json::from_slice(&document(&build(&node))).unwrap();
    whole["source"]["clauses"] = json!({"0": "a clause"});
    whole["source"]["steps"] = json!({"made": [1, 2, 3, 4]});
    whole["taint"] = json!({
        "sources": ["x", "fetched", "s", "called"],
        "outputs": {"result": {"from": "f"}}, "errors": {"error_code": {"from": "1"}},
        "steps": {"made": {"from": "1", "fields": {"n": {"from": "2"}}}},
        "values": [{"at": 0, "flow": {"from": "8"}}, {"at": 1, "flow": {"from": "4"}}],
        "failures": [{"at": 2, "flow": {"from": "1"}}],
    });
    whole
}

/// Returns the index of an expression of this kind, counted from 0 among those.
pub(crate) fn place_of(kind: &str, number: usize) -> usize {
    let whole = base();
    let expressions = whole["semantics"]["expressions"].as_array().unwrap().iter();
    let mut places = expressions
        .enumerate()
        .filter_map(|(place, expression)| expression.get(kind).map(|_| place));
    places.nth(number).unwrap_or_else(|| panic!("no {kind} {number}"))
}

/// Returns the path of that expression.
pub(crate) fn path_of(kind: &str, number: usize) -> String {
    format!("/semantics/expressions/{}", place_of(kind, number))
}

/// Returns the rejection of a document, or `None` where it loads.
pub(crate) fn rejection(document: &Json) -> Option<String> {
    let loaded = vesper_ir::load(document.to_string().as_bytes());
    loaded.err().map(|rejected| rejected.to_string())
}

/// Returns the document with one value replaced.
pub(crate) fn with(path: &str, value: Json) -> Json {
    let mut changed = base();
    *changed.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value;
    changed
}

/// Checks that a document with one value replaced is refused with this message.
#[track_caller]
pub(crate) fn refuses(path: &str, value: Json, message: &str) {
    let shown = value.to_string();
    let found = rejection(&with(path, value)).unwrap_or_else(|| panic!("{path}: {shown} is accepted"));
    assert!(
        found.contains(message),
        "{path}: {found:?} does not say {message:?}"
    );
}

/// Checks that a document with one value replaced loads.
#[track_caller]
pub(crate) fn accepts(path: &str, value: Json) {
    let found = rejection(&with(path, value));
    assert_eq!(found, None, "{path}");
}
