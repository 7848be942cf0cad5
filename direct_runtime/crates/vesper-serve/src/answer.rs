//! Answers: what the server writes back.

use std::io::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, RETRY_AFTER, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::problem::Problem;

pub(crate) const JSON_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const MIN_COMPRESSED_BYTES: usize = 1 << 10;

/// A whole answer. The server adds `content-length`, `date` and `connection`.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Empty for HEAD and 304.
    pub body: Bytes,
}

/// The reason why a request gets no outcome of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// 400: the head or framing of the request is malformed.
    Malformed,
    /// 408: the body arrived too slowly.
    SlowBody,
    /// 413: the body exceeds the limit.
    TooLarge,
    /// 431: the head exceeds a limit.
    HeadTooLarge,
    /// 429: the limits of a model make requests wait.
    ModelBusy,
    /// 503: the queue is full.
    Overloaded,
    /// 503: the server is draining.
    Closing,
    /// 503: the journal cannot be written.
    Journal,
    /// 504: the deadline of the request passed.
    Deadline,
    /// 422: the key belongs to a request with other inputs.
    KeyReused,
    /// 409: a run with this key has not ended.
    KeyRunning,
    /// 422: a value of the request does not fit.
    BadInput,
    /// 403: the caller lacks a right.
    Forbidden,
    /// 404: there is no such thing, or none that the caller may see.
    NotFound,
    /// 409: the state of the run forbids it.
    Conflict,
    /// 500: an effect of the run may or may not have happened.
    InDoubt,
    /// 500: a bug of Vesper.
    Internal,
}

/// A refusal with its details, which are shown to the caller.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub kind: RefusalKind,
    /// Replaces the detail of the kind.
    pub detail: Option<String>,
    /// Rounded up to whole seconds in `Retry-After`.
    pub retry_after: Option<Duration>,
    pub execution: Option<String>,
}

impl RefusalKind {
    const NAMES: [(&'static str, Self); 17] = [
        ("malformed", Self::Malformed),
        ("slow_body", Self::SlowBody),
        ("too_large", Self::TooLarge),
        ("head_too_large", Self::HeadTooLarge),
        ("model_busy", Self::ModelBusy),
        ("overloaded", Self::Overloaded),
        ("closing", Self::Closing),
        ("journal", Self::Journal),
        ("deadline", Self::Deadline),
        ("key_reused", Self::KeyReused),
        ("key_running", Self::KeyRunning),
        ("bad_input", Self::BadInput),
        ("forbidden", Self::Forbidden),
        ("not_found", Self::NotFound),
        ("conflict", Self::Conflict),
        ("in_doubt", Self::InDoubt),
        ("internal", Self::Internal),
    ];

    /// Returns the kind of a name such as `key_reused`.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(each, _)| *each == name)
            .map(|(_, kind)| *kind)
    }

    /// Returns the name, which ends the `type` of the problem.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("internal", |(name, _)| name)
    }
}

impl From<RefusalKind> for Refusal {
    fn from(kind: RefusalKind) -> Self {
        Self {
            kind,
            detail: None,
            retry_after: None,
            execution: None,
        }
    }
}

impl Refusal {
    /// Returns the answer to a request that never became a call, such as one with a malformed head.
    pub fn answer(&self) -> Answer {
        let problem = self.problem();
        Answer::of_problem(&problem, problem.body(None, self.execution.as_deref()))
    }

    pub(crate) fn problem(&self) -> Problem<'_> {
        let (status, title, detail) = self.kind.texts();
        let detail = self.detail.as_deref().unwrap_or(detail);
        let mut problem = Problem::new(self.kind.name(), status, title, detail);
        let is_busy = status == StatusCode::SERVICE_UNAVAILABLE
            || matches!(self.kind, RefusalKind::KeyRunning | RefusalKind::ModelBusy);
        problem.retry_seconds = match self.retry_after {
            Some(wait) => Some(wait.as_secs() + u64::from(wait.subsec_nanos() > 0)),
            None => is_busy.then_some(1),
        };
        problem
    }
}

