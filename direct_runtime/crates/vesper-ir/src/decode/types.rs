//! Decoder of types and of values before they are typed.

use std::sync::Arc;

use crate::Rejected;
use crate::canonical::Reader;
use crate::intern::Types;
use crate::limits::{LISTED, LITERAL_BYTES, NAME_BYTES, TYPE_DEPTH, VALUE_DEPTH};
use crate::node::RawValue;
use crate::types::{Field, Type};

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
    let key = reader.key()?;
    let found = match key.as_ref() {
        "enum" => {
            let members = reader.list(LISTED, |reader| match reader.string(NAME_BYTES)? {
                member if member.is_empty() => Err(reader.refuse("a member of an enum is empty")),
                member => Ok(Arc::from(member)),
            })?;
            types.enumeration(members)
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
                let name = reader.field("name", name)?;
                let ty = reader.field("type", |reader| nested_type(reader, types, below))?;
                reader.close_object()?;
                Ok(Field { name, ty })
            })?;
            types.record(fields)
        }
        _ => return Err(reader.refuse(format_args!("`{}` is not a kind of type", key.escape_debug()))),
    };
    let found = found.map_err(|what| reader.refuse(what))?;
    reader.close_object()?;
    Ok(found)
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
