//! Tests of taint flags and releases: documents with and without them, and each rule of "well formed" about them.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use serde_json::{Value, json};

fn semantics() -> Value {
    let person = json!({"record": [{"name": "city", "type": "string"}, {"name": "pin", "type": "string"}]});
    json!({
        "node_id": "small_v1", "type": "http_handler", "audit": "none", "sensitive": ["pin"], "policy": {},
        "machines": [], "calls": [], "capabilities": {"denied": [], "required": ["cache.read.people"]},
        "invariants": [], "constants": [], "constraints": [], "preconditions": [], "postconditions": [],
        "inputs": [{"name": "pin", "type": "string"}],
        "outputs": {
            "error": [{"name": "error_code", "type": {"enum": ["bad"]}}],
            "success": [{"name": "known", "type": {"optional": person.clone()}}],
        },
        "expressions": [{"input": "pin"}, {"result": {"optional": person}}, {"step": "lookup"}],
        "body": [
            {"request": {
                "name": "lookup", "effect": "cache_get", "class": "read", "fixed": {"cache": "people"},
                "arguments": [{"name": "key", "value": 0}], "result": 1, "policy": {}, "handlers": [],
                "sensitive": ["pin"],
            }},
            {"return": {"success": [{"name": "known", "value": 2}]}},
        ],
    })
}

fn taint() -> Value {
    let flow = json!({"fields": {"pin": {"from": "2"}}});
    json!({
        "sources": ["pin", "lookup"], "steps": {"lookup": flow}, "outputs": {"known": flow}, "errors": {},
        "values": [{"at": 0, "flow": {"from": "1"}}, {"at": 1, "flow": flow}], "failures": [],
    })
}

fn document(semantics: &Value, taint: Option<&Value>) -> Vec<u8> {
    let source = json!({
        "path": "x.vsp", "sha256": "0".repeat(64), "intent": "a test", "spans": vec![[1, 1, 1, 2]; 3],
        "steps": {}, "clauses": {}, "locals": [],
    });
    let mut found = json!({"ir_version": 2, "semantics": semantics, "source": source});
    if let Some(taint) = taint {
        found["taint"] = taint.clone();
    }
    found.to_string().into_bytes()
}

fn refusal(bytes: &[u8]) -> String {
    match vesper_ir::load(bytes) {
        Err(rejected) => rejected.to_string(),
        Ok(_) => panic!("accepted: {}", String::from_utf8_lossy(bytes)),
    }
}

/// Sets one part of the flags and expects a rejection that contains the text.
fn refuses_flags(path: &str, value: Value, message: &str) {
    let mut changed = taint();
    let (parent, key) = path.rsplit_once('/').unwrap();
    changed
        .pointer_mut(parent)
        .unwrap_or_else(|| panic!("no {parent}"))[key] = value;
    let found = refusal(&document(&semantics(), Some(&changed)));
    assert!(
        found.contains(message),
        "{path}: {found:?} does not say {message:?}"
    );
}

fn refuses_semantics(change: impl FnOnce(&mut Value), message: &str) {
    let mut changed = semantics();
    change(&mut changed);
    let found = refusal(&document(&changed, None));
    assert!(found.contains(message), "{found:?} does not say {message:?}");
}

#[test]
fn flags_are_accepted_and_do_not_change_the_semantic_hash() {
    let with = vesper_ir::load(&document(&semantics(), Some(&taint()))).unwrap();
    let without = vesper_ir::load(&document(&semantics(), None)).unwrap();
    assert_eq!(with.semantic_hash, without.semantic_hash);
}

#[test]
fn releases_and_sensitive_answers_change_the_semantic_hash() {
    let before = vesper_ir::load(&document(&semantics(), None)).unwrap();
    let mut released = semantics();
    released["declassified"] =
        json!({"known": "reviewed", "error.error_code": "a fixed set", "lookup": "reviewed"});
    let after = vesper_ir::load(&document(&released, None)).unwrap();
    assert_ne!(before.semantic_hash, after.semantic_hash);
    let mut clear = semantics();
    clear["body"][0]["request"]
        .as_object_mut()
        .unwrap()
        .remove("sensitive");
    let clear = vesper_ir::load(&document(&clear, None)).unwrap();
    assert_ne!(before.semantic_hash, clear.semantic_hash);
}

