//! JSON values to values of a type, in their one spelling: what defaults, literals and constants hold.

use std::sync::Arc;

use crate::decimal::Decimal;
use crate::node::RawValue;
use crate::types::{EnumType, Type};
use crate::value::{Member, Set, Value};

/// The value, if the JSON is the form that values.md gives for the type; otherwise what is wrong with it.
pub(crate) fn fit(ty: &Type, raw: &RawValue) -> Result<Value, String> {
    match (ty, raw) {
        (Type::Boolean, RawValue::Boolean(value)) => Ok(Value::Boolean(*value)),
        (Type::Integer, RawValue::Integer(value)) => Ok(Value::Integer(*value)),
        (Type::Text, RawValue::Text(text)) => Ok(Value::Text(Arc::clone(text))),
        (Type::Decimal, RawValue::Text(text)) => plain_decimal(text).map(Value::Decimal),
        (Type::Enum(of), RawValue::Text(text)) => member(of, text).map(Value::Member),
        (Type::Set(of), RawValue::List(items)) => Ok(Value::Set(Arc::new(set(of, items)?))),
        (ty, raw) => Err(format!("{} is not the form of {ty}", describe(raw))),
    }
}

/// SEMANTICS: inputs may spell a decimal in many ways, the IR in one: else one value would have two hashes.
fn plain_decimal(text: &str) -> Result<Decimal, String> {
    match Decimal::parse(text) {
        Ok(decimal) if decimal.to_string() == text => Ok(decimal),
        Ok(_) => Err(format!("`{}` is not a decimal in plain notation", shown(text))),
        Err(_) => Err(format!("`{}` is not a decimal", shown(text))),
    }
}

fn member(of: &Arc<EnumType>, text: &str) -> Result<Member, String> {
    of.member(text).ok_or_else(|| {
        format!(
            "`{}` is not a member of {}",
            shown(text),
            Type::Enum(Arc::clone(of))
        )
    })
}

fn set(of: &Type, items: &[RawValue]) -> Result<Set, String> {
    match of {
        Type::Boolean => members(of, items, |raw| match raw {
            RawValue::Boolean(value) => Some(Ok(*value)),
            _ => None,
        })
        .map(Set::Boolean),
        Type::Integer => members(of, items, |raw| match raw {
            RawValue::Integer(value) => Some(Ok(*value)),
            _ => None,
        })
        .map(Set::Integer),
        Type::Text => members(of, items, |raw| match raw {
            RawValue::Text(value) => Some(Ok(Arc::clone(value))),
            _ => None,
        })
        .map(Set::Text),
        Type::Enum(members_of) => members(of, items, |raw| match raw {
            RawValue::Text(text) => Some(member(members_of, text)),
            _ => None,
        })
        .map(Set::Member),
        Type::Decimal | Type::Set(_) => Err(format!("a set does not hold {of}")),
    }
}

fn members<T: Ord>(
    of: &Type,
    items: &[RawValue],
    read: impl Fn(&RawValue) -> Option<Result<T, String>>,
) -> Result<Vec<T>, String> {
    let mut found: Vec<T> = Vec::with_capacity(items.len());
    for raw in items {
        let next = read(raw).ok_or_else(|| format!("{} is not the form of {of}", describe(raw)))??;
        if found.last().is_some_and(|last| *last >= next) {
            return Err(format!("{} is repeated or out of order in a set", describe(raw)));
        }
        found.push(next);
    }
    Ok(found)
}

fn describe(raw: &RawValue) -> String {
    match raw {
        RawValue::Boolean(value) => format!("{value}"),
        RawValue::Integer(value) => format!("{value}"),
        RawValue::Text(text) => format!("\"{}\"", shown(text)),
        RawValue::List(_) => "an array".to_owned(),
    }
}

/// The beginning of a text, for a message.
fn shown(text: &str) -> String {
    let mut start: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        start.push('…');
    }
    start
}
