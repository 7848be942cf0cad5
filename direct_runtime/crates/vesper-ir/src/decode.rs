//! Bytes to [`Document`]: the shape of docs/spec/ir.md, its spelling and its limits. Meaning is for `verify`.
//!
//! Fields are asked for in canonical order, which is not the order in which the specification lists them.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::canonical::Reader;
use crate::limits::{CLAUSES, DOCUMENT_BYTES, EXPRESSIONS, LISTED, LITERAL_BYTES, NAME_BYTES};
use crate::node::{
    Document, ExpressionIndex, Output, RawConstant, RawConstraint, RawExpression, RawInput, RawValue,
    Semantics, Source, Span, Statement,
};
use crate::types::{EnumType, EnumTypeError, Type};
use crate::{IR_VERSION, Rejected};

/// Reads a document of the right shape.
pub fn decode(bytes: &[u8]) -> Result<Document, Rejected> {
    if bytes.len() > DOCUMENT_BYTES {
        return Err(Rejected(format!(
            "the document has {} bytes; the limit is {DOCUMENT_BYTES}",
            bytes.len()
        )));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Rejected(format!("byte {}: the document is not UTF-8", error.valid_up_to())))?;
    let mut reader = Reader::new(text);
    let mut types = Types::default();

    reader.open_object()?;
    let version = reader.field("ir_version", Reader::integer)?;
    if version != IR_VERSION {
        return Err(Rejected(format!(
            "the document has ir_version {version}; this engine reads {IR_VERSION}"
        )));
    }
    let semantics = reader.field("semantics", |reader| semantics(reader, &mut types))?;
    // The document is canonical, so what the hash is over is spelled in it: everything so far, and a closing brace.
    let hashed = bytes.get(..reader.position()).unwrap_or(bytes);
    let semantic_hash = hexadecimal(
        Sha256::new()
            .chain_update(hashed)
            .chain_update(b"}")
            .finalize()
            .as_ref(),
    );
    let source = reader.field("source", source)?;
    reader.close_object()?;
    reader.end()?;
    Ok(Document {
        semantics,
        source,
        semantic_hash,
    })
}

