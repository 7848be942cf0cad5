//! The meaning of a request's head, without sockets: a call or an answer.
#![allow(
    clippy::result_large_err,
    reason = "an answer is a result like others, and is moved once"
)]

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::answer::{Answer, JSON_TYPE, RefusalKind};
pub(crate) use crate::call::Call;
use crate::call::Manner;
use crate::inputs::read_parameters;
use crate::problem::Problem;
use crate::routes::Found;
use crate::table::{Body, Cors, Service, Table, Target};
use crate::text::{accepts_gzip, is_json};
use crate::trace::Trace;
use crate::webhook::Signature;
use vesper_auth::{Actor, TableError};

const MAX_TARGET_BYTES: usize = 8 << 10;
const MAX_KEY_BYTES: usize = 255;
const MAX_TRACESTATE_BYTES: usize = 512;
/// The longest timeout that a caller can grant: a day.
const MAX_TIMEOUT_SECONDS: f64 = 86_400.0;
/// A scheme of no standard: senders of webhooks read no challenge.
pub(crate) const WEBHOOK_CHALLENGE: &str = "Signature realm=\"vesper\"";
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The routes and settings of one epoch. Immutable; clones share the table.
#[derive(Clone, Debug)]
pub struct Exchange {
    table: Arc<Table>,
}

/// The head of a request.
#[derive(Debug)]
pub struct Head<'a> {
    pub method: &'a Method,
    /// Path and query, as sent.
    pub target: &'a str,
    pub headers: &'a HeaderMap,
    pub peer: Peer<'a>,
    pub now: SystemTime,
}

/// The other end of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peer<'a> {
    /// Subject of a client certificate that the server has verified.
    pub subject: Option<&'a str>,
}

/// The decision on a head.
#[derive(Debug)]
pub enum Routed {
    /// The request ends here; its body is not needed.
    Answer(Answer),
    Call(Box<Call>),
}

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Index into the endpoints of the table.
    Node(usize),
    Builtin(Builtin),
}

/// A page of the server itself. `/livez` is answered by `route`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    OpenApi,
    Docs,
    Metrics,
    Readyz,
    Status,
}

impl Builtin {
    const PATHS: [(&'static str, Self); 5] = [
        ("/openapi.json", Self::OpenApi),
        ("/docs", Self::Docs),
        ("/metrics", Self::Metrics),
        ("/readyz", Self::Readyz),
        ("/status", Self::Status),
    ];

    pub(crate) fn of_path(path: &str) -> Option<Self> {
        Self::PATHS
            .iter()
            .find(|(each, _)| *each == path)
            .map(|(_, builtin)| *builtin)
    }

    pub fn path(self) -> &'static str {
        Self::PATHS
            .iter()
            .find(|(_, each)| *each == self)
            .map_or("", |(path, _)| path)
    }
}

/// The actor of a request, and the signature of its body that is still to be checked.
type Caller = (Option<Actor>, Option<Signature>);

/// The headers that the exchange reads, found in one pass.
#[derive(Debug, Default)]
struct Headers<'a> {
    accept_encoding: Option<&'a HeaderValue>,
    api_key: Option<&'a HeaderValue>,
    authorization: Option<&'a HeaderValue>,
    content_encoding: Option<&'a HeaderValue>,
    content_length: Option<&'a HeaderValue>,
    content_type: Option<&'a HeaderValue>,
    if_none_match: Option<&'a HeaderValue>,
    key: Option<&'a HeaderValue>,
    origin: Option<&'a HeaderValue>,
    requested_method: Option<&'a HeaderValue>,
    timeout: Option<&'a HeaderValue>,
    traceparent: Option<&'a HeaderValue>,
    tracestate: Option<&'a HeaderValue>,
    transfer_encoding: Option<&'a HeaderValue>,
    /// A header that must occur once and occurs again.
    repeated: Option<&'a HeaderName>,
}

