//! Answers: what the server writes back.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

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
    const NAMES: [(&'static str, Self); 12] = [
        ("malformed", Self::Malformed),
        ("slow_body", Self::SlowBody),
        ("too_large", Self::TooLarge),
        ("head_too_large", Self::HeadTooLarge),
        ("overloaded", Self::Overloaded),
        ("closing", Self::Closing),
        ("journal", Self::Journal),
        ("deadline", Self::Deadline),
        ("key_reused", Self::KeyReused),
        ("key_running", Self::KeyRunning),
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
        Answer {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }
}
