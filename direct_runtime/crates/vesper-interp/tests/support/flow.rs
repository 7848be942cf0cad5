//! Nodes with expressions written as trees inside statements and clauses, converted to the IR.

use serde_json::{Value as Json, json};

use super::tree::flatten;

/// Returns the semantics with a table of expressions in program order.
pub(crate) fn build(node: &Json) -> Json {
    let mut node = node.clone();
    let mut table = Vec::new();
    clauses(&mut node, "constraints", &mut table);
    clauses(&mut node, "preconditions", &mut table);
    block(&mut node["body"], &mut table);
    clauses(&mut node, "postconditions", &mut table);
    clauses(&mut node, "invariants", &mut table);
    node["expressions"] = json!(table);
    if node.get("node_id").is_none() {
        node["node_id"] = json!("test_v1");
    }
    node
}

fn clauses(node: &mut Json, phase: &str, table: &mut Vec<Json>) {
    for clause in node
        .get_mut(phase)
        .and_then(Json::as_array_mut)
        .into_iter()
        .flatten()
    {
        field(clause, "holds", table);
    }
}

fn field(fields: &mut Json, name: &str, table: &mut Vec<Json>) {
    if let Some(tree) = fields.get_mut(name) {
        *tree = json!(flatten(tree, table));
    }
}

fn each(fields: &mut Json, list: &str, table: &mut Vec<Json>) {
    for entry in fields
        .get_mut(list)
        .and_then(Json::as_array_mut)
        .into_iter()
        .flatten()
    {
        field(entry, "value", table);
    }
}

fn block(statements: &mut Json, table: &mut Vec<Json>) {
    for statement in statements.as_array_mut().unwrap() {
        let (kind, fields) = statement.as_object_mut().unwrap().iter_mut().next().unwrap();
        match kind.as_str() {
            "step" => field(fields, "value", table),
            "return" => each(fields, "success", table),
            "raise" => each(fields, "error", table),
            "require" => field(fields, "holds", table),
            "branch" => {
                for arm in fields["arms"].as_array_mut().unwrap() {
                    field(arm, "when", table);
                    block(&mut arm["body"], table);
                    field(arm, "value", table);
                }
                if let Some(otherwise) = fields.get_mut("else") {
                    block(otherwise, table);
                }
                field(fields, "otherwise", table);
            }
            "loop" => {
                field(fields, "over", table);
                each(fields, "state", table);
                field(fields, "where", table);
                field(fields, "while", table);
                if let Some(body) = fields.get_mut("body") {
                    block(body, table);
                }
                field(fields, "collect", table);
                each(fields, "next", table);
                field(fields, "stop_when", table);
            }
            "parallel" => {
                for member in fields["members"].as_array_mut().unwrap() {
                    block(member, table);
                }
            }
            "request" => {
                field(fields, "key", table);
                each(fields, "arguments", table);
                field(fields, "result", table);
            }
            "call" => {
                each(fields, "inputs", table);
                field(fields, "result", table);
            }
            other => panic!("no statement {other}"),
        }
        for handler in fields
            .get_mut("handlers")
            .and_then(Json::as_array_mut)
            .into_iter()
            .flatten()
        {
            block(&mut handler["body"], table);
            field(handler, "value", table);
        }
    }
}

pub(crate) fn step(name: &str, value: Json) -> Json {
    json!({"step": {"name": name, "value": value}})
}

pub(crate) fn returns(value: Json) -> Json {
    json!({"return": {"success": [{"name": "result", "value": value}]}})
}

/// Raises an error with a code and a message.
pub(crate) fn raises(codes: &Json, code: &str) -> Json {
    json!({"raise": {"error": [
        {"name": "error_code", "value": {"literal": {"type": codes, "value": code}}},
        {"name": "message", "value": {"literal": {"type": "string", "value": "said"}}},
    ]}})
}

/// Makes a request for a custom effect without arguments that returns an integer.
pub(crate) fn request_step(name: &str) -> Json {
    json!({"request": {
        "name": name, "effect": "custom", "class": "read", "fixed": {"name": "thing"}, "result": {"result": "integer"},
    }})
}

/// Adds these handlers to a statement.
pub(crate) fn with_handlers(statement: &Json, handlers: Json) -> Json {
    let mut statement = statement.clone();
    let (_, fields) = statement.as_object_mut().unwrap().iter_mut().next().unwrap();
    fields["handlers"] = handlers;
    statement
}

/// Returns a handler of one code with a value.
pub(crate) fn gives(code: &str, value: Json) -> Json {
    json!({"codes": [code], "body": [], "value": value})
}
