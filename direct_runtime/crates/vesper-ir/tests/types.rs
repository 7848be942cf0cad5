//! Tests of the types that docs/spec/ir.md permits and rejects.
#![allow(
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use serde_json::{Value, json};
use vesper_ir::decode::decode_type;

#[test]
fn only_permitted_types_compose() {
    let type_of = |json: Value| decode_type(&json.to_string()).map_err(|rejected| rejected.to_string());
    let refused = |json: Value, message: &str| {
        let found = type_of(json.clone()).unwrap_err();
        assert!(
            found.contains(message),
            "{json}: {found:?} does not say {message:?}"
        );
    };
    refused(json!({"set": "decimal"}), "a set holds string");
    refused(json!({"set": {"set": "integer"}}), "a set holds string");
    refused(json!({"set": {"optional": "integer"}}), "a set holds string");
    refused(
        json!({"map": ["decimal", "integer"]}),
        "the key of a map is string",
    );
    refused(json!({"map": ["string"]}), "not 1 types");
    refused(json!({"map": ["string", "string", "string"]}), "not 3 types");
    refused(
        json!({"optional": {"optional": "integer"}}),
        "which is an optional itself",
    );
    refused(json!({"record": []}), "a record has no fields");
    let field = json!({"name": "a", "type": "integer"});
    refused(
        json!({"record": [field, field]}),
        "a record has the field `a` twice",
    );
    refused(
        json!({"record": [{"name": "A", "type": "integer"}]}),
        "`A` is not a name",
    );
    refused(json!({"list": "integer"}), "`list` is not a kind of type");
    let nested = |depth: usize| (1..depth).fold(json!("integer"), |of, _| json!({"array": of}));
    type_of(nested(32)).unwrap();
    refused(nested(33), "more than 32 deep");
    let text = "{\"array\":".repeat(1_000_000);
    assert!(decode_type(&text).is_err());
    for json in [
        json!({"map": [{"enum": ["b", "a"]}, {"optional": {"array": {"set": "boolean"}}}]}),
        json!({"record": [{"name": "note", "type": {"optional": "string"}}, {"name": "qty", "type": "integer"}]}),
    ] {
        assert_eq!(type_of(json.clone()).unwrap(), type_of(json).unwrap());
    }
    assert_ne!(
        type_of(json!({"array": "integer"})),
        type_of(json!({"set": "integer"}))
    );
}
