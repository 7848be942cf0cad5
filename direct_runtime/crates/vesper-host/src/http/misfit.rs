//! The place at which an answer does not fit the declared type, for a message.

use std::fmt::Write as _;

use vesper_interp::inputs::{Given, ProblemKind, convert};
use vesper_ir::json::quote;
use vesper_ir::limits::ITEMS;
use vesper_ir::types::Field;
use vesper_ir::{Json, JsonKernels as _, MapType, OwnedKey, RecordType, RoundingMode, Type, Value};
use vesper_kernels::Native;

/// Characters of a type in a message.
const MAX_TYPE: usize = 80;

/// The innermost place that does not fit.
pub(super) struct Misfit {
    pub(super) path: String,
    /// Text of the type that the place should have.
    pub(super) expected: String,
    pub(super) kind: ProblemKind,
}

/// Converts JSON to a value of the declared type.
pub(super) fn cast(ty: &Type, json: &Json) -> Option<Value> {
    Native.json_cast(json, ty).ok()
}

/// Returns the place at which JSON does not fit a type.
pub(super) fn find(ty: &Type, json: &Json) -> Misfit {
    innermost(ty, json, "body".to_owned())
}

fn innermost(ty: &Type, json: &Json, path: String) -> Misfit {
    let within = match (ty, json) {
        (Type::Optional(of), json) if !matches!(json, Json::Null) => {
            cast(of, json).is_none().then(|| (&**of, json, path.clone()))
        }
        (Type::Array(of), Json::Array(items)) => items
            .iter()
            .enumerate()
            .find(|(_, item)| cast(of, item).is_none())
            .map(|(index, item)| (&**of, item, format!("{path}[{index}]"))),
        (Type::Map(of), Json::Object(object)) if has_names(of) => object
            .entries()
            .iter()
            .find(|(_, item)| cast(&of.value, item).is_none())
            .map(|(name, item)| {
                let mut inner = format!("{path}[");
                quote(name, &mut inner);
                inner.push(']');
                (&of.value, item, inner)
            }),
        (Type::Record(of), Json::Object(object)) => keyed_fields(of).find_map(|(key, field)| {
            let item = object.get(key)?;
            let path = || format!("{path}.{key}");
            cast(&field.ty, item).is_none().then(|| (&field.ty, item, path()))
        }),
        _ => None,
    };
    if let Some((ty, json, path)) = within {
        return innermost(ty, json, path);
    }
    if let (Type::Record(of), Json::Object(object)) = (ty, json) {
        let is_missing =
            |name: &str, ty: &Type| object.get(name).is_none() && !matches!(ty, Type::Optional(_));
        if let Some((key, field)) = keyed_fields(of).find(|(key, field)| is_missing(key, &field.ty)) {
            return Misfit {
                path: format!("{path}.{key}"),
                expected: type_text(&field.ty),
                kind: ProblemKind::Missing,
            };
        }
    }
    Misfit {
        path,
        expected: type_text(ty),
        kind: problem(ty, json),
    }
}

fn has_names(of: &MapType) -> bool {
    matches!(of.key, Type::Text | Type::Enum(_))
}

/// Returns the problem of a value whose parts fit.
fn problem(ty: &Type, json: &Json) -> ProblemKind {
    match (ty, json) {
        (Type::Array(_) | Type::Set(_), Json::Array(items)) if items.len() > ITEMS => ProblemKind::OutOfRange,
        (Type::Set(of), Json::Array(items)) => {
            let problem = items.iter().find_map(|item| key(of, item).err());
            problem.unwrap_or(ProblemKind::Duplicate)
        }
        (Type::Map(of), Json::Object(object)) if has_names(of) => {
            let mut names = object.entries().iter();
            let problem = names.find_map(|(name, _)| convert(&of.key, Given::Text(name)).err());
            problem.unwrap_or(ProblemKind::Duplicate)
        }
        (Type::Map(of), Json::Array(pairs)) if !has_names(of) => pairs_problem(of, pairs),
        (
            Type::Array(_) | Type::Set(_) | Type::Map(_) | Type::Record(_) | Type::Optional(_) | Type::Json,
            _,
        ) => ProblemKind::WrongType,
        (ty, json) => scalar(ty, json).err().unwrap_or(ProblemKind::Malformed),
    }
}

