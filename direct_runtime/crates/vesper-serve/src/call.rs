//! Calls: requests that passed the checks of their heads, and their answers.
#![allow(
    clippy::result_large_err,
    reason = "an answer is a result like others, and is moved once"
)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::answer::{Answer, JSON_TYPE, Refusal, RefusalKind};
use crate::exchange::{Endpoint, TRACEPARENT, WEBHOOK_CHALLENGE};
use crate::inputs::join;
use crate::numbers::{Shape, with_numbers};
use crate::problem::{Problem, problem_of_outcome};
use crate::table::{Part, Service, Table};
use crate::text::percent_encode;
use crate::trace::Trace;
use crate::webhook::Signature;
use vesper_auth::Actor;

const RETURNED: &[u8] = b"{\"kind\":\"returned\",\"value\":";
const EXECUTION: HeaderName = HeaderName::from_static("vesper-execution");

/// A request that wants an outcome of a node, or a page of the server.
#[derive(Debug)]
pub struct Call {
    pub(crate) table: Arc<Table>,
    pub(crate) endpoint: Endpoint,
    pub(crate) manner: Manner,
    pub(crate) actor: Option<Actor>,
    /// Signature of the body of a webhook.
    pub(crate) signature: Option<Signature>,
    pub(crate) key: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) tracestate: Option<String>,
    pub(crate) if_none_match: Option<HeaderValue>,
    /// `Accept` of a request for a page.
    pub(crate) accept: Option<String>,
    /// Inputs from path, query and headers, as members of a JSON object.
    pub(crate) members: String,
}

/// How an answer is written, whatever it says.
#[derive(Debug)]
pub(crate) struct Manner {
    pub(crate) trace: Trace,
    pub(crate) is_head: bool,
    pub(crate) has_gzip: bool,
    /// Origin that CORS allows.
    pub(crate) origin: Option<HeaderValue>,
}

impl Manner {
    pub(crate) fn answer_of(&self, problem: &Problem<'_>, execution: Option<&str>) -> Answer {
        Answer::of_problem(problem, problem.body(Some(&self.trace), execution))
    }

    /// Adds what every answer of the request has.
    pub(crate) fn finish(&self, table: &Table, mut answer: Answer) -> Answer {
        answer
            .headers
            .extend(self.trace.header().map(|value| (TRACEPARENT, value)));
        if let Some(cors) = &table.cors {
            if !cors.is_any_origin {
                answer
                    .headers
                    .append(header::VARY, HeaderValue::from_static("origin"));
            }
            if let Some(origin) = &self.origin {
                answer
                    .headers
                    .insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
                answer
                    .headers
                    .insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, cors.exposed.clone());
                if cors.has_credentials {
                    answer.headers.insert(
                        header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
                        HeaderValue::from_static("true"),
                    );
                }
            }
        }
        answer.compress(self.has_gzip);
        if self.is_head {
            answer.drop_body();
        }
        answer
    }
}

