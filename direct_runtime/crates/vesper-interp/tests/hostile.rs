//! Damaged documents: loading ends in time without a panic, and a document that still loads still runs.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by panicking, and support is for all tests"
)]

#[path = "support/everything.rs"]
mod everything;
#[path = "support/flow.rs"]
mod flow;
#[path = "support/mod.rs"]
mod support;
#[path = "support/tree.rs"]
mod tree;

use std::sync::Arc;
use std::time::{Duration, Instant};

use everything::everything;
use serde_json::json;
use tree::{call, input, integer, local};
use vesper_interp::{Advanced, Completion, Outcome, Program};
use vesper_ir::{Decimal, FailureCode, Map, Member, Set, Type, Value};

const PAYMENT: &[u8] = include_bytes!("../../../fixtures/payment_decision_v1.json");

/// A node with every kind of statement except a call.
fn flowing() -> Vec<u8> {
    let codes = json!({"enum": ["closed", "timeout"]});
    let raises = |code: &str| json!({"raise": {"error": [{"name": "error_code", "value": {"literal": {"type": codes, "value": code}}}]}});
    let body = json!([
        {"require": {"holds": call("integer.less", &[integer(0), input("x")])}},
        flow::with_handlers(&flow::request_step("first"), json!([
            flow::gives("http_4xx", integer(4)),
            {"codes": ["any"], "body": [flow::request_step("undo"), {"branch": {
                "name": "again", "arms": [{"when": {"constant": "yes"}, "body": [raises("closed")]}], "else": [],
            }}]},
        ])),
        {"loop": {
            "name": "rounds", "locals": [0], "max": 3,
            "over": {"array": {"of": "integer", "items": [input("x"), integer(2), json!({"step": "first"})]}},
            "state": [{"local": 1, "name": "n", "value": integer(1)}, {"local": 2, "name": "m", "value": integer(5)}],
            "where": call("integer.less", &[integer(1), local(0)]),
            "while": call("integer.less", &[local(1), integer(900)]),
            "body": [
                flow::step("each", call("integer.quot", &[local(2), local(0)])),
                flow::request_step("inside"),
            ],
            "collect": local(1),
            "next": [{"local": 1, "value": json!({"step": "inside"})}, {"local": 2, "value": local(1)}],
            "stop_when": call("integer.less", &[json!({"step": "each"}), local(2)]),
        }},
        {"branch": {
            "name": "last",
            "arms": [
                {"when": call("integer.less", &[json!({"step": "first"}), integer(3)]), "body": [raises("timeout")]},
                {"when": {"constant": "yes"}, "body": [flow::step("inner", input("x"))], "value": {"step": "inner"}},
            ],
            "else": [], "otherwise": integer(8),
            "handlers": [flow::gives("division_by_zero", integer(0))],
        }},
        flow::returns(call("integer.add", &[
            json!({"step": "last"}), json!({"field": {"name": "n", "of": {"step": "rounds"}}}),
        ])),
    ]);
    let node = json!({
        "type": "workflow", "inputs": [{"name": "x", "type": "integer"}],
        "outputs": {"success": [{"name": "result", "type": "integer"}], "error": [{"name": "error_code", "type": codes}]},
        "constants": [{"name": "yes", "type": "boolean", "value": true}],
        "body": body,
        "invariants": [{"holds": {"or": [
            {"call": {"op": "optional.is_null", "args": [{"output": "result"}], "of": ["integer"]}},
            {"call": {"op": "optional.is_null", "args": [{"error": "error_code"}], "of": [codes]}},
        ]}}],
    });
    support::document(&flow::build(&node))
}

fn documents() -> [Vec<u8>; 2] {
    [PAYMENT.to_vec(), everything()]
}

