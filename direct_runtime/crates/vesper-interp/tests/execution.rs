//! Executions with requests: suspension, completions, and handlers of failed effects.
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

use executions::{expect_outcome, expect_request, failing, failure, program, start, value};
use flow::{gives, request_step, returns, with_handlers};
use serde_json::{Value as Json, json};
use support::{show_value, shown_outcome};
use tree::{call, input, integer, local};
use vesper_interp::{Advanced, Completion, Misuse};
use vesper_ir::Value;

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
        request_step("second"),
        returns(call("integer.add", &[json!({"step": "charge"}), json!({"step": "second"})])),
    ]));
    assert!(program.asks() && !program.uses_now());
    let mut execution = start(&program, 5);
    assert!(execution.awaited().is_empty());
    let request = expect_request(execution.advance(None));
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
        .map(|argument| format!("{}={}", argument.name, show_value(&argument.ty, &argument.value)))
        .collect();
    assert_eq!(arguments, ["endpoint=\"/v1/charges\"", "query=(amount=5)"]);
    assert_eq!(request.result.to_string(), "integer");
    assert_eq!(execution.awaited()[0].0, 0);

    let request = expect_request(execution.advance(value(0, 40)));
    assert_eq!((request.id, request.path.as_str()), (1, "second"));
    let (outcome, marks) = expect_outcome(&program, execution.advance(value(1, 2)));
    assert_eq!(outcome, "returned result=42");
    assert_eq!(marks, ["4:40", "5:2"]);
}

#[test]
fn an_execution_is_advanced_as_it_must_be() {
    let program = program(json!([request_step("a"), returns(json!({"step": "a"}))]));
    let mut execution = start(&program, 1);
    let wrong = |advanced: Result<Advanced, Misuse>| advanced.unwrap_err().0;
    assert_eq!(wrong(execution.advance(value(0, 1))), "nothing was asked for yet");
    expect_request(execution.advance(None));
    assert_eq!(wrong(execution.advance(None)), "request 0 waits to be completed");
    assert!(wrong(execution.advance(value(1, 1))).contains("not request 1"));
    // The execution is unchanged.
    assert_eq!(
        expect_outcome(&program, execution.advance(value(0, 7))).0,
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
    let program = program(json!([request_step("a"), returns(json!({"step": "a"}))]));
    let mut execution = start(&program, 1);
    is_send(&execution);
    expect_request(execution.advance(None));
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
                request_step("first"),
                {"loop": {
                    "name": "inner", "state": [{"local": 2, "name": "m", "value": integer(0)}],
                    "while": call("integer.less", &[local(2), integer(2)]),
                    "body": [request_step("deep")],
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
    while let Ok(Advanced::Blocked(wave)) = &advanced {
        assert_eq!((wave.len(), wave[0].id), (1, id));
        paths.push(wave[0].path.clone());
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
    assert_eq!(expect_outcome(&program, advanced).0, "returned result=6");
}

#[test]
fn the_handler_of_a_status_is_the_nearest_one() {
    let with = |handlers: Json| {
        program(json!([
            with_handlers(&request_step("a"), handlers),
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
        with_handlers(
            &request_step("a"),
            json!([{"codes": ["any"], "body": [request_step("undo")], "value": json!({"step": "undo"})}])
        ),
        returns(json!({"step": "a"})),
    ]));
    let mut execution = start(&program, 1);
    expect_request(execution.advance(None));
    let request = expect_request(execution.advance(failure(0, "http_500")));
    assert_eq!((request.id, request.path.as_str()), (1, "undo"));
    let (outcome, marks) = expect_outcome(&program, execution.advance(value(1, 8)));
    assert_eq!(
        (outcome.as_str(), marks),
        ("returned result=8", vec!["1:8".to_owned(), "2:8".to_owned()])
    );
}

#[test]
fn a_compensated_failure_stands() {
    let program = program(json!([
        with_handlers(
            &request_step("a"),
            json!([{"codes": ["any"], "body": [request_step("undo")]}])
        ),
        returns(json!({"step": "a"})),
    ]));
    let mut execution = start(&program, 1);
    expect_request(execution.advance(None));
    expect_request(execution.advance(failure(0, "http_402")));
    assert_eq!(
        expect_outcome(&program, execution.advance(value(1, 8))).0,
        "failed http_402 at 0"
    );
    let mut execution = start(&program, 1);
    expect_request(execution.advance(None));
    expect_request(execution.advance(failure(0, "http_402")));
    assert_eq!(
        expect_outcome(&program, execution.advance(failure(1, "conflict"))).0,
        "failed conflict at 1"
    );
}

#[test]
fn denied_and_limits_end_an_execution_whatever_handlers_there_are() {
    let program = program(json!([
        with_handlers(&request_step("a"), json!([gives("any", integer(1))])),
        returns(json!({"step": "a"})),
    ]));
    let end = |completion: Completion| {
        let mut execution = start(&program, 1);
        expect_request(execution.advance(None));
        expect_outcome(&program, execution.advance(Some((0, completion)))).0
    };
    assert_eq!(
        end(Completion::Denied("effect.call.thing".into())),
        "denied effect.call.thing"
    );
    assert_eq!(end(Completion::LimitHit("time".into())), "limit time");
}
