//! Executions that ask and wait: requests, completions, handlers of what failed outside, and called nodes.
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

use flow::{asks, built, gives, handled, raises, returns};
use serde_json::{Value as Json, json};
use support::{completed, document, load, shown, shown_outcome};
use tree::{call, input, integer, local};
use vesper_interp::{Advanced, Completion, Execution, Misuse, Program, Request};
use vesper_ir::{FailureCode, Value};

fn node(id: &str, body: Json, rest: Json) -> Json {
    let mut node = json!({
        "node_id": id, "type": "workflow",
        "inputs": [{"name": "x", "type": "integer"}],
        "outputs": {"success": [{"name": "result", "type": "integer"}], "error": []},
        "body": body,
    });
    for (key, value) in rest.as_object().unwrap() {
        node[key] = value.clone();
    }
    built(&node)
}

fn program(body: Json) -> Program {
    load(&node("test_v1", body, json!({})))
}

fn start(program: &Program, x: i64) -> Execution {
    program.start(vec![Value::Integer(x)], None, true).unwrap()
}

fn blocked(advanced: Result<Advanced, Misuse>) -> Request {
    match advanced.unwrap() {
        Advanced::Blocked(request) => request,
        Advanced::Done(outcome, _) => panic!("done: {outcome:?}"),
    }
}

fn done(program: &Program, advanced: Result<Advanced, Misuse>) -> (String, Vec<String>) {
    match advanced.unwrap() {
        Advanced::Blocked(request) => panic!("blocked: {request:?}"),
        Advanced::Done(outcome, marks) => {
            let marks = marks.iter().map(|mark| {
                let ty = &program.node().expression(mark.index).unwrap().ty;
                format!("{}:{}", mark.index, shown(ty, &mark.value))
            });
            (shown_outcome(program, &outcome), marks.collect())
        }
    }
}

#[allow(clippy::unnecessary_wraps, reason = "what an execution is advanced with")]
fn value(id: u64, value: i64) -> Option<(u64, Completion)> {
    Some((id, Completion::Value(Value::Integer(value))))
}

#[allow(clippy::unnecessary_wraps, reason = "what an execution is advanced with")]
fn failure(id: u64, code: &str) -> Option<(u64, Completion)> {
    Some((id, Completion::Failed(FailureCode::new(code))))
}

/// Completes the one request of a fresh execution with a failure.
fn failing(program: &Program, code: &str) -> String {
    let mut execution = start(program, 1);
    let request = blocked(execution.advance(None));
    done(program, execution.advance(failure(request.id, code))).0
}

#[test]
fn a_request_waits_and_its_completion_is_the_value() {
    let program = program(json!([
        {"request": {
            "name": "charge", "effect": "http_request", "class": "keyed",
            "fixed": {"method": "POST", "provider": "stripe"},
            "key": {"literal": {"type": "string", "value": "k1"}},
            "arguments": [
                {"name": "endpoint", "value": {"literal": {"type": "string", "value": "/v1/charges"}}},
                {"name": "query", "value": {"record": {"fields": [{"name": "amount", "value": input("x")}]}}},
            ],
            "result": {"result": "integer"},
        }},
        asks("second"),
        returns(call("integer.add", &[json!({"step": "charge"}), json!({"step": "second"})])),
    ]));
    assert!(program.asks() && !program.uses_now());
    let mut execution = start(&program, 5);
    assert!(execution.awaited().is_none());
    let request = blocked(execution.advance(None));
    assert_eq!(
        (request.id, &*request.step, request.path.as_str()),
        (0, "charge", "charge")
    );
    assert_eq!(
        (&*request.node, request.effect.name(), request.class.name()),
        ("test_v1", "http_request", "keyed")
    );
    assert_eq!(request.key.as_deref(), Some("k1"));
    let fixed: Vec<(&str, &str)> = request
        .fixed
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    assert_eq!(fixed, [("method", "POST"), ("provider", "stripe")]);
    let arguments = request.arguments.iter();
    let arguments: Vec<String> = arguments
        .map(|argument| format!("{}={}", argument.name, shown(&argument.ty, &argument.value)))
        .collect();
    assert_eq!(arguments, ["endpoint=\"/v1/charges\"", "query=(amount=5)"]);
    assert_eq!(request.result.to_string(), "integer");
    assert_eq!(execution.awaited().unwrap().0, 0);

    let request = blocked(execution.advance(value(0, 40)));
    assert_eq!((request.id, request.path.as_str()), (1, "second"));
    let (outcome, marks) = done(&program, execution.advance(value(1, 2)));
    assert_eq!(outcome, "returned result=42");
    assert_eq!(marks, ["4:40", "5:2"]);
}

