//! Types of operands, statements and literals, each of them wrong once.

use serde_json::{Value as Json, json};

use crate::base::{accepts, base, path_of, place_of, refuses, rejection, with};

const BODY: &str = "/semantics/body";

/// Replaces the operand of an expression, which is a constant, by an integer literal and expects the message.
#[track_caller]
fn refuses_operand(kind: &str, back: usize, message: &str) {
    let path = format!("/semantics/expressions/{}", place_of(kind, 0) - back);
    refuses(
        &path,
        json!({"literal": {"type": "integer", "value": 1}}),
        message,
    );
}

#[test]
fn conditions_are_boolean() {
    refuses_operand("or", 1, "the right operand of `or` is boolean, not integer");
    refuses_operand("or", 2, "the left operand of `or` is boolean, not integer");
    refuses_operand("and", 4, "the left operand of `and` is boolean, not integer");
    refuses_operand("if", 3, "the condition of `if` is boolean, not integer");
    // The right operand of `and` is the `or`.
    let mut whole = base();
    let place = place_of("or", 0);
    whole["semantics"]["expressions"][place] =
        json!({"array": {"items": [place - 2, place - 1], "of": "boolean"}});
    let found = rejection(&whole).unwrap();
    assert!(
        found.contains("the right operand of `and` is boolean, not array<boolean>"),
        "{found}"
    );
}

#[test]
fn statements_use_values_of_their_types() {
    let whole = base();
    // Replaces the last operation below an index by one with another type.
    let other = |path: &str| -> Json {
        let index = usize::try_from(whole.pointer(path).unwrap().as_u64().unwrap()).unwrap();
        let mut changed = whole.clone();
        let call = &mut changed["semantics"]["expressions"][index]["call"]["op"];
        assert!(call.is_string(), "{path}");
        *call = json!("integer.add");
        changed
    };
    for (path, message) in [
        (
            "/semantics/constraints/0/holds",
            "constraint 0: a clause is boolean, not integer",
        ),
        (
            "/semantics/preconditions/0/holds",
            "precondition 0: a clause is boolean, not integer",
        ),
        (
            "/semantics/postconditions/0/holds",
            "postcondition 0: a clause is boolean, not integer",
        ),
        (
            "/semantics/body/10/require/holds",
            "the condition of `require` is boolean, not integer",
        ),
        (
            "/semantics/body/13/loop/where",
            "the `where` of loop `rounds` is boolean, not integer",
        ),
        (
            "/semantics/body/13/loop/while",
            "the `while` of loop `rounds` is boolean, not integer",
        ),
        (
            "/semantics/body/13/loop/stop_when",
            "the `stop_when` of loop `rounds` is boolean, not integer",
        ),
        (
            "/semantics/body/14/branch/arms/0/when",
            "a condition of branch `last` is boolean, not integer",
        ),
    ] {
        let found = rejection(&other(path)).unwrap();
        assert!(found.contains(message), "{path}: {found}");
    }
}

#[test]
fn returns_and_raises_have_the_declared_values() {
    let success = format!("{BODY}/15/return/success/0/name");
    refuses(
        &success,
        json!("other"),
        "the return has `other` where output `result` is next in declared order",
    );
    let error = format!("{BODY}/11/request/handlers/0/body/0/raise/error/0/name");
    refuses(
        &error,
        json!("code"),
        "the raise has `code` where error field `error_code` is next",
    );
    refuses(
        "/semantics/outputs/success/0/type",
        json!("string"),
        "the return has integer for output `result`, which is string",
    );
    let mut whole = base();
    whole["semantics"]["outputs"]["error"] = json!([]);
    let found = rejection(&whole).unwrap();
    assert!(
        found.contains("there is a `raise`, but the node declares no errors"),
        "{found}"
    );
    refuses(
        "/semantics/outputs/error/0/type",
        json!({"enum": ["closed"]}),
        "for error field `error_code`, which is enum[closed]",
    );
}

#[test]
fn loops_keep_the_types_of_their_state() {
    let state = format!("{BODY}/13/loop/state/0/name");
    accepts(&state, json!("collection"));
    refuses(
        &state,
        json!("collected"),
        "a part of its state is named `collected`",
    );
    let next = format!("{BODY}/13/loop/next/0/local");
    refuses(
        &next,
        json!(0),
        "`next` names local 0, which is not the next part of its state",
    );
    let value = with(&format!("{BODY}/13/loop/body/0/request/result"), json!(0));
    assert!(rejection(&value).is_some());
}

#[test]
fn times_and_results_stand_where_they_may() {
    refuses(
        &path_of("now", 0),
        json!({"now": "date"}),
        "`now` is a timestamp, not date",
    );
    refuses(
        "/semantics/expressions/0",
        json!({"now": "timestamp"}),
        "`now` is not permitted in constraints",
    );
    refuses(
        &path_of("now", 0),
        json!({"result": "timestamp"}),
        "`result` is permitted only as the result of a request or a call",
    );
    refuses(
        &path_of("now", 0),
        json!({"output": "result"}),
        "output `result` can be referred to only in postconditions and invariants",
    );
    refuses(
        &path_of("now", 0),
        json!({"error": "error_code"}),
        "error `error_code` can be referred to only in invariants",
    );
    refuses(
        &path_of("output", 0),
        json!({"error": "error_code"}),
        "error `error_code` can be referred to only in invariants",
    );
    refuses(
        &path_of("error", 0),
        json!({"error": "result"}),
        "no error field is named `result`",
    );
    refuses(
        &path_of("output", 0),
        json!({"output": "error_code"}),
        "no output is named `error_code`",
    );
    // In an invariant of a node with errors an output may be null.
    refuses(
        &path_of("error", 0),
        json!({"output": "result"}),
        "wants optional<enum[closed, late]> as its `value` argument, got optional<integer>",
    );
}

