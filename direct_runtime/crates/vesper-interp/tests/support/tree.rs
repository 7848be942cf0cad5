//! Expressions written as trees, converted to the expression table of the IR.

use serde_json::{Value as Json, json};

/// Appends an expression to the table, with operands given as trees instead of indices.
pub(crate) fn flatten(expression: &Json, table: &mut Vec<Json>) -> usize {
    let mut flat = expression.clone();
    let (kind, body) = flat.as_object_mut().unwrap().iter_mut().next().unwrap();
    let operands: &[&str] = match kind.as_str() {
        "if" => &["/condition", "/then", "/else"],
        "let" => &["/value", "/body"],
        "for" => &["/over", "/with", "/where", "/key", "/value"],
        "field" => &["/of"],
        _ => &[],
    };
    for path in operands {
        if let Some(operand) = body.pointer_mut(path) {
            *operand = json!(flatten(operand, table));
        }
    }
    let listed = match kind.as_str() {
        "and" | "or" => body.as_array_mut(),
        "call" => body["args"].as_array_mut(),
        "array" => body["items"].as_array_mut(),
        "record" => body["fields"].as_array_mut(),
        _ => None,
    };
    for operand in listed.into_iter().flatten() {
        let operand = if operand.get("name").is_some() {
            &mut operand["value"]
        } else {
            operand
        };
        *operand = json!(flatten(operand, table));
    }
    table.push(flat);
    table.len() - 1
}

/// Returns the semantics of a node that returns the expression as `result`.
pub(crate) fn returning(inputs: &Json, ty: &Json, expression: &Json) -> Json {
    let mut table = Vec::new();
    let index = flatten(expression, &mut table);
    json!({
        "node_id": "test_v1", "type": "function", "inputs": inputs,
        "outputs": {"success": [{"name": "result", "type": ty}]}, "constants": [],
        "expressions": table, "constraints": [], "preconditions": [], "postconditions": [],
        "body": [{"return": {"success": [{"name": "result", "value": index}]}}],
    })
}

pub(crate) fn integer(value: i64) -> Json {
    json!({"literal": {"type": "integer", "value": value}})
}

pub(crate) fn call(op: &str, args: &[Json]) -> Json {
    json!({"call": {"op": op, "args": args}})
}

pub(crate) fn local(number: u32) -> Json {
    json!({"local": number})
}

pub(crate) fn input(name: &str) -> Json {
    json!({"input": name})
}

/// A `for` over the input `xs`, whose item is local 0.
pub(crate) fn each(kind: &str, value: Json) -> Json {
    json!({"for": {"kind": kind, "locals": [0], "over": input("xs"), "value": value}})
}

/// A `for` over the input `xs` with a `where`.
pub(crate) fn each_where(kind: &str, filter: Json, value: Json) -> Json {
    json!({"for": {"kind": kind, "locals": [0], "over": input("xs"), "where": filter, "value": value}})
}

/// A `sort_by` over the input `xs`.
pub(crate) fn sort_by(order: Json, key: Json) -> Json {
    json!({"for": {"kind": "sort_by", "locals": [0], "over": input("xs"), "with": order, "value": key}})
}

/// A sort order.
pub(crate) fn order(name: &str) -> Json {
    json!({"literal": {"type": {"enum": ["ascending", "descending"]}, "value": name}})
}
