//! Inputs, and the outcome of one expression over them.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use vesper_ir::{Decimal, KeyKind, Map, OwnedKey, Set, Value};

use crate::support::{load, run};
use crate::tree::returning;

pub(crate) fn integers(items: &[i64]) -> Value {
    Value::Array(items.iter().copied().map(Value::Integer).collect())
}

pub(crate) fn decimals(items: &[&str]) -> Value {
    let parse = |text: &&str| Value::Decimal(Decimal::parse(text).unwrap());
    Value::Array(items.iter().map(parse).collect())
}

pub(crate) fn texts(items: &[&str]) -> Value {
    Value::Array(items.iter().map(|text| Value::Text(Arc::from(*text))).collect())
}

pub(crate) fn set_of(items: &[&str]) -> Value {
    let keys = items.iter().map(|text| OwnedKey::Text(Arc::from(*text)));
    Value::Set(Arc::new(Set::from_keys(KeyKind::Text, keys).unwrap()))
}

pub(crate) fn map_of(items: &[(&str, i64)]) -> Value {
    let entries = items
        .iter()
        .map(|(key, value)| (OwnedKey::Text(Arc::from(*key)), Value::Integer(*value)));
    Value::Map(Arc::new(
        Map::from_entries(KeyKind::Text, entries.collect()).unwrap(),
    ))
}

/// Returns the outcome of an expression over the input `xs`.
pub(crate) fn outcome(of: &Json, ty: &Json, expression: &Json, xs: Value) -> String {
    let inputs = json!([{"name": "xs", "type": of}]);
    let program = load(&returning(&inputs, ty, expression));
    run(&program, &[xs]).1.replace("returned result=", "")
}
