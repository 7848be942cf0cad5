//! A node of `x` and `s` with errors, which the rule tests change and expect to be rejected.

use serde_json::{Value as Json, json};

use super::document::document;
use super::flow::build;
use super::tree::{call, input, integer};

pub(crate) fn codes() -> Json {
    json!({"enum": ["closed", "late"]})
}

pub(crate) fn node(body: Json, rest: Json) -> Json {
    let mut node = json!({
        "inputs": [{"name": "x", "type": "integer"}, {"name": "s", "type": "string"}],
        "outputs": {
            "success": [{"name": "result", "type": "integer"}],
            "error": [{"name": "error_code", "type": codes()}, {"name": "message", "type": "string"}],
        },
        "body": body,
    });
    for (key, value) in rest.as_object().unwrap() {
        node[key] = value.clone();
    }
    node
}

pub(crate) fn loads(node: &Json) -> Result<(), String> {
    let loaded = vesper_ir::load(&document(&build(node)));
    loaded.map(drop).map_err(|rejected| rejected.to_string())
}

pub(crate) fn accepts(body: Json) {
    if let Err(what) = loads(&node(body, json!({}))) {
        panic!("{what}");
    }
}

pub(crate) fn refuses_with(body: Json, rest: Json, message: &str) {
    let found = loads(&node(body, rest)).expect_err("accepted");
    assert!(found.contains(message), "{found:?} does not say {message:?}");
}

pub(crate) fn refuses(body: Json, message: &str) {
    refuses_with(body, json!({}), message);
}

pub(crate) fn is_small() -> Json {
    call("integer.less", &[input("x"), integer(9)])
}

pub(crate) fn text(value: &str) -> Json {
    json!({"literal": {"type": "string", "value": value}})
}

pub(crate) fn of(step: &str) -> Json {
    json!({"step": step})
}

pub(crate) fn branch(arms: Json, rest: Json) -> Json {
    let mut fields = json!({"name": "b", "arms": arms});
    for (key, value) in rest.as_object().unwrap() {
        fields[key] = value.clone();
    }
    json!({"branch": fields})
}

pub(crate) fn arm(body: Json, value: Option<Json>) -> Json {
    let mut arm = json!({"when": is_small(), "body": body});
    if let Some(value) = value {
        arm["value"] = value;
    }
    arm
}
