//! Limits of a document, each kept and exceeded by one.

use serde_json::{Value as Json, json};

use crate::base::{accepts, base, refuses, rejection, with};

const BODY: &str = "/semantics/body";

#[test]
fn a_document_has_eight_mebibytes() {
    let length = base().to_string().len();
    let intent = base()["source"]["intent"].as_str().unwrap().len();
    let padded = |whole: usize| with("/source/intent", json!("x".repeat(whole - length + intent)));
    let limit = 8 * 1024 * 1024;
    assert_eq!(padded(limit).to_string().len(), limit);
    assert_eq!(rejection(&padded(limit)), None);
    let found = rejection(&padded(limit + 1)).unwrap();
    assert_eq!(found, "the document has 8388609 bytes; the limit is 8388608");
}

#[test]
fn only_one_version_is_read() {
    for version in [1, 3] {
        refuses(
            "/ir_version",
            json!(version),
            &format!("has ir_version {version}; this engine reads 2"),
        );
    }
}

#[test]
fn lists_have_4096_items() {
    for path in ["/semantics/capabilities/denied", "/semantics/sensitive"] {
        accepts(path, json!(vec!["a"; 4096]));
        refuses(path, json!(vec!["a"; 4097]), "more than 4096 items");
    }
    let entries = |count: usize| -> Json {
        let entries = (0..count).map(|number| (format!("s{number:05}"), json!([1, 1, 1, 1])));
        Json::Object(entries.collect())
    };
    accepts("/source/steps", entries(4096));
    refuses("/source/steps", entries(4097), "more than 4096 entries");
    let clauses = |count: u32| -> Json {
        let clauses = (0..count).map(|number| ((number + 100_000).to_string(), json!("")));
        Json::Object(clauses.collect())
    };
    accepts("/source/clauses", clauses(17_384));
    refuses("/source/clauses", clauses(17_385), "more than 17384 entries");
}

#[test]
fn names_have_128_bytes_and_texts_65536() {
    accepts("/semantics/capabilities/denied/0", json!("x".repeat(128)));
    refuses(
        "/semantics/capabilities/denied/0",
        json!("x".repeat(129)),
        "more than 128 bytes",
    );
    let keyed = |length: usize| json!({"x".repeat(length): [1, 1, 1, 1]});
    accepts("/source/steps", keyed(128));
    refuses("/source/steps", keyed(129), "more than 128 bytes");
    let text = |length: usize| json!({"name": "table", "type": "string", "value": "x".repeat(length)});
    accepts("/semantics/constants/2", text(65_536));
    refuses("/semantics/constants/2", text(65_537), "more than 65536 bytes");
    let fixed = format!("{BODY}/11/request/fixed/provider");
    accepts(&fixed, json!("x".repeat(65_536)));
    refuses(&fixed, json!("x".repeat(65_537)), "more than 65536 bytes");
}

#[test]
fn loops_have_a_million_rounds() {
    let max = format!("{BODY}/13/loop/max");
    for count in [1, 1_000_000] {
        accepts(&max, json!(count));
    }
    for count in [-1, 0, 1_000_001] {
        refuses(
            &max,
            json!(count),
            &format!("the `max` of a loop is 1 to 1000000, not {count}"),
        );
    }
}

#[test]
fn indexes_are_below_65536() {
    let path = "/semantics/preconditions/0/holds";
    for index in [-1, 65_536, 4_294_967_296_i64] {
        refuses(
            path,
            json!(index),
            &format!("{index} is not the index of an expression"),
        );
    }
    refuses(
        path,
        json!(65_535),
        "expression 65535 is used, but the table ends before it",
    );
    let count = base()["semantics"]["expressions"].as_array().unwrap().len();
    refuses(path, json!(count), "is used, but the table ends before it");
}

#[test]
fn spans_count_from_one_and_fit_32_bits() {
    for number in [1, 4_294_967_295_u32] {
        accepts("/source/spans/0", json!([number, number, number, number]));
    }
    for place in 0..4 {
        let path = format!("/source/spans/0/{place}");
        refuses(&path, json!(0), "0 in a span; lines and columns count from 1");
        refuses(&path, json!(4_294_967_296_i64), "a span ends too far away");
    }
    refuses("/source/spans/0", json!([1, 1, 1]), "a span has four numbers");
    refuses("/source/spans/0", json!([1, 1, 1, 1, 1]), "more than 4 items");
    refuses("/source/steps/made", json!([1, 1, 1]), "a span has four numbers");
}

/// Nests a type in itself.
fn nested(depth: usize, wrap: impl Fn(Json) -> Json) -> Json {
    (1..depth).fold(json!("integer"), |inner, _| wrap(inner))
}

#[test]
fn types_nest_32_deep() {
    let wraps: [fn(Json) -> Json; 3] = [
        |of| json!({"array": of}),
        |of| json!({"map": ["string", of]}),
        |of| json!({"record": [{"name": "a", "type": "integer"}, {"name": "z", "type": of}]}),
    ];
    for wrap in wraps {
        accepts("/semantics/inputs/1/type", json!("string"));
        let typed = |depth: usize| json!({"name": "more", "type": nested(depth, wrap)});
        let mut whole = base();
        let inputs = whole["semantics"]["inputs"].as_array_mut().unwrap();
        inputs.push(typed(32));
        assert_eq!(rejection(&whole), None);
        whole["semantics"]["inputs"][4] = typed(33);
        let found = rejection(&whole).unwrap();
        assert!(found.contains("a type nests more than 32 deep"), "{found}");
    }
    let mut whole = base();
    let deepest = nested(31, |of| json!({"array": of}));
    let inputs = whole["semantics"]["inputs"].as_array_mut().unwrap();
    inputs.push(json!({"name": "more", "type": {"optional": deepest}}));
    assert_eq!(rejection(&whole), None);
    whole["semantics"]["inputs"][4]["type"] = json!({"optional": nested(32, |of| json!({"array": of}))});
    assert!(
        rejection(&whole)
            .unwrap()
            .contains("a type nests more than 32 deep")
    );
}

#[test]
fn values_nest_64_deep() {
    let nested = |depth: usize| (1..depth).fold(json!([]), |inner, _| json!([inner]));
    refuses(
        "/semantics/constants/0/value",
        nested(64),
        "an array is not the form of boolean",
    );
    refuses(
        "/semantics/constants/0/value",
        nested(65),
        "a value nests more than 64 deep",
    );
    let objects = |depth: usize| (1..depth).fold(json!({}), |inner, _| json!({"a": inner}));
    refuses(
        "/semantics/constants/0/value",
        objects(64),
        "an object is not the form of boolean",
    );
    refuses(
        "/semantics/constants/0/value",
        objects(65),
        "a value nests more than 64 deep",
    );
}

#[test]
fn flows_nest_as_deep_as_types() {
    let nested =
        |depth: usize| (1..depth).fold(json!({"from": "1"}), |inner, _| json!({"fields": {"n": inner}}));
    refuses("/taint/steps/made", nested(32), "has no field `n`");
    refuses("/taint/steps/made", nested(33), "flows nest deeper than types");
}