fn pairs_problem(of: &MapType, pairs: &[Json]) -> ProblemKind {
    if pairs.len() > ITEMS {
        return ProblemKind::OutOfRange;
    }
    let mut keys = Vec::new();
    let mut values = Vec::new();
    for pair in pairs {
        let Json::Array(pair) = pair else {
            return ProblemKind::WrongType;
        };
        let [name, value] = pair.as_ref() else {
            return ProblemKind::WrongType;
        };
        match key(&of.key, name) {
            Ok(key) => keys.push(key),
            Err(kind) => return kind,
        }
        values.push(value);
    }
    keys.sort_unstable();
    if !keys.is_sorted_by(|left, right| left < right) {
        return ProblemKind::Duplicate;
    }
    let broken = values.into_iter().find(|value| cast(&of.value, value).is_none());
    broken.map_or(ProblemKind::Malformed, |value| {
        innermost(&of.value, value, String::new()).kind
    })
}

fn key(ty: &Type, json: &Json) -> Result<OwnedKey, ProblemKind> {
    scalar(ty, json)?.to_key().ok_or(ProblemKind::WrongType)
}

fn scalar(ty: &Type, json: &Json) -> Result<Value, ProblemKind> {
    match (ty, json) {
        (Type::Integer, Json::Number(number)) if number.is_whole() => number
            .to_whole(RoundingMode::Down)
            .map(Value::Integer)
            .ok_or(ProblemKind::OutOfRange),
        (Type::Decimal, Json::Number(number)) => Ok(Value::Decimal(number.clone())),
        (Type::Float, Json::Number(number)) => Some(number.to_float())
            .filter(|value| value.is_finite())
            .map(Value::Float)
            .ok_or(ProblemKind::OutOfRange),
        (ty, Json::Boolean(value)) => convert(ty, Given::Boolean(*value)),
        (ty, Json::Text(text)) => convert(ty, Given::Text(text)),
        _ => Err(ProblemKind::WrongType),
    }
}

/// Returns the beginning of a type's text, as nodes have it.
pub(super) fn type_text(ty: &Type) -> String {
    let mut out = String::new();
    write_type(ty, &mut out);
    if out.chars().count() <= MAX_TYPE {
        return out;
    }
    let kept: String = out.chars().take(MAX_TYPE - 1).collect();
    format!("{kept}…")
}

/// Iterates over the fields that have a key in JSON, with that key.
fn keyed_fields(of: &RecordType) -> impl Iterator<Item = (&str, &Field)> {
    let is_shown = |place: usize| !of.outside().is_some_and(|outside| outside.is_hidden(place));
    let fields = of.fields().iter().enumerate();
    fields
        .filter(move |(place, _)| is_shown(*place))
        .map(|(place, field)| (of.key(place), field))
}

/// Writes a type, at most until it is too long: a type with shared parts may have a text that exceeds memory.
fn write_type(ty: &Type, out: &mut String) {
    if out.len() > 4 * MAX_TYPE {
        return;
    }
    let wrapped = |name: &str, of: &Type, out: &mut String| {
        out.push_str(name);
        out.push('<');
        write_type(of, out);
        out.push('>');
    };
    match ty {
        Type::Enum(of) => {
            out.push_str("enum[");
            for (place, member) in of.texts().iter().take(MAX_TYPE).enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                out.push_str(member);
            }
            out.push(']');
        }
        Type::Set(of) => wrapped("set", of, out),
        Type::Array(of) => wrapped("array", of, out),
        Type::Optional(of) => wrapped("optional", of, out),
        Type::Map(of) => {
            out.push_str("map<");
            write_type(&of.key, out);
            out.push_str(", ");
            write_type(&of.value, out);
            out.push('>');
        }
        Type::Record(of) => {
            out.push('{');
            for (place, (key, field)) in keyed_fields(of).take(MAX_TYPE).enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                let _ = write!(out, "{key}: ");
                write_type(&field.ty, out);
            }
            out.push('}');
        }
        // Types without parts have a short text.
        ty => drop(write!(out, "{ty}")),
    }
}
