//! Inputs of a request: parameters as members of a JSON object, joined with the body.

use std::borrow::Cow;

use http::{HeaderMap, StatusCode};
use serde_json::value::RawValue;

use crate::problem::Problem;
use crate::table::{Body, Service, Source};
use crate::text::{is_bare, percent_decode, write_quoted};

/// Query parameters that are read; more are a malformed request.
const MAX_QUERY_PARAMETERS: usize = 1_000;

/// Returns the members of the inputs that come from path, query and headers, or the reason why there are none.
pub(crate) fn read_parameters(
    service: &Service,
    path: &[String],
    query: &str,
    headers: &HeaderMap,
) -> Result<String, &'static str> {
    let mut out = String::new();
    if service.parameters.is_empty() && query.is_empty() {
        return Ok(out);
    }
    let query = read_query(query)?;
    for parameter in &service.parameters {
        let given: Vec<Cow<'_, str>> = match &parameter.source {
            Source::Path(position) => path
                .get(*position)
                .map(|each| Cow::Borrowed(each.as_str()))
                .into_iter()
                .collect(),
            Source::Query(key) => query
                .iter()
                .filter(|(name, _)| name == key)
                .map(|(_, each)| each.clone())
                .collect(),
            Source::Header(name) => {
                let mut found = Vec::new();
                for value in headers.get_all(name) {
                    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| "A header is not UTF-8.")?;
                    let items = text.split(if parameter.is_array { "," } else { "\n" });
                    found.extend(items.map(|each| Cow::Borrowed(each.trim_matches([' ', '\t']))));
                }
                found
            }
        };
        write_member(
            &parameter.member,
            &given,
            parameter.is_bare,
            parameter.is_array,
            &mut out,
        );
    }
    let is_known = |name: &str| {
        service
            .parameters
            .iter()
            .any(|each| matches!(&each.source, Source::Query(key) if key == name))
    };
    let mut unknown: Vec<&str> = query
        .iter()
        .map(|(name, _)| name.as_ref())
        .filter(|name| !is_known(name))
        .collect();
    unknown.sort_unstable();
    unknown.dedup();
    for name in unknown {
        // No input has such a name, so the node reports it with the other problems.
        let mut member = String::new();
        write_quoted(&format!("?{name}"), &mut member);
        member.push(':');
        write_member(&member, &[Cow::Borrowed("")], false, false, &mut out);
    }
    Ok(out)
}

type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

fn read_query(query: &str) -> Result<Pairs<'_>, &'static str> {
    let mut found = Vec::new();
    for each in query.split('&').filter(|each| !each.is_empty()) {
        let (name, value) = each.split_once('=').unwrap_or((each, ""));
        match (percent_decode(name, true), percent_decode(value, true)) {
            (Some(name), Some(value)) if found.len() < MAX_QUERY_PARAMETERS => found.push((name, value)),
            (Some(_), Some(_)) => return Err("The query has more than 1000 parameters."),
            _ => return Err("An escape in the query is not UTF-8."),
        }
    }
    Ok(found)
}

/// Writes a member; an absent one has none, and a repeated one is an array, which the node accepts or reports.
fn write_member(member: &str, given: &[Cow<'_, str>], may_be_bare: bool, is_array: bool, out: &mut String) {
    if given.is_empty() {
        return;
    }
    if !out.is_empty() {
        out.push(',');
    }
    out.push_str(member);
    let is_array = is_array || given.len() > 1;
    out.push_str(if is_array { "[" } else { "" });
    for (index, each) in given.iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        if may_be_bare && is_bare(each) {
            out.push_str(each);
        } else {
            write_quoted(each, out);
        }
    }
    out.push_str(if is_array { "]" } else { "" });
}

/// Returns the JSON object of the inputs.
pub(crate) fn join<'a>(
    service: &Service,
    members: &str,
    body: &'a [u8],
) -> Result<Cow<'a, [u8]>, Problem<'static>> {
    let trimmed = body.trim_ascii();
    match &service.body {
        Body::Object if members.is_empty() && !trimmed.is_empty() => Ok(Cow::Borrowed(body)),
        Body::Object if !trimmed.is_empty() => Ok(insert(members, body)),
        Body::Input(name) if !trimmed.is_empty() => {
            // The body is one value: it cannot close the object around it.
            let value: &RawValue = serde_json::from_slice(body).map_err(|error| {
                Problem::new(
                    "bad_json",
                    StatusCode::BAD_REQUEST,
                    "Malformed JSON",
                    format!("The body: {error}."),
                )
            })?;
            let mut out = String::with_capacity(members.len() + name.len() + body.len() + 8);
            out.push('{');
            out.push_str(members);
            out.push_str(if members.is_empty() { "" } else { "," });
            write_quoted(name, &mut out);
            out.push(':');
            out.push_str(value.get());
            out.push('}');
            Ok(Cow::Owned(out.into_bytes()))
        }
        Body::None if !is_empty_object(trimmed) => {
            let detail = "This endpoint takes no body: send none, or `{}`.";
            Err(Problem::new(
                "bad_input",
                StatusCode::UNPROCESSABLE_ENTITY,
                "Inputs do not fit",
                detail,
            ))
        }
        _ => Ok(Cow::Owned(format!("{{{members}}}").into_bytes())),
    }
}

/// Returns whether a body has nothing, or an empty object.
fn is_empty_object(trimmed: &[u8]) -> bool {
    let inside = trimmed
        .strip_prefix(b"{")
        .and_then(|rest| rest.strip_suffix(b"}"));
    trimmed.is_empty() || inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// Inserts members before the last brace of an object, so that places before it stay.
///
/// A text that is not JSON stays so: the brackets do not change, and a string that is not closed would end at the first
/// quote of the members, before a bare name.
fn insert<'a>(members: &str, body: &'a [u8]) -> Cow<'a, [u8]> {
    let is_object = body.trim_ascii_start().starts_with(b"{");
    match body.trim_ascii_end().split_last() {
        Some((b'}', before)) if is_object => {
            let mut out = Vec::with_capacity(body.len() + members.len() + 1);
            out.extend_from_slice(before);
            if before.trim_ascii() != b"{" {
                out.push(b',');
            }
            out.extend_from_slice(members.as_bytes());
            out.push(b'}');
            Cow::Owned(out)
        }
        _ => Cow::Borrowed(body),
    }
}
