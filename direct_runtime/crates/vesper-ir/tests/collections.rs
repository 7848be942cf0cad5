//! Tests that break each rule of docs/spec/ir.md about composed types, their values, locals and comprehensions.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use serde_json::{Value, json};

fn document(semantics: &Value, locals: usize) -> Vec<u8> {
    let spans = semantics["expressions"].as_array().map_or(0, Vec::len);
    let source = json!({
        "path": "x.vsp", "sha256": "0".repeat(64), "intent": "a test", "spans": vec![[1, 1, 1, 2]; spans],
        "steps": {}, "clauses": {}, "locals": vec!["it"; locals],
    });
    json!({"ir_version": 2, "semantics": semantics, "source": source})
        .to_string()
        .into_bytes()
}

fn item() -> Value {
    json!({"record": [
        {"name": "qty", "type": "integer"},
        {"name": "price", "type": "decimal"},
        {"name": "note", "type": {"optional": "string"}},
    ]})
}

const LOCALS: usize = 5;

/// Builds a node with one of each construct.
fn semantics() -> Value {
    json!({
        "node_id": "small_v1", "type": "function", "audit": "none", "sensitive": [], "policy": {}, "machines": [], "calls": [],
        "capabilities": {"denied": [], "required": []}, "invariants": [],
        "inputs": [
            {"name": "items", "type": {"array": item()}},
            {"name": "rates", "type": {"map": ["string", "decimal"]}, "default": [["a", "0.1"], ["b", "0.2"]]},
            {"name": "tags", "type": {"set": "string"}, "default": []},
        ],
        "outputs": {"error": [], "success": [
            {"name": "total", "type": "integer"},
            {"name": "first", "type": item()},
            {"name": "big", "type": {"map": ["integer", "decimal"]}},
            {"name": "pair", "type": {"array": "integer"}},
        ]},
        "constants": [
            {"name": "one", "type": item(), "value": {"note": null, "price": "1.50", "qty": 1}},
        ],
        "expressions": [
            /* 0 */ {"input": "tags"},
            /* 1 */ {"local": 0},
            /* 2 */ {"input": "rates"},
            /* 3 */ {"call": {"op": "map.is_key", "args": [1, 2], "of": ["string", "decimal"]}},
            /* 4 */ {"for": {"kind": "forall", "locals": [0], "over": 0, "value": 3}},
            /* 5 */ {"input": "items"},
            /* 6 */ {"local": 1},
            /* 7 */ {"field": {"name": "qty", "of": 6}},
            /* 8 */ {"for": {"kind": "sum", "locals": [1], "over": 5, "value": 7}},
            /* 9 */ {"constant": "one"},
            /* 10 */ {"literal": {"type": "integer", "value": 3}},
            /* 11 */ {"local": 2},
            /* 12 */ {"field": {"name": "price", "of": 11}},
            /* 13 */ {"literal": {"type": {"optional": "string"}, "value": null}},
            /* 14 */ {"record": {"fields": [
                {"name": "qty", "value": 10}, {"name": "price", "value": 12}, {"name": "note", "value": 13},
            ]}},
            /* 15 */ {"let": {"local": 2, "value": 9, "body": 14}},
            /* 16 */ {"input": "rates"},
            /* 17 */ {"literal": {"type": "boolean", "value": true}},
            /* 18 */ {"local": 3},
            /* 19 */ {"call": {"op": "text.length", "args": [18]}},
            /* 20 */ {"local": 4},
            /* 21 */ {"for": {"kind": "map", "locals": [3, 4], "over": 16, "where": 17, "key": 19, "value": 20}},
            /* 22 */ {"literal": {"type": "integer", "value": 1}},
            /* 23 */ {"literal": {"type": "integer", "value": 2}},
            /* 24 */ {"array": {"items": [22, 23], "of": "integer"}},
        ],
        "constraints": [{"holds": 4, "input": "tags"}],
        "preconditions": [],
        "body": [
            {"return": {"success": [
                {"name": "total", "value": 8}, {"name": "first", "value": 15}, {"name": "big", "value": 21},
                {"name": "pair", "value": 24},
            ]}},
        ],
        "postconditions": [],
    })
}

fn refusal(bytes: &[u8]) -> String {
    match vesper_ir::load(bytes) {
        Err(rejected) => rejected.to_string(),
        Ok(_) => panic!("accepted: {}", String::from_utf8_lossy(bytes)),
    }
}

/// Changes parts of the node and expects a rejection that contains the text.
fn refuses_all(edits: &[(&str, Value)], message: &str) {
    let mut changed = semantics();
    for (path, value) in edits {
        *changed.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value.clone();
    }
    let found = refusal(&document(&changed, LOCALS));
    assert!(
        found.contains(message),
        "{edits:?}: {found:?} does not say {message:?}"
    );
}