/// A value of a type.
fn sample(ty: &Type) -> Value {
    match ty {
        Type::Boolean => Value::Boolean(true),
        Type::Integer => Value::Integer(40),
        Type::Decimal => Value::Decimal(Decimal::parse("120.50").unwrap()),
        Type::Float => Value::Float(-1.5),
        Type::Bytes => Value::Bytes(Arc::from(*b"\x00\xff")),
        Type::Timestamp => Value::Timestamp(-1),
        Type::Date => Value::Date(-1),
        Type::Duration => Value::Duration(-1),
        Type::TimeOfDay => Value::TimeOfDay(1),
        Type::Period => Value::Period(-1),
        Type::Json => Value::Json(Arc::new(vesper_ir::Json::Null)),
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

/// Loads a document, and runs it on inputs of the right types if it loads.
fn survives(bytes: &[u8]) -> bool {
    let Ok(program) = Program::load(bytes) else {
        return false;
    };
    let inputs: Vec<Value> = program
        .node()
        .inputs
        .iter()
        .map(|input| sample(&input.ty))
        .collect();
    // Requests succeed and fail in turns.
    for codes in [
        &["http_404", "timeout"],
        &["timeout", ""],
        &["", "closed"],
        &["", ""],
    ] {
        let mut execution = program.start(inputs.clone(), None, true).unwrap();
        let mut advanced = execution.advance(None).unwrap();
        let mut turn = codes.iter().cycle().take(50);
        let outcome = loop {
            let wave = match advanced {
                Advanced::Blocked(wave) => wave,
                Advanced::Done(outcome, _) => break Some(outcome),
            };
            let mut completions = Vec::new();
            for (request, code) in wave.iter().zip(turn.by_ref()) {
                let completion = match *code {
                    "" => Completion::Value(sample(&request.result)),
                    code => Completion::Failed(FailureCode::new(code)),
                };
                completions.push((request.id, completion));
            }
            if completions.len() < wave.len() {
                break None;
            }
            advanced = execution.advance(completions).unwrap();
        };
        assert!(
            !matches!(outcome, Some(Outcome::Fault(_))),
            "{outcome:?}: {}",
            String::from_utf8_lossy(bytes)
        );
        if !program.asks() {
            break;
        }
    }
    true
}

#[test]
fn damaged_statements_do_no_harm() {
    let document = flowing();
    assert!(survives(&document));
    for length in 0..document.len() {
        assert!(!survives(&document[..length]));
    }
    let mut random = Random(0x0dd_ba11_5eed);
    let mut still_well_formed = 0_u32;
    for _ in 0..6_000 {
        let mut bytes = document.clone();
        if random.below(2) == 0 {
            let place = random.below(bytes.len());
            let alphabet = b"{}[]\",:0123456789-abtnx\\";
            bytes[place] = alphabet[random.below(alphabet.len())];
        } else {
            let (from, to) = (random.below(document.len()), random.below(document.len()));
            let length = random.below(60).min(document.len() - from);
            bytes.splice(
                to..(to + length).min(document.len()),
                document[from..from + length].iter().copied(),
            );
        }
        still_well_formed += u32::from(survives(&bytes));
    }
    let end = document
        .windows(8)
        .position(|piece| piece == b"\"source\"")
        .unwrap();
    for place in (0..end).filter(|place| document[*place].is_ascii_digit()) {
        for digit in b'0'..=b'9' {
            let mut bytes = document.clone();
            bytes[place] = digit;
            still_well_formed += u32::from(survives(&bytes));
        }
    }
    assert!(still_well_formed > 100, "{still_well_formed}");
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
        for _ in 0..5_000 {
            let mut bytes = document.clone();
            for _ in 0..=random.below(3) {
                let place = random.below(bytes.len());
                // Mostly bytes with a meaning in JSON, so that some damage passes the parser.
                let alphabet = b"{}[]\",:0123456789-abtnx\\\x00\xff\xc3";
                bytes[place] = alphabet[random.below(alphabet.len())];
            }
            still_well_formed += u32::from(survives(&bytes));
        }
        assert!(still_well_formed > 0, "the damage never got past the spelling");
    }
    assert!(start.elapsed() < Duration::from_mins(10), "{:?}", start.elapsed());
}

#[test]
fn changed_numbers_do_no_harm() {
    // Only digits of the semantics: indices, locals and literals that stay well-formed.
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
        for _ in 0..2_000 {
            let (from, to) = (random.below(document.len()), random.below(document.len()));
            let length = random.below(60).min(document.len() - from);
            let mut bytes = document[..to].to_vec();
            bytes.extend_from_slice(&document[from..from + length]);
            bytes.extend_from_slice(&document[(to + random.below(60)).min(document.len())..]);
            survives(&bytes);
        }
    }
}