#[test]
fn an_execution_is_advanced_as_it_must_be() {
    let program = program(json!([asks("a"), returns(json!({"step": "a"}))]));
    let mut execution = start(&program, 1);
    let wrong = |advanced: Result<Advanced, Misuse>| advanced.unwrap_err().0;
    assert_eq!(wrong(execution.advance(value(0, 1))), "nothing was asked for yet");
    blocked(execution.advance(None));
    assert_eq!(wrong(execution.advance(None)), "request 0 waits to be completed");
    assert!(wrong(execution.advance(value(1, 1))).contains("not request 1"));
    // It is as it was.
    assert_eq!(
        done(&program, execution.advance(value(0, 7))).0,
        "returned result=7"
    );
    assert_eq!(wrong(execution.advance(None)), "this execution has ended");
    assert!(program.start(vec![], None, true).is_err());
    assert_eq!(
        shown_outcome(&program, &program.run(vec![Value::Integer(1)], None))
            .split(':')
            .next(),
        Some("fault")
    );
}

#[test]
fn an_execution_may_wait_anywhere() {
    fn is_send<T: Send + 'static>(_: &T) {}
    let program = program(json!([asks("a"), returns(json!({"step": "a"}))]));
    let mut execution = start(&program, 1);
    is_send(&execution);
    blocked(execution.advance(None));
    drop(program);
    let moved = std::thread::spawn(move || {
        execution
            .advance(value(0, 9))
            .map(|advanced| format!("{advanced:?}"))
    });
    assert!(moved.join().unwrap().unwrap().contains("Returned([Integer(9)])"));
}

#[test]
fn paths_say_the_rounds_of_the_loops_around() {
    let items = json!({"array": {"of": "integer", "items": [integer(10), integer(20)]}});
    let program = program(json!([
        {"loop": {
            "name": "outer", "locals": [0], "over": items, "state": [{"local": 1, "name": "n", "value": integer(0)}],
            "body": [
                asks("first"),
                {"loop": {
                    "name": "inner", "state": [{"local": 2, "name": "m", "value": integer(0)}],
                    "while": call("integer.less", &[local(2), integer(2)]),
                    "body": [asks("deep")],
                    "next": [{"local": 2, "value": call("integer.add", &[local(2), integer(1)])}],
                }},
            ],
            "next": [{"local": 1, "value": call("integer.add", &[local(1), json!({"step": "first"})])}],
        }},
        returns(json!({"field": {"name": "n", "of": {"step": "outer"}}})),
    ]));
    let mut execution = start(&program, 1);
    let mut paths = Vec::new();
    let mut advanced = execution.advance(None);
    let mut id = 0;
    while let Ok(Advanced::Blocked(request)) = &advanced {
        assert_eq!(request.id, id);
        paths.push(request.path.clone());
        advanced = execution.advance(value(id, 3));
        id += 1;
    }
    assert_eq!(
        paths,
        [
            "first[0]",
            "deep[0][0]",
            "deep[0][1]",
            "first[1]",
            "deep[1][0]",
            "deep[1][1]"
        ]
    );
    assert_eq!(done(&program, advanced).0, "returned result=6");
}

