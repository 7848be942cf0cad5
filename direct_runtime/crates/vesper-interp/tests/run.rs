//! The meaning of docs/spec/ir.md: phases, order, short circuits, first failure, clause values and marks.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod support;

use serde_json::{Value as Json, json};
use support::{load, run};
use vesper_interp::{Limits, Outcome, Program};
use vesper_ir::{Decimal, Member, Value};

fn node(inputs: Json, outputs: Json, expressions: Json, rest: Json) -> Json {
    let mut semantics = json!({
        "node_id": "test_v1", "type": "function", "inputs": inputs, "outputs": {"success": outputs}, "constants": [],
        "expressions": expressions, "constraints": [], "preconditions": [], "body": [], "postconditions": [],
    });
    for (key, value) in rest.as_object().unwrap() {
        semantics[key] = value.clone();
    }
    semantics
}

fn integer(value: i64) -> Value {
    Value::Integer(value)
}

fn decimal(text: &str) -> Value {
    Value::Decimal(Decimal::parse(text).unwrap())
}

fn payment() -> Program {
    Program::load(include_bytes!("../../../fixtures/payment_decision_v1.json")).unwrap()
}

fn payment_inputs(amount: &str, balance: &str, country: &str, age: i64, is_flagged: bool) -> Vec<Value> {
    vec![
        decimal(amount),
        decimal(balance),
        Value::Member(Member(0)),
        Value::Text(country.into()),
        integer(age),
        Value::Boolean(is_flagged),
    ]
}

#[test]
fn the_payment_node_decides() {
    let cases = [
        (
            ("50.00", "100.00", "DE", 400, false),
            "returned decision=approve fee=1.75000 risk=0 new_balance=48.25000",
        ),
        (
            ("500", "1000.0", "RU", 3, false),
            "returned decision=approve fee=13.000 risk=35 new_balance=487.000",
        ),
        (
            ("500", "1000.0", "RU", 3, true),
            "returned decision=review fee=13.000 risk=65 new_balance=487.000",
        ),
        (
            ("2000", "9999", "RU", 3, true),
            "returned decision=decline fee=39.000 risk=85 new_balance=7960.000",
        ),
        (
            ("0", "100.00", "DE", 400, false),
            "broken precondition 0: amount=0",
        ),
        (
            ("0", "100.00", "DEU", -1, false),
            "broken constraint 0: country=\"DEU\"",
        ),
        (
            ("0", "100.00", "DE", -1, false),
            "broken constraint 1: user_age_days=-1",
        ),
        (
            ("9E+999", "-9E+999", "DE", 0, false),
            "failed decimal_overflow at 28",
        ),
    ];
    let program = payment();
    for ((amount, balance, country, age, is_flagged), expected) in cases {
        let (_, outcome) = run(
            &program,
            &payment_inputs(amount, balance, country, age, is_flagged),
        );
        assert_eq!(outcome, expected);
    }
}

#[test]
fn marks_come_in_the_order_in_which_they_happen() {
    let (marks, _) = run(&payment(), &payment_inputs("50.00", "100.00", "DE", 400, false));
    let expected = [
        "3:true",
        "6:true",
        "9:true",
        "12:true",
        "32:1.75000",
        "33:false",
        "39:false",
        "46:false",
        "53:false",
        "63:false",
        "67:0",
        "72:48.25000",
        "79:false",
        "83:false",
        "87:approve",
        "94:true",
        "101:true",
    ];
    assert_eq!(marks, expected);
    let (marks, _) = run(&payment(), &payment_inputs("0", "100.00", "DE", 400, false));
    assert_eq!(
        marks,
        ["3:true", "6:true", "9:false"],
        "the false clause was evaluated to its end"
    );
}

/// `x + 1` overflows for the maximum integer, so the outcome shows whether it was evaluated.
fn overflowing(first: u32) -> Vec<Json> {
    vec![
        json!({"input": "x"}),
        json!({"literal": {"type": "integer", "value": 1}}),
        json!({"call": {"op": "integer.add", "args": [first, first + 1]}}),
        json!({"literal": {"type": "integer", "value": 0}}),
        json!({"call": {"op": "integer.greater", "args": [first + 2, first + 3]}}),
    ]
}

