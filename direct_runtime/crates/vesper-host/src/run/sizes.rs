//! Sizes of values, as `memory_limit_mb` counts them: the same on every machine.

use vesper_ir::{Json, Set, Type, Value};

/// Bytes that are counted for each value besides its content.
const OBJECT: u64 = 32;

/// Returns 32 bytes for each value in a value, keys and names of fields included, and one for each byte or character.
pub fn size_of(ty: &Type, value: &Value) -> u64 {
    let ty = match ty {
        Type::Optional(inner) => inner,
        other => other,
    };
    if let Value::Json(json) = value {
        return size_of_json(json);
    }
    OBJECT
        + match (ty, value) {
            (_, Value::Text(text)) => characters(text),
            (_, Value::Bytes(bytes)) => bytes.len() as u64,
            (Type::Enum(declared), Value::Member(member)) => {
                declared.name(*member).map_or(0, |name| characters(name))
            }
            (Type::Set(inner), Value::Set(set)) => size_of_keys(inner, set),
            (Type::Array(inner), Value::Array(items)) => items.iter().map(|each| size_of(inner, each)).sum(),
            (Type::Map(types), Value::Map(map)) => {
                let values: u64 = map.values().iter().map(|each| size_of(&types.value, each)).sum();
                size_of_keys(&types.key, map.keys()) + values
            }
            (Type::Record(declared), Value::Record(values)) => {
                let fields = declared.fields().iter().zip(values.iter());
                fields
                    .map(|(field, each)| size_of_member(&field.name, &field.ty, each))
                    .sum()
            }
            _ => 0,
        }
}

/// Returns the size of a mapping of names to values, such as inputs.
pub fn size_of_members<'a>(members: impl IntoIterator<Item = (&'a str, &'a Type, &'a Value)>) -> u64 {
    let sizes = members
        .into_iter()
        .map(|(name, ty, value)| size_of_member(name, ty, value));
    OBJECT + sizes.sum::<u64>()
}

fn size_of_member(name: &str, ty: &Type, value: &Value) -> u64 {
    OBJECT + characters(name) + size_of(ty, value)
}

fn size_of_keys(ty: &Type, keys: &Set) -> u64 {
    let content: u64 = match keys {
        Set::Text(texts) => texts.iter().map(|each| characters(each)).sum(),
        Set::Bytes(all) => all.iter().map(|each| each.len() as u64).sum(),
        Set::Member(members) => {
            let Type::Enum(declared) = ty else { return 0 };
            let names = members.iter().filter_map(|each| declared.name(*each));
            names.map(|name| characters(name)).sum()
        }
        _ => 0,
    };
    OBJECT * keys.len() as u64 + content
}

/// Returns the size of a json value, which callers know as plain lists and dicts. Its depth is limited where it is read.
fn size_of_json(json: &Json) -> u64 {
    OBJECT
        + match json {
            Json::Null | Json::Boolean(_) | Json::Number(_) => 0,
            Json::Text(text) => characters(text),
            Json::Array(items) => items.iter().map(size_of_json).sum(),
            Json::Object(object) => {
                let members = object.entries().iter();
                members
                    .map(|(name, each)| OBJECT + characters(name) + size_of_json(each))
                    .sum()
            }
        }
}

fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}
