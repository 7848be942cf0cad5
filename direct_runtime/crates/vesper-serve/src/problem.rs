//! Problems: errors as `application/problem+json` (RFC 9457).

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::numbers::with_numbers;
use crate::table::Service;
use crate::text::write_quoted;
use crate::trace::Trace;

/// Seconds after which a request that met a busy part is worth another attempt.
const RETRY_SECONDS: u64 = 1;

/// An error for a caller.
#[derive(Clone, Debug)]
pub(crate) struct Problem<'a> {
    /// End of the `type`.
    pub(crate) name: &'a str,
    pub(crate) status: StatusCode,
    pub(crate) title: Cow<'a, str>,
    pub(crate) detail: Cow<'a, str>,
    pub(crate) retry_seconds: Option<u64>,
    /// Further members, as JSON.
    pub(crate) members: Vec<(&'static str, String)>,
}

impl<'a> Problem<'a> {
    pub(crate) fn new(
        name: &'a str,
        status: StatusCode,
        title: &'a str,
        detail: impl Into<Cow<'a, str>>,
    ) -> Self {
        let (title, detail) = (Cow::Borrowed(title), detail.into());
        Self {
            name,
            status,
            title,
            detail,
            retry_seconds: None,
            members: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, json: impl Into<String>) -> Self {
        self.members.push((name, json.into()));
        self
    }

    fn retry(mut self) -> Self {
        self.retry_seconds = Some(RETRY_SECONDS);
        self
    }

    pub(crate) fn body(&self, trace: Option<&Trace>, execution: Option<&str>) -> String {
        let mut out = String::with_capacity(256);
        let mut member = |name: &str, json: &str| {
            out.push(if out.is_empty() { '{' } else { ',' });
            write_quoted(name, &mut out);
            out.push(':');
            out.push_str(json);
        };
        let quoted = |text: &str| {
            let mut out = String::with_capacity(text.len() + 2);
            write_quoted(text, &mut out);
            out
        };
        let trace_id = trace.map(Trace::id_text);
        member("type", &quoted(&format!("urn:vesper:problem:{}", self.name)));
        member("title", &quoted(&self.title));
        member("status", self.status.as_str());
        member("detail", &quoted(&self.detail));
        match (execution, &trace_id) {
            (Some(execution), _) => member("instance", &quoted(&format!("urn:vesper:execution:{execution}"))),
            (None, Some(trace_id)) => member("instance", &quoted(&format!("urn:vesper:trace:{trace_id}"))),
            (None, None) => {}
        }
        if let Some(trace_id) = trace_id {
            member("trace_id", &quoted(&trace_id));
        }
        if let Some(execution) = execution {
            member("execution", &quoted(execution));
        }
        for (name, json) in &self.members {
            member(name, json);
        }
        out.push('}');
        out
    }
}

/// The members of an outcome without outputs.
type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Returns the problem of an outcome without outputs.
pub(crate) fn problem_of_outcome(service: &Service, outcome: &[u8]) -> Problem<'static> {
    let Ok(members) = serde_json::from_slice::<Members<'_>>(outcome) else {
        return engine_fault();
    };
    let text = |name: &str| {
        members
            .get(name)
            .and_then(|raw| serde_json::from_str::<String>(raw.get()).ok())
    };
    let raw = |name: &str| members.get(name).map_or("null", |raw| raw.get());
    let message = text("message");
    let code = text("code");
    match text("kind").as_deref() {
        Some("declared_error") => declared_error(service, code, message, raw("value")),
        Some("failed") if raw("at") == "null" => bad_input(service, raw("problems"), message.as_deref()),
        Some("failed") => failed(&code.unwrap_or_default(), &message.unwrap_or_default()),
        Some("contract_broken") => {
            let phase = text("phase").unwrap_or_default();
            let clause = json!({"phase": phase, "index": serde_json::from_str::<Value>(raw("index")).ok()});
            if matches!(phase.as_str(), "constraint" | "precondition" | "validation") {
                let message = message.unwrap_or_else(|| "The inputs break a clause of the node.".to_owned());
                let place = text("where").unwrap_or_default();
                let detail = message
                    .strip_prefix(&place)
                    .and_then(|rest| rest.strip_prefix(": "))
                    .unwrap_or(&message);
                // Inputs are the caller's own; a validation may be about what a step has read.
                let detail = match detail.split_once(" does not hold: ") {
                    Some((clause, _)) if phase == "validation" => format!("{clause} does not hold"),
                    _ => detail.to_owned(),
                };
                Problem::new(
                    "precondition",
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "Precondition broken",
                    detail,
                )
                .with("clause", clause.to_string())
            } else {
                let detail = format!("A {phase} of the node does not hold.");
                Problem::new(
                    "contract",
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "Contract broken",
                    detail,
                )
                .with("clause", clause.to_string())
            }
        }
        Some("limit_hit") => {
            let limit = text("limit").unwrap_or_default();
            let is_time = matches!(
                limit.as_str(),
                "time" | "timeout_seconds" | "deadline" | "cancelled"
            );
            let status = if is_time {
                StatusCode::GATEWAY_TIMEOUT
            } else {
                StatusCode::INTERNAL_SERVER_ERROR
            };
            Problem::new(
                "limit",
                status,
                "Limit hit",
                format!("The execution reached its limit `{limit}`."),
            )
            .with("limit", json!(limit).to_string())
        }
        Some("denied") => {
            let detail = "The configuration of the server denies an effect of the node.";
            Problem::new("denied", StatusCode::INTERNAL_SERVER_ERROR, "Denied", detail)
        }
        _ => engine_fault(),
    }
}