fn logic(kind: &str) -> Program {
    let mut expressions = vec![json!({"input": "b"})];
    expressions.extend(overflowing(1));
    expressions.push(json!({kind: [0, 5]}));
    load(&node(
        json!([{"name": "b", "type": "boolean"}, {"name": "x", "type": "integer"}]),
        json!([{"name": "result", "type": "boolean"}]),
        json!(expressions),
        json!({"body": [{"return": {"success": [{"name": "result", "value": 6}]}}]}),
    ))
}

#[test]
fn and_and_or_evaluate_the_right_operand_only_if_the_left_one_does_not_decide() {
    let max = integer(i64::MAX);
    let (yes, no) = (Value::Boolean(true), Value::Boolean(false));
    assert_eq!(
        run(&logic("and"), &[no.clone(), max.clone()]).1,
        "returned result=false"
    );
    assert_eq!(
        run(&logic("and"), &[yes.clone(), max.clone()]).1,
        "failed integer_overflow at 3"
    );
    assert_eq!(
        run(&logic("and"), &[yes.clone(), integer(5)]).1,
        "returned result=true"
    );
    assert_eq!(
        run(&logic("and"), &[yes.clone(), integer(-5)]).1,
        "returned result=false"
    );
    assert_eq!(run(&logic("or"), &[yes, max.clone()]).1, "returned result=true");
    assert_eq!(
        run(&logic("or"), &[no.clone(), max]).1,
        "failed integer_overflow at 3"
    );
    assert_eq!(run(&logic("or"), &[no, integer(5)]).1, "returned result=true");
}

#[test]
fn if_evaluates_one_branch_and_marks_its_condition() {
    let mut expressions = vec![json!({"input": "b"})];
    expressions.extend(overflowing(1));
    expressions.push(json!({"literal": {"type": "boolean", "value": true}}));
    expressions.push(json!({"if": {"condition": 0, "then": 5, "else": 6}}));
    let program = load(&node(
        json!([{"name": "b", "type": "boolean"}, {"name": "x", "type": "integer"}]),
        json!([{"name": "result", "type": "boolean"}]),
        json!(expressions),
        json!({"body": [{"return": {"success": [{"name": "result", "value": 7}]}}]}),
    ));
    let max = integer(i64::MAX);
    let outcome = run(&program, &[Value::Boolean(false), max.clone()]);
    assert_eq!(
        outcome,
        (vec!["0:false".to_owned()], "returned result=true".to_owned())
    );
    let outcome = run(&program, &[Value::Boolean(true), max]);
    assert_eq!(
        outcome,
        (
            vec!["0:true".to_owned()],
            "failed integer_overflow at 3".to_owned()
        )
    );
}

#[test]
fn the_first_failure_wins_and_ends_the_marks() {
    // Step `a` negates x, step `b` multiplies: for the minimum integer both fail, and `a` is first.
    let program = load(&node(
        json!([{"name": "x", "type": "integer"}]),
        json!([{"name": "result", "type": "integer"}]),
        json!([
            {"input": "x"}, {"input": "x"}, {"call": {"op": "integer.less_or_equal", "args": [0, 1]}},
            {"input": "x"}, {"call": {"op": "integer.negate", "args": [3]}},
            {"input": "x"}, {"input": "x"}, {"call": {"op": "integer.multiply", "args": [5, 6]}},
            {"step": "b"},
        ]),
        json!({
            "preconditions": [{"holds": 2}],
            "body": [
                {"step": {"name": "a", "value": 4}},
                {"step": {"name": "b", "value": 7}},
                {"return": {"success": [{"name": "result", "value": 8}]}},
            ],
        }),
    ));
    let marked = |marks: &[&str]| marks.iter().map(ToString::to_string).collect::<Vec<String>>();
    assert_eq!(
        run(&program, &[integer(i64::MIN)]),
        (marked(&["2:true"]), "failed integer_overflow at 4".to_owned())
    );
    let expected = (
        marked(&["2:true", "4:-9223372036854775807"]),
        "failed integer_overflow at 7".to_owned(),
    );
    assert_eq!(run(&program, &[integer(i64::MAX)]), expected);
    let expected = (marked(&["2:true", "4:-3", "7:9"]), "returned result=9".to_owned());
    assert_eq!(run(&program, &[integer(3)]), expected);
}

