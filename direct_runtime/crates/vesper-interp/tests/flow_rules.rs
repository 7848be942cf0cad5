//! The rules of docs/spec/ir.md about statements, each broken once: the reader refuses, and says what and where.
#![allow(
    clippy::expect_used,
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

use flow::{built, gives, handled, raises, returns, step};
use serde_json::{Value as Json, json};
use support::document;
use tree::{call, input, integer, local};
use vesper_interp::Program;

fn codes() -> Json {
    json!({"enum": ["closed", "late"]})
}

fn node(body: Json, rest: Json) -> Json {
    let mut node = json!({
        "inputs": [{"name": "x", "type": "integer"}, {"name": "s", "type": "string"}],
        "outputs": {
            "success": [{"name": "result", "type": "integer"}],
            "error": [{"name": "error_code", "type": codes()}, {"name": "message", "type": "string"}],
        },
        "body": body,
    });
    for (key, value) in rest.as_object().unwrap() {
        node[key] = value.clone();
    }
    node
}

fn loads(node: &Json) -> Result<(), String> {
    let loaded = Program::load(&document(&built(node)));
    loaded.map(drop).map_err(|rejected| rejected.to_string())
}

fn accepts(body: Json) {
    if let Err(what) = loads(&node(body, json!({}))) {
        panic!("{what}");
    }
}

fn refuses_with(body: Json, rest: Json, message: &str) {
    let found = loads(&node(body, rest)).expect_err("accepted");
    assert!(found.contains(message), "{found:?} does not say {message:?}");
}

fn refuses(body: Json, message: &str) {
    refuses_with(body, json!({}), message);
}

fn is_small() -> Json {
    call("integer.less", &[input("x"), integer(9)])
}

fn text(value: &str) -> Json {
    json!({"literal": {"type": "string", "value": value}})
}

fn of(step: &str) -> Json {
    json!({"step": step})
}

fn branch(arms: Json, rest: Json) -> Json {
    let mut fields = json!({"name": "b", "arms": arms});
    for (key, value) in rest.as_object().unwrap() {
        fields[key] = value.clone();
    }
    json!({"branch": fields})
}

fn arm(body: Json, value: Option<Json>) -> Json {
    let mut arm = json!({"when": is_small(), "body": body});
    if let Some(value) = value {
        arm["value"] = value;
    }
    arm
}

#[test]
fn steps_are_seen_below_and_inside_and_nowhere_else() {
    accepts(json!([
        step("a", integer(1)),
        branch(
            json!([arm(json!([step("c", of("a"))]), Some(of("c")))]),
            json!({"otherwise": of("a")})
        ),
        returns(of("b")),
    ]));
    let unseen = "cannot be referred to here";
    refuses(
        json!([
            branch(json!([arm(json!([step("c", integer(1))]), None)]), json!({})),
            returns(of("c"))
        ]),
        unseen,
    );
    refuses(
        json!([
            branch(
                json!([arm(json!([step("c", integer(1))]), None)]),
                json!({"else": [step("d", of("c"))]})
            ),
            returns(integer(1))
        ]),
        unseen,
    );
    refuses(
        json!([branch(json!([arm(json!([]), None)]), json!({})), returns(of("b"))]),
        unseen,
    );
    refuses(json!([step("a", of("a")), returns(integer(1))]), unseen);
    refuses(
        json!([
            handled(&step("a", integer(1)), json!([gives("any", of("a"))])),
            returns(integer(1))
        ]),
        unseen,
    );
    let in_handler = json!([{"codes": ["any"], "body": [step("h", integer(1))], "value": of("h")}]);
    accepts(json!([
        handled(&step("a", integer(1)), in_handler.clone()),
        returns(of("a"))
    ]));
    refuses(
        json!([handled(&step("a", integer(1)), in_handler), returns(of("h"))]),
        unseen,
    );
    let body = json!([step("a", integer(1)), returns(of("a"))]);
    refuses_with(
        body.clone(),
        json!({"postconditions": [{"holds": call("integer.less", &[of("a"), integer(2)])}]}),
        unseen,
    );
    refuses_with(
        body,
        json!({"invariants": [{"holds": call("integer.less", &[of("a"), integer(2)])}]}),
        unseen,
    );
}

#[test]
fn names_are_one_namespace_in_all_blocks() {
    let twice = "two of the inputs, constants and steps are named";
    refuses(
        json!([
            branch(json!([arm(json!([step("x", integer(1))]), None)]), json!({})),
            returns(integer(1))
        ]),
        twice,
    );
    refuses(
        json!([
            branch(
                json!([arm(json!([step("c", integer(1))]), None)]),
                json!({"else": [step("c", integer(1))]})
            ),
            returns(integer(1))
        ]),
        twice,
    );
    refuses(
        json!([
            step("b", integer(1)),
            branch(json!([arm(json!([]), None)]), json!({})),
            returns(integer(1))
        ]),
        twice,
    );
}

