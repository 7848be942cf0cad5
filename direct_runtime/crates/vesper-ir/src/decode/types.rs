//! Decoder of types and of values before they are typed.

use std::sync::Arc;

use crate::Rejected;
use crate::canonical::Reader;
use crate::intern::Types;
use crate::limits::{LISTED, LITERAL_BYTES, NAME_BYTES, TYPE_DEPTH, VALUE_DEPTH};
use crate::node::RawValue;
use crate::types::{Declared, Field, Outside, Type, is_outside_name};

use super::name;

/// Reads a type. Excess nesting is rejected before it costs stack.
pub(super) fn ty(reader: &mut Reader<'_>, types: &mut Types) -> Result<Type, Rejected> {
    nested_type(reader, types, TYPE_DEPTH)
}

/// Reads a type of at most this depth.
fn nested_type(reader: &mut Reader<'_>, types: &mut Types, depth: u8) -> Result<Type, Rejected> {
    let Some(below) = depth.checked_sub(1) else {
        return Err(reader.refuse(format_args!("a type nests more than {TYPE_DEPTH} deep")));
    };
    if reader.peek() != Some(b'{') {
        return plain_type(reader);
    }
    reader.open_object()?;
    // Only an enum has it, and it comes first.
    if let Some(texts) = reader.optional_field("as", member_texts)? {
        let members = reader.field("enum", members)?;
        let texts = texts_of_members(&members, texts).map_err(|what| reader.refuse(what))?;
        let found = types
            .enumeration(members, Some(texts))
            .map_err(|what| reader.refuse(what))?;
        reader.close_object()?;
        return Ok(found);
    }
    let key = reader.key()?;
    let found = match key.as_ref() {
        "enum" => {
            let members = members(reader)?;
            types.enumeration(members, None)
        }
        "set" => {
            let of = nested_type(reader, types, below)?;
            types.set(&of)
        }
        "array" => {
            let of = nested_type(reader, types, below)?;
            types.array(&of)
        }
        "optional" => {
            let of = nested_type(reader, types, below)?;
            types.optional(&of)
        }
        "map" => {
            let parts = reader.list(LISTED, |reader| nested_type(reader, types, below))?;
            let [key, value] = parts.as_slice() else {
                return Err(reader.refuse(format_args!(
                    "a map has the types of its keys and its values, not {} types",
                    parts.len()
                )));
            };
            types.map(key, value)
        }
        "record" => {
            let fields = reader.list(LISTED, |reader| {
                reader.open_object()?;
                let keys = OutsideKeys::read(reader)?;
                let name = reader.field("name", name)?;
                let ty = reader.field("type", |reader| nested_type(reader, types, below))?;
                reader.close_object()?;
                Ok((Field { name, ty }, keys))
            })?;
            let rest = reader.optional_field("rest", name)?;
            let declared = fields
                .iter()
                .map(|(field, keys)| keys.declare(&field.name, &field.ty));
            let outside = outside_of("field", &declared.collect::<Vec<_>>(), rest.as_deref())
                .map_err(|what| reader.refuse(what))?;
            types.record_outside(fields.into_iter().map(|(field, _)| field).collect(), outside)
        }
        _ => return Err(reader.refuse(format_args!("`{}` is not a kind of type", key.escape_debug()))),
    };
    let found = found.map_err(|what| reader.refuse(what))?;
    reader.close_object()?;
    Ok(found)
}

fn members(reader: &mut Reader<'_>) -> Result<Vec<Arc<str>>, Rejected> {
    reader.list(LISTED, |reader| match reader.string(NAME_BYTES)? {
        member if member.is_empty() => Err(reader.refuse("a member of an enum is empty")),
        member => Ok(Arc::from(member)),
    })
}

/// Reads the outside texts of members by their names.
fn member_texts(reader: &mut Reader<'_>) -> Result<Vec<(String, Arc<str>)>, Rejected> {
    let texts = reader.map(LISTED, |reader, _| outside_name(reader))?;
    if texts.is_empty() {
        return Err(reader.refuse("`as` of an enum is empty"));
    }
    Ok(texts)
}

