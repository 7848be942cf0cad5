//! Statements: blocks, loops, handlers, declared errors, invariants, and their marks.
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

use flow::{build, gives, raises, returns, step, with_handlers};
use serde_json::{Value as Json, json};
use support::{load, run};
use tree::{call, input, integer, local};
use vesper_interp::Program;
use vesper_ir::Value;

fn codes() -> Json {
    json!({"enum": ["closed", "division_by_zero", "loop_limit"]})
}

fn errors() -> Json {
    json!([{"name": "error_code", "type": codes()}, {"name": "message", "type": "string"}])
}

/// A node with integer inputs `x` and `y` and the integer output `result`.
fn node(body: Json, rest: Json) -> Json {
    let mut node = json!({
        "inputs": [{"name": "x", "type": "integer"}, {"name": "y", "type": "integer"}],
        "outputs": {"success": [{"name": "result", "type": "integer"}], "error": []},
        "body": body,
    });
    for (key, value) in rest.as_object().unwrap() {
        node[key] = value.clone();
    }
    build(&node)
}

fn with_errors(body: Json, rest: Json) -> Json {
    let mut node = node(body, rest);
    node["outputs"]["error"] = errors();
    node
}

fn program(body: Json) -> Program {
    load(&node(body, json!({})))
}

fn x() -> Json {
    input("x")
}

fn y() -> Json {
    input("y")
}

fn quotient() -> Json {
    call("integer.quot", &[x(), y()])
}

fn less(left: Json, right: Json) -> Json {
    call("integer.less", &[left, right])
}

fn length(of: Json) -> Json {
    json!({"call": {"op": "array.length", "args": [of], "of": ["integer"]}})
}

fn outcome(program: &Program, x: i64, y: i64) -> String {
    run(program, &[Value::Integer(x), Value::Integer(y)]).1
}

fn marks(program: &Program, x: i64, y: i64) -> Vec<String> {
    run(program, &[Value::Integer(x), Value::Integer(y)]).0
}

#[test]
fn a_branch_executes_the_first_arm_that_holds() {
    let program = program(json!([
        {"branch": {
            "name": "b",
            "arms": [
                {"when": less(x(), integer(0)), "body": [returns(integer(-1))]},
                {"when": less(x(), integer(10)), "body": [step("twice", call("integer.add", &[x(), x()]))],
                 "value": call("integer.add", &[json!({"step": "twice"}), integer(1)])},
            ],
            "else": [], "otherwise": y(),
        }},
        returns(json!({"step": "b"})),
    ]));
    assert_eq!(outcome(&program, -5, 0), "returned result=-1");
    assert_eq!(outcome(&program, 3, 0), "returned result=7");
    assert_eq!(outcome(&program, 30, 44), "returned result=44");
    assert_eq!(marks(&program, -5, 0), ["2:true"]);
    assert_eq!(marks(&program, 3, 0), ["2:false", "6:true", "9:6", "12:7"]);
    assert_eq!(marks(&program, 30, 44), ["2:false", "6:false", "13:44"]);
}

#[test]
fn a_loop_goes_over_items_with_state_and_collects() {
    let items =
        json!({"array": {"of": "integer", "items": [integer(1), integer(2), integer(3), integer(4)]}});
    let program = program(json!([
        {"loop": {
            "name": "l", "locals": [0], "max": 10,
            "over": items,
            "state": [
                {"local": 1, "name": "total", "value": integer(0)}, {"local": 2, "name": "last", "value": x()},
            ],
            "where": call("integer.not_equal", &[local(0), integer(2)]),
            "body": [step("old", local(1)), step("squared", call("integer.multiply", &[local(0), local(0)]))],
            "collect": json!({"step": "squared"}),
            "next": [
                {"local": 1, "value": call("integer.add", &[local(1), json!({"step": "squared"})])},
                {"local": 2, "value": local(1)},
            ],
            // The state has its new value here, the step its old one.
            "stop_when": {"and": [less(y(), local(1)), less(json!({"step": "old"}), local(1))]},
        }},
        returns(call("integer.add", &[
            call("integer.multiply", &[{
                let of = json!({"step": "l"});
                json!({"field": {"name": "total", "of": of}})
            }, integer(100)]),
            call("integer.add", &[
                call("integer.multiply", &[json!({"field": {"name": "last", "of": {"step": "l"}}}), integer(10)]),
                length(json!({"field": {"name": "collected", "of": {"step": "l"}}})),
            ]),
        ])),
    ]));
    // Items 1, 3, 4: totals 1, 10, 26; `last` is the previous total.
    assert_eq!(outcome(&program, 7, 100), "returned result=2703");
    // Stops once the total exceeds 5, after item 3.
    assert_eq!(outcome(&program, 7, 5), "returned result=1012");
}

