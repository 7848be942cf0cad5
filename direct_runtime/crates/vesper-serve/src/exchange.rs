//! The meaning of a request, without sockets: a head to a call or an answer, an outcome to an answer.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method};

use crate::answer::{Answer, Refusal, RefusalKind};

/// The routes and settings of one epoch. Immutable; clones share the table.
#[derive(Clone, Debug)]
pub struct Exchange {
    _table: Arc<()>,
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

/// How a caller was authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Key,
    Jwt,
    Mtls,
}

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub subject: String,
    pub tenant: Option<String>,
    pub via: Via,
    pub scopes: Vec<String>,
}

/// The W3C trace context of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    pub trace_id: [u8; 16],
    /// Span of the caller; `None` where the request brought no valid `traceparent`.
    pub parent_id: Option<[u8; 8]>,
    /// Span of this request, which the answer's `traceparent` names.
    pub span_id: [u8; 8],
    pub is_sampled: bool,
}

/// A request that wants an outcome of a node, or a page of the server.
#[derive(Debug)]
pub struct Call {
    endpoint: Endpoint,
    trace: Trace,
}

impl Exchange {
    /// Reads a table (docs/spec/serving.md).
    pub fn new(table: &[u8]) -> Result<Self, TableError> {
        let _ = table;
        Err(TableError("not implemented".to_owned()))
    }

    /// Decides on a request by its head.
    pub fn route(&self, head: &Head<'_>) -> Routed {
        let _ = head;
        Routed::Answer(Refusal::from(RefusalKind::Internal).answer())
    }

    /// Returns the node of an endpoint, for labels.
    pub fn node(&self, endpoint: usize) -> &str {
        let _ = endpoint;
        ""
    }

    /// Returns the path template of an endpoint, for logs, which must not show the path.
    pub fn template(&self, endpoint: Endpoint) -> &str {
        let _ = endpoint;
        ""
    }
}

impl Call {
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// Returns the JSON object of inputs for `run_json`: the body itself where every input comes from it.
    pub fn inputs<'a>(&self, body: &'a [u8]) -> Result<Cow<'a, [u8]>, Answer> {
        Ok(Cow::Borrowed(body))
    }

    /// Returns the answer to an outcome, the bytes of `run_json`. `execution` names the run in the journal.
    pub fn answer(&self, outcome: &[u8], execution: Option<&str>) -> Answer {
        let _ = (outcome, execution);
        Refusal::from(RefusalKind::Internal).answer()
    }

    /// Returns the answer of a page of the server.
    pub fn page(&self, status: u16, headers: &[(String, String)], body: Vec<u8>) -> Answer {
        let _ = (status, headers, body);
        Refusal::from(RefusalKind::Internal).answer()
    }

    pub fn refuse(&self, refusal: &Refusal) -> Answer {
        refusal.answer()
    }

    pub fn actor(&self) -> Option<&Actor> {
        None
    }

    pub fn tenant(&self) -> Option<&str> {
        self.actor()?.tenant.as_deref()
    }

    /// Returns the `Idempotency-Key`.
    pub fn key(&self) -> Option<&str> {
        None
    }

    /// Returns the time that `Vesper-Timeout` grants the request, from its head on.
    pub fn timeout(&self) -> Option<Duration> {
        None
    }

    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the context of the run: the `traceparent` of the request, or one with the ids of this server.
    pub fn traceparent(&self) -> String {
        String::new()
    }

    pub fn tracestate(&self) -> Option<&str> {
        None
    }
}

/// A table that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError(pub String);

impl fmt::Display for TableError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for TableError {}