#[test]
fn requests_end_with_their_result() {
    for (path, name) in [
        (format!("{BODY}/11/request/result"), "request `fetched`"),
        (format!("{BODY}/12/call/result"), "call `called`"),
    ] {
        let index = base().pointer(&path).unwrap().as_u64().unwrap();
        let expression = format!("/semantics/expressions/{index}");
        let message = format!("{name}: its `result` is no expression of that kind");
        refuses(&expression, json!({"input": "x"}), &message);
    }
    refuses(
        &format!("{BODY}/11/request/sensitive"),
        json!(["note", "age"]),
        "`age` is declared sensitive, but record{n: integer, note: optional<string>} has no such field",
    );
}

#[test]
fn patterns_are_literals() {
    let called = |pattern: Json| {
        let mut whole = base();
        let place = place_of("and", 0);
        // The operands of the conjunction are three constants and an alternative; a call of two takes their place.
        let expressions = whole["semantics"]["expressions"].as_array_mut().unwrap();
        expressions[place - 4] = json!({"input": "s"});
        expressions[place - 3] = pattern;
        expressions[place - 2] = json!({"call": {"op": "regex.matches", "args": [place - 4, place - 3]}});
        expressions[place - 1] = json!({"constant": "yes"});
        expressions[place] = json!({"or": [place - 2, place - 1]});
        whole
    };
    let text = |text: &str| json!({"literal": {"type": "string", "value": text}});
    assert_eq!(rejection(&called(text("a+"))), None);
    let found = rejection(&called(json!({"input": "s"}))).unwrap();
    assert!(
        found.contains("`regex.matches`: its pattern is not a literal"),
        "{found}"
    );
    let found = rejection(&called(text("a("))).unwrap();
    assert!(found.contains("`regex.matches`:"), "{found}");
}

#[test]
fn literals_have_one_spelling() {
    for (ty, spelled, others, message) in [
        (
            "decimal",
            "1.50",
            vec!["1e1", "+1", "01", "1.", ".5", "-0.0e1"],
            "is not a decimal",
        ),
        (
            "float",
            "1.5",
            vec!["1.50", "1", "+1.5", "15e-1", "nan"],
            "is not a float in canonical form",
        ),
        (
            "bytes",
            "AP8=",
            vec!["AP8", "AP9=", "A", "AP8=="],
            "is not base64",
        ),
        (
            "date",
            "2024-02-29",
            vec!["2023-02-29", "2024-2-29", "20240229"],
            "is not a date",
        ),
        (
            "timestamp",
            "2024-02-29T23:59:59Z",
            vec![
                "2024-02-29T23:59:59+00:00",
                "2024-02-29 23:59:59Z",
                "2024-02-29T23:59:59",
            ],
            "is not a timestamp in canonical form",
        ),
        (
            "duration",
            "P1D",
            vec!["PT24H", "P1DT0S", "1D"],
            "is not a duration in canonical form",
        ),
        (
            "json",
            "[1,2]",
            vec!["[1, 2]", " 1", "{\"b\":1,\"a\":1", ""],
            "is not JSON text in canonical form",
        ),
    ] {
        let constant = |text: &str| json!({"name": "table", "type": ty, "value": text});
        accepts("/semantics/constants/2", constant(spelled));
        for text in others {
            refuses("/semantics/constants/2", constant(text), message);
        }
    }
}

#[test]
fn collections_have_one_spelling() {
    let typed = |ty: Json, value: Json| json!({"name": "table", "type": ty, "value": value});
    for (ty, value, message) in [
        (
            json!({"set": "integer"}),
            json!([1, 1]),
            "1 is repeated or out of order in a set",
        ),
        (
            json!({"set": "integer"}),
            json!([2, 1]),
            "1 is repeated or out of order in a set",
        ),
        (
            json!({"set": "string"}),
            json!(["b", "a"]),
            "\"a\" is repeated or out of order in a set",
        ),
        (
            json!({"map": ["integer", "integer"]}),
            json!([[1, 1], [1, 2]]),
            "1 is repeated or out of order in a map",
        ),
        (
            json!({"map": ["integer", "integer"]}),
            json!([1]),
            "1 is not an entry of a map",
        ),
        (
            json!({"map": ["integer", "integer"]}),
            json!([[1]]),
            "not 1 items",
        ),
        (
            json!({"map": ["integer", "integer"]}),
            json!([[1, 2, 3]]),
            "not 3 items",
        ),
        (
            json!({"map": ["integer", "integer"]}),
            json!([[1, "a"]]),
            "the value of 1: ",
        ),
        (json!({"array": "integer"}), json!([1, "a"]), "item 1: "),
        (
            json!({"enum": ["a", "b"]}),
            json!("c"),
            "`c` is not a member of enum[a, b]",
        ),
        (json!("integer"), json!(null), "null is not the form of integer"),
    ] {
        refuses("/semantics/constants/2", typed(ty, value), message);
    }
}
