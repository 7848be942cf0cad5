//! Values from their JSON form in a column (docs/spec/values.md), with the kind of the first problem.

use std::sync::Arc;

use vesper_interp::inputs::{Given, ProblemKind, convert};
use vesper_ir::json::Object;
use vesper_ir::types::RecordType;
use vesper_ir::{Json, Map, MapType, OwnedKey, RoundingMode, Set, Type, Value};

type Formed<T> = Result<T, ProblemKind>;

/// Returns the value of a JSON form. The recursion is as deep as the type, which is limited.
pub(super) fn value_of_form(ty: &Type, form: &Json) -> Formed<Value> {
    match (ty, form) {
        (Type::Optional(_), Json::Null) => Ok(Value::Null),
        (Type::Optional(of), form) => value_of_form(of, form),
        (Type::Json, form) => Ok(Value::Json(Arc::new(form.clone()))),
        (Type::Array(of), Json::Array(items)) => {
            let items = items.iter().map(|item| value_of_form(of, item));
            items.collect::<Formed<Arc<[Value]>>>().map(Value::Array)
        }
        (Type::Set(of), Json::Array(items)) => set(of, items),
        (Type::Map(of), form) => map(of, form),
        (Type::Record(of), Json::Object(object)) => record(of, object),
        (Type::Array(_) | Type::Set(_) | Type::Record(_), _) => Err(ProblemKind::WrongType),
        (ty, form) => scalar(ty, form),
    }
}

fn scalar(ty: &Type, form: &Json) -> Formed<Value> {
    match (ty, form) {
        // SEMANTICS: zeros after the point are not a fraction.
        (Type::Integer, Json::Number(number)) if number.is_whole() => {
            let whole = number.to_whole(RoundingMode::Down);
            whole.map(Value::Integer).ok_or(ProblemKind::OutOfRange)
        }
        (Type::Decimal, Json::Number(number)) => Ok(Value::Decimal(number.clone())),
        (Type::Float, Json::Number(number)) => {
            let nearest = Some(number.to_float()).filter(|nearest| nearest.is_finite());
            nearest.map(Value::Float).ok_or(ProblemKind::OutOfRange)
        }
        (ty, Json::Text(text)) => convert(ty, Given::Text(text)),
        (ty, Json::Boolean(value)) => convert(ty, Given::Boolean(*value)),
        _ => Err(ProblemKind::WrongType),
    }
}

fn key(ty: &Type, form: &Json) -> Formed<OwnedKey> {
    scalar(ty, form)?.to_key().ok_or(ProblemKind::WrongType)
}

fn set(of: &Type, items: &[Json]) -> Formed<Value> {
    let keys = items
        .iter()
        .map(|item| key(of, item))
        .collect::<Formed<Vec<OwnedKey>>>()?;
    let kind = of.key_kind().ok_or(ProblemKind::WrongType)?;
    let set = Set::from_keys(kind, keys.into_iter()).ok_or(ProblemKind::WrongType)?;
    if set.len() < items.len() {
        return Err(ProblemKind::Duplicate);
    }
    Ok(Value::Set(Arc::new(set)))
}

fn map(of: &MapType, form: &Json) -> Formed<Value> {
    let has_names = matches!(of.key, Type::Text | Type::Enum(_));
    let mut entries = Vec::new();
    match form {
        Json::Object(object) if has_names => {
            for (name, item) in object.entries() {
                entries.push((key(&of.key, &Json::Text(Arc::clone(name)))?, item));
            }
        }
        // Earlier versions wrote a map without entries as an object, whatever its keys.
        Json::Object(object) if object.entries().is_empty() => {}
        Json::Array(pairs) if !has_names => {
            for pair in pairs.iter() {
                let Json::Array(pair) = pair else {
                    return Err(ProblemKind::WrongType);
                };
                let [name, item] = &**pair else {
                    return Err(ProblemKind::WrongType);
                };
                entries.push((key(&of.key, name)?, item));
            }
        }
        _ => return Err(ProblemKind::WrongType),
    }
    let entries = entries
        .into_iter()
        .map(|(key, item)| Ok((key, value_of_form(&of.value, item)?)));
    let entries = entries.collect::<Formed<Vec<(OwnedKey, Value)>>>()?;
    let kind = of.key.key_kind().ok_or(ProblemKind::WrongType)?;
    let map = Map::from_entries(kind, entries).ok_or(ProblemKind::Duplicate)?;
    Ok(Value::Map(Arc::new(map)))
}

/// SEMANTICS: unknown fields are ignored, and an absent optional field is null.
fn record(of: &RecordType, object: &Object) -> Formed<Value> {
    let fields = of
        .fields()
        .iter()
        .map(|field| match (object.get(&field.name), &field.ty) {
            (Some(form), ty) => value_of_form(ty, form),
            (None, Type::Optional(_)) => Ok(Value::Null),
            (None, _) => Err(ProblemKind::Missing),
        });
    fields.collect::<Formed<Arc<[Value]>>>().map(Value::Record)
}