/// Reads the JSON of one type, such as `"integer"` or `{"enum":["a","b"]}`.
pub fn decode_type(json: &str) -> Result<Type, Rejected> {
    let mut reader = Reader::new(json);
    let found = Types::default().read(&mut reader)?;
    reader.end()?;
    Ok(found)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn semantics(reader: &mut Reader<'_>, types: &mut Types) -> Result<Semantics, Rejected> {
    reader.open_object()?;
    let body = reader.field("body", |reader| reader.list(LISTED, statement))?;
    let constants = reader.field("constants", |reader| {
        reader.list(LISTED, |reader| constant(reader, types))
    })?;
    let constraints = reader.field("constraints", |reader| reader.list(LISTED, constraint))?;
    let expressions = reader.field("expressions", |reader| {
        reader.list(EXPRESSIONS, |reader| expression(reader, types))
    })?;
    let inputs = reader.field("inputs", |reader| {
        reader.list(LISTED, |reader| input(reader, types))
    })?;
    let node_id = reader.field("node_id", name)?;
    let outputs = reader.field("outputs", |reader| {
        reader.open_object()?;
        let success = reader.field("success", |reader| {
            reader.list(LISTED, |reader| output(reader, types))
        })?;
        reader.close_object()?;
        Ok(success)
    })?;
    let postconditions = reader.field("postconditions", |reader| reader.list(LISTED, clause))?;
    let preconditions = reader.field("preconditions", |reader| reader.list(LISTED, clause))?;
    reader.field("type", |reader| match reader.string(NAME_BYTES)?.as_ref() {
        "function" => Ok(()),
        other => Err(reader.refuse(format_args!("the type of a node is `function`, not `{other}`"))),
    })?;
    reader.close_object()?;
    Ok(Semantics {
        body,
        constants,
        constraints,
        expressions,
        inputs,
        node_id,
        outputs,
        postconditions,
        preconditions,
    })
}

/// `[a-z_][a-z0-9_]*`
fn is_name(text: &str) -> bool {
    let is_start = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    text.bytes().next().is_some_and(is_start)
        && text.bytes().all(|byte| is_start(byte) || byte.is_ascii_digit())
}

fn name(reader: &mut Reader<'_>) -> Result<Arc<str>, Rejected> {
    let text = reader.string(NAME_BYTES)?;
    if is_name(&text) {
        return Ok(Arc::from(text));
    }
    Err(reader.refuse(format_args!("`{}` is not a name", text.escape_debug())))
}

fn index(reader: &mut Reader<'_>) -> Result<ExpressionIndex, Rejected> {
    let value = reader.integer()?;
    match u32::try_from(value) {
        Ok(index) if usize::try_from(index).is_ok_and(|index| index < EXPRESSIONS) => Ok(index),
        _ => Err(reader.refuse(format_args!("{value} is not the index of an expression"))),
    }
}

/// Types, with equal enums shared: comparing them later is mostly a comparison of addresses.
#[derive(Default)]
struct Types {
    enums: HashSet<Arc<EnumType>>,
}

impl Types {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<Type, Rejected> {
        if reader.peek() != Some(b'{') {
            return self.plain(reader);
        }
        reader.open_object()?;
        let key = reader.key()?;
        let found = match key.as_ref() {
            "enum" => self.members(reader)?,
            // Not `read` again: a set holds no sets, and nesting must not cost stack.
            "set" if reader.peek() == Some(b'{') => {
                reader.open_object()?;
                let members = reader.field("enum", |reader| self.members(reader))?;
                reader.close_object()?;
                Type::Set(Arc::new(members))
            }
            "set" => match self.plain(reader)? {
                Type::Decimal => return Err(reader.refuse("a set holds string, integer, boolean or an enum")),
                of => Type::Set(Arc::new(of)),
            },
            _ => return Err(reader.refuse(format_args!("`{key}` is not a kind of type"))),
        };
        reader.close_object()?;
        Ok(found)
    }

    #[expect(clippy::unused_self, reason = "reads like its siblings")]
    fn plain(&self, reader: &mut Reader<'_>) -> Result<Type, Rejected> {
        match reader.string(NAME_BYTES)?.as_ref() {
            "boolean" => Ok(Type::Boolean),
            "integer" => Ok(Type::Integer),
            "decimal" => Ok(Type::Decimal),
            "string" => Ok(Type::Text),
            other => Err(reader.refuse(format_args!("`{}` is not a type", other.escape_debug()))),
        }
    }

    fn members(&mut self, reader: &mut Reader<'_>) -> Result<Type, Rejected> {
        let members = reader.list(LISTED, |reader| match reader.string(NAME_BYTES)? {
            member if member.is_empty() => Err(reader.refuse("a member of an enum is empty")),
            member => Ok(Arc::from(member)),
        })?;
        let of = EnumType::new(members).map_err(|error| match error {
            EnumTypeError::NoMembers => reader.refuse("an enum has no members"),
            EnumTypeError::Repeated(member) => reader.refuse(format_args!(
                "an enum has the member `{}` twice",
                member.escape_debug()
            )),
        })?;
        if let Some(known) = self.enums.get(&of) {
            return Ok(Type::Enum(Arc::clone(known)));
        }
        let of = Arc::new(of);
        self.enums.insert(Arc::clone(&of));
        Ok(Type::Enum(of))
    }
}

fn value(reader: &mut Reader<'_>) -> Result<RawValue, Rejected> {
    if reader.peek() == Some(b'[') {
        return Ok(RawValue::List(reader.list(LISTED, scalar)?));
    }
    scalar(reader)
}

fn scalar(reader: &mut Reader<'_>) -> Result<RawValue, Rejected> {
    match reader.peek() {
        Some(b'"') => Ok(RawValue::Text(Arc::from(reader.string(LITERAL_BYTES)?))),
        Some(b't' | b'f') => reader.boolean().map(RawValue::Boolean),
        _ => reader.integer().map(RawValue::Integer),
    }
}

fn input(reader: &mut Reader<'_>, types: &mut Types) -> Result<RawInput, Rejected> {
    reader.open_object()?;
    let default = reader.optional_field("default", value)?;
    let name = reader.field("name", name)?;
    let ty = reader.field("type", |reader| types.read(reader))?;
    reader.close_object()?;
    Ok(RawInput { default, name, ty })
}

fn output(reader: &mut Reader<'_>, types: &mut Types) -> Result<Output, Rejected> {
    reader.open_object()?;
    let name = reader.field("name", name)?;
    let ty = reader.field("type", |reader| types.read(reader))?;
    reader.close_object()?;
    Ok(Output { name, ty })
}

fn constant(reader: &mut Reader<'_>, types: &mut Types) -> Result<RawConstant, Rejected> {
    reader.open_object()?;
    let name = reader.field("name", name)?;
    let ty = reader.field("type", |reader| types.read(reader))?;
    let value = reader.field("value", value)?;
    reader.close_object()?;
    Ok(RawConstant { name, ty, value })
}

fn constraint(reader: &mut Reader<'_>) -> Result<RawConstraint, Rejected> {
    reader.open_object()?;
    let holds = reader.field("holds", index)?;
    let input = reader.field("input", name)?;
    reader.close_object()?;
    Ok(RawConstraint { holds, input })
}

fn clause(reader: &mut Reader<'_>) -> Result<ExpressionIndex, Rejected> {
    reader.open_object()?;
    let holds = reader.field("holds", index)?;
    reader.close_object()?;
    Ok(holds)
}

fn statement(reader: &mut Reader<'_>) -> Result<Statement, Rejected> {
    reader.open_object()?;
    let key = reader.key()?;
    let found = match key.as_ref() {
        "step" => {
            let (name, value) = named_value(reader)?;
            Statement::Step { name, value }
        }
        "return" => {
            reader.open_object()?;
            let success = reader.field("success", |reader| reader.list(LISTED, named_value))?;
            reader.close_object()?;
            Statement::Return { success }
        }
        _ => return Err(reader.refuse(format_args!("`{key}` is not a kind of statement"))),
    };
    reader.close_object()?;
    Ok(found)
}

fn named_value(reader: &mut Reader<'_>) -> Result<(Arc<str>, ExpressionIndex), Rejected> {
    reader.open_object()?;
    let name = reader.field("name", name)?;
    let value = reader.field("value", index)?;
    reader.close_object()?;
    Ok((name, value))
}

fn expression(reader: &mut Reader<'_>, types: &mut Types) -> Result<RawExpression, Rejected> {
    reader.open_object()?;
    let key = reader.key()?;
    let found = match key.as_ref() {
        "literal" => {
            reader.open_object()?;
            let ty = reader.field("type", |reader| types.read(reader))?;
            let value = reader.field("value", value)?;
            reader.close_object()?;
            RawExpression::Literal { ty, value }
        }
        "input" => RawExpression::Input(name(reader)?),
        "constant" => RawExpression::Constant(name(reader)?),
        "step" => RawExpression::Step(name(reader)?),
        "output" => RawExpression::Output(name(reader)?),
        "call" => {
            reader.open_object()?;
            let args = reader.field("args", |reader| reader.list(LISTED, index))?;
            let of =
                reader.optional_field("of", |reader| reader.list(LISTED, |reader| types.read(reader)))?;
            let op = reader
                .field("op", |reader| reader.string(NAME_BYTES))?
                .into_owned();
            reader.close_object()?;
            RawExpression::Call { op, args, of }
        }
        "if" => {
            reader.open_object()?;
            let condition = reader.field("condition", index)?;
            let otherwise = reader.field("else", index)?;
            let then = reader.field("then", index)?;
            reader.close_object()?;
            RawExpression::If {
                condition,
                then,
                otherwise,
            }
        }
        "and" => {
            let (left, right) = pair(reader)?;
            RawExpression::And(left, right)
        }
        "or" => {
            let (left, right) = pair(reader)?;
            RawExpression::Or(left, right)
        }
        _ => return Err(reader.refuse(format_args!("`{key}` is not a kind of expression"))),
    };
    reader.close_object()?;
    Ok(found)
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

fn source(reader: &mut Reader<'_>) -> Result<Source, Rejected> {
    reader.open_object()?;
    let clauses = reader.field("clauses", |reader| {
        reader.map(CLAUSES, |reader, key| {
            if !key.parse::<u32>().is_ok_and(|index| index.to_string() == key) {
                return Err(reader.refuse(format_args!(
                    "`{}` is not the index of a clause",
                    key.escape_debug()
                )));
            }
            prose(reader)
        })
    })?;
    let intent = reader.field("intent", prose)?;
    let path = reader.field("path", prose)?;
    let sha256 = reader.field("sha256", |reader| {
        let text = reader.string(NAME_BYTES)?;
        if text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Ok(text.into_owned());
        }
        Err(reader.refuse("the source hash is not 64 lower-case hexadecimal digits"))
    })?;
    let spans = reader.field("spans", |reader| reader.list(EXPRESSIONS, span))?;
    let steps = reader.field("steps", |reader| {
        reader.map(LISTED, |reader, key| {
            if !is_name(key) {
                return Err(reader.refuse(format_args!("`{}` is not a name", key.escape_debug())));
            }
            span(reader)
        })
    })?;
    reader.close_object()?;
    Ok(Source {
        clauses,
        intent,
        path,
        sha256,
        spans,
        steps,
    })
}

/// Text for people; the size of the document is its only limit.
fn prose(reader: &mut Reader<'_>) -> Result<String, Rejected> {
    Ok(reader.string(DOCUMENT_BYTES)?.into_owned())
}

fn span(reader: &mut Reader<'_>) -> Result<Span, Rejected> {
    let numbers = reader.list(4, |reader| match reader.integer()? {
        number if number >= 1 => u32::try_from(number).map_err(|_| reader.refuse("a span ends too far away")),
        number => Err(reader.refuse(format_args!("{number} in a span; lines and columns count from 1"))),
    })?;
    numbers
        .try_into()
        .map_err(|_| reader.refuse("a span has four numbers"))
}