/// Counts `x` up to `y` in at most `max` rounds.
fn counting(max: i64, handlers: Json) -> Json {
    json!([
        {"loop": {
            "name": "l", "max": max, "state": [{"local": 0, "name": "n", "value": x()}],
            "while": less(local(0), y()),
            "next": [{"local": 0, "value": call("integer.add", &[local(0), integer(1)])}],
            "handlers": handlers,
        }},
        returns(json!({"field": {"name": "n", "of": {"step": "l"}}})),
    ])
}

#[test]
fn while_is_evaluated_before_each_round_and_max_is_the_most_of_them() {
    let program = load(&node(counting(3, json!([])), json!({})));
    assert_eq!(outcome(&program, 5, 5), "returned result=5");
    assert_eq!(outcome(&program, 5, 8), "returned result=8");
    assert_eq!(outcome(&program, 5, 9), "failed loop_limit at 3");
    assert_eq!(marks(&program, 5, 6), ["3:true", "6:6", "3:false"]);
    let value = json!({"record": {"fields": [{"name": "n", "value": integer(-9)}]}});
    let program = load(&node(counting(3, json!([gives("loop_limit", value)])), json!({})));
    assert_eq!(outcome(&program, 5, 9), "returned result=-9");
}

#[test]
fn the_limit_of_a_loop_without_while_is_at_over() {
    let program = program(json!([
        {"loop": {
            "name": "l", "locals": [0], "max": 2,
            "over": {"array": {"of": "integer", "items": [x(), y(), integer(3)]}},
            "where": less(local(0), integer(5)), "collect": local(0),
        }},
        returns(length(json!({"field": {"name": "collected", "of": {"step": "l"}}}))),
    ]));
    assert_eq!(outcome(&program, 1, 9), "returned result=2");
    assert_eq!(outcome(&program, 1, 2), "failed loop_limit at 3");
}

#[test]
fn loops_over_maps_have_the_key_and_the_value() {
    let mut node = node(
        json!([
            {"loop": {
                "name": "l", "locals": [0, 1], "over": input("rates"),
                "state": [{"local": 2, "name": "sum", "value": integer(0)}],
                "body": [
                    {"loop": {
                        "name": "inner", "locals": [3], "over": input("rates"),
                        "state": [{"local": 4, "name": "n", "value": local(2)}],
                        "next": [{"local": 4, "value": call("integer.add", &[local(4), local(1)])}],
                    }},
                ],
                "next": [{"local": 2, "value": json!({"field": {"name": "n", "of": {"step": "inner"}}})}],
            }},
            returns(json!({"field": {"name": "sum", "of": {"step": "l"}}})),
        ]),
        json!({}),
    );
    node["inputs"] = json!([
        {"name": "rates", "type": {"map": ["string", "integer"]}, "default": [["a", 2], ["b", 5], ["c", 7]]},
    ]);
    let program = load(&node);
    let rates = program.node().inputs[0].default.clone().unwrap();
    // Each value, once per entry.
    assert_eq!(run(&program, &[rates]).1, "returned result=42");
}