impl<'a> Headers<'a> {
    fn read(headers: &'a HeaderMap) -> Self {
        let mut found = Self::default();
        for (name, value) in headers {
            let place = match name.as_str() {
                "accept-encoding" => {
                    found.accept_encoding.get_or_insert(value);
                    continue;
                }
                "if-none-match" => {
                    found.if_none_match.get_or_insert(value);
                    continue;
                }
                "tracestate" => {
                    found.tracestate.get_or_insert(value);
                    continue;
                }
                "x-api-key" => &mut found.api_key,
                "authorization" => &mut found.authorization,
                "content-encoding" => &mut found.content_encoding,
                "content-length" => &mut found.content_length,
                "content-type" => &mut found.content_type,
                "idempotency-key" => &mut found.key,
                "origin" => &mut found.origin,
                "access-control-request-method" => &mut found.requested_method,
                "vesper-timeout" => &mut found.timeout,
                "traceparent" => &mut found.traceparent,
                "transfer-encoding" => &mut found.transfer_encoding,
                _ => continue,
            };
            if place.replace(value).is_some() && name != TRACEPARENT {
                found.repeated = Some(name);
            }
        }
        found
    }

    fn body_length(&self) -> Option<u64> {
        let length = self
            .content_length
            .and_then(|value| value.to_str().ok()?.parse().ok());
        if self.transfer_encoding.is_some() {
            None
        } else {
            Some(length.unwrap_or(0))
        }
    }
}

impl Exchange {
    /// Reads a table (docs/spec/serving.md).
    pub fn new(table: &[u8]) -> Result<Self, TableError> {
        Ok(Self {
            table: Arc::new(Table::read(table)?),
        })
    }

    /// Decides on a request by its head.
    pub fn route(&self, head: &Head<'_>) -> Routed {
        let headers = Headers::read(head.headers);
        let manner = Manner {
            trace: Trace::of_request(headers.traceparent.map(HeaderValue::as_bytes), head.now),
            is_head: head.method == Method::HEAD,
            has_gzip: headers
                .accept_encoding
                .and_then(|each| each.to_str().ok())
                .is_some_and(accepts_gzip),
            origin: self
                .table
                .cors
                .as_ref()
                .and_then(|cors| cors.allowed_origin(headers.origin?)),
        };
        let checked = self.checked(head, &headers, &manner);
        let (endpoint, (actor, signature), members) = match checked {
            Ok((target, caller, members)) => match self.table.endpoint(target) {
                Some(endpoint) => (endpoint, caller, members),
                None => return Routed::Answer(manner.finish(&self.table, livez())),
            },
            Err(answer) => return Routed::Answer(manner.finish(&self.table, answer)),
        };
        let is_page = matches!(endpoint, Endpoint::Builtin(_));
        let wants_events = |accept: &&HeaderValue| accept.as_bytes().starts_with(b"text/event-stream");
        let accept = head.headers.get(header::ACCEPT);
        let accept = accept.filter(|each| is_page || wants_events(each));
        let text = |value: Option<&HeaderValue>| Some(value?.to_str().ok()?.to_owned());
        let has_parent = manner.trace.parent_id.is_some();
        let is_state =
            |each: &&HeaderValue| has_parent && is_printable(each.as_bytes(), MAX_TRACESTATE_BYTES);
        let tracestate = headers.tracestate.filter(is_state);
        Routed::Call(Box::new(Call {
            table: Arc::clone(&self.table),
            endpoint,
            manner,
            actor,
            signature,
            key: text(headers.key),
            timeout: headers.timeout.and_then(timeout_of),
            tracestate: text(tracestate),
            if_none_match: headers.if_none_match.cloned(),
            accept: text(accept),
            members,
        }))
    }

    /// Returns the node of an endpoint, for labels.
    pub fn node(&self, endpoint: usize) -> &str {
        self.table
            .endpoints
            .get(endpoint)
            .map_or("", |service| &service.node)
    }

    /// Returns the path template of an endpoint, for logs, which must not show the path.
    pub fn template(&self, endpoint: Endpoint) -> &str {
        match endpoint {
            Endpoint::Node(index) => self
                .table
                .endpoints
                .get(index)
                .map_or("", |service| &service.path),
            Endpoint::Builtin(builtin) => builtin.path(),
        }
    }

