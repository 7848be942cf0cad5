//! Conversion of canonical JSON to a value of a type, for defaults, literals and constants.

use std::sync::Arc;

use crate::decimal::Decimal;
use crate::json::{self, Json};
use crate::node::RawValue;
use crate::types::{EnumType, MapType, RecordType, Type};
use crate::value::{Map, Member, OwnedKey, Set, Value};
use crate::{base64, float, time};

/// Converts JSON in the form of docs/spec/values.md to a value of the type. Returns a message where the JSON is
/// malformed.
///
/// The recursion is as deep as the type, which is limited.
pub(crate) fn fit(ty: &Type, raw: &RawValue) -> Result<Value, String> {
    match (ty, raw) {
        (Type::Boolean, RawValue::Boolean(value)) => Ok(Value::Boolean(*value)),
        (Type::Integer, RawValue::Integer(value)) => Ok(Value::Integer(*value)),
        (Type::Text, RawValue::Text(text)) => Ok(Value::Text(Arc::clone(text))),
        (Type::Decimal, RawValue::Text(text)) => plain_decimal(text).map(Value::Decimal),
        (Type::Float, RawValue::Text(text)) => {
            parse_canonical(text, float::parse, |value| float::text(*value))
                .map(Value::Float)
                .ok_or_else(|| spelling_error(text, "a float in canonical form"))
        }
        (Type::Bytes, RawValue::Text(text)) => base64::parse(text)
            .map(|bytes| Value::Bytes(Arc::from(bytes)))
            .ok_or_else(|| spelling_error(text, "base64")),
        (Type::Timestamp, RawValue::Text(text)) => parse_canonical(
            text,
            |text| time::parse_timestamp(text).ok(),
            |value| time::timestamp_text(*value),
        )
        .map(Value::Timestamp)
        .ok_or_else(|| spelling_error(text, "a timestamp in canonical form")),
        (Type::Date, RawValue::Text(text)) => time::parse_date(text)
            .map(Value::Date)
            .map_err(|_| spelling_error(text, "a date")),
        (Type::Duration, RawValue::Text(text)) => parse_canonical(
            text,
            |text| time::parse_duration(text).ok(),
            |value| time::duration_text(*value),
        )
        .map(Value::Duration)
        .ok_or_else(|| spelling_error(text, "a duration in canonical form")),
        (Type::TimeOfDay, RawValue::Text(text)) => parse_canonical(
            text,
            |text| time::parse_time(text).ok(),
            |value| time::time_text(*value),
        )
        .map(Value::TimeOfDay)
        .ok_or_else(|| spelling_error(text, "a time of day in canonical form")),
        (Type::Period, RawValue::Text(text)) => parse_canonical(
            text,
            |text| time::parse_period(text).ok(),
            |value| time::period_text(*value),
        )
        .map(Value::Period)
        .ok_or_else(|| spelling_error(text, "a period in canonical form")),
        (Type::Json, RawValue::Text(text)) => {
            parse_canonical(text, |text| json::parse(text).ok(), Json::literal_text)
                .map(|value| Value::Json(Arc::new(value)))
                .ok_or_else(|| spelling_error(text, "JSON text in canonical form"))
        }
        (Type::Enum(of), RawValue::Text(text)) => member(of, text).map(Value::Member),
        (Type::Optional(_), RawValue::Null) => Ok(Value::Null),
        (Type::Optional(of), raw) => fit(of, raw),
        (Type::Set(of), RawValue::List(items)) => set(of, items),
        (Type::Array(of), RawValue::List(items)) => {
            let items = items.iter().enumerate();
            let items =
                items.map(|(place, raw)| fit(of, raw).map_err(|what| format!("item {place}: {what}")));
            Ok(Value::Array(items.collect::<Result<_, String>>()?))
        }
        (Type::Map(of), RawValue::List(items)) => map(of, items),
        (Type::Record(of), RawValue::Object(entries)) => record(of, entries),
        (ty, raw) => Err(format!("{} is not the form of {ty}", describe(raw))),
    }
}

/// Parses a text and returns the value only if the text is its canonical spelling.
fn parse_canonical<T>(
    text: &str,
    read: impl FnOnce(&str) -> Option<T>,
    write: impl FnOnce(&T) -> String,
) -> Option<T> {
    read(text).filter(|value| write(value) == text)
}

fn spelling_error(text: &str, what: &str) -> String {
    format!("`{}` is not {what}", shorten(text))
}

