//! The rules of docs/spec/ir.md about requests, policies, machines, calls and invariants, each violated once.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

#[path = "../../vesper-interp/tests/support/document.rs"]
mod document;
#[path = "../../vesper-interp/tests/support/flow.rs"]
mod flow;
#[path = "support/rules.rs"]
mod rules;
#[path = "../../vesper-interp/tests/support/tree.rs"]
mod tree;

use flow::{returns, step};
use rules::{accepts, loads, node, refuses, refuses_with, text};
use serde_json::{Value as Json, json};
use tree::{call, input, integer};

/// A request with some fields replaced.
fn asking(changes: Json) -> Json {
    let mut fields = json!({
        "name": "r", "effect": "http_request", "class": "keyed", "fixed": {"method": "GET", "provider": "p"},
        "key": input("s"), "arguments": [{"name": "endpoint", "value": input("s")}], "result": {"result": "integer"},
    });
    for (key, value) in changes.as_object().unwrap() {
        if value.is_null() {
            fields.as_object_mut().unwrap().remove(key);
        } else {
            fields[key] = value.clone();
        }
    }
    json!([{"request": fields}, returns(integer(1))])
}

#[test]
fn a_sleep_has_one_length_and_an_interrupt_a_known_kind() {
    let lasting = json!({"name": "duration", "value": {"literal": {"type": "duration", "value": "PT1H"}}});
    let until = json!({"literal": {"type": "timestamp", "value": "2026-11-15T12:00:00Z"}});
    let until = json!({"name": "until", "value": until});
    let sleeping = |arguments: Json| {
        asking(json!({
            "effect": "sleep", "class": "wait", "fixed": {}, "key": null, "arguments": arguments,
            "result": {"result": "timestamp"},
        }))
    };
    accepts(sleeping(json!([lasting])));
    accepts(sleeping(json!([until])));
    refuses(sleeping(json!([])), "a `sleep` has either `duration` or `until`");
    refuses(
        sleeping(json!([lasting, until])),
        "a `sleep` has either `duration` or `until`",
    );
    let raising = |kind: &str| {
        asking(json!({
            "effect": "interrupt", "class": "wait", "fixed": {"kind": kind}, "key": null,
            "arguments": [{"name": "message", "value": input("s")}],
        }))
    };
    accepts(raising("confirmation"));
    refuses(raising("question"), "`question` is no kind of interrupts");
}

#[test]
fn requests_are_as_their_effect_is_declared() {
    accepts(asking(json!({})));
    refuses(asking(json!({"effect": "launch"})), "no effect is named `launch`");
    refuses(asking(json!({"class": "magic"})), "`magic` is not a class");
    refuses(
        asking(json!({"class": "txn"})),
        "request `r`: `http_request` is never of class `txn`",
    );
    refuses(
        asking(json!({"key": null})),
        "a `key` is required for class `keyed`",
    );
    refuses(
        asking(json!({"class": "read"})),
        "a `key` is required for class `keyed`",
    );
    refuses(
        asking(json!({"key": input("x")})),
        "its key is a string, not integer",
    );
    refuses(
        asking(json!({"fixed": {"method": "GET"}})),
        "the fixed fields of `http_request` are method, provider",
    );
    refuses(
        asking(json!({"fixed": {"method": "GET", "provider": "p", "zone": "z"}})),
        "the fixed fields",
    );
    refuses(
        asking(json!({"fixed": {"method": 1, "provider": "p"}})),
        "expected a string",
    );
    refuses(
        asking(json!({"arguments": []})),
        "its argument `endpoint` is missing",
    );
    let query =
        json!({"name": "query", "value": {"record": {"fields": [{"name": "a", "value": input("x")}]}}});
    let endpoint = json!({"name": "endpoint", "value": input("s")});
    accepts(asking(json!({"arguments": [endpoint, query]})));
    refuses(
        asking(json!({"arguments": [query, endpoint]})),
        "its argument `endpoint` is missing",
    );
    refuses(
        asking(json!({"arguments": [endpoint, endpoint]})),
        "`endpoint` is no argument of `http_request`, or is out of order",
    );
    refuses(
        asking(json!({"arguments": [{"name": "endpoint", "value": input("x")}]})),
        "its argument `endpoint` is string, not integer",
    );
    refuses(
        asking(json!({"arguments": [endpoint, {"name": "query", "value": input("x")}]})),
        "its argument `query` is record, not integer",
    );
    refuses(
        asking(json!({"result": integer(1)})),
        "its `result` is no expression of that kind",
    );
    let part =
        json!({"field": {"name": "a", "of": {"result": {"record": [{"name": "a", "type": "integer"}]}}}});
    refuses(
        asking(json!({"result": part})),
        "its `result` is no expression of that kind",
    );
    refuses(
        json!([step("a", json!({"result": "integer"})), returns(integer(1))]),
        "`result` is permitted only as the result",
    );
    let gives_integer = json!({"effect": "random_integer", "class": "read", "key": null, "fixed": {},
        "arguments": [{"name": "min", "value": integer(1)}, {"name": "max", "value": integer(2)}]});
    accepts(asking(gives_integer.clone()));
    let mut other = gives_integer;
    other["result"] = json!({"result": "string"});
    refuses(asking(other), "`random_integer` returns integer, not string");
}

