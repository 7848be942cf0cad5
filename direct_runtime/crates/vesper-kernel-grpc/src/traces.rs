//! Spans of RPCs and steps. Recording one never waits: where the queue is full, the span is dropped and counted.

mod context;
mod export;
mod otlp;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use vesper_kernel::proto::v1::{
    AgentExecutionResult, CreateEnvelopeRequest, ExecutePipelineRequest, InitializeSessionRequest,
    Instruction, InstructionKind, WorkResponse, WorkResult, agent_execution_result, work_response,
    work_result,
};

pub(crate) use context::{Context, TRACEPARENT};
pub(crate) use export::{Endpoint, SpanCounts};

use context::{Caller, is_chosen};
use export::{Event, Exporter};
use otlp::{INTERNAL, SERVER, Span, Status, text};

const MAX_WAITING: usize = 8_192;
/// How long a shutdown waits for the last spans.
const FLUSH: Duration = Duration::from_secs(6);

/// Where spans go, and the share of traces that begin here and are recorded.
#[derive(Clone, Debug)]
pub struct TraceSettings {
    pub(crate) endpoint: Endpoint,
    pub(crate) sample: f64,
}

/// Records spans.
#[derive(Clone, Debug)]
pub(crate) struct Traces {
    events: mpsc::Sender<Event>,
    counts: Arc<SpanCounts>,
    sample: f64,
}

/// The task that sends spans.
#[derive(Debug)]
pub(crate) struct Export {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Export {
    /// Sends the last spans.
    pub(crate) async fn end(self) {
        drop(self.stop);
        drop(tokio::time::timeout(FLUSH, self.task).await);
    }
}

/// The metadata of an envelope that a request makes.
pub(crate) trait Metadata {
    fn metadata(&mut self) -> &mut BTreeMap<String, String>;
}

macro_rules! has_metadata {
    ($($request:ident)*) => {
        $(impl Metadata for $request {
            fn metadata(&mut self) -> &mut BTreeMap<String, String> {
                &mut self.metadata
            }
        })*
    };
}

has_metadata! { CreateEnvelopeRequest ExecutePipelineRequest InitializeSessionRequest }

/// Lets the steps of an envelope belong to the trace of the request that makes it.
pub(crate) fn carried<T: Metadata>(mut request: tonic::Request<T>) -> tonic::Request<T> {
    if let Some(context) = request.extensions().get::<Context>().copied() {
        let metadata = request.get_mut().metadata();
        metadata
            .entry(TRACEPARENT.to_owned())
            .or_insert_with(|| context.to_string());
    }
    request
}

impl Traces {
    pub(crate) fn start(settings: &TraceSettings) -> (Self, Export) {
        let (sender, events) = mpsc::channel(MAX_WAITING);
        let (stop, stopped) = oneshot::channel();
        let counts = Arc::new(SpanCounts::default());
        let exporter = Exporter {
            endpoint: settings.endpoint.clone(),
            counts: Arc::clone(&counts),
            events,
            open: HashMap::new(),
            ended: Vec::new(),
        };
        let task = tokio::spawn(exporter.run(stopped));
        let traces = Self {
            events: sender,
            counts,
            sample: settings.sample,
        };
        (traces, Export { stop, task })
    }

    pub(crate) fn counts(&self) -> Arc<SpanCounts> {
        Arc::clone(&self.counts)
    }

    /// Begins the span of an RPC, where its trace is recorded.
    pub(crate) fn rpc(&self, headers: &http::HeaderMap, service: &str, method: &str) -> Option<OpenRpc> {
        let given = headers.get(TRACEPARENT).and_then(|value| value.to_str().ok());
        let (context, mut span) = self.span(given)?;
        let short = service.rsplit_once('.').map_or(service, |(_, name)| name);
        span.name = format!("{short}/{method}");
        span.kind = SERVER;
        span.attributes = vec![
            text("rpc.system", "grpc"),
            text("rpc.service", service),
            text("rpc.method", method),
        ];
        Some(OpenRpc {
            context,
            span,
            traces: self.clone(),
        })
    }

    /// Begins the span of a step that a stream gives to a worker, which continues the trace.
    ///
    /// `stream` tells it from earlier ones of the worker.
    pub(crate) fn begin_work(&self, stream: &str, worker: &str, work: &mut WorkResponse) {
        if let Some(work_response::Work::Step(step)) = &mut work.work {
            self.begin_step((stream.to_owned(), work.work_id.clone()), worker, step);
        }
    }

    /// Begins the span of a step that a caller takes.
    pub(crate) fn begin_instruction(&self, worker: &str, step: &mut Instruction) {
        if step.kind() == InstructionKind::RunAgent {
            self.begin_step((step.pid.clone(), step.step_id.clone()), worker, step);
        }
    }