#[test]
fn blocks_leave_where_they_must_and_nothing_stands_after() {
    refuses(json!([]), "does not end with a return or a raise");
    refuses(
        json!([branch(
            json!([arm(json!([returns(integer(1))]), None)]),
            json!({})
        )]),
        "does not end",
    );
    accepts(json!([branch(
        json!([arm(json!([returns(integer(1))]), None)]),
        json!({"else": [raises(&codes(), "late")]})
    )]));
    let both = branch(
        json!([arm(json!([returns(integer(1))]), None)]),
        json!({"else": [returns(integer(2))]}),
    );
    refuses(
        json!([both.clone(), returns(integer(1))]),
        "statement 1 stands after one that leaves",
    );
    refuses(
        json!([returns(integer(1)), returns(integer(2))]),
        "statement 1 stands after one that leaves",
    );
    let compensates = json!([{"codes": ["any"], "body": []}]);
    refuses(json!([handled(&both, compensates)]), "does not end");
    accepts(json!([handled(
        &both,
        json!([{"codes": ["any"], "body": [raises(&codes(), "late")]}])
    )]));
}

#[test]
fn a_return_and_a_raise_give_all_that_is_declared() {
    refuses(
        json!([{"return": {"success": []}}]),
        "the return gives 0 values for 1 outputs",
    );
    refuses(
        json!([returns(input("s"))]),
        "the return gives string for output `result`, which is integer",
    );
    refuses(
        json!([{"raise": {"error": []}}]),
        "the raise gives 0 values for 2 error fields",
    );
    let mut swapped = raises(&codes(), "late");
    swapped["raise"]["error"].as_array_mut().unwrap().reverse();
    refuses(json!([swapped]), "where error field `error_code` is next");
    refuses(
        json!([raises(&json!({"enum": ["late", "closed"]}), "late")]),
        "for error field `error_code`",
    );
    let none = json!({"outputs": {"success": [{"name": "result", "type": "integer"}], "error": []}});
    refuses_with(
        json!([{"raise": {"error": []}}]),
        none,
        "the node declares no errors",
    );
    let errors = |fields: Json| json!({"outputs": {"success": [{"name": "result", "type": "integer"}], "error": fields}});
    let first = "the first error field is `error_code`, an enum";
    refuses_with(
        json!([returns(integer(1))]),
        errors(json!([{"name": "message", "type": "string"}])),
        first,
    );
    refuses_with(
        json!([returns(integer(1))]),
        errors(json!([{"name": "error_code", "type": "string"}])),
        first,
    );
    let twice = json!([{"name": "error_code", "type": codes()}, {"name": "error_code", "type": codes()}]);
    refuses_with(
        json!([returns(integer(1))]),
        errors(twice),
        "two error fields are named `error_code`",
    );
}

#[test]
fn the_arms_of_a_branch_agree() {
    let end = returns(integer(1));
    let with = |arms: Json, rest: Json| json!([branch(arms, rest), end]);
    refuses(with(json!([]), json!({})), "branch `b` has no arms");
    let not_boolean = json!([{"when": input("x"), "body": []}]);
    refuses(
        with(not_boolean, json!({})),
        "a condition of branch `b` is boolean, not integer",
    );
    let valued = json!([arm(json!([]), Some(integer(1)))]);
    refuses(
        with(valued.clone(), json!({})),
        "an arm has a value, another none",
    );
    refuses(
        with(valued, json!({"otherwise": text("a")})),
        "an arm has a value of integer, another one of string",
    );
    refuses(
        with(json!([arm(json!([]), None)]), json!({"otherwise": text("a")})),
        "an arm has a value, another none",
    );
    refuses(
        with(
            json!([arm(json!([returns(integer(1))]), Some(integer(1)))]),
            json!({"otherwise": integer(1)}),
        ),
        "an arm that leaves has a value",
    );
}

