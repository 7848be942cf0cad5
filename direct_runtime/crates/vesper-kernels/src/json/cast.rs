//! `CAST`: the JSON forms of docs/spec/values.md, with the differences of docs/spec/collections.md.

use std::sync::Arc;

use vesper_ir::json::Object;
use vesper_ir::limits::BYTES_LENGTH;
use vesper_ir::types::RecordType;
use vesper_ir::{
    Decimal, Json, KeyKind, Map, MapType, OwnedKey, RoundingMode, Set, Type, Value, base64, float, time,
};

/// Converts JSON to a value of a type. The recursion is as deep as the type, which is limited.
pub(super) fn cast(json: &Json, ty: &Type) -> Option<Value> {
    match (ty, json) {
        (Type::Optional(_), Json::Null) => Some(Value::Null),
        (Type::Optional(of), json) => cast(json, of),
        (Type::Json, json) => Some(Value::Json(Arc::new(json.clone()))),
        (Type::Boolean, Json::Boolean(value)) => Some(Value::Boolean(*value)),
        // SEMANTICS: zeros after the point are not a fraction.
        (Type::Integer, Json::Number(number)) if number.is_whole() => {
            number.to_whole(RoundingMode::Down).map(Value::Integer)
        }
        (Type::Decimal, Json::Number(number)) => Some(Value::Decimal(number.clone())),
        (Type::Float, Json::Number(number)) => Some(number.to_float())
            .filter(|value| value.is_finite())
            .map(Value::Float),
        (Type::Array(of), Json::Array(items)) => {
            let items = items.iter().map(|item| cast(item, of));
            items.collect::<Option<Arc<[Value]>>>().map(Value::Array)
        }
        (Type::Set(of), Json::Array(items)) => set(items, of),
        (Type::Map(of), json) => map(json, of),
        (Type::Record(of), Json::Object(object)) => record(object, of),
        (ty, Json::Text(text)) => from_text(text, ty),
        _ => None,
    }
}

fn from_text(text: &Arc<str>, ty: &Type) -> Option<Value> {
    match ty {
        Type::Decimal => Decimal::parse(text).ok().map(Value::Decimal),
        Type::Float => float::parse_named(text).map(Value::Float),
        Type::Text => Some(Value::Text(Arc::clone(text))),
        Type::Bytes => {
            let bytes = base64::parse(text).filter(|bytes| bytes.len() <= BYTES_LENGTH)?;
            Some(Value::Bytes(Arc::from(bytes)))
        }
        Type::Timestamp => time::parse_timestamp(text).ok().map(Value::Timestamp),
        Type::Date => time::parse_date(text).ok().map(Value::Date),
        Type::Duration => time::parse_duration(text).ok().map(Value::Duration),
        Type::TimeOfDay => time::parse_time(text).ok().map(Value::TimeOfDay),
        Type::Period => time::parse_period(text).ok().map(Value::Period),
        Type::Enum(of) => of.member_of_text(text).map(Value::Member),
        _ => None,
    }
}

fn set(items: &[Json], of: &Type) -> Option<Value> {
    let keys: Option<Vec<OwnedKey>> = items.iter().map(|item| cast(item, of)?.to_key()).collect();
    let set = Set::from_keys(of.key_kind()?, keys?.into_iter())?;
    // SEMANTICS: a repeated element fails, as in an input.
    (set.len() == items.len()).then(|| Value::Set(Arc::new(set)))
}

fn map(json: &Json, of: &MapType) -> Option<Value> {
    let entries: Option<Vec<(OwnedKey, Value)>> = match (&of.key, json) {
        (Type::Text | Type::Enum(_), Json::Object(object)) => {
            let entries = object.entries().iter();
            let cast = |(key, value): &(Arc<str>, Json)| {
                Some((from_text(key, &of.key)?.to_key()?, cast(value, &of.value)?))
            };
            entries.map(cast).collect()
        }
        (Type::Text | Type::Enum(_), _) => None,
        (_, Json::Array(pairs)) => {
            let cast = |pair: &Json| match pair {
                Json::Array(pair) => match pair.as_ref() {
                    [key, value] => Some((cast(key, &of.key)?.to_key()?, cast(value, &of.value)?)),
                    _ => None,
                },
                _ => None,
            };
            pairs.iter().map(cast).collect()
        }
        _ => None,
    };
    // `None` where a key is repeated.
    let map = Map::from_entries(of.key.key_kind()?, entries?)?;
    Some(Value::Map(Arc::new(map)))
}

/// Converts an object to a record.
///
/// SEMANTICS: unknown fields are ignored unless the record is open, and an absent optional field is null.
fn record(object: &Object, of: &RecordType) -> Option<Value> {
    let fields = of.fields().iter().enumerate().map(|(place, field)| {
        if let Some(hidden) = hidden(object, of, place) {
            return Some(hidden);
        }
        match (object.get(of.key(place)), &field.ty) {
            (Some(json), ty) => cast(json, ty),
            (None, Type::Optional(_)) => Some(Value::Null),
            (None, _) => None,
        }
    });
    fields.collect::<Option<Arc<[Value]>>>().map(Value::Record)
}

/// Returns the value of a field without a key of its own: a flag, or the undeclared keys. `None` for other fields.
fn hidden(object: &Object, of: &RecordType, place: usize) -> Option<Value> {
    let outside = of.outside()?;
    if let Some(flagged) = outside.flagged(place) {
        return Some(Value::Boolean(object.get(outside.name(flagged)).is_none()));
    }
    if outside.rest() != Some(place) {
        return None;
    }
    let undeclared = object
        .entries()
        .iter()
        .filter(|(key, _)| outside.place(key).is_none());
    let entries = undeclared.map(|(key, json)| {
        (
            OwnedKey::Text(Arc::clone(key)),
            Value::Json(Arc::new(json.clone())),
        )
    });
    // The keys of an object are distinct, so there is a map.
    let map = Map::from_entries(KeyKind::Text, entries.collect())?;
    Some(Value::Map(Arc::new(map)))
}