fn refuses(path: &str, value: Value, message: &str) {
    refuses_all(&[(path, value)], message);
}

#[test]
fn the_node_itself_is_well_formed() {
    let node = vesper_ir::load(&document(&semantics(), LOCALS)).unwrap();
    assert_eq!(node.locals, LOCALS);
    assert_eq!(
        node.expressions[15].ty.to_string(),
        "record{qty: integer, price: decimal, note: optional<string>}"
    );
    assert_eq!(node.expressions[21].ty.to_string(), "map<integer, decimal>");
}

#[test]
fn computed_types_keep_the_same_rules() {
    let some = json!({"call": {"op": "optional.some", "args": [13], "of": [{"optional": "string"}]}});
    let mut changed = semantics();
    changed["expressions"] = json!([{"literal": {"type": {"optional": "string"}, "value": null}}, some]);
    changed["expressions"][1]["call"]["args"] = json!([0]);
    changed["constraints"] = json!([]);
    changed["outputs"]["success"] = json!([{"name": "total", "type": {"optional": "string"}}]);
    changed["body"] = json!([{"return": {"success": [{"name": "total", "value": 1}]}}]);
    // An optional of an optional from a type argument is one optional.
    let node = vesper_ir::load(&document(&changed, 0)).unwrap();
    assert_eq!(node.expressions[1].ty.to_string(), "optional<string>");

    // Each array contains the previous one.
    let deep = |depth: usize| {
        let mut node = semantics();
        let mut ty = json!("integer");
        let mut expressions = vec![json!({"literal": {"type": "integer", "value": 1}})];
        for index in 0..depth - 1 {
            expressions.push(json!({"array": {"items": [index], "of": ty}}));
            ty = json!({"array": ty});
        }
        node["outputs"]["success"] = json!([{"name": "total", "type": ty}]);
        node["body"] = json!([{"return": {"success": [{"name": "total", "value": depth - 1}]}}]);
        node["constraints"] = json!([]);
        node["expressions"] = json!(expressions);
        document(&node, 0)
    };
    vesper_ir::load(&deep(32)).unwrap();
    assert!(refusal(&deep(33)).contains("more than 32 deep"));
}

#[test]
fn types_with_shared_parts_are_cheap() {
    // Step n is a record of forty times step n - 1: as a tree, the last type would have 40^31 parts.
    let tower = |prefix: &str, expressions: &mut Vec<Value>, steps: &mut Vec<Value>| {
        expressions.push(json!({"literal": {"type": "integer", "value": 1}}));
        steps.push(
            json!({"step": {"name": format!("{prefix}0"), "value": expressions.len() - 1, "handlers": []}}),
        );
        for level in 1..32 {
            let fields: Vec<Value> = (0..40)
                .map(|field| {
                    expressions.push(json!({"step": format!("{prefix}{}", level - 1)}));
                    json!({"name": format!("f{field}"), "value": expressions.len() - 1})
                })
                .collect();
            expressions.push(json!({"record": {"fields": fields}}));
            steps.push(json!({"step": {"name": format!("{prefix}{level}"), "value": expressions.len() - 1, "handlers": []}}));
        }
    };
    let (mut expressions, mut steps) = (Vec::new(), Vec::new());
    tower("a", &mut expressions, &mut steps);
    tower("b", &mut expressions, &mut steps);
    let first = expressions.len();
    expressions.push(json!({"literal": {"type": "boolean", "value": true}}));
    expressions.push(json!({"step": "a31"}));
    expressions.push(json!({"step": "b31"}));
    expressions.push(json!({"if": {"condition": first, "then": first + 1, "else": first + 2}}));
    expressions.push(json!({"call": {"op": "optional.is_null", "args": [first + 3], "of": ["integer"]}}));
    steps.push(json!({"return": {"success": [{"name": "total", "value": first + 4}]}}));
    let mut node = semantics();
    node["outputs"]["success"] = json!([{"name": "total", "type": "boolean"}]);
    node["constraints"] = json!([]);
    node["expressions"] = json!(expressions);
    node["body"] = json!(steps);
    let found = refusal(&document(&node, 0));
    assert!(
        found.contains("wants optional<integer> as its `value` argument"),
        "{found}"
    );
    assert!(found.len() < 100_000, "{}", found.len());
}