/// Parses a decimal in plain notation.
///
/// SEMANTICS: inputs may spell a decimal in many ways, the IR in one, or one value would have two hashes.
fn plain_decimal(text: &str) -> Result<Decimal, String> {
    match Decimal::parse(text) {
        Ok(decimal) if decimal.to_string() == text => Ok(decimal),
        Ok(_) => Err(format!("`{}` is not a decimal in plain notation", shorten(text))),
        Err(_) => Err(format!("`{}` is not a decimal", shorten(text))),
    }
}

fn member(of: &Arc<EnumType>, text: &str) -> Result<Member, String> {
    of.member(text).ok_or_else(|| {
        format!(
            "`{}` is not a member of {}",
            shorten(text),
            Type::Enum(Arc::clone(of))
        )
    })
}

/// Converts a key, which must be greater than `last`.
fn key(of: &Type, raw: &RawValue, last: Option<&OwnedKey>, what: &str) -> Result<OwnedKey, String> {
    let key = fit(of, raw)?
        .to_key()
        .ok_or_else(|| format!("{of} is not the type of a key"))?;
    if last.is_some_and(|last| *last >= key) {
        return Err(format!(
            "{} is repeated or out of order in a {what}",
            describe(raw)
        ));
    }
    Ok(key)
}

fn set(of: &Type, items: &[RawValue]) -> Result<Value, String> {
    let mut keys: Vec<OwnedKey> = Vec::with_capacity(items.len());
    for raw in items {
        keys.push(key(of, raw, keys.last(), "set")?);
    }
    let members = of
        .key_kind()
        .and_then(|kind| Set::from_keys(kind, keys.into_iter()));
    let members = members.ok_or_else(|| format!("a set does not hold {of}"))?;
    Ok(Value::Set(Arc::new(members)))
}

fn map(of: &MapType, items: &[RawValue]) -> Result<Value, String> {
    let mut entries: Vec<(OwnedKey, Value)> = Vec::with_capacity(items.len());
    for raw in items {
        let RawValue::List(pair) = raw else {
            return Err(format!(
                "{} is not an entry of a map, an array of key and value",
                describe(raw)
            ));
        };
        let [raw_key, raw_value] = pair.as_slice() else {
            return Err(format!(
                "an entry of a map is a key and a value, not {} items",
                pair.len()
            ));
        };
        let key = key(&of.key, raw_key, entries.last().map(|(key, _)| key), "map")?;
        let value = fit(&of.value, raw_value);
        let value = value.map_err(|what| format!("the value of {}: {what}", describe(raw_key)))?;
        entries.push((key, value));
    }
    let map = of
        .key
        .key_kind()
        .and_then(|kind| Map::from_entries(kind, entries));
    let map = map.ok_or_else(|| format!("a map does not have keys of {}", of.key))?;
    Ok(Value::Map(Arc::new(map)))
}

/// Converts an object to a record.
///
/// SEMANTICS: an input may omit an optional field, the IR may not: null also has one spelling.
fn record(of: &RecordType, entries: &[(String, RawValue)]) -> Result<Value, String> {
    if let Some((name, _)) = entries.iter().find(|(name, _)| of.place(name).is_none()) {
        return Err(format!("a record has no field `{}`", shorten(name)));
    }
    let fields = of.fields().iter().map(|field| {
        // INVARIANT: canonical JSON has the keys of an object in order.
        let found = entries.binary_search_by(|(name, _)| name.as_str().cmp(&field.name));
        let raw = found.ok().and_then(|place| entries.get(place));
        let (_, raw) = raw.ok_or_else(|| format!("field `{}` is missing", field.name))?;
        fit(&field.ty, raw).map_err(|what| format!("field `{}`: {what}", field.name))
    });
    Ok(Value::Record(fields.collect::<Result<_, String>>()?))
}

fn describe(raw: &RawValue) -> String {
    match raw {
        RawValue::Null => "null".to_owned(),
        RawValue::Boolean(value) => format!("{value}"),
        RawValue::Integer(value) => format!("{value}"),
        RawValue::Text(text) => format!("\"{}\"", shorten(text)),
        RawValue::List(_) => "an array".to_owned(),
        RawValue::Object(_) => "an object".to_owned(),
    }
}

/// Shortens a text for a message.
fn shorten(text: &str) -> String {
    let mut start: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        start.push('…');
    }
    start
}
