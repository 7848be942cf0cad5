//! Tests that break each rule of "well formed" in docs/spec/ir.md and check the rejection's message.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use serde_json::{Value, json};

fn document(semantics: &Value) -> Vec<u8> {
    let expressions = semantics["expressions"].as_array().map_or(0, Vec::len);
    document_with_spans(semantics, expressions)
}

fn document_with_spans(semantics: &Value, spans: usize) -> Vec<u8> {
    // serde_json sorts keys and escapes exactly as canonical JSON does.
    let source = json!({
        "path": "x.vsp", "sha256": "0".repeat(64), "intent": "a test", "spans": vec![[1, 1, 1, 2]; spans],
        "steps": {}, "clauses": {}, "locals": [],
    });
    json!({"ir_version": 2, "semantics": semantics, "source": source})
        .to_string()
        .into_bytes()
}

/// Builds a node with one of each construct.
fn semantics() -> Value {
    let color = json!({"enum": ["red", "green"]});
    json!({
        "node_id": "small_v1", "type": "function", "audit": "none", "sensitive": [], "policy": {}, "machines": [], "calls": [],
        "capabilities": {"denied": [], "required": []}, "invariants": [],
        "inputs": [
            {"name": "amount", "type": "decimal"},
            {"name": "color", "type": color, "default": "green"},
            {"name": "count", "type": "integer", "default": 1},
        ],
        "outputs": {"error": [], "success": [{"name": "total", "type": "decimal"}, {"name": "is_big", "type": "boolean"}]},
        "constants": [
            {"name": "rate", "type": "decimal", "value": "0.10"},
            {"name": "lucky", "type": {"set": "integer"}, "value": [-3, 7, 11]},
        ],
        "expressions": [
            /* 0 */ {"input": "count"},
            /* 1 */ {"constant": "lucky"},
            /* 2 */ {"call": {"op": "set.is_member", "args": [0, 1], "of": ["integer"]}},
            /* 3 */ {"literal": {"type": "boolean", "value": true}},
            /* 4 */ {"or": [2, 3]},
            /* 5 */ {"input": "color"},
            /* 6 */ {"literal": {"type": color, "value": "red"}},
            /* 7 */ {"call": {"op": "enum.equal", "args": [5, 6], "of": [color]}},
            /* 8 */ {"input": "amount"},
            /* 9 */ {"constant": "rate"},
            /* 10 */ {"call": {"op": "decimal.multiply", "args": [8, 9]}},
            /* 11 */ {"input": "amount"},
            /* 12 */ {"if": {"condition": 7, "then": 10, "else": 11}},
            /* 13 */ {"step": "share"},
            /* 14 */ {"literal": {"type": "boolean", "value": false}},
            /* 15 */ {"output": "is_big"},
            /* 16 */ {"call": {"op": "boolean.not", "args": [15]}},
        ],
        "constraints": [{"holds": 4, "input": "count"}],
        "preconditions": [],
        "body": [
            {"step": {"name": "share", "value": 12, "handlers": []}},
            {"return": {"success": [{"name": "total", "value": 13}, {"name": "is_big", "value": 14}]}},
        ],
        "postconditions": [{"holds": 16}],
    })
}

fn refusal(bytes: &[u8]) -> String {
    match vesper_ir::load(bytes) {
        Err(rejected) => rejected.to_string(),
        Ok(_) => panic!("accepted: {}", String::from_utf8_lossy(bytes)),
    }
}

/// Changes one part of the node and expects a rejection that contains the text.
fn refuses(path: &str, value: Value, message: &str) {
    let mut changed = semantics();
    *changed.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value;
    let found = refusal(&document(&changed));
    assert!(
        found.contains(message),
        "{path}: {found:?} does not say {message:?}"
    );
}

