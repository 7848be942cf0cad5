//! Nodes that call nodes: requests, outcomes, linking and the shared start time.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

#[path = "support/executions.rs"]
mod executions;
#[path = "support/flow.rs"]
mod flow;
#[path = "support/mod.rs"]
mod support;
#[path = "support/tree.rs"]
mod tree;

use executions::{expect_outcome, expect_request, failure, node, start, value};
use flow::{build, gives, raises, request_step, returns, with_handlers};
use serde_json::{Value as Json, json};
use support::document::complete;
use support::{document, load};
use tree::{call, input, integer, local};
use vesper_interp::{Advanced, Completion, Program};
use vesper_ir::Value;

fn codes() -> Json {
    json!({"enum": ["too_big", "http_402"]})
}

fn errors() -> Json {
    json!([{"name": "error_code", "type": codes()}, {"name": "message", "type": "string"}])
}

/// Makes a request and doubles the result. Raises an error if `x` exceeds 100; breaks its precondition if `x` is
/// negative.
fn callee() -> Json {
    node(
        "double_v1",
        json!([
            {"branch": {
                "name": "b",
                "arms": [{"when": call("integer.greater", &[input("x"), integer(100)]), "body": [raises(&codes(), "too_big")]}],
            }},
            request_step("factor"),
            returns(call("integer.multiply", &[input("x"), json!({"step": "factor"})])),
        ]),
        json!({
            "inputs": [{"name": "x", "type": "integer"}, {"name": "note", "type": {"optional": "string"}},
                {"name": "y", "type": "integer", "default": 3}],
            "outputs": {"success": [{"name": "result", "type": "integer"}], "error": errors()},
            "preconditions": [{"holds": call("integer.greater", &[input("x"), input("y")])}],
        }),
    )
}

/// The entry of a callee in its caller's document.
fn entry(node: &Json) -> Json {
    let node = complete(node);
    let hash = Program::load(&document(&node)).map_or_else(
        // A node with callees cannot be loaded alone.
        |_| vesper_ir::load(&document(&node)).unwrap().semantic_hash,
        |program| program.node().semantic_hash.clone(),
    );
    let inputs = node["inputs"].as_array().unwrap().iter().map(|input| {
        let is_optional = input.get("default").is_some() || input["type"].get("optional").is_some();
        json!({"name": input["name"], "type": input["type"], "optional": is_optional})
    });
    let inputs: Vec<Json> = inputs.collect();
    json!({
        "node": node["node_id"], "hash": hash, "inputs": inputs,
        "success": node["outputs"]["success"], "error": node["outputs"]["error"],
    })
}

fn calls(name: &str, node: &Json, inputs: Json) -> Json {
    let fields: Vec<Json> = node["outputs"]["success"].as_array().unwrap().clone();
    json!({"call": {"name": name, "node": node["node_id"], "inputs": inputs, "result": {"result": {"record": fields}}}})
}

fn x_as_x() -> Json {
    json!([{"name": "x", "value": input("x")}])
}

fn result_of(name: &str) -> Json {
    json!({"field": {"name": "result", "of": {"step": name}}})
}

fn caller(handlers: Json, errors: Json) -> (Json, Vec<u8>) {
    let called = callee();
    let node = node(
        "caller_v1",
        json!([
            with_handlers(&calls("pay", &called, x_as_x()), handlers),
            returns(call("integer.add", &[result_of("pay"), integer(1)])),
        ]),
        json!({"calls": [entry(&called)], "outputs": {"success": [{"name": "result", "type": "integer"}], "error": errors}}),
    );
    (node, document(&called))
}

fn load_caller(handlers: Json, errors: Json) -> Program {
    let (node, called) = caller(handlers, errors);
    Program::load_with(&document(&node), &[&called]).unwrap()
}

#[test]
fn a_called_node_asks_through_its_caller() {
    let program = load_caller(json!([]), json!([]));
    assert!(program.asks());
    assert_eq!(program.nodes().len(), 2);
    let mut execution = start(&program, 5);
    let request = expect_request(execution.advance(None));
    assert_eq!(
        (&*request.node, &*request.step, request.path.as_str()),
        ("double_v1", "factor", "pay/factor")
    );
    let (outcome, marks) = expect_outcome(&program, execution.advance(value(0, 4)));
    assert_eq!(outcome, "returned result=21");
    assert_eq!(marks, ["1:(result=20)"], "those of the called node are its own");
}