    pub(crate) fn end_work(&self, stream: &str, result: &WorkResult) {
        let failure = match &result.result {
            Some(work_result::Result::Agent(result)) => failure_of(result),
            Some(work_result::Result::Error(_)) => Some(Status::error("The worker failed.")),
            _ => None,
        };
        self.record(Event::Completed(
            (stream.to_owned(), result.work_id.clone()),
            failure,
            now_ns(),
        ));
    }

    pub(crate) fn end_instruction(&self, pid: &str, result: Option<&AgentExecutionResult>) {
        let Some(result) = result else { return };
        let place = (pid.to_owned(), result.step_id.clone());
        self.record(Event::Completed(place, failure_of(result), now_ns()));
    }

    pub(crate) fn end_stream(&self, stream: &str) {
        self.record(Event::Gone(stream.to_owned()));
    }

    fn begin_step(&self, place: export::Place, worker: &str, step: &mut Instruction) {
        let Some(envelope) = &mut step.envelope else {
            return;
        };
        let given = envelope.metadata.get(TRACEPARENT).map(String::as_str);
        let Some((context, mut span)) = self.span(given) else {
            return;
        };
        let config = step.agent_config.as_ref();
        let (agent, service) = config.map_or(("", ""), |config| (&config.agent, &config.service));
        span.name = format!("step {}", step.agent_name);
        span.kind = INTERNAL;
        span.attributes = vec![
            text("sir.kernel.pid", &step.pid),
            text("sir.kernel.step_id", &step.step_id),
            text("sir.kernel.stage", &step.agent_name),
            text("sir.kernel.agent", agent),
            text("sir.kernel.service", service),
            text("sir.kernel.worker", worker),
            text("sir.kernel.request_id", &envelope.request_id),
            text("sir.kernel.envelope_id", &envelope.envelope_id),
        ];
        envelope
            .metadata
            .insert(TRACEPARENT.to_owned(), context.to_string());
        self.record(Event::Begun(place, span));
    }

    /// Returns a span that begins now; `None` where its trace is not recorded.
    fn span(&self, given: Option<&str>) -> Option<(Context, Span)> {
        let (context, parent) = match Caller::read(given) {
            Caller::Sampled(parent) => (parent.child()?, parent.span.to_vec()),
            Caller::None if is_chosen(self.sample) => (Context::root()?, Vec::new()),
            Caller::Unsampled | Caller::None => return None,
        };
        let span = Span {
            trace_id: context.trace.to_vec(),
            span_id: context.span.to_vec(),
            parent_span_id: parent,
            start_time_unix_nano: now_ns(),
            ..Span::default()
        };
        Some((context, span))
    }

    fn record(&self, event: Event) {
        if self.events.try_send(event).is_err() {
            self.counts.drop_some(1);
        }
    }
}

/// An RPC under way. Its span ends with it, also where its caller goes.
#[derive(Debug)]
pub(crate) struct OpenRpc {
    pub(crate) context: Context,
    span: Span,
    traces: Traces,
}

impl OpenRpc {
    /// Ends the span with the name of a status code.
    pub(crate) fn end(mut self, code: &str) {
        self.finish(code);
    }

    fn finish(&mut self, code: &str) {
        let mut span = std::mem::take(&mut self.span);
        span.end_time_unix_nano = now_ns();
        span.attributes.push(text("rpc.grpc.status_code", code));
        if code != "OK" {
            span.status = Some(Status::error(code));
        }
        self.traces.record(Event::Ended(span));
    }
}

impl Drop for OpenRpc {
    fn drop(&mut self) {
        if !self.span.trace_id.is_empty() {
            self.finish("CANCELLED");
        }
    }
}

/// Failures by code: their messages may hold what is secret.
fn failure_of(result: &AgentExecutionResult) -> Option<Status> {
    match &result.outcome {
        Some(agent_execution_result::Outcome::Failure(failure)) => Some(Status::error(failure.code.clone())),
        _ => None,
    }
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn a_full_queue_drops_spans_and_never_waits() {
        let (events, _waiting) = mpsc::channel(1);
        let traces = Traces {
            events,
            counts: Arc::default(),
            sample: 1.0,
        };
        for _ in 0..3 {
            let span = traces.rpc(
                &http::HeaderMap::new(),
                "vesper.kernel.v1.KernelService",
                "Submit",
            );
            assert!(span.map(|span| span.end("OK")).is_some());
        }
        assert_eq!(traces.counts.dropped.load(Ordering::Relaxed), 2);
    }
}