    /// Checks a head: route, caller, scopes, then the headers and parameters.
    fn checked(
        &self,
        head: &Head<'_>,
        headers: &Headers<'_>,
        manner: &Manner,
    ) -> Result<(Target, Caller, String), Answer> {
        let refuse = |problem: Problem<'_>| Err(manner.answer_of(&problem, None));
        let malformed = |detail: &'static str| manner.answer_of(&malformed_request(detail), None);
        if head.target.len() > MAX_TARGET_BYTES {
            let detail = "The path and query have more than 8 KiB.";
            return refuse(Problem::new(
                "target_too_long",
                StatusCode::URI_TOO_LONG,
                "Target too long",
                detail,
            ));
        }
        let (path, query) = head.target.split_once('?').unwrap_or((head.target, ""));
        let (target, values) = match self.table.routes.find(head.method, path) {
            Found::Target(target, values) => (target, values),
            Found::Methods(methods) => return Err(self.other_method(head, headers, manner, &methods)),
            Found::Nothing => {
                let detail = "There is nothing at this path.";
                return refuse(Problem::new(
                    "not_found",
                    StatusCode::NOT_FOUND,
                    "Not found",
                    detail,
                ));
            }
            Found::Malformed => return Err(malformed("An escape in the path is not UTF-8.")),
        };
        if let Some(name) = headers.repeated {
            let problem = malformed_request(format!("The header `{name}` occurs twice."));
            return refuse(problem);
        }
        if target == Target::Livez {
            return Ok((target, (None, None), String::new()));
        }
        let caller = self.authorize(head, headers, target, manner)?;
        let Target::Node(index) = target else {
            return Ok((target, caller, String::new()));
        };
        let Some(service) = self.table.endpoints.get(index) else {
            return Err(malformed("There is no endpoint."));
        };
        self.check_body(service, headers)
            .map_err(|problem| manner.answer_of(&problem, None))?;
        if headers
            .key
            .is_some_and(|key| !is_printable(key.as_bytes(), MAX_KEY_BYTES))
        {
            return Err(malformed(
                "`Idempotency-Key` is 1 to 255 printable ASCII characters.",
            ));
        }
        if headers
            .timeout
            .is_some_and(|timeout| timeout_of(timeout).is_none())
        {
            return Err(malformed(
                "`Vesper-Timeout` is a number of seconds, such as 2.5, at most 86400.",
            ));
        }
        let members = read_parameters(service, &values, query, head.headers).map_err(malformed)?;
        Ok((target, caller, members))
    }

    /// Identifies the caller and checks the scopes of the target.
    fn authorize(
        &self,
        head: &Head<'_>,
        headers: &Headers<'_>,
        target: Target,
        manner: &Manner,
    ) -> Result<Caller, Answer> {
        let unauthenticated = |detail: &'static str, challenge: &'static str| {
            let status = StatusCode::UNAUTHORIZED;
            let mut answer = manner.answer_of(
                &Problem::new("unauthenticated", status, "Unauthenticated", detail),
                None,
            );
            answer
                .headers
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
            answer
        };
        let auth = &self.table.auth;
        let (actor, signature) = if let Some(webhook) = self.table.webhook(target) {
            let signature = webhook.signature(head.headers, head.now);
            let signature = signature.map_err(|detail| unauthenticated(detail, WEBHOOK_CHALLENGE))?;
            (Some(webhook.actor()), Some(signature))
        } else {
            let authorization = headers.authorization.map(HeaderValue::as_bytes);
            let api_key = headers.api_key.map(HeaderValue::as_bytes);
            let actor = auth.identify(authorization, api_key, head.peer.subject, head.now);
            let actor = actor.map_err(|detail| {
                unauthenticated(detail, "Bearer realm=\"vesper\", error=\"invalid_token\"")
            })?;
            (actor, None)
        };
        let scopes = self.table.scopes(target);
        let is_open =
            self.table.endpoint(target) == Some(Endpoint::Builtin(Builtin::Readyz)) || !auth.is_required;
        match &actor {
            None if is_open && scopes.is_empty() => Ok((actor, signature)),
            None => Err(unauthenticated(
                "This endpoint needs credentials.",
                "Bearer realm=\"vesper\"",
            )),
            Some(caller) => match scopes.iter().find(|each| !caller.scopes.contains(each)) {
                None => Ok((actor, signature)),
                Some(missing) => {
                    let detail = format!("The caller lacks the scope `{missing}`.");
                    Err(manner.answer_of(
                        &Problem::new("forbidden", StatusCode::FORBIDDEN, "Forbidden", detail),
                        None,
                    ))
                }
            },
        }
    }