#[test]
fn what_a_called_node_ends_with_is_a_failure_of_the_call() {
    let plain = load_caller(json!([]), json!([]));
    let first = |program: &Program, x: i64| expect_outcome(program, start(program, x).advance(None)).0;
    assert_eq!(first(&plain, 101), "failed too_big at 1");
    assert_eq!(
        first(&plain, 3),
        "failed contract_broken at 1",
        "`y` has its default"
    );
    assert_eq!(first(&plain, -1), "failed contract_broken at 1");
    let fails = |program: &Program, code: &str| {
        let mut execution = start(program, 5);
        expect_request(execution.advance(None));
        expect_outcome(program, execution.advance(failure(0, code))).0
    };
    assert_eq!(fails(&plain, "timeout"), "failed timeout at 1");
    // The callee converts the failure to a declared error, which fails in the caller again.
    assert_eq!(fails(&plain, "http_402"), "failed http_402 at 1");
    let ten = json!({"record": {"fields": [{"name": "result", "value": integer(10)}]}});
    let taken = load_caller(
        json!([
            gives("too_big", ten.clone()),
            gives("contract_broken", ten.clone()),
            gives("http_4xx", ten)
        ]),
        json!([]),
    );
    assert_eq!(first(&taken, 101), "returned result=11");
    assert_eq!(first(&taken, -1), "returned result=11");
    assert_eq!(fails(&taken, "http_402"), "returned result=11");
    assert_eq!(fails(&taken, "timeout"), "failed timeout at 1");
    let declares = load_caller(json!([]), errors());
    assert_eq!(
        first(&declares, 101),
        "error error_code=too_big message=\"too_big\""
    );
    let mut execution = start(&plain, 5);
    expect_request(execution.advance(None));
    let denied = execution.advance(Some((0, Completion::Denied("a.b.c".into()))));
    assert_eq!(expect_outcome(&plain, denied).0, "denied a.b.c");
}

#[test]
fn calls_nest_and_repeat() {
    let inner = callee();
    let items = json!({"array": {"of": "integer", "items": [integer(5), integer(6)]}});
    let middle = node(
        "middle_v1",
        json!([
            {"loop": {
                "name": "l", "locals": [0], "over": items, "state": [{"local": 1, "name": "n", "value": input("x")}],
                "body": [calls("one", &inner, json!([{"name": "x", "value": local(0)}, {"name": "y", "value": integer(0)}]))],
                "next": [{"local": 1, "value": call("integer.add", &[local(1), result_of("one")])}],
            }},
            returns(json!({"field": {"name": "n", "of": {"step": "l"}}})),
        ]),
        json!({"calls": [entry(&inner)]}),
    );
    let outer = node(
        "outer_v1",
        json!([
            calls("a", &middle, x_as_x()),
            calls("b", &inner, json!([{"name": "x", "value": result_of("a")}])),
            returns(result_of("b")),
        ]),
        json!({"calls": [entry(&inner), entry(&middle)]}),
    );
    let program = Program::load_with(&document(&outer), &[&document(&inner), &document(&middle)]).unwrap();
    assert_eq!(program.nodes().len(), 3);
    let mut execution = start(&program, 1);
    let mut paths = Vec::new();
    let mut advanced = execution.advance(None);
    while let Ok(Advanced::Blocked(wave)) = &advanced {
        let request = &wave[0];
        paths.push(request.path.clone());
        advanced = execution.advance(value(request.id, 2));
    }
    assert_eq!(paths, ["a/one[0]/factor", "a/one[1]/factor", "b/factor"]);
    // 1 + 10 + 12 = 23, doubled.
    assert_eq!(expect_outcome(&program, advanced).0, "returned result=46");
}

#[test]
fn pure_nodes_that_call_pure_nodes_run_to_the_end() {
    let inner = node(
        "inc_v1",
        json!([returns(call("integer.add", &[input("x"), integer(1)]))]),
        json!({}),
    );
    let outer = node(
        "outer_v1",
        json!([calls("a", &inner, x_as_x()), returns(result_of("a"))]),
        json!({"calls": [entry(&inner)]}),
    );
    let program = Program::load_with(&document(&outer), &[&document(&inner)]).unwrap();
    assert!(!program.asks());
    assert_eq!(
        support::run(&program, &[Value::Integer(4)]).1,
        "returned result=5"
    );
    assert_eq!(
        support::run(&program, &[Value::Integer(i64::MAX)]).1,
        "failed integer_overflow at 1"
    );
}