#[test]
fn budgets_limit_something() {
    let budget = |members: serde_json::Value| asking(json!({"policy": {"budgets": [members]}}));
    accepts(budget(
        json!({"scope": "call", "name": "ask", "usd": "0.50", "on_exceeded": "warn"}),
    ));
    accepts(budget(
        json!({"scope": "agent", "name": "a", "tokens": 9, "calls": 1, "time_us": 5, "alert_percent": 80}),
    ));
    for (members, message) in [
        (json!({"scope": "call", "name": "a"}), "a budget limits nothing"),
        (
            json!({"scope": "galaxy", "name": "a", "calls": 1}),
            "`scope` of a budget is `galaxy`",
        ),
        (
            json!({"scope": "call", "name": "a", "calls": 0}),
            "`calls` of a budget is 0",
        ),
        (
            json!({"scope": "call", "name": "a", "usd": "-1"}),
            "`usd` of a budget is `-1`",
        ),
        (
            json!({"scope": "call", "name": "", "calls": 1}),
            "a budget has a name",
        ),
        (
            json!({"scope": "call", "name": "a", "calls": 1, "on_exceeded": "block"}),
            "`on_exceeded` of a budget is `block`",
        ),
    ] {
        refuses(budget(members), message);
    }
    refuses(asking(json!({"policy": {"budgets": []}})), "`budgets` is empty");
}

#[test]
fn policies_have_the_fields_of_the_specification() {
    accepts(asking(
        json!({"policy": {"attempts": 3, "retry_on": ["timeout", "http_5xx"], "jitter": "full", "timeout_us": 5}}),
    ));
    refuses(
        asking(json!({"policy": {"attempts": -3}})),
        "`attempts` of a policy is -3",
    );
    refuses(
        asking(json!({"policy": {"jitter": "some"}})),
        "`jitter` is none or full",
    );
    refuses(
        asking(json!({"policy": {"hurry": 1}})),
        "unknown, repeated or misplaced field `hurry`",
    );
    refuses(
        asking(json!({"policy": {"memory_limit_mb": 1}})),
        "field `memory_limit_mb`",
    );
    let body = json!([returns(integer(1))]);
    assert!(
        loads(&node(
            body.clone(),
            json!({"policy": {"memory_limit_mb": 1, "total_timeout_us": 1}})
        ))
        .is_ok()
    );
    refuses_with(
        body.clone(),
        json!({"audit": "loud"}),
        "`audit` is none or basic or detailed",
    );
    refuses_with(
        body.clone(),
        json!({"capabilities": {"denied": []}}),
        "field `required` is missing",
    );
    refuses_with(body, json!({"type": "agent"}), "the type of a node is");
}

#[test]
fn machines_have_their_states() {
    let machine = |initial: &str, states: Json, transitions: Json| json!({"machines": [{"name": "m", "initial": initial, "states": states, "transitions": transitions}]});
    let reads = |ty: Json, named: &str| {
        json!([
            {"request": {
                "name": "r", "effect": "state_read", "class": "read", "fixed": {"machine": named},
                "arguments": [{"name": "entity", "value": input("s")}], "result": {"result": ty},
            }},
            returns(integer(1)),
        ])
    };
    let states = json!({"enum": ["on", "off"]});
    let good = machine("on", json!(["on", "off"]), json!([["on", "off"]]));
    assert_eq!(loads(&node(reads(states.clone(), "m"), good.clone())), Ok(()));
    refuses_with(
        reads(states.clone(), "n"),
        good.clone(),
        "its machine is not declared",
    );
    refuses_with(
        reads(json!("string"), "m"),
        good.clone(),
        "`state_read` returns enum[on, off], not string",
    );
    refuses_with(
        reads(json!({"enum": ["off", "on"]}), "m"),
        good,
        "returns enum[on, off], not enum[off, on]",
    );
    let body = json!([returns(integer(1))]);
    refuses_with(
        body.clone(),
        machine("idle", json!(["on"]), json!([])),
        "machine `m` has no state `idle`",
    );
    refuses_with(
        body.clone(),
        machine("on", json!(["on"]), json!([["on", "off"]])),
        "machine `m` has no state `off`",
    );
    refuses_with(
        body.clone(),
        machine("on", json!(["on", "on"]), json!([])),
        "has the state `on` twice",
    );
    refuses_with(
        body,
        machine("on", json!(["on"]), json!([["on"]])),
        "a transition has two states",
    );
}

