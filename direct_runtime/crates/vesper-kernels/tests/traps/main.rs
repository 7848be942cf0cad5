//! Tests where Rust or Python differ from the specification, or where naive code would hang.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use vesper_ir::{Decimal, RoundingMode, Value};

mod bytes;
mod collections;
mod composed;
mod decimals;
mod floats;
mod integers;
mod jsons;
mod texts;
mod times;

const MODES: [RoundingMode; 7] = [
    RoundingMode::HalfEven,
    RoundingMode::HalfUp,
    RoundingMode::HalfDown,
    RoundingMode::Up,
    RoundingMode::Down,
    RoundingMode::Floor,
    RoundingMode::Ceiling,
];

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

fn text(value: &str) -> Value {
    Value::Text(Arc::from(value))
}

fn integers(values: &[i64]) -> Vec<Value> {
    values.iter().copied().map(Value::Integer).collect()
}

/// Formats a value for comparison, decimals with their scales.
fn shown(value: &Value) -> String {
    match value {
        Value::Integer(value) => value.to_string(),
        Value::Decimal(value) => value.to_string(),
        Value::Text(value) => value.to_string(),
        Value::Array(items) => all_shown(items),
        Value::Null => "null".to_owned(),
        other => format!("{other:?}"),
    }
}

fn all_shown(values: &[Value]) -> String {
    let shown: Vec<String> = values.iter().map(shown).collect();
    format!("[{}]", shown.join(", "))
}

/// Runs a closure and fails above a time that only unbounded work exceeds.
fn quickly<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    let taken = start.elapsed();
    assert!(taken < Duration::from_secs(20), "{what} took {taken:?}");
    result
}