#[test]
fn handlers_fit_their_statement() {
    let with = |handlers: Json| json!([handled(&step("a", integer(1)), handlers), returns(of("a"))]);
    refuses(
        with(json!([gives("any", text("a"))])),
        "a handler of `a`: its value is string, not integer",
    );
    refuses(
        with(json!([gives("any", integer(1)), gives("any", integer(2))])),
        "the code `any` stands twice",
    );
    refuses(
        with(json!([{"codes": ["timeout", "timeout"], "body": []}])),
        "the code `timeout` stands twice",
    );
    refuses(with(json!([{"codes": [], "body": []}])), "it has no codes");
    refuses(with(json!([{"codes": [""], "body": []}])), "a code is empty");
    refuses(
        with(json!([{"codes": ["any"], "body": [returns(integer(1))], "value": integer(1)}])),
        "its body leaves, and yet it has a value",
    );
    let valueless = branch(
        json!([arm(json!([]), None)]),
        json!({"handlers": [gives("any", integer(1))]}),
    );
    refuses(json!([valueless, returns(integer(1))]), "the statement has none");
}

/// A loop with some of its fields replaced, or taken away where they are null.
fn looping(changes: Json) -> Json {
    let mut fields = json!({
        "name": "l", "locals": [0], "max": 5, "over": {"array": {"of": "integer", "items": [input("x")]}},
        "where": call("integer.less", &[local(0), integer(5)]),
        "state": [{"local": 1, "name": "n", "value": integer(0)}, {"local": 2, "name": "t", "value": input("s")}],
        "next": [{"local": 1, "value": local(0)}, {"local": 2, "value": text("a")}],
    });
    for (key, value) in changes.as_object().unwrap() {
        if value.is_null() {
            fields.as_object_mut().unwrap().remove(key);
        } else {
            fields[key] = value.clone();
        }
    }
    json!([{"loop": fields}, returns(integer(1))])
}

#[test]
fn loops_are_well_formed() {
    accepts(looping(json!({})));
    accepts(looping(
        json!({"while": is_small(), "stop_when": is_small(), "collect": local(2)}),
    ));
    let state = json!([{"local": 0, "name": "n", "value": integer(0)}]);
    let nothing = json!({"over": null, "locals": [], "where": null, "next": [], "state": state});
    refuses(looping(nothing), "it has neither `over` nor `while`");
    let while_only = json!({"over": null, "locals": [], "while": is_small(), "next": [], "state": state});
    refuses(looping(while_only), "it has `where`, but no `over`");
    let with_locals = json!({"over": null, "where": null, "while": is_small(), "next": []});
    refuses(looping(with_locals), "it has locals, but no `over`");
    refuses(
        looping(json!({"over": input("x")})),
        "`over` is an array, a set or a map, not integer",
    );
    let two = json!({"locals": [0, 3]});
    refuses(looping(two), "there are not 2 locals");
    refuses(
        looping(json!({"where": input("x")})),
        "the `where` of loop `l` is boolean, not integer",
    );
    refuses(
        looping(json!({"while": input("x")})),
        "the `while` of loop `l` is boolean",
    );
    refuses(
        looping(json!({"stop_when": input("x")})),
        "the `stop_when` of loop `l` is boolean",
    );
    for max in [0, -1, 1_000_001] {
        refuses(
            looping(json!({"max": max})),
            "the `max` of a loop is 1 to 1000000",
        );
    }
    refuses(
        looping(json!({"next": [{"local": 1, "value": input("s")}]})),
        "`n` is integer, and its next value string",
    );
    let reversed = json!({"next": [{"local": 2, "value": text("a")}, {"local": 1, "value": integer(1)}]});
    refuses(looping(reversed), "`next` names local 1");
    let twice = json!({"next": [{"local": 1, "value": integer(1)}, {"local": 1, "value": integer(1)}]});
    refuses(looping(twice), "`next` names local 1");
    refuses(
        looping(json!({"next": [{"local": 0, "value": integer(1)}]})),
        "`next` names local 0",
    );
    refuses(
        looping(json!({"state": [], "next": []})),
        "it has neither state nor `collect`",
    );
    let collected = json!({"state": [{"local": 1, "name": "collected", "value": integer(0)}], "next": []});
    refuses(looping(collected), "named `collected`");
    let same = json!({"state": [{"local": 1, "name": "n", "value": integer(0)}, {"local": 2, "name": "n", "value": integer(0)}], "next": []});
    refuses(looping(same), "the field `n` twice");
    refuses(looping(json!({"body": [returns(integer(1))]})), "its body leaves");
    refuses(
        looping(
            json!({"body": [step("inside", integer(1))], "where": {"literal": {"type": "boolean", "value": true}}, "while": call("integer.less", &[of("inside"), integer(1)])}),
        ),
        "cannot be referred to here",
    );
}