#[test]
fn the_handler_of_a_status_is_the_nearest_one() {
    let with = |handlers: Json| {
        program(json!([
            handled(&asks("a"), handlers),
            returns(json!({"step": "a"}))
        ]))
    };
    let all = with(json!([
        gives("any", integer(1)),
        gives("http_error", integer(2)),
        gives("http_4xx", integer(3)),
        gives("http_5xx", integer(4)),
        gives("http_402", integer(5)),
        gives("timeout", integer(6)),
    ]));
    for (code, expected) in [
        ("http_402", 5),
        ("http_404", 3),
        ("http_500", 4),
        ("http_302", 2),
        ("http_4xx", 3),
        ("http_40", 1),
        ("http_4040", 1),
        ("timeout", 6),
        ("unavailable", 1),
        ("some_code", 1),
    ] {
        assert_eq!(
            failing(&all, code),
            format!("returned result={expected}"),
            "{code}"
        );
    }
    let few = with(json!([
        gives("http_5xx", integer(4)),
        gives("http_error", integer(2))
    ]));
    assert_eq!(failing(&few, "http_404"), "returned result=2");
    assert_eq!(failing(&few, "timeout"), "failed timeout at 0");
}

#[test]
fn a_failed_request_has_no_mark_and_its_handler_may_ask() {
    let program = program(json!([
        handled(
            &asks("a"),
            json!([{"codes": ["any"], "body": [asks("undo")], "value": json!({"step": "undo"})}])
        ),
        returns(json!({"step": "a"})),
    ]));
    let mut execution = start(&program, 1);
    blocked(execution.advance(None));
    let request = blocked(execution.advance(failure(0, "http_500")));
    assert_eq!((request.id, request.path.as_str()), (1, "undo"));
    let (outcome, marks) = done(&program, execution.advance(value(1, 8)));
    assert_eq!(
        (outcome.as_str(), marks),
        ("returned result=8", vec!["1:8".to_owned(), "2:8".to_owned()])
    );
}

#[test]
fn a_compensated_failure_stands() {
    let program = program(json!([
        handled(&asks("a"), json!([{"codes": ["any"], "body": [asks("undo")]}])),
        returns(json!({"step": "a"})),
    ]));
    let mut execution = start(&program, 1);
    blocked(execution.advance(None));
    blocked(execution.advance(failure(0, "http_402")));
    assert_eq!(
        done(&program, execution.advance(value(1, 8))).0,
        "failed http_402 at 0"
    );
    let mut execution = start(&program, 1);
    blocked(execution.advance(None));
    blocked(execution.advance(failure(0, "http_402")));
    assert_eq!(
        done(&program, execution.advance(failure(1, "conflict"))).0,
        "failed conflict at 1"
    );
}

#[test]
fn denied_and_limits_end_an_execution_whatever_handlers_there_are() {
    let program = program(json!([
        handled(&asks("a"), json!([gives("any", integer(1))])),
        returns(json!({"step": "a"})),
    ]));
    let end = |completion: Completion| {
        let mut execution = start(&program, 1);
        blocked(execution.advance(None));
        done(&program, execution.advance(Some((0, completion)))).0
    };
    assert_eq!(
        end(Completion::Denied("effect.call.thing".into())),
        "denied effect.call.thing"
    );
    assert_eq!(end(Completion::LimitHit("time".into())), "limit time");
}

fn codes() -> Json {
    json!({"enum": ["too_big", "http_402"]})
}

fn errors() -> Json {
    json!([{"name": "error_code", "type": codes()}, {"name": "message", "type": "string"}])
}