#[test]
fn calls_are_as_the_entry_says() {
    let entry = json!({
        "node": "other_v1", "hash": "0".repeat(64),
        "inputs": [{"name": "a", "type": "integer", "optional": false}, {"name": "b", "type": "integer", "optional": true},
            {"name": "c", "type": {"optional": "integer"}, "optional": true}, {"name": "d", "type": "integer", "optional": false}],
        "success": [{"name": "out", "type": "integer"}], "error": [],
    });
    let calling = |node_id: &str, inputs: Json, result: Json| json!([{"call": {"name": "c", "node": node_id, "inputs": inputs, "result": result}}, returns(integer(1))]);
    let given = |names: &[&str]| {
        let each = names
            .iter()
            .map(|name| json!({"name": name, "value": integer(1)}));
        json!(each.collect::<Vec<Json>>())
    };
    let record = json!({"result": {"record": [{"name": "out", "type": "integer"}]}});
    let rest = json!({"calls": [entry]});
    let refuses = |body: Json, message: &str| refuses_with(body, rest.clone(), message);
    for names in [&["a", "d"][..], &["a", "b", "d"]] {
        let body = calling("other_v1", given(names), record.clone());
        loads(&node(body, rest.clone())).unwrap();
    }
    refuses(
        calling("none_v1", given(&["a", "d"]), record.clone()),
        "`calls` has no node `none_v1`",
    );
    refuses(
        calling("other_v1", given(&["a"]), record.clone()),
        "its input `d` is missing",
    );
    refuses(
        calling("other_v1", given(&["d"]), record.clone()),
        "its input `a` is missing",
    );
    refuses(
        calling("other_v1", given(&["d", "a"]), record.clone()),
        "its input `a` is missing",
    );
    refuses(
        calling("other_v1", given(&["a", "d", "b"]), record.clone()),
        "`b` is no input of `other_v1`, or is out of order",
    );
    refuses(
        calling("other_v1", given(&["a", "z"]), record.clone()),
        "its input `d` is missing",
    );
    let wrong = json!([{"name": "a", "value": text("1")}, {"name": "d", "value": integer(1)}]);
    refuses(
        calling("other_v1", wrong, record),
        "its input `a` is integer, not string",
    );
    let other = json!({"result": {"record": [{"name": "out", "type": "string"}]}});
    refuses(
        calling("other_v1", given(&["a", "d"]), other),
        "`other_v1` returns record{out: integer}, not record{out: string}",
    );
    let mut twice = rest.clone();
    twice["calls"].as_array_mut().unwrap().push(entry.clone());
    refuses_with(
        json!([returns(integer(1))]),
        twice,
        "`calls` has the node `other_v1` twice",
    );
}

#[test]
fn outputs_and_errors_are_seen_where_they_are_there() {
    let is_null =
        |what: Json, ty: Json| json!({"call": {"op": "optional.is_null", "args": [what], "of": [ty]}});
    let body = json!([returns(integer(1))]);
    let error = json!({"error": "message"});
    let clause = |phase: &str, holds: Json| json!({phase: [{"holds": holds}]});
    assert_eq!(
        loads(&node(
            body.clone(),
            clause("invariants", is_null(error.clone(), json!("string")))
        )),
        Ok(())
    );
    let only = "can be referred to only in";
    refuses_with(
        body.clone(),
        clause("postconditions", is_null(error.clone(), json!("string"))),
        only,
    );
    refuses_with(
        body.clone(),
        clause("preconditions", is_null(error, json!("string"))),
        only,
    );
    refuses(json!([returns(json!({"output": "result"}))]), only);
    let nameless = is_null(json!({"error": "nothing"}), json!("string"));
    refuses_with(
        body.clone(),
        clause("invariants", nameless),
        "no error field is named `nothing`",
    );
    // Optional if the node can raise an error, itself otherwise.
    let plain = call("integer.less", &[json!({"output": "result"}), integer(3)]);
    refuses_with(
        body.clone(),
        clause("invariants", plain.clone()),
        "wants integer as its `left` argument, got optional<integer>",
    );
    assert_eq!(
        loads(&node(body.clone(), clause("postconditions", plain.clone()))),
        Ok(())
    );
    let mut without = clause("invariants", plain);
    without["outputs"] = json!({"success": [{"name": "result", "type": "integer"}], "error": []});
    assert_eq!(loads(&node(body, without)), Ok(()));
}
