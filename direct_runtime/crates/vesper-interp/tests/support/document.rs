//! Builders of small IR documents.

use serde_json::{Value as Json, json};

/// Returns the canonical bytes of a document; `serde_json` sorts keys and escapes as canonical JSON does. Fields that
/// most tests ignore may be omitted.
pub(crate) fn document(semantics: &Json) -> Vec<u8> {
    let semantics = complete(semantics);
    let expressions = semantics["expressions"].as_array().unwrap();
    let mut locals: usize = expressions.iter().map(count_locals).sum();
    locals += loop_locals(&semantics["body"]);
    let source = json!({
        "path": "x.vsp", "sha256": "0".repeat(64), "intent": "a test", "spans": vec![[1, 1, 1, 2]; expressions.len()],
        "steps": {}, "clauses": {}, "locals": vec!["x"; locals],
    });
    json!({"ir_version": 2, "semantics": semantics, "source": source})
        .to_string()
        .into_bytes()
}

/// Returns the semantics with all omitted fields.
pub(crate) fn complete(semantics: &Json) -> Json {
    let mut whole = json!({
        "type": "function", "audit": "none", "sensitive": [], "policy": {}, "machines": [], "calls": [],
        "capabilities": {"denied": [], "required": []}, "invariants": [], "constants": [], "constraints": [],
        "preconditions": [], "postconditions": [],
    });
    for (key, value) in semantics.as_object().unwrap() {
        whole[key] = value.clone();
    }
    if whole["outputs"].get("error").is_none() {
        whole["outputs"]["error"] = json!([]);
    }
    complete_statements(&mut whole["body"]);
    whole
}

/// Adds handlers to statements without any, and optional fields to requests.
fn complete_statements(block: &mut Json) {
    for statement in block.as_array_mut().unwrap() {
        let (kind, fields) = statement.as_object_mut().unwrap().iter_mut().next().unwrap();
        let defaults = match kind.as_str() {
            "step" | "call" => json!({"handlers": []}),
            "branch" => json!({"handlers": [], "else": []}),
            "loop" => json!({"handlers": [], "locals": [], "state": [], "next": [], "body": [], "max": 1000}),
            "request" => json!({"handlers": [], "policy": {}, "fixed": {}, "arguments": []}),
            _ => json!({}),
        };
        for (key, value) in defaults.as_object().unwrap() {
            if fields.get(key).is_none() {
                fields[key] = value.clone();
            }
        }
        for block in blocks_mut(fields) {
            complete_statements(block);
        }
    }
}

/// Returns the blocks within a statement.
fn blocks_mut(fields: &mut Json) -> Vec<&mut Json> {
    let mut found = Vec::new();
    for (key, value) in fields.as_object_mut().unwrap() {
        match key.as_str() {
            "body" | "else" => found.push(value),
            "arms" | "handlers" => {
                found.extend(
                    value
                        .as_array_mut()
                        .unwrap()
                        .iter_mut()
                        .map(|each| &mut each["body"]),
                );
            }
            _ => {}
        }
    }
    found
}

/// Counts the locals that the loops of a block introduce.
fn loop_locals(block: &Json) -> usize {
    let statements = block.as_array().unwrap().iter();
    let each = statements.map(|statement| {
        let (_, fields) = statement.as_object().unwrap().iter().next().unwrap();
        let count = |name: &str| match &fields[name] {
            Json::Array(listed) => listed.len(),
            _ => 0,
        };
        let inside: usize = blocks_mut(&mut fields.clone())
            .into_iter()
            .map(|block| loop_locals(block))
            .sum();
        count("locals") + count("state") + inside
    });
    each.sum()
}

/// Counts the locals that an expression introduces.
fn count_locals(expression: &Json) -> usize {
    let of_for = expression.pointer("/for/locals").and_then(Json::as_array);
    of_for.map_or(usize::from(expression.get("let").is_some()), Vec::len)
}