#[test]
fn the_node_itself_is_well_formed() {
    let node = vesper_ir::load(&document(&semantics())).unwrap();
    assert_eq!(&*node.node_id, "small_v1");
    assert_eq!(node.steps.len(), 1);
    // SHA-256 of {"ir_version":2,"semantics":{…}}: independent of the source.
    assert_eq!(node.semantic_hash.len(), 64);
    let other = String::from_utf8(document(&semantics()))
        .unwrap()
        .replace("x.vsp", "y.vsp");
    assert_eq!(
        vesper_ir::load(other.as_bytes()).unwrap().semantic_hash,
        node.semantic_hash
    );
}

#[test]
fn the_semantic_hash_is_over_the_canonical_bytes() {
    // Both fixtures were created with Python's json and hashlib, so the hash is independent of this crate.
    let node = vesper_ir::load(include_bytes!("../../../fixtures/payment_decision_v1.json")).unwrap();
    assert_eq!(
        node.semantic_hash,
        include_str!("../../../fixtures/payment_decision_v1.sha256").trim()
    );
}

#[test]
fn names_are_distinct_and_well_spelled() {
    refuses(
        "/inputs/0/name",
        json!("rate"),
        "two of the inputs, constants and steps are named `rate`",
    );
    refuses("/body/0/step/name", json!("amount"), "are named `amount`");
    refuses(
        "/outputs/success/1/name",
        json!("total"),
        "two outputs are named `total`",
    );
    refuses("/inputs/0/name", json!("Amount"), "`Amount` is not a name");
    refuses("/inputs/0/name", json!(""), "is not a name");
    refuses("/inputs/0/name", json!("a".repeat(129)), "more than 128 bytes");
    refuses("/node_id", json!("1st"), "is not a name");
}

#[test]
fn references_name_declarations_in_scope() {
    refuses(
        "/expressions/0",
        json!({"input": "rate"}),
        "expression 0: no input is named `rate`",
    );
    refuses(
        "/expressions/9",
        json!({"constant": "amount"}),
        "expression 9: no constant is named `amount`",
    );
    refuses(
        "/expressions/13",
        json!({"step": "nothing"}),
        "expression 13: no step is named `nothing`",
    );
    refuses(
        "/expressions/11",
        json!({"step": "share"}),
        "expression 11: step `share` cannot be referred to here",
    );
    refuses(
        "/expressions/3",
        json!({"step": "share"}),
        "expression 3: step `share` cannot be referred to here",
    );
    refuses(
        "/expressions/15",
        json!({"step": "share"}),
        "expression 15: step `share` cannot be referred to here",
    );
    refuses(
        "/expressions/14",
        json!({"output": "is_big"}),
        "expression 14: output `is_big` can be referred to only",
    );
    refuses(
        "/expressions/15",
        json!({"output": "amount"}),
        "expression 15: no output is named `amount`",
    );
    refuses(
        "/constraints/0/input",
        json!("rate"),
        "constraint 0: no input is named `rate`",
    );
}

#[test]
fn calls_have_exactly_the_declared_types() {
    refuses(
        "/expressions/10/call/op",
        json!("decimal.magic"),
        "expression 10: no operation is named `decimal.magic`",
    );
    refuses(
        "/expressions/9",
        json!({"input": "count"}),
        "expression 10: `decimal.multiply` wants decimal as its `right` argument, got integer",
    );
    refuses(
        "/expressions/16/call",
        json!({"op": "boolean.not", "args": [15], "of": ["integer"]}),
        "`boolean.not` has no type parameters",
    );
    refuses(
        "/expressions/2/call",
        json!({"op": "set.is_member", "args": [0, 1]}),
        "`set.is_member` wants `of`",
    );
    refuses(
        "/expressions/2/call/of",
        json!([]),
        "has 1 type parameters, but `of` has 0",
    );
    refuses(
        "/expressions/2/call/of",
        json!(["decimal"]),
        "wants string, integer, boolean, bytes, date, timestamp or an enum for `T`, got decimal",
    );
    refuses(
        "/expressions/2/call/of",
        json!(["string"]),
        "wants string as its `value` argument, got integer",
    );
    refuses(
        "/expressions/7/call/of",
        json!(["string"]),
        "wants an enum for `E`, got string",
    );
    refuses(
        "/expressions/7/call/of",
        json!([{"enum": ["green", "red"]}]),
        "wants enum[green, red] as its `left` argument",
    );
    refuses(
        "/expressions/16/call/op",
        json!("boolean.equal"),
        "takes 2 arguments, got 1",
    );
}