fn engine_fault() -> Problem<'static> {
    let detail = "The engine failed. This is a bug of Vesper; the log of the server has more.";
    Problem::new(
        "engine_fault",
        StatusCode::INTERNAL_SERVER_ERROR,
        "Engine fault",
        detail,
    )
}

fn declared_error(
    service: &Service,
    code: Option<String>,
    message: Option<String>,
    value: &str,
) -> Problem<'static> {
    let named = || {
        serde_json::from_str::<Value>(value)
            .ok()?
            .get("error_code")?
            .as_str()
            .map(str::to_owned)
    };
    let code = code.or_else(named).unwrap_or_default();
    let status = service
        .statuses
        .get(&code)
        .copied()
        .unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
    let written = with_numbers(value, &service.errors).unwrap_or_else(|| value.to_owned());
    let detail = message.unwrap_or_else(|| code.clone());
    let mut problem = Problem::new("declared_error", status, "", detail).with("error", written);
    problem.title = Cow::Owned(code);
    problem
}

fn bad_input(service: &Service, problems: &str, message: Option<&str>) -> Problem<'static> {
    let mut found: Vec<Value> = serde_json::from_str(problems).unwrap_or_default();
    let is_whole = |each: &Value| each.get("path").and_then(Value::as_str) == Some("");
    let kind = |each: &Value| each.get("kind").and_then(Value::as_str).map(str::to_owned);
    if let [only] = found.as_slice()
        && is_whole(only)
        && matches!(kind(only).as_deref(), Some("malformed" | "too_deep"))
    {
        let detail = only
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or("The body is not JSON.")
            .to_owned();
        return Problem::new("bad_json", StatusCode::BAD_REQUEST, "Malformed JSON", detail)
            .with("problems", Value::Array(found).to_string());
    }
    for each in &mut found {
        let Some(members) = each.as_object_mut() else {
            continue;
        };
        let source = service.source_of(members.get("path").and_then(Value::as_str).unwrap_or_default());
        if source != "body" {
            // Places are those of the composed object, which the caller never saw.
            members.remove("line");
            members.remove("column");
            if let Some(Value::String(message)) = members.get_mut("message")
                && let Some(place) = message.rfind(" (line ")
            {
                message.truncate(place);
            }
        }
        members.insert("in".to_owned(), Value::from(source));
    }
    let detail = message
        .and_then(|message| message.lines().next())
        .map(|line| line.trim_end_matches(':'));
    let detail = detail.unwrap_or("The inputs do not fit.").to_owned();
    Problem::new(
        "bad_input",
        StatusCode::UNPROCESSABLE_ENTITY,
        "Inputs do not fit",
        detail,
    )
    .with("problems", Value::Array(found).to_string())
}

const EFFECT: &str = "effect_failed";

/// Returns the problem of a failed expression or effect.
fn failed(code: &str, message: &str) -> Problem<'static> {
    let detail = format!("The node failed with `{code}`.");
    let problem = |name: &'static str, status: StatusCode, title: &'static str| {
        Problem::new(name, status, title, detail.clone()).with("code", json!(code).to_string())
    };
    match code {
        "timeout" => problem(EFFECT, StatusCode::GATEWAY_TIMEOUT, "An effect timed out"),
        "http_429" | "rate_limit" => {
            problem(EFFECT, StatusCode::TOO_MANY_REQUESTS, "An effect was limited").retry()
        }
        "unavailable" if message.contains(": held back by its rate") => {
            problem(EFFECT, StatusCode::TOO_MANY_REQUESTS, "An effect was limited").retry()
        }
        "unavailable" if message.contains(": held back by its ") => {
            problem(EFFECT, StatusCode::SERVICE_UNAVAILABLE, "An effect was held back").retry()
        }
        "unavailable" | "bad_response" | "http_error" => {
            problem(EFFECT, StatusCode::BAD_GATEWAY, "An effect failed")
        }
        code if code.starts_with("http_") => problem(EFFECT, StatusCode::BAD_GATEWAY, "An effect failed"),
        _ => problem("failed", StatusCode::INTERNAL_SERVER_ERROR, "The node failed"),
    }
}