#[test]
fn the_locals_of_a_loop_are_seen_in_its_rounds() {
    let outside = "is not introduced around it";
    refuses(
        looping(
            json!({"state": [{"local": 1, "name": "n", "value": local(0)}, {"local": 2, "name": "t", "value": input("s")}]}),
        ),
        outside,
    );
    refuses(
        looping(json!({"over": {"array": {"of": "integer", "items": [local(1)]}}})),
        outside,
    );
    let value =
        json!({"record": {"fields": [{"name": "n", "value": local(1)}, {"name": "t", "value": input("s")}]}});
    refuses(looping(json!({"handlers": [gives("any", value)]})), outside);
    let mut after = looping(json!({}));
    after[1] = returns(local(1));
    refuses(after, outside);
    refuses(
        looping(json!({"locals": [1]})),
        "loop `l`: local 1 is introduced twice",
    );
    refuses(looping(json!({"locals": [9]})), "local 9 is not one of them");
}

/// A request with some of its fields replaced.
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
        "there is a `key` where the class is `keyed`",
    );
    refuses(
        asking(json!({"class": "read"})),
        "there is a `key` where the class is `keyed`",
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
        "`endpoint` is no argument of `http_request`, or stands out of order",
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
        "`result` stands only where",
    );
    let gives_integer = json!({"effect": "random_integer", "class": "read", "key": null, "fixed": {},
        "arguments": [{"name": "min", "value": integer(1)}, {"name": "max", "value": integer(2)}]});
    accepts(asking(gives_integer.clone()));
    let mut other = gives_integer;
    other["result"] = json!({"result": "string"});
    refuses(asking(other), "`random_integer` gives integer, not string");
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
        "`state_read` gives enum[on, off], not string",
    );
    refuses_with(
        reads(json!({"enum": ["off", "on"]}), "m"),
        good,
        "gives enum[on, off], not enum[off, on]",
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
    // What is left is that there is no such document.
    refuses(
        calling("other_v1", given(&["a", "d"]), record.clone()),
        "called node `other_v1`: it is not there",
    );
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
        "`b` is no input of `other_v1`, or stands out of order",
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
        "`other_v1` gives record{out: integer}, not record{out: string}",
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
    // An optional where there may be an error, itself where there is none.
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

fn nested(depth: usize) -> Json {
    let mut body = json!([returns(integer(1))]);
    for level in 1..depth {
        body = json!([
            {"branch": {"name": format!("b{level}"), "arms": [{"when": is_small(), "body": body}]}},
            returns(integer(2)),
        ]);
    }
    body
}

#[test]
fn blocks_nest_16_deep_and_there_are_1000_statements() {
    accepts(nested(16));
    refuses(nested(17), "blocks nest more than 16 deep");
    let many = |count: usize| {
        let mut body: Vec<Json> = (1..count)
            .map(|number| step(&format!("s{number}"), integer(1)))
            .collect();
        body.push(returns(integer(1)));
        json!(body)
    };
    accepts(many(1000));
    refuses(many(1001), "more than 1000 items");
    let renamed = |prefix: &str| {
        let mut body: Vec<Json> = (1..600)
            .map(|number| step(&format!("{prefix}{number}"), integer(1)))
            .collect();
        body.push(returns(integer(1)));
        json!(body)
    };
    refuses(
        json!([branch(
            json!([arm(renamed("p"), None)]),
            json!({"else": renamed("q")})
        )]),
        "more than 1000 statements",
    );
    // Brackets that never end cost no stack.
    let mut deep = document(&built(&node(nested(16), json!({}))));
    let place = deep.windows(8).position(|piece| piece == b"\"body\":[").unwrap() + 8;
    let opening = br#"{"branch":{"arms":[{"body":["#;
    deep.splice(
        place..place,
        opening.iter().copied().cycle().take(opening.len() * 100_000),
    );
    let refused = Program::load(&deep).expect_err("accepted").to_string();
    assert!(refused.contains("blocks nest more than 16 deep"), "{refused}");
}

#[test]
fn the_table_is_in_the_order_of_the_statements() {
    let well = built(&node(
        looping(json!({"stop_when": is_small(), "collect": local(2)})),
        json!({}),
    ));
    Program::load(&document(&well)).unwrap();
    for (left, right) in [
        ("/over", "/collect"),
        ("/where", "/stop_when"),
        ("/next/0/value", "/next/1/value"),
    ] {
        let mut swapped = well.clone();
        let at = |path: &str| format!("/body/0/loop{path}");
        let (first, second) = (
            swapped.pointer(&at(left)).unwrap().clone(),
            swapped.pointer(&at(right)).unwrap().clone(),
        );
        *swapped.pointer_mut(&at(left)).unwrap() = second;
        *swapped.pointer_mut(&at(right)).unwrap() = first;
        let refused = Program::load(&document(&swapped))
            .expect_err("accepted")
            .to_string();
        assert!(refused.contains("does not stand in program order"), "{refused}");
    }
}