#[test]
fn conditions_and_clauses_are_boolean_and_branches_agree() {
    refuses(
        "/expressions/3",
        json!({"literal": {"type": "integer", "value": 1}}),
        "the right operand of `or` is boolean, not integer",
    );
    refuses(
        "/expressions/11",
        json!({"input": "count"}),
        "expression 12: `then` is decimal, but `else` is integer",
    );
    refuses(
        "/expressions/7",
        json!({"call": {"op": "integer.add", "args": [5, 6]}}),
        "expression 7",
    );
    refuses(
        "/expressions/4",
        json!({"call": {"op": "boolean.equal", "args": [2, 3], "of": []}}),
        "expression 4",
    );
    let mut changed = semantics();
    changed["expressions"][15] = json!({"input": "count"});
    changed["expressions"][16] = json!({"call": {"op": "integer.negate", "args": [15]}});
    assert!(refusal(&document(&changed)).contains("postcondition 0: a clause is boolean, not integer"));
}

#[test]
fn values_fit_their_types_in_one_spelling() {
    for text in ["1E+3", "01", "+1", "-0", "1.", ".5", "", "x", " 1"] {
        refuses("/constants/0/value", json!(text), "constant `rate`");
    }
    refuses("/constants/0/value", json!(1), "1 is not the form of decimal");
    refuses("/constants/1/value", json!([7, -3]), "out of order");
    refuses("/constants/1/value", json!([7, 7]), "repeated");
    refuses("/constants/1/value", json!(["7"]), "is not the form of integer");
    refuses(
        "/constants/1/value",
        json!([[7]]),
        "an array is not the form of integer",
    );
    refuses(
        "/inputs/1/default",
        json!("blue"),
        "input `color`: its default: `blue` is not a member of enum[red, green]",
    );
    refuses(
        "/inputs/2/default",
        json!(true),
        "true is not the form of integer",
    );
    refuses(
        "/inputs/2/default",
        json!(null),
        "null is not the form of integer",
    );
    refuses("/inputs/2/default", json!(1.5), "not an integer within 64 bits");
    refuses("/expressions/3/literal/value", json!("true"), "expression 3");
    refuses(
        "/expressions/6/literal/type",
        json!({"enum": []}),
        "an enum has no members",
    );
    refuses(
        "/expressions/6/literal/type",
        json!({"enum": ["red", "red"]}),
        "twice",
    );
    refuses("/expressions/6/literal/type", json!({"enum": [""]}), "is empty");
    refuses(
        "/expressions/6/literal/type",
        json!("number"),
        "`number` is not a type",
    );
    let enums = json!({"set": {"enum": ["b", "a"]}});
    let mut changed = semantics();
    changed["constants"][1] = json!({"name": "lucky", "type": enums, "value": ["a", "b"]});
    assert!(
        refusal(&document(&changed)).contains("out of order"),
        "enum members sort as declared"
    );
}

#[test]
fn the_body_ends_with_its_one_return_of_every_output() {
    refuses(
        "/body",
        json!([{"step": {"name": "share", "value": 12, "handlers": []}}]),
        "does not end with a return",
    );
    refuses(
        "/body/1/return/success",
        json!([{"name": "total", "value": 13}]),
        "expression 14 is not used",
    );
    refuses(
        "/body/1/return/success/0/name",
        json!("is_big"),
        "where output `total` is next",
    );
    refuses(
        "/outputs/success/1/type",
        json!("integer"),
        "the return has boolean for output `is_big`, which is integer",
    );
    refuses(
        "/body/1",
        json!({"throw": {}}),
        "`throw` is not a kind of statement",
    );
}