#[test]
fn a_broken_clause_gives_what_it_mentions_in_order_and_the_output_wins() {
    // Postcondition: x(input) < limit(constant) and x(output) < y(input); no step is mentioned.
    let program = load(&node(
        json!([{"name": "x", "type": "integer"}, {"name": "y", "type": "integer"}]),
        json!([{"name": "x", "type": "integer"}]),
        json!([
            {"input": "x"}, {"literal": {"type": "integer", "value": 10}}, {"call": {"op": "integer.add", "args": [0, 1]}},
            {"step": "moved"},
            {"input": "x"}, {"constant": "limit"}, {"call": {"op": "integer.less", "args": [4, 5]}},
            {"input": "y"}, {"output": "x"}, {"call": {"op": "integer.less", "args": [7, 8]}},
            {"and": [6, 9]},
        ]),
        json!({
            "constants": [{"name": "limit", "type": "integer", "value": 100}],
            "body": [
                {"step": {"name": "moved", "value": 2}},
                {"return": {"success": [{"name": "x", "value": 3}]}},
            ],
            "postconditions": [{"holds": 10}],
        }),
    ));
    assert_eq!(run(&program, &[integer(1), integer(2)]).1, "returned x=11");
    assert_eq!(
        run(&program, &[integer(1), integer(50)]).1,
        "broken postcondition 0: x=11 limit=100 y=50"
    );
    // The right operand was not evaluated, but its values are reported.
    let (marks, outcome) = run(&program, &[integer(200), integer(2)]);
    assert_eq!(outcome, "broken postcondition 0: x=210 limit=100 y=2");
    assert_eq!(marks, ["2:210", "10:false"]);
}

#[test]
fn registers_of_steps_outlive_the_temporaries_of_later_ones() {
    let program = load(&node(
        json!([{"name": "x", "type": "integer"}]),
        json!([{"name": "p", "type": "integer"}, {"name": "q", "type": "integer"}, {"name": "r", "type": "integer"}]),
        json!([
            {"input": "x"}, {"input": "x"}, {"call": {"op": "integer.add", "args": [0, 1]}},
            {"step": "a"}, {"step": "a"}, {"call": {"op": "integer.multiply", "args": [3, 4]}},
            {"input": "x"}, {"step": "a"}, {"call": {"op": "integer.subtract", "args": [6, 7]}},
            {"call": {"op": "integer.multiply", "args": [5, 8]}},
            {"step": "a"}, {"step": "b"}, {"call": {"op": "integer.negate", "args": [11]}},
            {"step": "a"}, {"step": "b"}, {"call": {"op": "integer.add", "args": [13, 14]}},
        ]),
        json!({
            "body": [
                {"step": {"name": "a", "value": 2}},
                {"step": {"name": "b", "value": 9}},
                {"return": {"success": [{"name": "p", "value": 10}, {"name": "q", "value": 12}, {"name": "r", "value": 15}]}},
            ],
        }),
    ));
    // a = 6, b = 36 * (3 - 6) = -108
    assert_eq!(run(&program, &[integer(3)]).1, "returned p=6 q=108 r=-102");
}

#[test]
fn a_wrong_number_of_inputs_is_a_fault() {
    assert!(matches!(payment().run(vec![integer(1)], None), Outcome::Fault(_)));
}

#[test]
fn the_way_without_a_fingerprint_is_the_same_way() {
    let key = [7; 16];
    let program = payment();
    let mut ways = Vec::new();
    for (amount, balance, country, age, is_flagged) in [
        ("50.00", "100.00", "DE", 400, false),
        ("500", "1000.0", "RU", 3, true),
        ("0", "100.00", "DE", 400, false),
        ("9E+999", "-9E+999", "DE", 0, false),
    ] {
        let inputs = payment_inputs(amount, balance, country, age, is_flagged);
        let hashed = program.run_pathed(inputs.clone(), None, Limits::default(), &key);
        let (outcome, path) = program.run_unhashed(inputs, None, Limits::default());
        assert_eq!(
            support::shown_outcome(&program, &outcome),
            support::shown_outcome(&program, &hashed.outcome)
        );
        assert_eq!(path, hashed.path);
        ways.push((path, hashed.fingerprint));
    }
    assert_ne!(ways[0], ways[1]);
    let (outcome, path) = program.run_unhashed(Vec::new(), None, Limits::default());
    assert!(matches!(outcome, Outcome::Fault(_)), "{outcome:?}");
    assert_eq!(path, program.empty_path());
}