    fn check_body(&self, service: &Service, headers: &Headers<'_>) -> Result<(), Box<Problem<'static>>> {
        let length = headers.body_length();
        if length
            .zip(self.table.max_body_bytes)
            .is_some_and(|(length, most)| length > most)
        {
            let most = self.table.max_body_bytes.unwrap_or_default();
            let (status, detail) = (
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("A body has at most {most} bytes."),
            );
            return Err(Box::new(Problem::new(
                "too_large",
                status,
                "Body too large",
                detail,
            )));
        }
        if length == Some(0) || service.body == Body::None {
            return Ok(());
        }
        let unsupported = |detail: &'static str| {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            Err(Box::new(Problem::new(
                "unsupported_media_type",
                status,
                "Unsupported media type",
                detail,
            )))
        };
        if headers
            .content_encoding
            .is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
        {
            return unsupported("A body is sent without `Content-Encoding`.");
        }
        let is_typed = headers.content_type.is_some_and(|value| {
            value.as_bytes() == b"application/json" || value.to_str().is_ok_and(is_json)
        });
        if is_typed {
            Ok(())
        } else {
            unsupported("Send `Content-Type: application/json`, in UTF-8.")
        }
    }

    /// Answers a method that the path does not have: OPTIONS, or 405.
    fn other_method(
        &self,
        head: &Head<'_>,
        headers: &Headers<'_>,
        manner: &Manner,
        methods: &[Method],
    ) -> Answer {
        let mut names: Vec<&str> = methods.iter().map(Method::as_str).collect();
        if names.contains(&"GET") {
            names.push("HEAD");
        }
        names.push("OPTIONS");
        names.sort_unstable();
        let allow = HeaderValue::from_str(&names.join(", ")).unwrap_or(HeaderValue::from_static("OPTIONS"));
        if head.method != Method::OPTIONS {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            let detail = format!("This path has no {}.", head.method);
            let problem = Problem::new("method_not_allowed", status, "Method not allowed", detail);
            let mut answer = manner.answer_of(&problem, None);
            answer.headers.insert(header::ALLOW, allow);
            return answer;
        }
        let mut answer = Answer {
            status: StatusCode::NO_CONTENT,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        if let (Some(cors), Some(_), Some(_)) = (&self.table.cors, &manner.origin, headers.requested_method) {
            answer
                .headers
                .insert(header::ACCESS_CONTROL_ALLOW_METHODS, allow.clone());
            answer
                .headers
                .insert(header::ACCESS_CONTROL_ALLOW_HEADERS, cors.headers.clone());
            answer
                .headers
                .insert(header::ACCESS_CONTROL_MAX_AGE, cors.max_age.clone());
        }
        answer.headers.insert(header::ALLOW, allow);
        answer
    }
}

fn malformed_request<'a>(detail: impl Into<Cow<'a, str>>) -> Problem<'a> {
    Problem::new(
        RefusalKind::Malformed.name(),
        StatusCode::BAD_REQUEST,
        "Malformed request",
        detail,
    )
}

/// Returns whether a header is printable ASCII of at most this length, and not empty.
fn is_printable(bytes: &[u8], most: usize) -> bool {
    (1..=most).contains(&bytes.len()) && bytes.iter().all(|byte| (0x20..0x7f).contains(byte))
}

fn livez() -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, JSON_TYPE);
    Answer {
        status: StatusCode::OK,
        headers,
        body: Bytes::from_static(b"{\"status\":\"live\"}"),
    }
}

fn timeout_of(value: &HeaderValue) -> Option<Duration> {
    let text = value
        .to_str()
        .ok()
        .filter(|text| text.len() <= 20 && text.starts_with(|first: char| first.is_ascii_digit()))?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = text.parse().ok().filter(|_| is_plain)?;
    (seconds <= MAX_TIMEOUT_SECONDS).then(|| Duration::from_secs_f64(seconds))
}

impl Cors {
    fn allowed_origin(&self, origin: &HeaderValue) -> Option<HeaderValue> {
        if self.is_any_origin {
            return Some(HeaderValue::from_static("*"));
        }
        self.origins
            .iter()
            .any(|each| each.as_bytes() == origin.as_bytes())
            .then(|| origin.clone())
    }
}
