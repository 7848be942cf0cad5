//! Damaged documents: loading them ends, in time and without a panic, and what still loads still runs.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

#[path = "support/mod.rs"]
mod support;
#[path = "support/tree.rs"]
mod tree;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tree::{call, flatten, input, integer, local};
use vesper_interp::{Outcome, Program};
use vesper_ir::{Decimal, Map, Member, Set, Type, Value};

const PAYMENT: &[u8] = include_bytes!("../../../fixtures/payment_decision_v1.json");

/// A node with every kind of type, of value and of expression.
fn everything() -> Vec<u8> {
    let color = json!({"enum": ["red", "blue"]});
    let order = json!({"enum": ["ascending", "descending"]});
    let item = json!({"record": [
        {"name": "qty", "type": "integer"}, {"name": "note", "type": {"optional": "string"}},
    ]});
    let each = |kind: &str, number: u32, value: Json| json!({"for": {"kind": kind, "locals": [number], "over": input("items"), "value": value}});
    let qty = |number: u32| json!({"field": {"name": "qty", "of": local(number)}});
    let mut table = Vec::new();
    let steps = [
        each("sum", 0, qty(0)),
        json!({"if": {
            "condition": each("exists", 1, call("integer.greater", &[qty(1), integer(3)])),
            "then": each("min", 2, qty(2)), "else": each("max", 3, qty(3)),
        }}),
        json!({"for": {
            "kind": "map", "locals": [4, 5], "over": input("rates"),
            "where": {"and": [{"constant": "yes"}, call("integer.less", &[local(5), integer(9)])]},
            "key": local(5), "value": local(4),
        }}),
        json!({"for": {"kind": "set", "locals": [6], "over": input("colors"), "value": local(6)}}),
        json!({"let": {"local": 7, "value": {"step": "s0"}, "body": {"record": {"fields": [
            {"name": "qty", "value": local(7)},
            {"name": "note", "value": {"literal": {"type": {"optional": "string"}, "value": null}}},
        ]}}}}),
        json!({"array": {"items": [{"step": "s4"}, {"constant": "one"}], "of": item}}),
        each(
            "array",
            8,
            each("count", 9, call("integer.add", &[qty(8), qty(9)])),
        ),
        each("avg", 11, qty(11)),
        json!({"for": {
            "kind": "sort_by", "locals": [12], "over": input("items"), "value": qty(12),
            "with": {"literal": {"type": order, "value": "descending"}},
        }}),
        json!({"for": {
            "kind": "fold", "locals": [13, 14, 15], "over": input("rates"), "with": integer(2),
            "where": call("integer.less", &[local(14), integer(9)]),
            "value": call("integer.add", &[local(15), local(14)]),
        }}),
        each("group_by", 16, qty(16)),
        each("min_by", 17, qty(17)),
        each("drop_while", 18, call("integer.less", &[qty(18), integer(1)])),
        each("take_while", 19, call("integer.less", &[qty(19), integer(50)])),
        json!({"for": {"kind": "count_by", "locals": [20], "over": input("colors"), "value": local(20)}}),
        json!({"for": {"kind": "index_by", "locals": [21], "over": input("rates"), "value": local(21)}}),
        each("distinct_by", 22, local(22)),
        json!({"call": {"op": "array.equal", "args": [{"step": "s8"}, input("items")], "of": [item]}}),
        json!({"call": {"op": "map.entries", "args": [input("rates")], "of": ["string", "integer"]}}),
    ];
    let mut body = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let value = flatten(step, &mut table);
        body.push(json!({"step": {"name": format!("s{number}"), "value": value}}));
    }
    let types = [
        json!("integer"),
        json!("integer"),
        json!({"map": ["integer", "string"]}),
        json!({"set": color}),
        item.clone(),
        json!({"array": item}),
        json!({"array": "integer"}),
        json!("decimal"),
        json!({"array": item}),
        json!("integer"),
        json!({"map": ["integer", {"array": item}]}),
        json!({"optional": item}),
        json!({"array": item}),
        json!({"array": item}),
        json!({"map": [color, "integer"]}),
        json!({"map": ["string", "string"]}),
        json!({"array": item}),
        json!("boolean"),
        json!({"array": {"record": [{"name": "key", "type": "string"}, {"name": "value", "type": "integer"}]}}),
    ];
    let outputs = types.iter().enumerate();
    let outputs: Vec<Json> = outputs
        .map(|(number, ty)| json!({"name": format!("o{number}"), "type": ty}))
        .collect();
    let returned: Vec<Json> = (0..types.len())
        .map(|number| {
            let value = flatten(&json!({"step": format!("s{number}")}), &mut table);
            json!({"name": format!("o{number}"), "value": value})
        })
        .collect();
    body.push(json!({"return": {"success": returned}}));
    let clause = flatten(
        &json!({"or": [{"constant": "yes"}, each("forall", 10, {
            call("integer.greater_or_equal", &[qty(10), json!({"output": "o1"})])
        })]}),
        &mut table,
    );
    support::document(&json!({
        "node_id": "everything_v1", "type": "function",
        "inputs": [
            {"name": "items", "type": {"array": item}, "default": [{"note": "a", "qty": 1}]},
            {"name": "rates", "type": {"map": ["string", "integer"]}, "default": [["a", 1], ["b", 2]]},
            {"name": "colors", "type": {"set": color}, "default": ["red"]},
        ],
        "outputs": {"success": outputs},
        "constants": [
            {"name": "one", "type": item, "value": {"note": null, "qty": 1}},
            {"name": "yes", "type": "boolean", "value": true},
        ],
        "expressions": table, "constraints": [], "preconditions": [], "body": body,
        "postconditions": [{"holds": clause}],
    }))
}

