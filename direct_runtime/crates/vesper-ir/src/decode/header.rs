//! Decoder of the declarations that cover a whole node.
//!
//! Policies, capabilities and audit belong to the Host: an engine checks their shape and discards them.

use std::sync::Arc;

use crate::Rejected;
use crate::canonical::Reader;
use crate::flow::{CalledInput, CalledNode, Machine};
use crate::intern::Types;
use crate::limits::{LISTED, NAME_BYTES};

use super::{hash, name, output_list, ty};

const NODE_TYPES: &[&str] = &[
    "function",
    "data_transform",
    "http_handler",
    "event_handler",
    "scheduled_job",
    "workflow",
    "state_machine",
];

/// Reads one of these words.
fn word(reader: &mut Reader<'_>, what: &str, words: &[&str]) -> Result<(), Rejected> {
    let found = reader.string(NAME_BYTES)?;
    if words.contains(&found.as_ref()) {
        return Ok(());
    }
    Err(reader.refuse(format_args!(
        "{what} is {}, not `{}`",
        words.join(" or "),
        found.escape_debug()
    )))
}

pub(super) fn node_type(reader: &mut Reader<'_>) -> Result<(), Rejected> {
    word(reader, "the type of a node", NODE_TYPES)
}

pub(super) fn audit(reader: &mut Reader<'_>) -> Result<(), Rejected> {
    word(reader, "`audit`", &["none", "basic", "detailed"])
}

pub(super) fn capabilities(reader: &mut Reader<'_>) -> Result<(), Rejected> {
    reader.open_object()?;
    for list in ["denied", "required"] {
        reader.field(list, |reader| {
            reader.list(LISTED, |reader| reader.string(NAME_BYTES).map(drop))
        })?;
    }
    reader.close_object()
}

pub(super) fn machine(reader: &mut Reader<'_>) -> Result<Machine, Rejected> {
    reader.open_object()?;
    let initial = reader.field("initial", name)?;
    let machine = reader.field("name", name)?;
    let states = reader.field("states", |reader| reader.list(LISTED, name))?;
    let transitions = reader.field("transitions", |reader| reader.list(LISTED, transition))?;
    reader.close_object()?;
    Ok(Machine {
        name: machine,
        initial,
        states,
        transitions,
    })
}

fn transition(reader: &mut Reader<'_>) -> Result<(Arc<str>, Arc<str>), Rejected> {
    let states = reader.list(2, name)?;
    let [from, to] = states.as_slice() else {
        return Err(reader.refuse("a transition has two states"));
    };
    Ok((Arc::clone(from), Arc::clone(to)))
}

pub(super) fn called_node(reader: &mut Reader<'_>, types: &mut Types) -> Result<CalledNode, Rejected> {
    reader.open_object()?;
    let error = reader.field("error", |reader| output_list(reader, types))?;
    let hash = reader.field("hash", |reader| hash(reader, "semantic"))?;
    let inputs = reader.field("inputs", |reader| {
        reader.list(LISTED, |reader| {
            reader.open_object()?;
            let name = reader.field("name", name)?;
            let is_optional = reader.field("optional", Reader::boolean)?;
            let ty = reader.field("type", |reader| ty(reader, types))?;
            reader.close_object()?;
            Ok(CalledInput {
                name,
                ty,
                is_optional,
            })
        })
    })?;
    let node = reader.field("node", name)?;
    let success = reader.field("success", |reader| output_list(reader, types))?;
    reader.close_object()?;
    Ok(CalledNode {
        node,
        hash: Arc::from(hash),
        inputs,
        success,
        error,
    })
}

/// Fields of a policy in canonical order. True marks a field that only a node's policy has.
const POLICY: &[(&str, bool)] = &[
    ("attempts", false),
    ("backoff_factor", false),
    ("backoff_max_us", false),
    ("backoff_us", false),
    ("breaker_failures", false),
    ("breaker_open_us", false),
    ("breaker_within_us", false),
    ("budgets", false),
    ("concurrency", false),
    ("expected_latency_ms", true),
    ("jitter", false),
    ("memory_limit_mb", true),
    ("rate_limit", false),
    ("rate_per_us", false),
    ("retry_on", false),
    ("timeout_us", false),
    ("total_timeout_us", true),
];

pub(super) fn node_policy(reader: &mut Reader<'_>) -> Result<(), Rejected> {
    policy(reader, true)
}

pub(super) fn step_policy(reader: &mut Reader<'_>) -> Result<(), Rejected> {
    policy(reader, false)
}

fn policy(reader: &mut Reader<'_>, is_of_node: bool) -> Result<(), Rejected> {
    reader.open_object()?;
    for (field, is_for_node) in POLICY {
        if *is_for_node && !is_of_node {
            continue;
        }
        reader.optional_field(field, |reader| match *field {
            "jitter" => word(reader, "`jitter`", &["none", "full"]),
            "budgets" => super::budget::budgets(reader).map(drop),
            "retry_on" => reader.list(LISTED, super::flow::code).map(drop),
            _ => match reader.integer()? {
                0.. => Ok(()),
                number => Err(reader.refuse(format_args!("`{field}` of a policy is {number}"))),
            },
        })?;
    }
    reader.close_object()
}
