//! Library operations that depend on more than a kernel: types, enum arguments and member names.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

#[path = "support/mod.rs"]
mod support;
#[path = "support/tree.rs"]
mod tree;

use std::sync::Arc;

use serde_json::{Value as Json, json};
use support::{document, load, run};
use tree::{input, returning};
use vesper_ir::{Member, Set, Value};

fn call(op: &str, of: Json, args: Json) -> Json {
    json!({"call": {"op": op, "args": args, "of": of}})
}

fn literal(ty: Json, value: Json) -> Json {
    json!({"literal": {"type": ty, "value": value}})
}

fn semantics(of: &Json, ty: &Json, expression: &Json) -> Json {
    returning(&json!([{"name": "xs", "type": of}]), ty, expression)
}

fn outcome(of: Json, ty: Json, expression: Json, xs: Value) -> String {
    let program = load(&semantics(&of, &ty, &expression));
    run(&program, &[xs]).1.replace("returned result=", "")
}

fn refusal(of: Json, ty: Json, expression: Json) -> String {
    let bytes = document(&semantics(&of, &ty, &expression));
    vesper_ir::load(&bytes).unwrap_err().to_string()
}

fn integers(items: &[i64]) -> Value {
    Value::Array(items.iter().copied().map(Value::Integer).collect())
}

fn orders() -> Json {
    json!({"enum": ["ascending", "descending"]})
}

#[test]
fn the_text_of_a_member_is_in_its_type() {
    let colours = json!({"enum": ["red", "green", "very \"blue\""]});
    let text = call("enum.text", json!([colours]), json!([input("xs")]));
    for (place, name) in [(0, "\"red\""), (1, "\"green\""), (2, r#""very \"blue\"""#)] {
        let value = Value::Member(Member(place));
        assert_eq!(
            outcome(colours.clone(), json!("string"), text.clone(), value),
            name
        );
    }
    // Two enums in one node keep separate names.
    let sizes = json!({"enum": ["small", "large"]});
    let other = call(
        "enum.text",
        json!([sizes]),
        json!([literal(sizes, json!("large"))]),
    );
    let both = json!({"call": {"op": "text.concat", "args": [text, other]}});
    let value = Value::Member(Member(1));
    assert_eq!(outcome(colours, json!("string"), both, value), "\"greenlarge\"");
}

#[test]
fn an_enum_as_argument_is_exactly_the_declared_one() {
    let sort = |order: Json| call("array.sort", json!(["integer"]), json!([input("xs"), order]));
    let array = json!({"array": "integer"});
    let sort_by = |order: &str| {
        let expression = sort(literal(orders(), json!(order)));
        outcome(array.clone(), array.clone(), expression, integers(&[2, 3, 1]))
    };
    assert_eq!(sort_by("ascending"), "[1,2,3]");
    assert_eq!(sort_by("descending"), "[3,2,1]");
    let turned = json!({"enum": ["descending", "ascending"]});
    let refused = refusal(
        array.clone(),
        array.clone(),
        sort(literal(turned, json!("ascending"))),
    );
    assert!(refused.contains("as its `order` argument"), "{refused}");

    let arrays = json!({"array": "json"});
    let order = literal(orders(), json!("ascending"));
    let of_arrays = call("array.sort", json!(["json"]), json!([input("xs"), order]));
    let refused = refusal(arrays.clone(), arrays, of_arrays);
    assert!(
        refused.contains(
            "wants string, integer, decimal, float, boolean, bytes, date, timestamp, duration, time_of_day, period"
        ),
        "{refused}"
    );
}

#[test]
fn an_optional_of_an_optional_is_one_optional() {
    let optional = json!({"optional": "integer"});
    let get = |index: i64| {
        let index = literal(json!("integer"), json!(index));
        let get = call("array.get", json!([optional]), json!([input("xs"), index]));
        let values = Value::Array([Value::Null, Value::Integer(7)].into());
        outcome(json!({"array": optional}), optional.clone(), get, values)
    };
    assert_eq!(
        (get(0), get(1), get(2)),
        ("null".to_owned(), "7".to_owned(), "null".to_owned())
    );
}

#[test]
fn an_empty_set_made_from_nothing_equals_every_empty_set() {
    let set = call("array.to_set", json!(["string"]), json!([input("xs")]));
    let array = json!({"array": "string"});
    let set_type = json!({"set": "string"});
    assert_eq!(outcome(array, set_type, set, Value::Array([].into())), "{}");
    assert!(Value::Set(Set::default().into()).is_identical(&Value::Set(Set::Text(Vec::new()).into())));
}

fn matching(pattern: Json) -> Json {
    call_plain("regex.matches", json!([input("xs"), pattern]))
}

fn call_plain(op: &str, args: Json) -> Json {
    json!({"call": {"op": op, "args": args}})
}

#[test]
fn a_pattern_is_read_when_a_document_is_loaded() {
    let string = || json!("string");
    let text = |value: &str| Value::Text(Arc::from(value));
    let two = json!({"and": [matching(literal(string(), json!("^a+$"))), matching(literal(string(), json!("^a+$")))]});
    assert_eq!(
        outcome(string(), json!("boolean"), two.clone(), text("aaa")),
        "true"
    );
    assert_eq!(outcome(string(), json!("boolean"), two, text("aab")), "false");
    let groups = call_plain(
        "regex.groups",
        json!([input("xs"), literal(string(), json!("(a)|(b)"))]),
    );
    let ty = json!({"optional": {"array": {"optional": "string"}}});
    assert_eq!(
        outcome(string(), ty.clone(), groups.clone(), text("b")),
        r#"["b",null,"b"]"#
    );
    assert_eq!(outcome(string(), ty, groups, text("c")), "null");
    let wrong = refusal(
        string(),
        json!("boolean"),
        matching(literal(string(), json!("(a*)*"))),
    );
    assert!(wrong.contains("can match the empty string"), "{wrong}");
    let computed = refusal(string(), json!("boolean"), matching(input("xs")));
    assert!(computed.contains("not a literal"), "{computed}");
}