fn documents() -> [Vec<u8>; 2] {
    [PAYMENT.to_vec(), everything()]
}

/// Some value of a type.
fn sample(ty: &Type) -> Value {
    match ty {
        Type::Boolean => Value::Boolean(true),
        Type::Integer => Value::Integer(40),
        Type::Decimal => Value::Decimal(Decimal::parse("120.50").unwrap()),
        Type::Text => Value::Text("DE".into()),
        Type::Enum(_) => Value::Member(Member(0)),
        Type::Set(of) => {
            let key = sample(of).to_key().into_iter();
            Value::Set(Arc::new(Set::from_keys(of.key_kind().unwrap(), key).unwrap()))
        }
        Type::Array(of) => Value::Array([sample(of), sample(of)].into()),
        Type::Map(of) => {
            let entries = vec![(sample(&of.key).to_key().unwrap(), sample(&of.value))];
            Value::Map(Arc::new(
                Map::from_entries(of.key.key_kind().unwrap(), entries).unwrap(),
            ))
        }
        Type::Optional(of) => sample(of),
        Type::Record(of) => Value::Record(of.fields().iter().map(|field| sample(&field.ty)).collect()),
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }
}

/// Loads, and runs what loads on some inputs of the right types.
fn survives(bytes: &[u8]) -> bool {
    let Ok(program) = Program::load(bytes) else {
        return false;
    };
    let inputs = program.node().inputs.iter().map(|input| sample(&input.ty));
    let (_, outcome) = program.run_traced(inputs.collect());
    assert!(
        !matches!(outcome, Outcome::Fault(_)),
        "{outcome:?}: {}",
        String::from_utf8_lossy(bytes)
    );
    true
}

#[test]
fn truncated_documents_are_refused() {
    for document in documents() {
        assert!(survives(&document));
        for length in 0..document.len() {
            assert!(!survives(&document[..length]));
        }
    }
}

#[test]
fn flipped_bytes_do_no_harm() {
    let mut random = Random(0x5eed_5eed_5eed_5eed);
    let start = Instant::now();
    for document in documents() {
        let mut still_well_formed = 0_u32;
        for _ in 0..15_000 {
            let mut bytes = document.clone();
            for _ in 0..=random.below(3) {
                let place = random.below(bytes.len());
                // Mostly bytes that mean something in JSON, so that some damage gets past the spelling.
                let alphabet = b"{}[]\",:0123456789-abtnx\\\x00\xff\xc3";
                bytes[place] = alphabet[random.below(alphabet.len())];
            }
            still_well_formed += u32::from(survives(&bytes));
        }
        assert!(still_well_formed > 0, "the damage never got past the spelling");
    }
    assert!(start.elapsed() < Duration::from_mins(2), "{:?}", start.elapsed());
}

#[test]
fn changed_numbers_do_no_harm() {
    // Digits of the semantics only: indexes, locals and literals that are still spelled well.
    let document = everything();
    let end = document
        .windows(8)
        .position(|piece| piece == b"\"source\"")
        .unwrap();
    let digits: Vec<usize> = (0..end)
        .filter(|place| document[*place].is_ascii_digit())
        .collect();
    let mut still_well_formed = 0_u32;
    for place in digits {
        for digit in b'0'..=b'9' {
            let mut bytes = document.clone();
            bytes[place] = digit;
            still_well_formed += u32::from(survives(&bytes));
        }
    }
    assert!(still_well_formed > 100, "{still_well_formed}");
}

#[test]
fn pieces_moved_around_do_no_harm() {
    let mut random = Random(0xfeed_beef_1234_5678);
    for document in documents() {
        for _ in 0..5_000 {
            let (from, to) = (random.below(document.len()), random.below(document.len()));
            let length = random.below(60).min(document.len() - from);
            let mut bytes = document[..to].to_vec();
            bytes.extend_from_slice(&document[from..from + length]);
            bytes.extend_from_slice(&document[(to + random.below(60)).min(document.len())..]);
            survives(&bytes);
        }
    }
}