#[test]
fn flags_name_sources_and_values_that_exist() {
    refuses_flags(
        "/sources",
        json!(["pin", "nobody"]),
        "`nobody` is no input, request or call",
    );
    refuses_flags("/sources", json!(["pin", "pin"]), "occurs twice");
    refuses_flags(
        "/steps",
        json!({"elsewhere": {"from": "1"}}),
        "no step with a value is named `elsewhere`",
    );
    refuses_flags(
        "/outputs",
        json!({"unknown": {"from": "1"}}),
        "no output is named `unknown`",
    );
    refuses_flags(
        "/errors",
        json!({"message": {"from": "1"}}),
        "no error field is named `message`",
    );
    refuses_flags(
        "/values",
        json!([{"at": 3, "flow": {"from": "1"}}]),
        "there is no expression 3",
    );
    refuses_flags(
        "/outputs",
        json!({"known": {"from": "4"}}),
        "beyond the 2 declared ones",
    );
    refuses_flags(
        "/outputs",
        json!({"known": {"from": "10"}}),
        "beyond the 2 declared ones",
    );
    refuses_flags(
        "/outputs",
        json!({"known": {"fields": {"age": {"from": "1"}}}}),
        "has no field `age`",
    );
    refuses_flags(
        "/failures",
        json!([{"at": 1, "flow": {"fields": {"pin": {"from": "1"}}}}]),
        "has no field `pin`",
    );
}

#[test]
fn flows_have_one_spelling() {
    refuses_flags("/outputs/known", json!({}), "a flow without sources is absent");
    refuses_flags(
        "/outputs/known",
        json!({"fields": {}}),
        "`fields` is absent where there are none",
    );
    for text in ["", "0", "01", "A", "g", "-1"] {
        refuses_flags("/outputs/known", json!({"from": text}), "is not a set of sources");
    }
    let repeated = json!({"fields": {"pin": {"from": "3"}}, "from": "1"});
    refuses_flags("/outputs/known", repeated, "repeats a source of its record");
    let value = |at: u32| json!({"at": at, "flow": {"from": "1"}});
    refuses_flags("/values", json!([value(1), value(0)]), "repeated or out of order");
    refuses_flags("/values", json!([value(1), value(1)]), "repeated or out of order");
    let mut deep = json!({"from": "1"});
    for _ in 0..40 {
        deep = json!({"fields": {"pin": deep}});
    }
    refuses_flags("/outputs/known", deep, "deeper than types");
}

#[test]
fn releases_name_values_and_have_reasons() {
    let release = |name: &str, reason: &str| {
        let released = json!({name: reason});
        move |semantics: &mut Value| semantics["declassified"] = released
    };
    refuses_semantics(
        release("elsewhere", "x"),
        "no step, output or error field is named `elsewhere`",
    );
    refuses_semantics(
        release("error.known", "x"),
        "no step, output or error field is named `error.known`",
    );
    refuses_semantics(release("known", " "), "the release of `known` has no reason");
    refuses_semantics(
        |semantics| semantics["declassified"] = json!({}),
        "absent where nothing is released",
    );
}

#[test]
fn sensitive_answers_name_fields() {
    let sensitive =
        |value: Value| move |semantics: &mut Value| semantics["body"][0]["request"]["sensitive"] = value;
    refuses_semantics(sensitive(json!(["age"])), "has no such field");
    refuses_semantics(sensitive(json!([])), "absent where nothing is sensitive");
    refuses_semantics(sensitive(json!(false)), "absent where nothing is sensitive");
    let mut whole = semantics();
    sensitive(json!(true))(&mut whole);
    vesper_ir::load(&document(&whole, None)).unwrap();
}
