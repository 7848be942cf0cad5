//! Floats, bytes, times and JSON in a node: canonical literals, keys, and the types of `CAST`.
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
use vesper_ir::Value;

fn literal(ty: Json, value: Json) -> Json {
    json!({"literal": {"type": ty, "value": value}})
}

fn call(op: &str, of: Json, args: Json) -> Json {
    json!({"call": {"op": op, "args": args, "of": of}})
}

/// Returns the outcome of an expression that ignores its input.
fn outcome(ty: Json, expression: Json) -> String {
    let inputs = json!([{"name": "xs", "type": "boolean"}]);
    let program = load(&returning(&inputs, &ty, &expression));
    run(&program, &[Value::Boolean(true)])
        .1
        .replace("returned result=", "")
}

fn refusal(ty: Json, value: Json) -> Option<String> {
    let inputs = json!([{"name": "xs", "type": "boolean"}]);
    let bytes = document(&returning(&inputs, &ty.clone(), &literal(ty, value)));
    vesper_ir::load(&bytes).err().map(|rejected| rejected.to_string())
}

#[test]
fn literals_have_one_spelling() {
    for (ty, spelled, others) in [
        (
            "float",
            vec!["1.0", "-0.0", "1e+16", "NaN", "-Infinity", "1.5e-07"],
            vec!["1", "1e16", "nan", "+1.0", "0.10", "1E+16"],
        ),
        ("bytes", vec!["", "AP8="], vec!["AP8", "AP9=", "00f"]),
        (
            "timestamp",
            vec!["2024-02-29T10:30:00Z", "2024-02-29T10:30:00.500000Z"],
            vec![
                "2024-02-29T10:30:00.5Z",
                "2024-02-29t10:30:00Z",
                "2024-02-29T10:30:00.000000Z",
                "2024-02-29T10:30:00+00:00",
            ],
        ),
        ("date", vec!["2024-02-29"], vec!["2023-02-29", "20240229"]),
        (
            "duration",
            vec!["PT0S", "-P1DT0.5S"],
            vec!["30s", "PT60S", "+PT1S", "P1DT0.50S", "-PT0S"],
        ),
        (
            "json",
            vec!["null", "[1.50,{\"a\":\"é\",\"b\":1000}]"],
            vec!["", " null", "1e3", "-0", "{\"b\":1,\"a\":1}", "\"\\u00e9\"", "01"],
        ),
    ] {
        for text in spelled {
            assert_eq!(refusal(json!(ty), json!(text)), None, "{ty} {text}");
        }
        for text in others {
            let found = refusal(json!(ty), json!(text)).unwrap_or_else(|| panic!("{ty} {text} was taken"));
            assert!(found.contains("is not"), "{found}");
        }
        let found = refusal(json!(ty), json!(1)).unwrap();
        assert!(found.contains(&format!("1 is not the form of {ty}")), "{found}");
    }
    assert_eq!(refusal(json!({"optional": "json"}), json!(null)), None);
    assert_eq!(refusal(json!({"optional": "json"}), json!("null")), None);
}

#[test]
fn dates_timestamps_and_bytes_are_keys() {
    let dates = json!({"set": "date"});
    assert_eq!(refusal(dates.clone(), json!(["2024-01-31", "2024-02-01"])), None);
    assert!(
        refusal(dates, json!(["2024-02-01", "2024-01-31"]))
            .unwrap()
            .contains("out of order")
    );
    let moments = json!({"map": ["timestamp", "integer"]});
    // Ordered by time, not by text: the point sorts before the Z.
    assert_eq!(
        refusal(
            moments.clone(),
            json!([["2024-01-01T00:00:00Z", 1], ["2024-01-01T00:00:00.000001Z", 2]])
        ),
        None
    );
    let at = call(
        "map.at",
        json!(["timestamp", "integer"]),
        json!([
            literal(moments, json!([["2024-01-01T00:00:00Z", 1]])),
            literal(json!("timestamp"), json!("2024-01-01T00:00:00Z"))
        ]),
    );
    assert_eq!(outcome(json!("integer"), at), "1");
    let bytes = json!({"set": "bytes"});
    // 0x7f comes before 0x80.
    assert_eq!(refusal(bytes.clone(), json!(["fw==", "gA=="])), None);
    let put = call(
        "set.put",
        json!(["bytes"]),
        json!([
            literal(bytes.clone(), json!(["gA=="])),
            literal(json!("bytes"), json!("fw=="))
        ]),
    );
    assert_eq!(outcome(bytes, put), "{fw==,gA==}");
    for ty in ["float", "duration", "json"] {
        let found = refusal(json!({"set": ty}), json!([])).unwrap();
        assert!(found.contains("a set holds string"), "{found}");
    }
}

#[test]
fn casts_know_their_types() {
    let line = json!({"record": [
        {"name": "qty", "type": "integer"},
        {"name": "kind", "type": {"enum": ["b", "a"]}},
        {"name": "note", "type": {"optional": "string"}},
    ]});
    let lines = json!({"map": ["date", {"array": line}]});
    let text = r#"[["2024-02-29",[{"kind":"a","qty":2}]]]"#;
    let cast = call(
        "json.cast",
        json!([lines]),
        json!([literal(json!("json"), json!(text))]),
    );
    assert_eq!(
        outcome(lines.clone(), cast.clone()),
        "{2024-02-29:[(qty=2,kind=a,note=null)]}"
    );
    let back = call("json.from_value", json!([lines]), json!([cast]));
    assert_eq!(
        outcome(json!("json"), back),
        r#"[["2024-02-29",[{"kind":"a","note":null,"qty":2}]]]"#
    );
    // An optional cast target is that type, and JSON null is null only there.
    let optional = json!({"optional": "integer"});
    let null = call(
        "json.cast",
        json!([optional]),
        json!([literal(json!("json"), json!("null"))]),
    );
    assert_eq!(outcome(optional, null), "null");
    let failing = call(
        "json.cast",
        json!(["integer"]),
        json!([literal(json!("json"), json!("null"))]),
    );
    assert!(outcome(json!("integer"), failing).contains("bad_cast"));
}

#[test]
fn the_kind_of_json_is_an_enum_of_the_document() {
    let kinds = json!({"enum": ["null", "boolean", "number", "string", "array", "object"]});
    let kind = json!({"call": {"op": "json.kind", "args": [literal(json!("json"), json!("[]"))]}});
    assert_eq!(outcome(kinds.clone(), kind.clone()), "array");
    // Compared, and combined with a type that the document spells.
    let is_array = call(
        "enum.equal",
        json!([kinds]),
        json!([kind.clone(), literal(kinds.clone(), json!("array"))]),
    );
    assert_eq!(outcome(json!("boolean"), is_array), "true");
    let array = json!({"array": {"items": [kind, literal(kinds.clone(), json!("null"))], "of": kinds}});
    assert_eq!(outcome(json!({"array": kinds}), array), "[array,null]");
}

#[test]
fn a_json_null_is_a_value() {
    let xs = json!([{"name": "xs", "type": {"optional": "json"}}]);
    let is_null = call("optional.is_null", json!(["json"]), json!([input("xs")]));
    let program = load(&returning(&xs, &json!("boolean"), &is_null));
    let null = Value::Json(Arc::new(vesper_ir::Json::Null));
    assert!(run(&program, &[null]).1.contains("false"));
    assert!(run(&program, &[Value::Null]).1.contains("true"));
}