#[test]
fn values_fit_composed_types_in_one_spelling() {
    let value = "/constants/0/value";
    refuses(
        value,
        json!({"price": "1.50", "qty": 1}),
        "constant `one`: field `note` is missing",
    );
    refuses(
        value,
        json!({"note": null, "price": "1.50", "qty": 1, "zip": 1}),
        "no field `zip`",
    );
    refuses(
        value,
        json!({"note": 1, "price": "1.50", "qty": 1}),
        "field `note`: 1 is not the form of string",
    );
    refuses(
        value,
        json!({"note": null, "price": "1.50", "qty": null}),
        "field `qty`: null is not the form of integer",
    );
    refuses(
        value,
        json!([1]),
        "an array is not the form of record{qty: integer",
    );
    let default = "/inputs/1/default";
    refuses(default, json!([["b", "1"], ["a", "1"]]), "out of order in a map");
    refuses(default, json!([["a", "1"], ["a", "1"]]), "repeated");
    refuses(default, json!([["a", "1", "2"]]), "not 3 items");
    refuses(default, json!(["a"]), "is not an entry of a map");
    refuses(default, json!([[1, "1"]]), "1 is not the form of string");
    refuses(
        default,
        json!([["a", 1]]),
        "the value of \"a\": 1 is not the form of decimal",
    );
    refuses(
        default,
        json!({"a": "1"}),
        "an object is not the form of map<string, decimal>",
    );
    refuses("/inputs/2/default", json!(["b", "a"]), "out of order in a set");
    let array = |default: Value| json!({"name": "items", "type": {"array": {"array": "integer"}}, "default": default});
    refuses(
        "/inputs/0",
        array(json!([[1], [1, true]])),
        "item 1: item 1: true is not the form of integer",
    );
    refuses("/inputs/0", array(json!([null])), "item 0: null is not the form");
    let enums = json!({"name": "items", "type": {"map": [{"enum": ["b", "a"]}, "integer"]}, "default": [["a", 1], ["b", 1]]});
    refuses("/inputs/0", enums, "out of order");
    let many: Vec<i64> = (0..4_097).collect();
    refuses("/inputs/2/default", json!(many), "more than 4096 items");
    // Nesting costs no stack.
    let text = String::from_utf8(document(&semantics(), LOCALS)).unwrap();
    for bracket in ["[", "{\"a\":"] {
        let deep = text.replacen(
            "\"default\":[]",
            &format!("\"default\":{}", bracket.repeat(1_000_000)),
            1,
        );
        assert!(refusal(deep.as_bytes()).contains("nests more than 64 deep"));
    }
}

#[test]
fn locals_are_introduced_once_and_used_inside() {
    let outside = "is not introduced around it";
    refuses("/expressions/1/local", json!(1), outside);
    refuses("/expressions/6/local", json!(0), outside);
    refuses("/expressions/18/local", json!(2), outside);
    refuses("/expressions/22", json!({"local": 4}), outside);
    refuses("/expressions/5", json!({"local": 1}), outside);
    refuses("/expressions/9", json!({"local": 2}), outside);
    refuses("/expressions/16", json!({"local": 3}), outside);
    refuses("/expressions/6/local", json!(77), outside);
    refuses(
        "/expressions/6/local",
        json!(-1),
        "-1 is not the number of a local",
    );
    refuses(
        "/expressions/8/for/locals",
        json!([0]),
        "expression 8: local 0 is introduced twice",
    );
    refuses(
        "/expressions/15/let/local",
        json!(1),
        "local 1 is introduced twice",
    );
    refuses("/expressions/21/for/locals", json!([3, 3]), "introduced twice");
    refuses("/expressions/8/for/locals", json!([]), "one or two locals, not 0");
    refuses(
        "/expressions/8/for/locals",
        json!([1, 5, 6]),
        "one or two locals, not 3",
    );
    refuses(
        "/expressions/8/for/locals",
        json!([9]),
        "local 9 is not one of them",
    );
    assert!(refusal(&document(&semantics(), LOCALS + 1)).contains("names 6 locals, but 5 are introduced"));
    refuses("/expressions/8/for/locals", json!([1, 4]), "introduced twice");
}

