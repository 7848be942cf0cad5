//! Fuzz target for input and output values of a node that returns its input.
//!
//! The first line of an input is the type as the IR writes it, the rest the JSON text of the inputs. Every input has an
//! outcome, and a returned value in canonical form is returned unchanged when it is the next input.
#![no_main]

use libfuzzer_sys::{fuzz_crossover, fuzz_mutator, fuzz_target, fuzzer_mutate};
use vesper_fuzz::{Random, mutation};
use vesper_interp::{Limits, Program};
use vesper_ir::{Decimal, base64, float, time};

fuzz_target!(|data: &[u8]| {
    let place = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (ty, inputs) = (&data[..place], data.get(place + 1..).unwrap_or(&[]));
    if let Ok(text) = std::str::from_utf8(inputs) {
        scalars(text.trim_matches('"'));
    }
    let Ok(program) = Program::load(&identity(ty)) else {
        return;
    };
    let first = program.run_json(inputs, None, Limits::default());
    let Some(value) = returned_value(&first) else {
        assert!(
            first.starts_with("{\"at\":null,\"code\":\"bad_input\""),
            "an input was neither taken nor refused: {first}"
        );
        return;
    };
    let again = program.run_json(format!("{{\"x\":{value}}}").as_bytes(), None, Limits::default());
    assert_eq!(first, again, "a value that came out does not go in again");
});

/// Extracts the value that a node returned.
fn returned_value(outcome: &str) -> Option<&str> {
    outcome
        .strip_prefix("{\"kind\":\"returned\",\"value\":{\"result\":")?
        .strip_suffix("}}")
}

/// Builds a node that returns its one input of this type.
fn identity(ty: &[u8]) -> Vec<u8> {
    let before = br#"{"ir_version":2,"semantics":{"audit":"none","body":[{"return":{"success":[{"name":"result","value":0}]}}],"calls":[],"capabilities":{"denied":[],"required":[]},"constants":[],"constraints":[],"expressions":[{"input":"x"}],"inputs":[{"name":"x","type":"#;
    let between = br#"}],"invariants":[],"machines":[],"node_id":"small_v1","outputs":{"error":[],"success":[{"name":"result","type":"#;
    let after = br#"}]},"policy":{},"postconditions":[],"preconditions":[],"sensitive":[],"type":"function"},"source":{"clauses":{},"intent":"Test","locals":[],"path":"test.vsp","sha256":"e8addaed5ea5dd54134313e64161d0813ca98d738e79393b341ea88776a95b02","spans":[[11,23,11,24]],"steps":{}}}"#;
    [&before[..], ty, between, ty, after].concat()
}

/// Checks that formatting and parsing a scalar returns the same value.
fn scalars(text: &str) {
    if let Ok(number) = Decimal::parse(text) {
        let shown = number.to_string();
        let again = Decimal::parse(&shown).expect("a decimal reads what it writes");
        assert!(again.is_identical(&number), "{text}: {shown}");
    }
    if let Some(bytes) = base64::parse(text) {
        assert_eq!(base64::parse(&base64::text(&bytes)), Some(bytes));
    }
    if let Some(number) = float::parse(text) {
        let shown = float::text(number);
        let again = float::parse(&shown)
            .or_else(|| float::parse_named(&shown))
            .expect("a float reads what it writes");
        assert!(float::is_identical(number, again), "{text}: {shown}");
    }
    if let Ok(day) = time::parse_date(text) {
        assert_eq!(time::parse_date(&time::date_text(day)), Ok(day));
    }
    if let Ok(moment) = time::parse_timestamp(text) {
        assert_eq!(time::parse_timestamp(&time::timestamp_text(moment)), Ok(moment));
    }
    if let Ok(length) = time::parse_duration(text) {
        assert_eq!(time::parse_duration(&time::duration_text(length)), Ok(length));
    }
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutation::mutate(data, size, max_size, seed, fuzzer_mutate)
});

fuzz_crossover!(|data1: &[u8], data2: &[u8], out: &mut [u8], seed: u32| {
    let text = mutation::cross(data1, data2, &mut Random::new(u64::from(seed)));
    let size = text.len().min(out.len());
    out[..size].copy_from_slice(&text[..size]);
    size
});