impl Call {
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// Returns the JSON object of inputs for `run_json`: the body itself where every input comes from it. A body that
    /// does not fit its signature is refused.
    pub fn inputs<'a>(&self, body: &'a [u8]) -> Result<Cow<'a, [u8]>, Answer> {
        if let Some(signature) = &self.signature {
            self.verify(signature, body)?;
        }
        match self.service() {
            Some(service) => {
                join(service, &self.members, body).map_err(|problem| self.problem(&problem, None))
            }
            None => Ok(Cow::Borrowed(b"{}")),
        }
    }

    fn verify(&self, signature: &Signature, body: &[u8]) -> Result<(), Answer> {
        let webhook = self
            .service()
            .and_then(|service| self.table.webhooks.get(&service.node));
        let verified = webhook.map_or(Err("There is no webhook."), |webhook| {
            webhook.verify(signature, body)
        });
        verified.map_err(|detail| {
            let status = StatusCode::UNAUTHORIZED;
            let mut answer = self.problem(
                &Problem::new("unauthenticated", status, "Unauthenticated", detail),
                None,
            );
            let challenge = HeaderValue::from_static(WEBHOOK_CHALLENGE);
            answer.headers.insert(header::WWW_AUTHENTICATE, challenge);
            answer
        })
    }

    /// Returns the answer to an outcome, the bytes of `run_json`. `execution` names the run in the journal.
    pub fn answer(&self, outcome: &[u8], execution: Option<&str>) -> Answer {
        let Some(service) = self.service() else {
            return self.refuse(&RefusalKind::Internal.into());
        };
        let value = outcome
            .strip_prefix(RETURNED)
            .and_then(|rest| rest.strip_suffix(b"}"));
        let Some(value) = value else {
            return self.problem(&problem_of_outcome(service, outcome), execution);
        };
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(header::CONTENT_TYPE, JSON_TYPE);
        if !service.response_headers.is_empty() {
            write_response_headers(service, value, &mut headers);
        }
        if let Some(execution) = execution.and_then(|each| HeaderValue::from_str(each).ok()) {
            headers.insert(EXECUTION, execution);
        }
        let body = match &service.outputs {
            Shape::Other => Bytes::copy_from_slice(value),
            shape => match std::str::from_utf8(value)
                .ok()
                .and_then(|text| with_numbers(text, shape))
            {
                Some(text) => Bytes::from(text),
                None => return self.refuse(&RefusalKind::Internal.into()),
            },
        };
        let mut answer = Answer {
            status: service.status,
            headers,
            body,
        };
        if service.has_etag {
            answer.compress(self.manner.has_gzip);
            answer.add_etag(self.if_none_match.as_ref());
        }
        self.manner.finish(&self.table, answer)
    }

    /// Returns the answer of a page of the server.
    pub fn page(&self, status: u16, headers: &[(String, String)], body: Vec<u8>) -> Answer {
        let mut found = HeaderMap::with_capacity(headers.len() + 4);
        for (name, value) in headers {
            match (
                HeaderName::from_bytes(name.as_bytes()),
                HeaderValue::from_str(value),
            ) {
                (Ok(name), Ok(value)) => found.append(name, value),
                _ => return self.refuse(&RefusalKind::Internal.into()),
            };
        }
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.manner.finish(
            &self.table,
            Answer {
                status,
                headers: found,
                body: body.into(),
            },
        )
    }

    pub fn refuse(&self, refusal: &Refusal) -> Answer {
        self.problem(&refusal.problem(), refusal.execution.as_deref())
    }

    pub fn actor(&self) -> Option<&Actor> {
        self.actor.as_ref()
    }

    pub fn tenant(&self) -> Option<&str> {
        self.actor()?.tenant.as_deref()
    }

    /// Returns the `Idempotency-Key`.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Returns the `Accept` of a request for a page, or for an event stream.
    pub fn accept(&self) -> Option<&str> {
        self.accept.as_deref()
    }

    /// Returns the time that `Vesper-Timeout` grants the request, from its head on.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    pub fn trace(&self) -> &Trace {
        &self.manner.trace
    }

    /// Returns the context of the run: the `traceparent` of the request, or one with the ids of this server.
    pub fn traceparent(&self) -> String {
        let trace = &self.manner.trace;
        trace.parent_of(trace.parent_id.unwrap_or(trace.span_id))
    }

    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    fn service(&self) -> Option<&Service> {
        match self.endpoint {
            Endpoint::Node(index) => self.table.endpoints.get(index),
            Endpoint::Builtin(_) => None,
        }
    }

    fn problem(&self, problem: &Problem<'_>, execution: Option<&str>) -> Answer {
        self.manner
            .finish(&self.table, self.manner.answer_of(problem, execution))
    }
}

/// Writes headers with outputs in them. An output that is null or absent omits its header.
fn write_response_headers(service: &Service, value: &[u8], headers: &mut HeaderMap) {
    let outputs: BTreeMap<String, &RawValue> = serde_json::from_slice(value).unwrap_or_default();
    for (name, parts) in &service.response_headers {
        let mut text = String::new();
        let is_whole = parts.iter().all(|part| match part {
            Part::Text(each) => {
                text.push_str(each);
                true
            }
            Part::Output(output) => match outputs
                .get(output)
                .map(|raw| (raw.get(), serde_json::from_str(raw.get())))
            {
                Some((_, Ok(Value::String(output)))) => {
                    percent_encode(&output, &mut text);
                    true
                }
                Some((raw, Ok(Value::Number(_) | Value::Bool(_)))) => {
                    text.push_str(raw);
                    true
                }
                _ => false,
            },
        });
        headers.extend(
            HeaderValue::from_str(&text)
                .ok()
                .filter(|_| is_whole)
                .map(|value| (name.clone(), value)),
        );
    }
}