#[test]
fn a_handler_gives_the_value_or_leaves_or_lets_the_failure_stand() {
    let with = |handlers: Json| {
        program(json!([
            with_handlers(&step("s", quotient()), handlers),
            returns(call("integer.add", &[json!({"step": "s"}), integer(1)])),
        ]))
    };
    let fallback = with(json!([gives("division_by_zero", x())]));
    assert_eq!(outcome(&fallback, 8, 2), "returned result=5");
    assert_eq!(outcome(&fallback, 8, 0), "returned result=9");
    assert_eq!(marks(&fallback, 8, 2), ["2:4"]);
    assert_eq!(marks(&fallback, 8, 0), ["3:8"]);
    let leaves = with(json!([{"codes": ["any"], "body": [returns(integer(77))]}]));
    assert_eq!(outcome(&leaves, 8, 0), "returned result=77");
    let stands = with(json!([{"codes": ["any"], "body": [step("t", integer(1))]}]));
    assert_eq!(outcome(&stands, 8, 0), "failed division_by_zero at 2");
    assert_eq!(marks(&stands, 8, 0), ["3:1"]);
    let others = with(json!([gives("integer_overflow", x())]));
    assert_eq!(outcome(&others, 8, 0), "failed division_by_zero at 2");
    assert_eq!(
        outcome(&others, i64::MIN, -1),
        format!("returned result={}", i64::MIN + 1)
    );
}

#[test]
fn the_handler_that_names_the_code_comes_before_any() {
    let program = program(json!([
        with_handlers(
            &step("s", quotient()),
            json!([gives("any", integer(1)), {"codes": ["bad_format", "division_by_zero"], "body": [], "value": integer(2)}]),
        ),
        returns(json!({"step": "s"})),
    ]));
    assert_eq!(outcome(&program, 8, 0), "returned result=2");
    assert_eq!(outcome(&program, i64::MIN, -1), "returned result=1");
}

#[test]
fn what_a_statement_does_not_take_goes_to_the_one_around() {
    let inner = |handlers: Json| {
        program(json!([
            {"branch": {
                "name": "b",
                "arms": [{
                    "when": less(integer(0), x()),
                    "body": [with_handlers(&step("s", quotient()), handlers)],
                    "value": json!({"step": "s"}),
                }],
                "else": [], "otherwise": integer(0),
                "handlers": [{"codes": ["division_by_zero"], "body": [step("h", integer(500))], "value": json!({"step": "h"})}],
            }},
            returns(json!({"step": "b"})),
        ]))
    };
    assert_eq!(outcome(&inner(json!([])), 8, 0), "returned result=500");
    let other = inner(json!([gives("integer_overflow", integer(1))]));
    assert_eq!(outcome(&other, 8, 0), "returned result=500");
    // A handler without a value, one whose body fails, and one whose value fails.
    let stands = inner(json!([{"codes": ["any"], "body": [step("t", integer(1))]}]));
    assert_eq!(outcome(&stands, 8, 0), "returned result=500");
    let failing = json!([{"codes": ["any"], "body": [step("t", quotient())], "value": integer(1)}]);
    assert_eq!(outcome(&inner(failing), 8, 0), "returned result=500");
    assert_eq!(
        outcome(&inner(json!([gives("any", quotient())])), 8, 0),
        "returned result=500"
    );
}

#[test]
fn a_failure_that_stands_is_the_one_that_the_handler_took() {
    // The handler's own handler catches the failure of its body.
    let overflow = call("integer.negate", &[integer(i64::MIN)]);
    let body = json!([with_handlers(
        &step("t", overflow),
        json!([gives("integer_overflow", integer(0))])
    )]);
    let program = program(json!([
        with_handlers(
            &step("s", quotient()),
            json!([{"codes": ["division_by_zero"], "body": body}])
        ),
        returns(json!({"step": "s"})),
    ]));
    assert_eq!(outcome(&program, 8, 0), "failed division_by_zero at 2");
}