/// Asks, then doubles: raises where `x` is over 100, breaks its precondition where it is negative.
fn callee() -> Json {
    node(
        "double_v1",
        json!([
            {"branch": {
                "name": "b",
                "arms": [{"when": call("integer.greater", &[input("x"), integer(100)]), "body": [raises(&codes(), "too_big")]}],
            }},
            asks("factor"),
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

/// What a caller says of a node.
fn entry(node: &Json) -> Json {
    let node = completed(node);
    let hash = Program::load(&document(&node)).map_or_else(
        // One that calls others cannot be loaded alone.
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
            handled(&calls("pay", &called, x_as_x()), handlers),
            returns(call("integer.add", &[result_of("pay"), integer(1)])),
        ]),
        json!({"calls": [entry(&called)], "outputs": {"success": [{"name": "result", "type": "integer"}], "error": errors}}),
    );
    (node, document(&called))
}

fn loaded(handlers: Json, errors: Json) -> Program {
    let (node, called) = caller(handlers, errors);
    Program::load_with(&document(&node), &[&called]).unwrap()
}

#[test]
fn a_called_node_asks_through_its_caller() {
    let program = loaded(json!([]), json!([]));
    assert!(program.asks());
    assert_eq!(program.nodes().len(), 2);
    let mut execution = start(&program, 5);
    let request = blocked(execution.advance(None));
    assert_eq!(
        (&*request.node, &*request.step, request.path.as_str()),
        ("double_v1", "factor", "pay/factor")
    );
    let (outcome, marks) = done(&program, execution.advance(value(0, 4)));
    assert_eq!(outcome, "returned result=21");
    assert_eq!(marks, ["1:(result=20)"], "those of the called node are its own");
}

#[test]
fn what_a_called_node_ends_with_is_a_failure_of_the_call() {
    let plain = loaded(json!([]), json!([]));
    let first = |program: &Program, x: i64| done(program, start(program, x).advance(None)).0;
    assert_eq!(first(&plain, 101), "failed too_big at 1");
    assert_eq!(
        first(&plain, 3),
        "failed contract_broken at 1",
        "`y` has its default"
    );
    assert_eq!(first(&plain, -1), "failed contract_broken at 1");
    let fails = |program: &Program, code: &str| {
        let mut execution = start(program, 5);
        blocked(execution.advance(None));
        done(program, execution.advance(failure(0, code))).0
    };
    assert_eq!(fails(&plain, "timeout"), "failed timeout at 1");
    // There the failure becomes a declared error, and that is a failure again.
    assert_eq!(fails(&plain, "http_402"), "failed http_402 at 1");
    let ten = json!({"record": {"fields": [{"name": "result", "value": integer(10)}]}});
    let taken = loaded(
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
    let declares = loaded(json!([]), errors());
    assert_eq!(
        first(&declares, 101),
        "error error_code=too_big message=\"too_big\""
    );
    let mut execution = start(&plain, 5);
    blocked(execution.advance(None));
    let denied = execution.advance(Some((0, Completion::Denied("a.b.c".into()))));
    assert_eq!(done(&plain, denied).0, "denied a.b.c");
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
    while let Ok(Advanced::Blocked(request)) = &advanced {
        paths.push(request.path.clone());
        advanced = execution.advance(value(request.id, 2));
    }
    assert_eq!(paths, ["a/one[0]/factor", "a/one[1]/factor", "b/factor"]);
    // 1 + 10 + 12 = 23, doubled.
    assert_eq!(done(&program, advanced).0, "returned result=46");
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
    // The hash of such a node cannot be known, so that a cycle is refused before any hash is looked at.
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
    // A deep one that is reached by a shorter way first.
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
    let early = built(&json!({
        "node_id": "w_v1", "inputs": [{"name": "x", "type": "integer"}], "body": [returns(integer(1))],
        "outputs": {"success": [{"name": "result", "type": "integer"}]},
        "constraints": [{"input": "x", "holds": {"call": {
            "op": "value.equal", "of": ["timestamp"], "args": [{"now": "timestamp"}, {"now": "timestamp"}],
        }}}],
    }));
    assert!(refusal(&early, &[]).contains("`now` does not stand in constraints"));
}
