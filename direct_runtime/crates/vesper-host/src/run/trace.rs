//! The trace context of one run, and the spans of its effects where the run is sampled.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};

use vesper_interp::Request;

use crate::effect::TraceHeaders;
use crate::sources::Sources;

/// Characters of `VERSION-TRACE-` in a `traceparent`; the id of the span follows, in 16 digits.
const TRACE_LENGTH: usize = 36;
const ID_LENGTH: usize = 16;

/// Span of an effect that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectSpan {
    pub path: String,
    pub effect: &'static str,
    pub class: &'static str,
    pub id: u64,
    /// Nanoseconds since 1970; `end_ns` likewise.
    pub start_ns: i64,
    pub end_ns: i64,
    pub attempts: u32,
    /// Code of the failure; None for a value.
    pub failure: Option<String>,
}

/// Span of the effect under way.
#[derive(Debug)]
struct OpenSpan {
    id: u64,
    start_ns: i64,
    traceparent: String,
    attempts: AtomicU32,
}

/// Trace context of a run.
#[derive(Debug)]
pub struct RunTrace {
    traceparent: String,
    tracestate: Option<String>,
    is_recorded: bool,
    open: Option<OpenSpan>,
    ended: Vec<EffectSpan>,
}

impl RunTrace {
    /// Creates the context of a run from the `traceparent` of its span; None for a text that is none. Requests of a run
    /// that is not recorded carry it unchanged.
    pub fn new(traceparent: String, tracestate: Option<String>, is_recorded: bool) -> Option<Self> {
        let is_valid = traceparent.len() == TRACE_LENGTH + ID_LENGTH + 3 && traceparent.is_ascii();
        is_valid.then_some(Self {
            traceparent,
            tracestate,
            is_recorded,
            open: None,
            ended: Vec::new(),
        })
    }

    /// Returns the spans that have ended since the last call.
    pub fn take(&mut self) -> Vec<EffectSpan> {
        std::mem::take(&mut self.ended)
    }

    /// Returns the context for the next attempt, which it counts.
    pub(super) fn headers(&self) -> TraceHeaders<'_> {
        let traceparent = self.open.as_ref().map_or(&self.traceparent, |open| {
            open.attempts.fetch_add(1, Ordering::Relaxed);
            &open.traceparent
        });
        TraceHeaders {
            traceparent,
            tracestate: self.tracestate.as_deref(),
        }
    }

    /// Begins the span of an effect. Without random bytes there is none, and the run's own span is carried.
    pub(super) fn begin(&mut self, sources: &dyn Sources) {
        let mut bytes = [0; 8];
        if !self.is_recorded || sources.fill(&mut bytes).is_err() {
            return;
        }
        let id = u64::from_be_bytes(bytes).max(1);
        let (before, rest) = self.traceparent.split_at(TRACE_LENGTH);
        let mut traceparent = String::with_capacity(self.traceparent.len());
        traceparent.push_str(before);
        let _ = write!(traceparent, "{id:016x}");
        traceparent.push_str(&rest[ID_LENGTH..]);
        self.open = Some(OpenSpan {
            id,
            start_ns: sources.now_ns(),
            traceparent,
            attempts: AtomicU32::new(0),
        });
    }

    /// Ends the span of the effect under way, if there is one.
    pub(super) fn end(&mut self, request: &Request, sources: &dyn Sources, failure: Option<&str>) {
        let Some(open) = self.open.take() else { return };
        self.ended.push(EffectSpan {
            path: request.path.clone(),
            effect: request.effect.name(),
            class: request.class.name(),
            id: open.id,
            start_ns: open.start_ns,
            end_ns: sources.now_ns().max(open.start_ns),
            attempts: open.attempts.into_inner(),
            failure: failure.map(str::to_owned),
        });
    }
}