#[test]
fn comprehensions_accept_collections_and_values_of_their_kind() {
    refuses_all(
        &[(
            "/expressions/5",
            json!({"literal": {"type": "integer", "value": 1}}),
        )],
        "expression 8: `over` is an array, a set or a map, not integer",
    );
    refuses_all(
        &[
            ("/expressions/21/for/over", json!(16)),
            ("/expressions/16", json!({"input": "tags"})),
        ],
        "expression 21: a `for` has two locals only over a map, not over set<string>",
    );
    refuses(
        "/expressions/17",
        json!({"literal": {"type": "integer", "value": 1}}),
        "expression 21: the `where` of `for` is boolean, not integer",
    );
    for (kind, wants) in [
        ("forall", "the value of `forall` is boolean, not integer"),
        ("exists", "the value of `exists` is boolean, not integer"),
        ("map", "has no `key`"),
        ("product", "`product` is not a kind of `for`"),
        ("array", "the return has array<integer> for output `total`"),
        ("set", "the return has set<integer> for output `total`"),
    ] {
        refuses("/expressions/8/for/kind", json!(kind), wants);
    }
    for kind in ["sum", "count", "min", "max"] {
        let mut changed = semantics();
        changed["expressions"][8]["for"]["kind"] = json!(kind);
        vesper_ir::load(&document(&changed, LOCALS)).unwrap();
    }
    let note = json!({"field": {"name": "note", "of": 6}});
    let kind = "/expressions/8/for/kind";
    refuses_all(
        &[("/expressions/7", note.clone()), (kind, json!("min"))],
        "the value of `min` is string, integer, decimal, float, boolean, bytes, date, timestamp, duration, time_of_day, period, an enum, or an array or record of these, not optional<string>",
    );
    refuses_all(
        &[("/expressions/7", note.clone()), (kind, json!("max"))],
        "the value of `max` is string, integer, decimal, float, boolean, bytes, date, timestamp, duration, time_of_day, period, an enum, or an array or record of these, not optional<string>",
    );
    refuses_all(
        &[("/expressions/7", note.clone()), (kind, json!("sum"))],
        "the value of `sum` cannot be added: it is optional<string>",
    );
    refuses_all(
        &[("/expressions/7", note), (kind, json!("set"))],
        "a set holds string",
    );
    refuses(
        "/expressions/21/for/kind",
        json!("array"),
        "has a `key`, which only `map` has",
    );
    refuses_all(
        &[(
            "/expressions/19",
            json!({"literal": {"type": "decimal", "value": "1"}}),
        )],
        "expression 18 is not used",
    );
    refuses_all(
        &[
            ("/expressions/18", json!({"local": 4})),
            (
                "/expressions/19",
                json!({"call": {"op": "decimal.negate", "args": [18]}}),
            ),
        ],
        "expression 21: the key of a map is string",
    );
    // Operands are in order of evaluation: over, where, key, value.
    refuses_all(
        &[
            ("/expressions/21/for/key", json!(20)),
            ("/expressions/21/for/value", json!(19)),
        ],
        "is not in program order",
    );
}

#[test]
fn arrays_and_records_have_exactly_their_types() {
    refuses(
        "/expressions/24/array/of",
        json!("decimal"),
        "expression 24: item 0 of an array of decimal is integer",
    );
    refuses(
        "/expressions/23",
        json!({"literal": {"type": "boolean", "value": true}}),
        "item 1 of an array of integer is boolean",
    );
    refuses(
        "/expressions/7/field/name",
        json!("weight"),
        "expression 7: no field of the record is named `weight`",
    );
    refuses_all(
        &[(
            "/expressions/6",
            json!({"literal": {"type": "integer", "value": 1}}),
        )],
        "expression 7: `field` is of a record, not integer",
    );
    refuses(
        "/expressions/14/record/fields/1/name",
        json!("qty"),
        "expression 14: a record has the field `qty` twice",
    );
    refuses(
        "/expressions/14/record/fields/1/name",
        json!("cost"),
        "the return has record{qty: integer, cost: decimal",
    );
    refuses(
        "/expressions/3/call/of",
        json!(["string", "integer"]),
        "wants map<string, integer> as its `entries` argument, got map<string, decimal>",
    );
    refuses(
        "/expressions/3/call/of",
        json!(["string"]),
        "has 2 type parameters, but `of` has 1",
    );
    refuses(
        "/expressions/3/call/of",
        json!(["decimal", "decimal"]),
        "wants string, integer, boolean, bytes, date, timestamp or an enum for `K`",
    );
}

#[test]
fn unknown_and_missing_fields_are_refused() {
    for path in [
        "/expressions/4/for",
        "/expressions/21/for",
        "/expressions/15/let",
        "/expressions/14/record",
        "/expressions/14/record/fields/0",
        "/expressions/7/field",
        "/expressions/24/array",
    ] {
        for name in ["a", "lz", "zzz"] {
            let mut changed = semantics();
            changed.pointer_mut(path).unwrap()[name] = json!(1);
            let found = refusal(&document(&changed, LOCALS));
            assert!(found.starts_with("byte "), "{path} {name}: {found}");
        }
        let whole = semantics();
        for key in whole.pointer(path).unwrap().as_object().unwrap().keys() {
            let mut changed = semantics();
            changed
                .pointer_mut(path)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .remove(key);
            refusal(&document(&changed, LOCALS));
        }
    }
}