#[test]
fn a_failure_in_a_loop_is_taken_in_each_round() {
    let items =
        json!({"array": {"of": "integer", "items": [integer(0), integer(2), integer(0), integer(4)]}});
    let program = program(json!([
        {"loop": {
            "name": "l", "locals": [0], "over": items, "state": [{"local": 1, "name": "n", "value": integer(0)}],
            "body": [with_handlers(
                &step("s", call("integer.quot", &[x(), local(0)])),
                json!([gives("division_by_zero", integer(1000))]),
            )],
            "next": [{"local": 1, "value": call("integer.add", &[local(1), json!({"step": "s"})])}],
        }},
        returns(json!({"field": {"name": "n", "of": {"step": "l"}}})),
    ]));
    assert_eq!(outcome(&program, 8, 0), "returned result=2006");
}

#[test]
fn require_is_a_clause_of_the_phase_validation() {
    let program = program(json!([
        {"require": {"holds": less(x(), integer(10))}},
        step("s", call("integer.add", &[x(), integer(1)])),
        with_handlers(
            &json!({"branch": {
                "name": "b",
                "arms": [{"when": less(integer(0), x()), "body": [{"require": {"holds": less(json!({"step": "s"}), y())}}]}],
            }}),
            json!([{"codes": ["any"], "body": [returns(integer(0))]}]),
        ),
        returns(json!({"step": "s"})),
    ]));
    assert_eq!(outcome(&program, 3, 9), "returned result=4");
    assert_eq!(outcome(&program, 11, 0), "broken validation 0: x=11");
    // No handler catches it, and steps are not among the reported values.
    assert_eq!(outcome(&program, 3, 2), "broken validation 1: s=4 y=2");
    assert_eq!(marks(&program, 3, 9), ["2:true", "5:4", "8:true", "11:true"]);
}

#[test]
fn an_error_is_raised_from_any_block() {
    let program = load(&with_errors(
        json!([
            {"branch": {
                "name": "b",
                "arms": [{"when": less(x(), integer(0)), "body": [raises(&codes(), "closed")]}],
            }},
            with_handlers(
                &step("s", quotient()),
                json!([{"codes": ["integer_overflow"], "body": [raises(&codes(), "closed")]}]),
            ),
            returns(json!({"step": "s"})),
        ]),
        json!({}),
    ));
    assert_eq!(outcome(&program, 8, 2), "returned result=4");
    assert_eq!(
        outcome(&program, -1, 2),
        "error error_code=closed message=\"said\""
    );
    assert_eq!(
        outcome(&program, 8, 0),
        "error error_code=division_by_zero message=\"division_by_zero\""
    );
}

#[test]
fn a_failure_whose_code_is_declared_becomes_that_error() {
    let body = json!([step("s", quotient()), returns(json!({"step": "s"}))]);
    let with = |fields: Json| {
        let mut node = node(body.clone(), json!({}));
        node["outputs"]["error"] = fields;
        load(&node)
    };
    let code = json!({"name": "error_code", "type": codes()});
    let alone = with(json!([code]));
    assert_eq!(outcome(&alone, 8, 0), "error error_code=division_by_zero");
    assert_eq!(outcome(&alone, i64::MIN, -1), "failed integer_overflow at 2");
    let optional = with(json!([code, {"name": "retry_at", "type": {"optional": "integer"}}]));
    assert_eq!(
        outcome(&optional, 8, 0),
        "error error_code=division_by_zero retry_at=null"
    );
    let other = with(json!([code, {"name": "detail", "type": "string"}]));
    assert_eq!(
        outcome(&other, 8, 0),
        "failed division_by_zero at 2",
        "nothing says what `detail` would be"
    );
}

#[test]
fn only_failures_of_the_body_become_errors() {
    let holds = less(quotient(), integer(100));
    for phase in ["preconditions", "postconditions", "invariants"] {
        let program = load(&with_errors(
            json!([returns(x())]),
            json!({phase: [{"holds": holds}]}),
        ));
        assert!(
            outcome(&program, 8, 0).starts_with("failed division_by_zero at "),
            "{phase}"
        );
        assert_eq!(outcome(&program, 8, 2), "returned result=8");
    }
}