fn refusal(node: &Json, others: &[&[u8]]) -> String {
    match Program::load_with(&document(node), others) {
        Err(rejected) => rejected.to_string(),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn called_nodes_are_the_ones_that_were_checked() {
    let (node, called) = caller(json!([]), json!([]));
    assert!(refusal(&node, &[]).contains("called node `double_v1`: it is not there"));
    assert!(refusal(&node, &[&called, &called]).contains("two documents are of the node `double_v1`"));
    assert!(refusal(&node, &[b"{}"]).starts_with("a called node: byte "));
    let changed = |path: &str, value: Json| {
        let mut node = node.clone();
        *node.pointer_mut(path).unwrap() = value;
        refusal(&node, &[&called])
    };
    assert!(changed("/calls/0/hash", json!("0".repeat(64))).contains("it has another semantic hash"));
    assert!(changed("/calls/0/inputs/0/optional", json!(true)).contains("it has other inputs"));
    assert!(changed("/calls/0/inputs/2/name", json!("z")).contains("it has other inputs"));
    assert!(
        changed("/calls/0/inputs/1/type", json!({"optional": "integer"})).contains("it has other inputs")
    );
    assert!(changed("/calls/0/error", json!([])).contains("it has other errors"));
    assert!(changed("/calls/0/error/1/type", json!("integer")).contains("it has other errors"));
    assert!(changed("/calls/0/hash", json!("xyz")).contains("semantic hash is not 64"));
}

#[test]
fn nodes_do_not_call_themselves() {
    // The hash of a recursive node cannot be known, so a cycle is rejected before hashes are compared.
    let entry = |id: &str| {
        json!({
            "node": id, "hash": "0".repeat(64), "inputs": [{"name": "x", "type": "integer", "optional": false}],
            "success": [{"name": "result", "type": "integer"}], "error": [],
        })
    };
    let node_calling = |id: &str, other: &str| {
        let called =
            json!({"node_id": other, "outputs": {"success": [{"name": "result", "type": "integer"}]}});
        node(
            id,
            json!([calls("a", &called, x_as_x()), returns(result_of("a"))]),
            json!({"calls": [entry(other)]}),
        )
    };
    let own = node_calling("a_v1", "a_v1");
    assert!(refusal(&own, &[&document(&own)]).contains("node `a_v1` calls itself"));
    let (left, right) = (node_calling("a_v1", "b_v1"), node_calling("b_v1", "a_v1"));
    assert!(refusal(&left, &[&document(&right)]).contains("node `a_v1` calls itself"));
}

#[test]
fn calls_go_32_deep() {
    let mut nodes = vec![node("n0_v1", json!([returns(input("x"))]), json!({}))];
    for depth in 1..33 {
        let below = nodes.last().unwrap();
        let id = format!("n{depth}_v1");
        let body = json!([calls("a", below, x_as_x()), returns(result_of("a"))]);
        nodes.push(node(&id, body, json!({"calls": [entry(below)]})));
    }
    let documents: Vec<Vec<u8>> = nodes.iter().map(document).collect();
    let others: Vec<&[u8]> = documents.iter().map(Vec::as_slice).collect();
    let program = Program::load_with(others[31], &others[..31]).unwrap();
    assert_eq!(
        support::run(&program, &[Value::Integer(4)]).1,
        "returned result=4"
    );
    assert!(refusal(&nodes[32], &others[..32]).contains("more than 32 deep"));
    // A deep node that a shorter path reaches first.
    let both = node(
        "both_v1",
        json!([
            calls("a", &nodes[0], x_as_x()),
            calls("b", &nodes[31], x_as_x()),
            returns(result_of("b"))
        ]),
        json!({"calls": [entry(&nodes[0]), entry(&nodes[31])]}),
    );
    assert!(refusal(&both, &others[..32]).contains("more than 32 deep"));
}

#[test]
fn now_is_the_start_in_the_node_and_in_those_it_calls() {
    let stamp = json!([{"name": "at", "type": "timestamp"}]);
    let returns_now = |value: Json| json!({"return": {"success": [{"name": "at", "value": value}]}});
    let inner = node(
        "inner_v1",
        json!([returns_now(json!({"now": "timestamp"}))]),
        json!({"outputs": {"success": stamp, "error": []}}),
    );
    let outer = node(
        "outer_v1",
        json!([
            calls("a", &inner, x_as_x()),
            returns_now(json!({"field": {"name": "at", "of": {"step": "a"}}})),
        ]),
        json!({"outputs": {"success": stamp, "error": []}, "calls": [entry(&inner)]}),
    );
    let program = Program::load_with(&document(&outer), &[&document(&inner)]).unwrap();
    assert!(program.uses_now() && !program.node().uses_now && !program.asks());
    assert!(program.start(vec![Value::Integer(1)], None, false).is_err());
    let now = Value::Timestamp(1_234_567);
    for ran in [&program, &load(&inner)] {
        let outcome = ran.run(vec![Value::Integer(1)], Some(now.clone()));
        assert!(
            format!("{outcome:?}").contains("Timestamp(1234567)"),
            "{outcome:?}"
        );
    }
    let wrong = node("w_v1", json!([returns(json!({"now": "integer"}))]), json!({}));
    assert!(refusal(&wrong, &[]).contains("`now` is a timestamp, not integer"));
    let early = build(&json!({
        "node_id": "w_v1", "inputs": [{"name": "x", "type": "integer"}], "body": [returns(integer(1))],
        "outputs": {"success": [{"name": "result", "type": "integer"}]},
        "constraints": [{"input": "x", "holds": {"call": {
            "op": "value.equal", "of": ["timestamp"], "args": [{"now": "timestamp"}, {"now": "timestamp"}],
        }}}],
    }));
    assert!(refusal(&early, &[]).contains("`now` is not permitted in constraints"));
}
