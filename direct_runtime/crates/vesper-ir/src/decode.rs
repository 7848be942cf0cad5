//! Decoder from bytes to [`Document`]: the shape, spelling and limits of docs/spec/ir.md. `verify` checks the meaning.
//!
//! Fields are read in canonical order, which differs from the order in the specification.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::canonical::Reader;
use crate::intern::Types;
use crate::limits::{CLAUSES, DOCUMENT_BYTES, EXPRESSIONS, LISTED, NAME_BYTES, RECURSION_DEPTH, TABLE_BYTES};
use crate::node::{
    Document, ExpressionIndex, Output, RawConstant, RawConstraint, RawFunction, RawInput, Semantics, Source,
    Span,
};
use crate::types::{Outside, Type};
use crate::{IR_VERSION, Rejected};

mod budget;
mod expression;
mod flow;
mod header;
mod tables;
mod taint;
mod types;

use expression::expression;
use types::{OutsideKeys, outside_of, ty, value};

/// Decodes a document and checks its shape.
pub fn decode(bytes: &[u8]) -> Result<Document, Rejected> {
    if bytes.len() > DOCUMENT_BYTES + TABLE_BYTES {
        return Err(too_long(bytes.len()));
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
    // The document is canonical, so the hash covers a prefix of its bytes and a closing brace.
    let hashed = bytes.get(..reader.position()).unwrap_or(bytes);
    let semantic_hash = hexadecimal(
        Sha256::new()
            .chain_update(hashed)
            .chain_update(b"}")
            .finalize()
            .as_ref(),
    );
    let source = reader.field("source", source)?;
    let before = reader.position();
    if before > DOCUMENT_BYTES {
        return Err(too_long(before));
    }
    let tables = reader.optional_field("tables", |reader| tables::tables(reader, &mut types, bytes))?;
    let in_tables = reader.position() - before;
    if in_tables > TABLE_BYTES {
        return Err(Rejected(format!(
            "the tables of the document have {in_tables} bytes; the limit is {TABLE_BYTES}"
        )));
    }
    let flags = reader.optional_field("taint", taint::taint)?;
    reader.close_object()?;
    reader.end()?;
    if bytes.len() - in_tables > DOCUMENT_BYTES {
        return Err(too_long(bytes.len() - in_tables));
    }
    Ok(Document {
        tables: tables.unwrap_or_default(),
        semantics,
        source,
        flags,
        types,
        semantic_hash,
    })
}

fn too_long(bytes: usize) -> Rejected {
    Rejected(format!(
        "the document has {bytes} bytes; the limit is {DOCUMENT_BYTES}"
    ))
}

/// Decodes the JSON of one type, such as `"integer"` or `{"enum":["a","b"]}`.
pub fn decode_type(json: &str) -> Result<Type, Rejected> {
    let mut reader = Reader::new(json);
    let found = ty(&mut reader, &mut Types::default())?;
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
    reader.field("audit", header::audit)?;
    // A function in IR form, which only the Host evaluates.
    reader.optional_field("audit_fields", prose)?;
    let body = reader.field("body", flow::body)?;
    let calls = reader.field("calls", |reader| {
        reader.list(LISTED, |reader| header::called_node(reader, types))
    })?;
    reader.field("capabilities", header::capabilities)?;
    let constants = reader.field("constants", |reader| {
        reader.list(LISTED, |reader| constant(reader, types))
    })?;
    let constraints = reader.field("constraints", |reader| reader.list(LISTED, constraint))?;
    let declassified = reader
        .optional_field("declassified", taint::declassified)?
        .unwrap_or_default();
    let expressions = reader.field("expressions", |reader| {
        reader.list(EXPRESSIONS, |reader| expression(reader, types))
    })?;
    let functions = reader.optional_field("functions", |reader| {
        reader.list(LISTED, |reader| function(reader, types))
    })?;
    if functions.as_ref().is_some_and(Vec::is_empty) {
        return Err(reader.refuse("`functions` is empty; a node without functions has none"));
    }
    let functions = functions.unwrap_or_default();
    let inputs = reader.field("inputs", |reader| {
        reader.list(LISTED, |reader| input(reader, types))
    })?;
    let declared = inputs
        .iter()
        .map(|(input, keys)| keys.declare(&input.name, &input.ty));
    let outside_inputs =
        outside_of("input", &declared.collect::<Vec<_>>(), None).map_err(|what| reader.refuse(what))?;
    let inputs = inputs.into_iter().map(|(input, _)| input).collect();
    let invariants = reader.field("invariants", |reader| reader.list(LISTED, clause))?;
    let machines = reader.field("machines", |reader| reader.list(LISTED, header::machine))?;
    let node_id = reader.field("node_id", name)?;
    let ((errors, outside_errors), (outputs, outside_outputs)) = reader.field("outputs", |reader| {
        reader.open_object()?;
        let error = reader.field("error", |reader| declared_outputs(reader, types, "error field"))?;
        let success = reader.field("success", |reader| declared_outputs(reader, types, "output"))?;
        reader.close_object()?;
        Ok((error, success))
    })?;
    reader.field("policy", header::node_policy)?;
    let postconditions = reader.field("postconditions", |reader| reader.list(LISTED, clause))?;
    let preconditions = reader.field("preconditions", |reader| reader.list(LISTED, clause))?;
    reader.field("sensitive", |reader| reader.list(LISTED, name))?;
    reader.field("type", header::node_type)?;
    reader.close_object()?;
    Ok(Semantics {
        body,
        calls,
        constants,
        constraints,
        declassified,
        errors,
        expressions,
        functions,
        inputs,
        invariants,
        machines,
        node_id,
        outputs,
        outside_errors,
        outside_inputs,
        outside_outputs,
        postconditions,
        preconditions,
    })
}

/// Returns true for `[a-z_][a-z0-9_]*`.
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

fn input(reader: &mut Reader<'_>, types: &mut Types) -> Result<(RawInput, OutsideKeys), Rejected> {
    reader.open_object()?;
    let keys = OutsideKeys::read(reader)?;
    let default = reader.optional_field("default", value)?;
    let name = reader.field("name", name)?;
    let ty = reader.field("type", |reader| ty(reader, types))?;
    reader.close_object()?;
    Ok((RawInput { default, name, ty }, keys))
}

/// Reads the outputs or error fields of the node with their outside names.
fn declared_outputs(
    reader: &mut Reader<'_>,
    types: &mut Types,
    what: &str,
) -> Result<(Vec<Output>, Option<Outside>), Rejected> {
    let outputs = reader.list(LISTED, |reader| {
        reader.open_object()?;
        let keys = OutsideKeys::read(reader)?;
        let name = reader.field("name", name)?;
        let ty = reader.field("type", |reader| ty(reader, types))?;
        reader.close_object()?;
        Ok((Output { name, ty }, keys))
    })?;
    let declared = outputs
        .iter()
        .map(|(output, keys)| keys.declare(&output.name, &output.ty));
    let outside =
        outside_of(what, &declared.collect::<Vec<_>>(), None).map_err(|what| reader.refuse(what))?;
    Ok((outputs.into_iter().map(|(output, _)| output).collect(), outside))
}

fn output(reader: &mut Reader<'_>, types: &mut Types) -> Result<Output, Rejected> {
    reader.open_object()?;
    let name = reader.field("name", name)?;
    let ty = reader.field("type", |reader| ty(reader, types))?;
    reader.close_object()?;
    Ok(Output { name, ty })
}

fn output_list(reader: &mut Reader<'_>, types: &mut Types) -> Result<Vec<Output>, Rejected> {
    reader.list(LISTED, |reader| output(reader, types))
}

fn constant(reader: &mut Reader<'_>, types: &mut Types) -> Result<RawConstant, Rejected> {
    reader.open_object()?;
    let name = reader.field("name", name)?;
    let ty = reader.field("type", |reader| ty(reader, types))?;
    let value = reader.field("value", value)?;
    reader.close_object()?;
    Ok(RawConstant { name, ty, value })
}

fn function(reader: &mut Reader<'_>, types: &mut Types) -> Result<RawFunction, Rejected> {
    reader.open_object()?;
    let max_depth = reader.field("max_depth", |reader| {
        let given = reader.integer()?;
        let depth = u32::try_from(given)
            .ok()
            .filter(|depth| (1..=RECURSION_DEPTH).contains(depth));
        depth.ok_or_else(|| reader.refuse(format_args!("`max_depth` is 1 to {RECURSION_DEPTH}, not {given}")))
    })?;
    let name = reader.field("name", name)?;
    let params = reader.field("params", |reader| {
        reader.list(LISTED, |reader| {
            reader.open_object()?;
            let local = reader.field("local", expression::local)?;
            let ty = reader.field("type", |reader| ty(reader, types))?;
            reader.close_object()?;
            Ok((local, ty))
        })
    })?;
    let returns = reader.field("returns", |reader| ty(reader, types))?;
    let value = reader.field("value", index)?;
    reader.close_object()?;
    Ok(RawFunction {
        max_depth,
        name,
        params,
        returns,
        value,
    })
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

fn named_value(reader: &mut Reader<'_>) -> Result<(Arc<str>, ExpressionIndex), Rejected> {
    reader.open_object()?;
    let name = reader.field("name", name)?;
    let value = reader.field("value", index)?;
    reader.close_object()?;
    Ok((name, value))
}

fn source(reader: &mut Reader<'_>) -> Result<Source, Rejected> {
    reader.open_object()?;
    let clauses = reader.field("clauses", |reader| {
        reader.map(CLAUSES, |reader, key| {
            index_key(reader, key, "a clause")?;
            prose(reader)
        })
    })?;
    let intent = reader.field("intent", prose)?;
    let locals = reader.field("locals", |reader| reader.list(LISTED, name))?;
    reader.optional_field("parameters", |reader| reader.list(LISTED, parameter_use))?;
    let path = reader.field("path", prose)?;
    // Only explanations use the reason codes of guards, so nothing is kept.
    reader.optional_field("reasons", |reader| {
        reader.map(EXPRESSIONS, |reader, key| {
            index_key(reader, key, "a guard").and_then(|()| name(reader))
        })
    })?;
    let sha256 = reader.field("sha256", |reader| hash(reader, "source"))?;
    let spans = reader.field("spans", |reader| reader.list(EXPRESSIONS, span))?;
    let steps = reader.field("steps", |reader| {
        reader.map(LISTED, |reader, key| {
            if !is_name(key) {
                return Err(reader.refuse(format_args!("`{}` is not a name", key.escape_debug())));
            }
            span(reader)
        })
    })?;
    reader.optional_field("tables", |reader| {
        reader.list(LISTED, |reader| table(reader, spans.len()))
    })?;
    reader.close_object()?;
    Ok(Source {
        clauses,
        intent,
        locals,
        path,
        sha256,
        spans,
        steps,
    })
}

/// Refuses a key that is not the decimal text of an index.
fn index_key(reader: &Reader<'_>, key: &str, of: &str) -> Result<(), Rejected> {
    if key.parse::<u32>().is_ok_and(|index| index.to_string() == key) {
        return Ok(());
    }
    Err(reader.refuse(format_args!("`{}` is not the index of {of}", key.escape_debug())))
}

/// Reads the use of a parameter. Engines derive nothing from it.
fn parameter_use(reader: &mut Reader<'_>) -> Result<(), Rejected> {
    reader.open_object()?;
    reader.field("at", index)?;
    reader.field("entries", |reader| {
        reader.list(LISTED, |reader| {
            reader.open_object()?;
            reader.optional_field("reference", prose)?;
            reader.field("since", prose)?;
            reader.close_object()
        })
    })?;
    reader.field("name", name)?;
    reader.optional_field("reference", prose)?;
    reader.optional_field("unit", prose)?;
    reader.close_object()
}

/// Reads where a decision table is in the expressions. Only explanations use it, so nothing is kept.
fn table(reader: &mut Reader<'_>, expressions: usize) -> Result<(), Rejected> {
    reader.open_object()?;
    reader.field("columns", |reader| reader.list(LISTED, prose))?;
    reader.field("hit", prose)?;
    reader.field("name", prose)?;
    reader.field("rows", |reader| {
        reader.list(LISTED, |reader| table_row(reader, expressions))
    })?;
    reader.close_object()
}

fn table_row(reader: &mut Reader<'_>, expressions: usize) -> Result<(), Rejected> {
    let within = |reader: &mut Reader<'_>| match index(reader)? {
        found if usize::try_from(found).is_ok_and(|found| found < expressions) => Ok(()),
        found => Err(reader.refuse(format_args!(
            "a row of a table is at {found}, where no expression is"
        ))),
    };
    reader.open_object()?;
    reader.optional_field("annotation", prose)?;
    reader.field("cells", |reader| reader.map(LISTED, |reader, _| prose(reader)))?;
    reader.field("line", |reader| match reader.integer()? {
        line if line >= 1 => Ok(()),
        line => Err(reader.refuse(format_args!("{line} as a line; lines count from 1"))),
    })?;
    reader.optional_field("reason", prose)?;
    reader.field("then", within)?;
    reader.optional_field("when", within)?;
    reader.close_object()
}

fn hash(reader: &mut Reader<'_>, of: &str) -> Result<String, Rejected> {
    let text = reader.string(NAME_BYTES)?;
    if text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(text.into_owned());
    }
    Err(reader.refuse(format_args!(
        "the {of} hash is not 64 lower-case hexadecimal digits"
    )))
}

/// Reads text for people. Only the size of the document limits it.
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