#[test]
fn expressions_are_a_table_in_program_order_and_used_once() {
    refuses(
        "/expressions/4",
        json!({"or": [2, 4]}),
        "expression 4: its operand 4 does not precede it",
    );
    refuses(
        "/expressions/4",
        json!({"or": [2, 9]}),
        "expression 4: its operand 9 does not precede it",
    );
    refuses(
        "/expressions/4",
        json!({"or": [2, 2]}),
        "expression 2 is used twice",
    );
    refuses(
        "/expressions/4",
        json!({"literal": {"type": "boolean", "value": true}}),
        "expression 2 is not used",
    );
    refuses("/expressions/4", json!({"or": [3, 2]}), "is not in program order");
    refuses(
        "/expressions/12/if",
        json!({"condition": 7, "then": 11, "else": 10}),
        "is not in program order",
    );
    refuses("/constraints/0/holds", json!(99), "the table ends before it");
    refuses("/constraints/0/holds", json!(-1), "-1 is not the index");
    refuses("/constraints/0/holds", json!(65_536), "65536 is not the index");
    refuses("/expressions/4", json!({"or": [2]}), "take two operands");
    let mut swapped = semantics();
    swapped["constraints"][0]["holds"] = json!(16);
    swapped["postconditions"][0]["holds"] = json!(4);
    assert!(refusal(&document(&swapped)).contains("is not in program order"));
}

#[test]
fn unknown_and_missing_fields_are_refused() {
    for path in [
        "",
        "/inputs/0",
        "/outputs",
        "/outputs/success/0",
        "/constants/0",
        "/expressions/0",
        "/expressions/2/call",
        "/expressions/6/literal",
        "/expressions/12/if",
        "/constraints/0",
        "/body/0",
        "/body/0/step",
        "/body/1/return",
        "/postconditions/0",
    ] {
        for name in ["a", "mm", "zzz"] {
            let mut changed = semantics();
            changed.pointer_mut(path).unwrap()[name] = json!(1);
            assert!(refusal(&document(&changed)).starts_with("byte "), "{path} {name}");
        }
        let keys: Vec<String> = semantics()
            .pointer(path)
            .unwrap()
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        for key in keys
            .iter()
            .filter(|key| !matches!(key.as_str(), "default" | "of"))
        {
            let mut changed = semantics();
            changed
                .pointer_mut(path)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .remove(key);
            refusal(&document(&changed));
        }
    }
    refuses(
        "/type",
        json!("agent"),
        "the type of a node is function or data_transform or",
    );
}

#[test]
fn limits_hold() {
    let deep = |depth: usize| {
        let mut expressions = vec![json!({"literal": {"type": "boolean", "value": true}})];
        expressions
            .extend((1..depth).map(|index| json!({"call": {"op": "boolean.not", "args": [index - 1]}})));
        let mut changed = semantics();
        changed["outputs"] = json!({"error": [], "success": []});
        changed["constraints"] = json!([]);
        changed["postconditions"] = json!([]);
        changed["preconditions"] = json!([{"holds": depth - 1}]);
        changed["body"] = json!([{"return": {"success": []}}]);
        changed["expressions"] = json!(expressions);
        document(&changed)
    };
    vesper_ir::load(&deep(512)).unwrap();
    assert!(refusal(&deep(513)).contains("expression 512: it is more than 512 deep"));

    refuses(
        "/constants/1/value",
        json!((0..4_097).collect::<Vec<i64>>()),
        "more than 4096 items",
    );
    refuses(
        "/expressions",
        json!(vec![json!({"input": "count"}); 65_537]),
        "more than 65536 items",
    );
    let mut long = semantics();
    long["constants"][0] = json!({"name": "rate", "type": "string", "value": "x".repeat(65_537)});
    assert!(refusal(&document(&long)).contains("more than 65536 bytes"));
    assert!(refusal(&vec![b' '; (8 + 64) * 1024 * 1024 + 1]).contains("the limit is 8388608"));
    assert!(refusal(&document_with_spans(&semantics(), 3)).contains("3 spans for 17 expressions"));
}
