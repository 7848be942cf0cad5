//! Decoder of taint flags. They belong to the Host: `verify` checks them, and an engine then discards them.

use std::sync::Arc;

use crate::Rejected;
use crate::canonical::Reader;
use crate::limits::{EXPRESSIONS, LISTED, STATEMENTS, TYPE_DEPTH};
use crate::node::{ExpressionIndex, Flags, SourceFlow};

use super::{index, is_name, name};

/// Maximum number of sources: every input, request and call.
const SOURCES: usize = LISTED + STATEMENTS;

pub(super) fn taint(reader: &mut Reader<'_>) -> Result<Flags, Rejected> {
    reader.open_object()?;
    let errors = reader.field("errors", named_flows)?;
    let failures = reader.field("failures", indexed_flows)?;
    let outputs = reader.field("outputs", named_flows)?;
    let sources = reader.field("sources", |reader| reader.list(SOURCES, name))?;
    let steps = reader.field("steps", named_flows)?;
    let values = reader.field("values", indexed_flows)?;
    reader.close_object()?;
    Ok(Flags {
        errors,
        failures,
        outputs,
        sources,
        steps,
        values,
    })
}

/// Reads the released values: names of steps and outputs, or `error.` and an error field, each with a reason.
pub(super) fn declassified(reader: &mut Reader<'_>) -> Result<Vec<Arc<str>>, Rejected> {
    let entries = reader.map(LISTED, |reader, key| {
        if !is_name(key.strip_prefix("error.").unwrap_or(key)) {
            return Err(reader.refuse(format_args!("`{}` is not a name", key.escape_debug())));
        }
        if super::prose(reader)?.trim().is_empty() {
            return Err(reader.refuse(format_args!("the release of `{key}` has no reason")));
        }
        Ok(())
    })?;
    if entries.is_empty() {
        return Err(reader.refuse("`declassified` is absent where nothing is released"));
    }
    Ok(entries.into_iter().map(|(key, ())| Arc::from(key)).collect())
}

/// Reads which part of a completion is sensitive: `true`, or fields of it. Returns the fields.
pub(super) fn sensitive(reader: &mut Reader<'_>) -> Result<Vec<Arc<str>>, Rejected> {
    if reader.peek() != Some(b'[') {
        if reader.boolean()? {
            return Ok(Vec::new());
        }
        return Err(reader.refuse("`sensitive` is absent where nothing is sensitive"));
    }
    let fields = reader.list(LISTED, name)?;
    if fields.is_empty() {
        return Err(reader.refuse("`sensitive` is absent where nothing is sensitive"));
    }
    Ok(fields)
}

fn named_flows(reader: &mut Reader<'_>) -> Result<Vec<(Arc<str>, SourceFlow)>, Rejected> {
    let entries = reader.map(LISTED, |reader, key| {
        if is_name(key) {
            return flow(reader, TYPE_DEPTH);
        }
        Err(reader.refuse(format_args!("`{}` is not a name", key.escape_debug())))
    })?;
    Ok(entries
        .into_iter()
        .map(|(key, flow)| (Arc::from(key), flow))
        .collect())
}

fn indexed_flows(reader: &mut Reader<'_>) -> Result<Vec<(ExpressionIndex, SourceFlow)>, Rejected> {
    let mut last = None;
    reader.list(EXPRESSIONS, |reader| {
        reader.open_object()?;
        let at = reader.field("at", index)?;
        let flow = reader.field("flow", |reader| flow(reader, TYPE_DEPTH))?;
        reader.close_object()?;
        if last.is_some_and(|last| last >= at) {
            return Err(reader.refuse(format_args!("flag {at} is repeated or out of order")));
        }
        last = Some(at);
        Ok((at, flow))
    })
}

fn flow(reader: &mut Reader<'_>, depth: u8) -> Result<SourceFlow, Rejected> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(reader.refuse("flows nest deeper than types"));
    };
    reader.open_object()?;
    let fields = reader.optional_field("fields", |reader| {
        let fields = reader.map(LISTED, |reader, key| {
            if is_name(key) {
                return flow(reader, depth);
            }
            Err(reader.refuse(format_args!("`{}` is not a name", key.escape_debug())))
        })?;
        if fields.is_empty() {
            return Err(reader.refuse("`fields` is absent where there are none"));
        }
        Ok(fields)
    })?;
    let from = reader.optional_field("from", bits)?;
    reader.close_object()?;
    if fields.is_none() && from.is_none() {
        return Err(reader.refuse("a flow without sources is absent"));
    }
    Ok(SourceFlow {
        fields: fields.unwrap_or_default(),
        from: from.unwrap_or_default(),
    })
}

/// Reads a set of sources in hexadecimal. Returns its nibbles, the lowest first.
fn bits(reader: &mut Reader<'_>) -> Result<Vec<u8>, Rejected> {
    let text = reader.string(SOURCES)?;
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.is_empty() || text.starts_with('0') || !text.bytes().all(is_digit) {
        return Err(reader.refuse(format_args!("`{}` is not a set of sources", text.escape_debug())));
    }
    let nibble = |byte: u8| {
        if byte.is_ascii_digit() {
            byte - b'0'
        } else {
            byte - b'a' + 10
        }
    };
    Ok(text.bytes().rev().map(nibble).collect())
}
