//! Conversion of a value to the JSON form of its type in docs/spec/values.md.

use std::sync::Arc;

use vesper_ir::json::{MAX_DEPTH, Object};
use vesper_ir::limits::TEXT_LENGTH;
use vesper_ir::{Decimal, ErrorCode, Json, Map, MapType, RecordType, Type, Value, base64, float, time};

type Formed = Result<Json, ErrorCode>;

/// Converts a value to JSON. Fails where the result would exceed the size or depth of JSON.
pub(super) fn json_form(value: &Value, ty: &Type) -> Formed {
    form(value, ty, MAX_DEPTH)
}

/// Converts a value to JSON of at most `levels` levels. The recursion is as deep as the type, which is limited.
fn form(value: &Value, ty: &Type, levels: usize) -> Formed {
    // Verification excludes all other combinations, which become null.
    Ok(match (ty, value) {
        (Type::Optional(_), Value::Null) => Json::Null,
        (Type::Optional(of), value) => form(value, of, levels)?,
        (_, Value::Boolean(value)) => Json::Boolean(*value),
        (_, Value::Integer(value)) => Json::Number(Decimal::from(*value)),
        (_, Value::Decimal(value)) => text(value.to_string()),
        (_, Value::Float(value)) => float_form(*value),
        (_, Value::Text(value)) => Json::Text(Arc::clone(value)),
        (_, Value::Bytes(bytes)) if base64::text_length(bytes.len()) > TEXT_LENGTH => {
            return Err(ErrorCode::TooLarge);
        }
        (_, Value::Bytes(bytes)) => text(base64::text(bytes)),
        (_, Value::Timestamp(value)) => text(time::timestamp_text(*value)),
        (_, Value::Date(value)) => text(time::date_text(*value)),
        (_, Value::Duration(value)) => text(time::duration_text(*value)),
        (_, Value::TimeOfDay(value)) => text(time::time_text(*value)),
        (_, Value::Period(value)) => text(time::period_text(*value)),
        (_, Value::Json(value)) if value.depth() > levels => return Err(ErrorCode::TooLarge),
        (_, Value::Json(value)) => value.as_ref().clone(),
        (Type::Enum(of), Value::Member(member)) => Json::Text(of.text(*member).cloned().unwrap_or_default()),
        (Type::Array(of), Value::Array(items)) => {
            let below = level(levels)?;
            let items = items.iter().map(|item| form(item, of, below));
            Json::Array(items.collect::<Result<_, _>>()?)
        }
        (Type::Set(of), Value::Set(members)) => {
            let below = level(levels)?;
            let members = members.iter().map(|member| form(&member, of, below));
            Json::Array(members.collect::<Result<_, _>>()?)
        }
        (Type::Map(of), Value::Map(map)) => map_form(map, of, levels)?,
        (Type::Record(of), Value::Record(fields)) => record_form(fields, of, levels)?,
        _ => Json::Null,
    })
}

/// Returns the levels left inside a bracket.
fn level(levels: usize) -> Result<usize, ErrorCode> {
    levels.checked_sub(1).ok_or(ErrorCode::TooLarge)
}

fn text(text: String) -> Json {
    Json::Text(Arc::from(text))
}

/// Converts a float to the number of its text; NaN and infinities become strings.
fn float_form(value: f64) -> Json {
    let spelled = float::text(value);
    match Decimal::parse(&spelled) {
        Ok(number) => Json::Number(number),
        Err(_) => text(spelled),
    }
}

fn map_form(map: &Map, of: &MapType, levels: usize) -> Formed {
    let below = level(levels)?;
    let mut entries = Vec::new();
    let mut pairs = Vec::new();
    for (key, value) in map.keys().iter().zip(map.values()) {
        if matches!(of.key, Type::Text | Type::Enum(_)) {
            if let Json::Text(key) = form(&key, &of.key, below)? {
                entries.push((key, form(value, &of.value, below)?));
            }
        } else {
            let inside = level(below)?;
            let pair = [form(&key, &of.key, inside)?, form(value, &of.value, inside)?];
            pairs.push(Json::Array(Arc::from(pair)));
        }
    }
    Ok(match of.key {
        Type::Text | Type::Enum(_) => object(entries),
        _ => Json::Array(Arc::from(pairs)),
    })
}

fn record_form(fields: &[Value], of: &RecordType, levels: usize) -> Formed {
    let below = level(levels)?;
    let mut entries = Vec::with_capacity(fields.len());
    let Some(outside) = of.outside() else {
        for (field, value) in of.fields().iter().zip(fields) {
            entries.push((Arc::clone(&field.name), form(value, &field.ty, below)?));
        }
        return Ok(object(entries));
    };
    for (key, place) in outside.shown() {
        let flag = outside.flag_of(place).and_then(|flag| fields.get(flag));
        if let (Some(field), Some(value)) = (of.fields().get(place), fields.get(place))
            && !matches!(flag, Some(Value::Boolean(true)))
        {
            entries.push((Arc::from(key), form(value, &field.ty, below)?));
        }
    }
    if let Some(Value::Map(rest)) = outside.rest().and_then(|rest| fields.get(rest)) {
        for (key, value) in rest.keys().iter().zip(rest.values()) {
            // SEMANTICS: an entry under the name of a declared field is not written.
            if let Value::Text(key) = key
                && outside.place(&key).is_none()
            {
                entries.push((key, form(value, &Type::Json, below)?));
            }
        }
    }
    Ok(object(entries))
}

/// Creates an object. INVARIANT: keys of a map and names of fields are unique.
fn object(entries: Vec<(Arc<str>, Json)>) -> Json {
    Object::new(entries).map_or(Json::Null, Json::Object)
}
