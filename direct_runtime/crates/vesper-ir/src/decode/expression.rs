//! Decoder of one expression of the table.

use crate::Rejected;
use crate::canonical::Reader;
use crate::intern::Types;
use crate::limits::{LISTED, NAME_BYTES};
use crate::node::{ExpressionIndex, For, ForKind, LocalNumber, RawExpression};

use super::{index, name, named_value, ty, value};

pub(super) fn expression(reader: &mut Reader<'_>, types: &mut Types) -> Result<RawExpression, Rejected> {
    reader.open_object()?;
    let key = reader.key()?;
    let found = match key.as_ref() {
        "input" => RawExpression::Input(name(reader)?),
        "constant" => RawExpression::Constant(name(reader)?),
        "step" => RawExpression::Step(name(reader)?),
        "output" => RawExpression::Output(name(reader)?),
        "error" => RawExpression::Error(name(reader)?),
        "now" => RawExpression::Now(ty(reader, types)?),
        "result" => RawExpression::Result(ty(reader, types)?),
        "local" => RawExpression::Local(local(reader)?),
        "and" => {
            let (left, right) = pair(reader)?;
            RawExpression::And(left, right)
        }
        "or" => {
            let (left, right) = pair(reader)?;
            RawExpression::Or(left, right)
        }
        kind => {
            let Some(read) = fields_of(kind) else {
                return Err(reader.refuse(format_args!(
                    "`{}` is not a kind of expression",
                    key.escape_debug()
                )));
            };
            reader.open_object()?;
            let found = read(reader, types)?;
            reader.close_object()?;
            found
        }
    };
    reader.close_object()?;
    Ok(found)
}

type ReadFields = fn(&mut Reader<'_>, &mut Types) -> Result<RawExpression, Rejected>;

/// Returns the reader of the fields of an expression kind, if it has fields.
fn fields_of(kind: &str) -> Option<ReadFields> {
    Some(match kind {
        "literal" => literal,
        "call" => call,
        "if" => |reader, _| choice(reader),
        "let" => |reader, _| binding(reader),
        "for" => |reader, _| comprehension(reader),
        "array" => |reader, types| {
            let items = reader.field("items", |reader| reader.list(LISTED, index))?;
            let of = reader.field("of", |reader| ty(reader, types))?;
            Ok(RawExpression::Array { items, of })
        },
        "record" => |reader, _| {
            let fields = reader.field("fields", |reader| reader.list(LISTED, named_value))?;
            Ok(RawExpression::Record { fields })
        },
        "field" => |reader, _| {
            let name = reader.field("name", name)?;
            let of = reader.field("of", index)?;
            Ok(RawExpression::Field { name, of })
        },
        "apply" => |reader, _| {
            let args = reader.field("args", |reader| reader.list(LISTED, index))?;
            let function = reader.field("function", name)?;
            Ok(RawExpression::Apply { function, args })
        },
        _ => return None,
    })
}

fn literal(reader: &mut Reader<'_>, types: &mut Types) -> Result<RawExpression, Rejected> {
    let ty = reader.field("type", |reader| ty(reader, types))?;
    let value = reader.field("value", value)?;
    Ok(RawExpression::Literal { ty, value })
}

fn call(reader: &mut Reader<'_>, types: &mut Types) -> Result<RawExpression, Rejected> {
    let args = reader.field("args", |reader| reader.list(LISTED, index))?;
    let of = reader.optional_field("of", |reader| reader.list(LISTED, |reader| ty(reader, types)))?;
    let op = reader
        .field("op", |reader| reader.string(NAME_BYTES))?
        .into_owned();
    Ok(RawExpression::Call { op, args, of })
}

fn choice(reader: &mut Reader<'_>) -> Result<RawExpression, Rejected> {
    let condition = reader.field("condition", index)?;
    let otherwise = reader.field("else", index)?;
    let then = reader.field("then", index)?;
    Ok(RawExpression::If {
        condition,
        then,
        otherwise,
    })
}

fn binding(reader: &mut Reader<'_>) -> Result<RawExpression, Rejected> {
    let body = reader.field("body", index)?;
    let local = reader.field("local", local)?;
    let value = reader.field("value", index)?;
    Ok(RawExpression::Let { local, value, body })
}

fn comprehension(reader: &mut Reader<'_>) -> Result<RawExpression, Rejected> {
    let key = reader.optional_field("key", index)?;
    let kind = reader.field("kind", |reader| {
        let name = reader.string(NAME_BYTES)?;
        ForKind::from_name(&name)
            .ok_or_else(|| reader.refuse(format_args!("`{}` is not a kind of `for`", name.escape_debug())))
    })?;
    let locals = reader.field("locals", |reader| reader.list(LISTED, local))?;
    let over = reader.field("over", index)?;
    let value = reader.field("value", index)?;
    let filter = reader.optional_field("where", index)?;
    let with = reader.optional_field("with", index)?;
    let parts = For {
        kind,
        over,
        with,
        filter,
        key,
        value,
    };
    Ok(RawExpression::For { locals, parts })
}

pub(super) fn local(reader: &mut Reader<'_>) -> Result<LocalNumber, Rejected> {
    let number = reader.integer()?;
    LocalNumber::try_from(number)
        .map_err(|_| reader.refuse(format_args!("{number} is not the number of a local")))
}

fn pair(reader: &mut Reader<'_>) -> Result<(ExpressionIndex, ExpressionIndex), Rejected> {
    let operands = reader.list(LISTED, index)?;
    match operands.as_slice() {
        [left, right] => Ok((*left, *right)),
        _ => Err(reader.refuse(format_args!(
            "`and` and `or` take two operands, not {}",
            operands.len()
        ))),
    }
}