/// Returns the outside text of each member.
fn texts_of_members(members: &[Arc<str>], texts: Vec<(String, Arc<str>)>) -> Result<Vec<Arc<str>>, String> {
    let mut found = members.to_vec();
    for (name, text) in texts {
        let place = members.iter().position(|member| **member == *name);
        match place.and_then(|place| found.get_mut(place)) {
            Some(place) if **place != *text => *place = text,
            Some(_) => {
                return Err(format!(
                    "the member `{}` is named itself outside",
                    name.escape_debug()
                ));
            }
            None => {
                return Err(format!(
                    "`as` names `{}`, which is no member",
                    name.escape_debug()
                ));
            }
        }
    }
    Ok(found)
}

fn outside_name(reader: &mut Reader<'_>) -> Result<Arc<str>, Rejected> {
    let text = reader.string(4 * NAME_BYTES)?;
    if is_outside_name(&text) {
        return Ok(Arc::from(text));
    }
    Err(reader.refuse(format_args!("`{}` is not an outside name", text.escape_debug())))
}

/// Outside name and flag of a field, an input or an output.
#[derive(Debug, Default)]
pub(super) struct OutsideKeys {
    outside: Option<Arc<str>>,
    flag: Option<Arc<str>>,
}

impl OutsideKeys {
    /// Reads them at the start of an object, where they come first.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Rejected> {
        let flag = reader.optional_field("absent", name)?;
        let outside = reader.optional_field("as", outside_name)?;
        Ok(Self { outside, flag })
    }

    pub(super) fn declare<'a>(&'a self, name: &'a Arc<str>, ty: &'a Type) -> Declared<'a> {
        let (outside, flag) = (self.outside.as_ref(), self.flag.as_ref());
        Declared {
            name,
            ty,
            outside,
            flag,
        }
    }
}

/// Returns the outside names of these fields, or `None` where none is declared.
pub(super) fn outside_of(
    what: &str,
    fields: &[Declared<'_>],
    rest: Option<&str>,
) -> Result<Option<Outside>, String> {
    let itself = fields.iter().find(|field| field.outside == Some(field.name));
    if let Some(field) = itself {
        return Err(format!("{what} `{}` is named itself outside", field.name));
    }
    let is_declared = |field: &Declared<'_>| field.outside.is_some() || field.flag.is_some();
    if rest.is_none() && !fields.iter().any(is_declared) {
        return Ok(None);
    }
    Outside::new(what, fields, rest).map(Some)
}

fn plain_type(reader: &mut Reader<'_>) -> Result<Type, Rejected> {
    match reader.string(NAME_BYTES)?.as_ref() {
        "boolean" => Ok(Type::Boolean),
        "integer" => Ok(Type::Integer),
        "decimal" => Ok(Type::Decimal),
        "float" => Ok(Type::Float),
        "string" => Ok(Type::Text),
        "bytes" => Ok(Type::Bytes),
        "timestamp" => Ok(Type::Timestamp),
        "date" => Ok(Type::Date),
        "duration" => Ok(Type::Duration),
        "time_of_day" => Ok(Type::TimeOfDay),
        "period" => Ok(Type::Period),
        "json" => Ok(Type::Json),
        other => Err(reader.refuse(format_args!("`{}` is not a type", other.escape_debug()))),
    }
}

/// Reads a value, whose type may come later. Excess nesting is rejected before it costs stack.
pub(super) fn value(reader: &mut Reader<'_>) -> Result<RawValue, Rejected> {
    nested_value(reader, VALUE_DEPTH)
}

fn nested_value(reader: &mut Reader<'_>, depth: u8) -> Result<RawValue, Rejected> {
    let below = || {
        let deeper = depth.checked_sub(1);
        deeper.ok_or_else(|| reader.refuse(format_args!("a value nests more than {VALUE_DEPTH} deep")))
    };
    match reader.peek() {
        Some(b'[') => {
            let below = below()?;
            reader
                .list(LISTED, |reader| nested_value(reader, below))
                .map(RawValue::List)
        }
        Some(b'{') => {
            let below = below()?;
            reader
                .map(LISTED, |reader, _| nested_value(reader, below))
                .map(RawValue::Object)
        }
        Some(b'"') => Ok(RawValue::Text(Arc::from(reader.string(LITERAL_BYTES)?))),
        Some(b't' | b'f') => reader.boolean().map(RawValue::Boolean),
        Some(b'n') => reader.null().map(|()| RawValue::Null),
        _ => reader.integer().map(RawValue::Integer),
    }
}