impl RefusalKind {
    fn texts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Malformed => (
                StatusCode::BAD_REQUEST,
                "Malformed request",
                "The request is not HTTP.",
            ),
            Self::SlowBody => (
                StatusCode::REQUEST_TIMEOUT,
                "Request too slow",
                "The body arrived too slowly.",
            ),
            Self::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "Body too large",
                "The body exceeds the limit.",
            ),
            Self::HeadTooLarge => {
                let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                (
                    status,
                    "Head too large",
                    "The head of the request exceeds a limit.",
                )
            }
            Self::ModelBusy => (
                StatusCode::TOO_MANY_REQUESTS,
                "Model busy",
                "A model that this needs is at its limit.",
            ),
            Self::Overloaded => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Overloaded",
                "The server has no place for this request now.",
            ),
            Self::Closing => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Closing",
                "The server is shutting down.",
            ),
            Self::Journal => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Journal unavailable",
                "The journal cannot be written now.",
            ),
            Self::Deadline => (
                StatusCode::GATEWAY_TIMEOUT,
                "Deadline passed",
                "The request's time ran out before its outcome.",
            ),
            Self::KeyReused => {
                let detail = "The Idempotency-Key belongs to a request with other inputs.";
                (StatusCode::UNPROCESSABLE_ENTITY, "Key reused", detail)
            }
            Self::KeyRunning => (
                StatusCode::CONFLICT,
                "Key in use",
                "A request with this Idempotency-Key has not ended.",
            ),
            Self::BadInput => {
                let detail = "A value of the request does not fit.";
                (StatusCode::UNPROCESSABLE_ENTITY, "Inputs do not fit", detail)
            }
            Self::Forbidden => (StatusCode::FORBIDDEN, "Forbidden", "The caller lacks a right."),
            Self::NotFound => (
                StatusCode::NOT_FOUND,
                "Not found",
                "There is nothing at this path.",
            ),
            Self::Conflict => (
                StatusCode::CONFLICT,
                "Conflict",
                "The state of the run does not allow this.",
            ),
            Self::InDoubt => {
                let detail =
                    "An effect may or may not have happened; an operator must resolve the execution.";
                (StatusCode::INTERNAL_SERVER_ERROR, "Outcome in doubt", detail)
            }
            Self::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Internal error",
                "The server failed; its log has more.",
            ),
        }
    }
}

impl Answer {
    pub(crate) fn of_problem(problem: &Problem<'_>, body: String) -> Self {
        let mut headers = HeaderMap::with_capacity(6);
        headers.insert(CONTENT_TYPE, PROBLEM_TYPE);
        headers.insert(CACHE_CONTROL, NO_STORE);
        if let Some(seconds) = problem.retry_seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        Self {
            status: problem.status,
            headers,
            body: body.into(),
        }
    }

    /// Compresses a body that is large enough, where the caller accepts it.
    pub(crate) fn compress(&mut self, is_accepted: bool) {
        if self.body.len() < MIN_COMPRESSED_BYTES || self.headers.contains_key(CONTENT_ENCODING) {
            return;
        }
        self.headers
            .append(VARY, HeaderValue::from_static("accept-encoding"));
        if !is_accepted {
            return;
        }
        let mut encoder = GzEncoder::new(Vec::with_capacity(self.body.len() / 2), Compression::fast());
        if let Ok(body) = encoder.write_all(&self.body).and_then(|()| encoder.finish()) {
            self.body = body.into();
            self.headers
                .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }

    /// Adds a strong `ETag` of the body, and answers 304 where the caller has it.
    pub(crate) fn add_etag(&mut self, if_none_match: Option<&HeaderValue>) {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.body);
        let mut tag = String::from("\"");
        tag.push_str(&URL_SAFE_NO_PAD.encode(digest.as_ref().get(..16).unwrap_or_default()));
        tag.push('"');
        let is_known = if_none_match
            .and_then(|given| given.to_str().ok())
            .is_some_and(|given| {
                let each =
                    |each: &str| matches!(each.trim(), "*") || each.trim().trim_start_matches("W/") == tag;
                given.split(',').any(each)
            });
        if is_known {
            self.status = StatusCode::NOT_MODIFIED;
            self.body = Bytes::new();
            self.headers.remove(CONTENT_TYPE);
            self.headers.remove(CONTENT_ENCODING);
        }
        self.headers
            .extend(HeaderValue::try_from(tag).ok().map(|tag| (ETAG, tag)));
        self.headers
            .insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }

    /// Removes the body of an answer to HEAD and keeps its length.
    pub(crate) fn drop_body(&mut self) {
        if self.status != StatusCode::NOT_MODIFIED {
            self.headers
                .insert(CONTENT_LENGTH, HeaderValue::from(self.body.len()));
        }
        self.body = Bytes::new();
    }
}
