//! A node with every kind of type, value and expression.

use serde_json::{Value as Json, json};

use crate::support::document;
use crate::tree::{call, flatten, input, integer, local};

fn color() -> Json {
    json!({"enum": ["red", "blue"]})
}

fn item() -> Json {
    json!({"record": [
        {"name": "qty", "type": "integer"}, {"name": "note", "type": {"optional": "string"}},
    ]})
}

fn each(kind: &str, number: u32, value: Json) -> Json {
    json!({"for": {"kind": kind, "locals": [number], "over": input("items"), "value": value}})
}

fn qty(number: u32) -> Json {
    json!({"field": {"name": "qty", "of": local(number)}})
}

/// Steps and their types, named `s0`, `s1`, …
fn first_steps() -> Vec<(Json, Json)> {
    let choice = json!({"if": {
        "condition": each("exists", 1, call("integer.greater", &[qty(1), integer(3)])),
        "then": each("min", 2, qty(2)), "else": each("max", 3, qty(3)),
    }});
    let map = json!({"for": {
        "kind": "map", "locals": [4, 5], "over": input("rates"),
        "where": {"and": [{"constant": "yes"}, call("integer.less", &[local(5), integer(9)])]},
        "key": local(5), "value": local(4),
    }});
    let record = json!({"let": {"local": 7, "value": {"step": "s0"}, "body": {"record": {"fields": [
        {"name": "qty", "value": local(7)},
        {"name": "note", "value": {"literal": {"type": {"optional": "string"}, "value": null}}},
    ]}}}});
    let set = json!({"for": {"kind": "set", "locals": [6], "over": input("colors"), "value": local(6)}});
    let array = json!({"array": {"items": [{"step": "s4"}, {"constant": "one"}], "of": item()}});
    let inner = each("count", 9, call("integer.add", &[qty(8), qty(9)]));
    vec![
        (each("sum", 0, qty(0)), json!("integer")),
        (choice, json!("integer")),
        (map, json!({"map": ["integer", "string"]})),
        (set, json!({"set": color()})),
        (record, item()),
        (array, json!({"array": item()})),
        (each("array", 8, inner), json!({"array": "integer"})),
    ]
}

/// The later steps: the other kinds of `for`, and operations on composite values.
fn binder_steps() -> Vec<(Json, Json)> {
    let items = || json!({"array": item()});
    let order = json!({"enum": ["ascending", "descending"]});
    let sorted = json!({"for": {
        "kind": "sort_by", "locals": [12], "over": input("items"), "value": qty(12),
        "with": {"literal": {"type": order, "value": "descending"}},
    }});
    let folded = json!({"for": {
        "kind": "fold", "locals": [13, 14, 15], "over": input("rates"), "with": integer(2),
        "where": call("integer.less", &[local(14), integer(9)]),
        "value": call("integer.add", &[local(15), local(14)]),
    }});
    let drops = each("drop_while", 18, call("integer.less", &[qty(18), integer(1)]));
    let takes = each("take_while", 19, call("integer.less", &[qty(19), integer(50)]));
    let counts =
        json!({"for": {"kind": "count_by", "locals": [20], "over": input("colors"), "value": local(20)}});
    let index =
        json!({"for": {"kind": "index_by", "locals": [21], "over": input("rates"), "value": local(21)}});
    let equal =
        json!({"call": {"op": "array.equal", "args": [{"step": "s8"}, input("items")], "of": [item()]}});
    let entries =
        json!({"call": {"op": "map.entries", "args": [input("rates")], "of": ["string", "integer"]}});
    let entry = json!({"record": [{"name": "key", "type": "string"}, {"name": "value", "type": "integer"}]});
    vec![
        (each("avg", 11, qty(11)), json!("decimal")),
        (sorted, items()),
        (folded, json!("integer")),
        (
            each("group_by", 16, qty(16)),
            json!({"map": ["integer", items()]}),
        ),
        (each("min_by", 17, qty(17)), json!({"optional": item()})),
        (drops, items()),
        (takes, items()),
        (counts, json!({"map": [color(), "integer"]})),
        (index, json!({"map": ["string", "string"]})),
        (each("distinct_by", 22, local(22)), items()),
        (equal, json!("boolean")),
        (entries, json!({"array": entry})),
    ]
}

/// Returns the document of the node.
pub(crate) fn everything() -> Vec<u8> {
    let mut table = Vec::new();
    let mut body = Vec::new();
    let mut outputs = Vec::new();
    for (number, (step, ty)) in first_steps().into_iter().chain(binder_steps()).enumerate() {
        let value = flatten(&step, &mut table);
        body.push(json!({"step": {"name": format!("s{number}"), "value": value}}));
        outputs.push(json!({"name": format!("o{number}"), "type": ty}));
    }
    let returned: Vec<Json> = (0..outputs.len())
        .map(|number| {
            let value = flatten(&json!({"step": format!("s{number}")}), &mut table);
            json!({"name": format!("o{number}"), "value": value})
        })
        .collect();
    body.push(json!({"return": {"success": returned}}));
    let holds = call("integer.greater_or_equal", &[qty(10), json!({"output": "o1"})]);
    let clause = json!({"or": [{"constant": "yes"}, each("forall", 10, holds)]});
    let clause = flatten(&clause, &mut table);
    document(&json!({
        "node_id": "everything_v1", "type": "function",
        "inputs": [
            {"name": "items", "type": {"array": item()}, "default": [{"note": "a", "qty": 1}]},
            {"name": "rates", "type": {"map": ["string", "integer"]}, "default": [["a", 1], ["b", 2]]},
            {"name": "colors", "type": {"set": color()}, "default": ["red"]},
        ],
        "outputs": {"success": outputs},
        "constants": [
            {"name": "one", "type": item(), "value": {"note": null, "qty": 1}},
            {"name": "yes", "type": "boolean", "value": true},
        ],
        "expressions": table, "constraints": [], "preconditions": [], "body": body,
        "postconditions": [{"holds": clause}],
    }))
}
