//! The trace context of one run, and the spans of its effects where the run is sampled.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use vesper_interp::Request;
use vesper_ir::Effect;

use crate::effect::TraceHeaders;
use crate::model::Spent;
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
    /// Model, tokens and cost of all attempts of a request to a model.
    pub usage: Option<(String, Spent)>,
}

/// Span of an effect under way.
#[derive(Debug)]
pub(super) struct OpenSpan {
    id: u64,
    start_ns: i64,
    traceparent: String,
    attempts: AtomicU32,
    used: Mutex<Spent>,
}

/// Trace context of a run.
#[derive(Debug)]
pub struct RunTrace {
    traceparent: String,
    tracestate: Option<String>,
    is_recorded: bool,
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
            ended: Vec::new(),
        })
    }

    /// Returns the spans that have ended since the last call.
    pub fn take(&mut self) -> Vec<EffectSpan> {
        std::mem::take(&mut self.ended)
    }

    /// Returns the context for the next attempt within the span, which counts it.
    pub(super) fn headers<'a>(&'a self, span: Option<&'a OpenSpan>) -> TraceHeaders<'a> {
        let traceparent = span.map_or(&self.traceparent, |open| {
            open.attempts.fetch_add(1, Ordering::Relaxed);
            &open.traceparent
        });
        TraceHeaders {
            traceparent,
            tracestate: self.tracestate.as_deref(),
        }
    }

    /// Begins the span of an effect. Without random bytes there is none, and the run's own span is carried.
    pub(super) fn begin(&self, sources: &dyn Sources) -> Option<OpenSpan> {
        let mut bytes = [0; 8];
        if !self.is_recorded || sources.fill(&mut bytes).is_err() {
            return None;
        }
        let id = u64::from_be_bytes(bytes).max(1);
        let (before, rest) = self.traceparent.split_at(TRACE_LENGTH);
        let mut traceparent = String::with_capacity(self.traceparent.len());
        traceparent.push_str(before);
        let _ = write!(traceparent, "{id:016x}");
        traceparent.push_str(&rest[ID_LENGTH..]);
        Some(OpenSpan {
            id,
            start_ns: sources.now_ns(),
            traceparent,
            attempts: AtomicU32::new(0),
            used: Mutex::default(),
        })
    }

    /// Adds a span that has ended.
    pub(super) fn add(&mut self, span: EffectSpan) {
        self.ended.push(span);
    }
}

impl OpenSpan {
    /// Adds what an attempt used.
    pub(super) fn add_usage(&self, used: &Spent) {
        let mut sum = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        sum.input_tokens += used.input_tokens;
        sum.output_tokens += used.output_tokens;
        sum.cost.0 += used.cost.0;
        sum.calls += used.calls;
    }

    /// Ends the span.
    pub(super) fn end(self, request: &Request, sources: &dyn Sources, failure: Option<&str>) -> EffectSpan {
        let usage = (request.effect == Effect::ModelCall).then(|| {
            let model = request.fixed.iter().find(|(name, _)| &**name == "model");
            let used = self.used.into_inner().unwrap_or_else(PoisonError::into_inner);
            (model.map_or_else(String::new, |(_, name)| name.to_string()), used)
        });
        EffectSpan {
            path: request.path.clone(),
            effect: request.effect.name(),
            class: request.class.name(),
            id: self.id,
            start_ns: self.start_ns,
            end_ns: sources.now_ns().max(self.start_ns),
            attempts: self.attempts.into_inner(),
            failure: failure.map(str::to_owned),
            usage,
        }
    }
}
