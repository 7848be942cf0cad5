//! Damaged documents: loading them ends, in time and without a panic, and what still loads still runs.
#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::time::{Duration, Instant};

use vesper_interp::{Outcome, Program};
use vesper_ir::{Decimal, Member, Type, Value};

const DOCUMENT: &[u8] = include_bytes!("../../../fixtures/payment_decision_v1.json");

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
    let inputs = program.node().inputs.iter().map(|input| match &input.ty {
        Type::Boolean => Value::Boolean(true),
        Type::Integer => Value::Integer(40),
        Type::Decimal => Value::Decimal(Decimal::parse("120.50").unwrap()),
        Type::Text => Value::Text("DE".into()),
        Type::Enum(_) => Value::Member(Member(0)),
        Type::Set(_) => panic!("an input is a set"),
    });
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
    assert!(survives(DOCUMENT));
    for length in 0..DOCUMENT.len() {
        assert!(!survives(&DOCUMENT[..length]));
    }
}

#[test]
fn flipped_bytes_do_no_harm() {
    let mut random = Random(0x5eed_5eed_5eed_5eed);
    let start = Instant::now();
    let mut still_well_formed = 0_u32;
    for _ in 0..30_000 {
        let mut bytes = DOCUMENT.to_vec();
        for _ in 0..=random.below(3) {
            let place = random.below(bytes.len());
            // Mostly bytes that mean something in JSON, so that some damage gets past the spelling.
            let alphabet = b"{}[]\",:0123456789-abtnx\\\x00\xff\xc3";
            bytes[place] = alphabet[random.below(alphabet.len())];
        }
        still_well_formed += u32::from(survives(&bytes));
    }
    assert!(still_well_formed > 0, "the damage never got past the spelling");
    assert!(start.elapsed() < Duration::from_mins(2), "{:?}", start.elapsed());
}

#[test]
fn pieces_moved_around_do_no_harm() {
    let mut random = Random(0xfeed_beef_1234_5678);
    for _ in 0..10_000 {
        let (from, to) = (random.below(DOCUMENT.len()), random.below(DOCUMENT.len()));
        let length = random.below(60).min(DOCUMENT.len() - from);
        let mut bytes = DOCUMENT[..to].to_vec();
        bytes.extend_from_slice(&DOCUMENT[from..from + length]);
        bytes.extend_from_slice(&DOCUMENT[(to + random.below(60)).min(DOCUMENT.len())..]);
        survives(&bytes);
    }
}