#[test]
fn invariants_are_evaluated_after_a_return_and_after_an_error() {
    // Exactly one of output and error is null.
    let of = |ty: &Json| json!([ty]);
    let is_null =
        |what: Json, ty: &Json| json!({"call": {"op": "optional.is_null", "args": [what], "of": of(ty)}});
    let equal = call(
        "boolean.equal",
        &[
            is_null(json!({"output": "result"}), &json!("integer")),
            is_null(json!({"error": "error_code"}), &codes()),
        ],
    );
    let body = json!([
        {"branch": {
            "name": "b",
            "arms": [{"when": less(x(), integer(0)), "body": [raises(&codes(), "closed")]}],
        }},
        returns(quotient()),
    ]);
    let program = load(&with_errors(
        body.clone(),
        json!({"invariants": [{"holds": call("boolean.not", &[equal])}]}),
    ));
    for (x, y, expected) in [
        (8, 2, "returned result=4"),
        (-1, 2, "error error_code=closed message=\"said\""),
        (
            8,
            0,
            "error error_code=division_by_zero message=\"division_by_zero\"",
        ),
    ] {
        assert_eq!(outcome(&program, x, y), expected);
        assert_eq!(
            marks(&program, x, y).last().unwrap().split_once(':').unwrap().1,
            "true"
        );
    }
    let program = load(&with_errors(
        body,
        json!({
            "postconditions": [{"holds": less(json!({"output": "result"}), integer(100))}],
            "invariants": [{"holds": is_null(json!({"error": "message"}), &json!("string"))},
                {"holds": call("boolean.not", &[is_null(json!({"output": "result"}), &json!("integer"))])}],
        }),
    ));
    assert_eq!(outcome(&program, 8, 2), "returned result=4");
    assert_eq!(outcome(&program, 800, 2), "broken postcondition 0: result=400");
    assert_eq!(outcome(&program, -1, 2), "broken invariant 0: message=\"said\"");
    assert_eq!(
        outcome(&program, 8, 0),
        "broken invariant 0: message=\"division_by_zero\""
    );
}

#[test]
fn postconditions_hold_for_every_return() {
    let program = load(&node(
        json!([
            {"branch": {
                "name": "b",
                "arms": [{"when": less(x(), integer(0)), "body": [returns(y())]}],
                "else": [returns(x())],
            }},
        ]),
        json!({"postconditions": [{"holds": less(json!({"output": "result"}), integer(10))}]}),
    ));
    assert_eq!(outcome(&program, -1, 2), "returned result=2");
    assert_eq!(outcome(&program, 5, 99), "returned result=5");
    assert_eq!(outcome(&program, -1, 20), "broken postcondition 0: result=20");
    assert_eq!(outcome(&program, 50, 2), "broken postcondition 0: result=50");
}

#[test]
fn registers_of_blocks_do_not_clash_with_what_comes_after() {
    let program = program(json!([
        step("a", call("integer.add", &[x(), integer(1)])),
        {"branch": {
            "name": "b",
            "arms": [{
                "when": less(x(), y()),
                "body": [step("p", call("integer.add", &[json!({"step": "a"}), integer(10)])),
                         step("q", call("integer.add", &[json!({"step": "p"}), integer(100)]))],
                "value": call("integer.add", &[json!({"step": "p"}), json!({"step": "q"})]),
            }],
            "else": [step("r", integer(7))], "otherwise": json!({"step": "r"}),
        }},
        step("c", call("integer.add", &[json!({"step": "b"}), json!({"step": "a"})])),
        returns(call("integer.add", &[json!({"step": "c"}), json!({"step": "b"})])),
    ]));
    // a = 2, p = 12, q = 112, b = 124, c = 126
    assert_eq!(outcome(&program, 1, 2), "returned result=250");
    assert_eq!(outcome(&program, 2, 2), "returned result=17");
}
