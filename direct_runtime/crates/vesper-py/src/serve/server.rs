//! The HTTP server and its calls for Python.

use std::net::TcpListener;
use std::os::fd::{FromRawFd as _, RawFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use vesper_serve::{
    AccessRow, Call, Endpoint, Engine, Exchange, NativeNode, Parts, Pending, Refusal, RefusalKind, Server,
    Settings, SpanRow,
};

use crate::calls::program::Program;
use crate::metrics::CallMetrics;
use crate::routing::route::{NativeRoute, Route};

/// A program as the engine of the server.
struct NativeProgram {
    program: Py<Program>,
    metrics: CallMetrics,
}

impl Engine for NativeProgram {
    fn program(&self) -> &vesper_interp::Program {
        self.program.get().compiled()
    }

    fn count_served(&self) {
        self.metrics.count(None);
    }
}

/// Serves nodes by HTTP on threads of its own.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct HttpServer(Server);

#[pymethods]
impl HttpServer {
    /// Makes a server that owns the descriptor of a listening socket. The first `load` starts it.
    #[new]
    #[pyo3(signature = (listener, settings, /))]
    fn new(listener: RawFd, settings: &[u8]) -> PyResult<Self> {
        let settings = Settings::of_json(settings).map_err(PyValueError::new_err)?;
        if listener < 0 {
            return Err(PyValueError::new_err("the listener is not a descriptor"));
        }
        // SAFETY: the caller hands over a descriptor that it detached from its socket, as the interface says.
        let listener = unsafe { TcpListener::from_raw_fd(listener) };
        Server::new(listener, settings)
            .map(Self)
            .map_err(PyValueError::new_err)
    }

    /// Serves later requests by a table and the programs of its endpoints: a `Program`, a `Route`, or None for a node
    /// that only Python runs.
    #[pyo3(signature = (table, programs, /))]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes a new list")]
    fn load(&self, py: Python<'_>, table: &[u8], programs: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let exchange = Exchange::new(table).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let nodes = programs.iter().map(native_node).collect::<PyResult<Vec<_>>>()?;
        py.detach(|| self.0.load(exchange, nodes))
            .map_err(PyValueError::new_err)
    }

    /// Waits for the next call. Returns None after `seconds`, or at once when the server is drained or closed.
    #[pyo3(signature = (seconds, /, builtins = false))]
    fn next(&self, py: Python<'_>, seconds: f64, builtins: bool) -> Option<HttpCall> {
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        py.detach(|| self.0.next(limit, builtins)).map(HttpCall)
    }

    fn stop_accepting(&self, py: Python<'_>) {
        py.detach(|| self.0.stop_accepting());
    }

    /// Finishes the requests of all connections. Returns False if some are left after `seconds`.
    #[pyo3(signature = (seconds, /))]
    fn drain(&self, py: Python<'_>, seconds: f64) -> bool {
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        py.detach(|| self.0.drain(limit))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }

    /// Takes the native requests whose traces are sampled.
    fn take_spans(&self) -> Vec<(String, u128, u64, u64, u64, u64, &'static str)> {
        let row = |SpanRow {
                       node,
                       trace,
                       start_ns,
                       end_ns,
                   }| {
            let parent = trace.parent_id.map_or(0, u64::from_be_bytes);
            let (trace_id, span) = (
                u128::from_be_bytes(trace.trace_id),
                u64::from_be_bytes(trace.span_id),
            );
            (node, trace_id, span, parent, start_ns, end_ns, "returned")
        };
        self.0.take_spans().into_iter().map(row).collect()
    }

    /// Takes the rows of the access log.
    #[expect(clippy::type_complexity, reason = "a row is a tuple in Python")]
    fn take_access(
        &self,
    ) -> Vec<(
        String,
        Option<String>,
        Option<String>,
        u16,
        u64,
        u64,
        Option<String>,
    )> {
        let row = |AccessRow {
                       method,
                       template,
                       node,
                       status,
                       start_ns,
                       duration_ns,
                       trace_id,
                   }| {
            let trace_id = trace_id.map(|id| hexadecimal(&id));
            (
                method.to_string(),
                template,
                node,
                status.as_u16(),
                start_ns,
                duration_ns,
                trace_id,
            )
        };
        self.0.take_access().into_iter().map(row).collect()
    }

    /// Takes messages about faults of the server itself.
    fn take_logs(&self) -> Vec<String> {
        self.0.take_logs()
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let facts = self.0.facts();
        let shown = PyDict::new(py);
        shown.set_item("connections", facts.connections)?;
        shown.set_item("queued", facts.queued)?;
        shown.set_item("native_runs", facts.native_runs)?;
        shown.set_item("buffered_bytes", facts.buffered_bytes)?;
        shown.set_item("requests", facts.requests)?;
        shown.set_item("native_requests", facts.native_requests)?;
        shown.set_item("epoch", facts.epoch)?;
        shown.set_item("oldest_epoch", facts.oldest_epoch)?;
        Ok(shown)
    }
}

/// Returns the native form of a program; a node with effects has none.
fn native_node(program: &Bound<'_, PyAny>) -> PyResult<Option<NativeNode>> {
    if program.is_none() {
        return Ok(None);
    }
    if let Ok(program) = program.cast::<Program>() {
        let has_effects = program.get().compiled().asks();
        let native = || {
            NativeNode::new(Box::new(NativeProgram {
                metrics: CallMetrics::new(&program.get().compiled().node().node_id, "direct"),
                program: program.clone().unbind(),
            }))
        };
        return Ok((!has_effects).then(native));
    }
    match program.cast::<Route>() {
        Ok(route) => Ok(Some(NativeNode::new(Box::new(NativeRoute(
            route.clone().unbind(),
        ))))),
        Err(_) => Err(PyTypeError::new_err(format!(
            "a program of the server is a Program, a Route or None, not {}",
            program.get_type().name()?
        ))),
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// A request for Python. Dropped without an answer, it is answered as an internal error.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct HttpCall(Pending);

impl HttpCall {
    fn call(&self) -> &Call {
        &self.0.call
    }

    /// Answers the call without the global lock.
    fn end(&self, py: Python<'_>, answer: impl FnOnce(&Pending) -> bool + Send) -> PyResult<()> {
        if py.detach(|| answer(&self.0)) {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("the call has an answer already"))
    }
}

#[pymethods]
impl HttpCall {
    /// Index of the endpoint, or -1 for a page of the server.
    #[getter]
    fn endpoint(&self) -> isize {
        match self.call().endpoint() {
            Endpoint::Node(index) => isize::try_from(index).unwrap_or(-1),
            Endpoint::Builtin(_) => -1,
        }
    }

    /// Path of a page of the server.
    #[getter]
    fn builtin(&self) -> Option<&'static str> {
        match self.call().endpoint() {
            Endpoint::Node(_) => None,
            Endpoint::Builtin(builtin) => Some(builtin.path()),
        }
    }

    #[getter]
    fn node(&self) -> Option<&str> {
        match self.call().endpoint() {
            Endpoint::Node(index) => Some(self.0.epoch.exchange.node(index)),
            Endpoint::Builtin(_) => None,
        }
    }

    /// JSON object of the inputs.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.inputs)
    }

    #[getter]
    fn epoch(&self) -> u64 {
        self.0.epoch.number
    }

    /// Subject of the caller.
    #[getter]
    fn actor(&self) -> Option<&str> {
        self.call().actor().map(|actor| actor.subject.as_str())
    }

    #[getter]
    fn tenant(&self) -> Option<&str> {
        self.call().tenant()
    }

    /// The authority that names the caller: `key`, `mtls`, or `jwt:` and the issuer.
    #[getter]
    fn via(&self) -> Option<&str> {
        self.call().actor().map(|actor| &*actor.via)
    }

    #[getter]
    fn scopes(&self) -> Vec<String> {
        self.call()
            .actor()
            .map(|actor| actor.scopes.clone())
            .unwrap_or_default()
    }

    #[getter]
    fn key(&self) -> Option<&str> {
        self.call().key()
    }

    /// Time until the deadline that the client set.
    #[getter]
    fn seconds_left(&self) -> Option<f64> {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now()).as_secs_f64();
        self.0.deadline.map(left)
    }

    /// Trace context of the client.
    #[getter]
    fn traceparent(&self) -> Option<String> {
        self.call().trace().parent_id.map(|_| self.call().traceparent())
    }

    #[getter]
    fn tracestate(&self) -> Option<&str> {
        self.call().tracestate()
    }

    /// The `Accept` header of a request for a page of the server, or for an event stream.
    #[getter]
    fn accept(&self) -> Option<&str> {
        self.call().accept()
    }

    /// Trace id of the answer.
    #[getter]
    fn trace_id(&self) -> String {
        hexadecimal(&self.call().trace().trace_id)
    }

    #[getter]
    fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }

    /// Answers with an outcome, the bytes of `run_json`. Raises `RuntimeError` for a second answer.
    #[pyo3(signature = (outcome, execution = None, /))]
    fn answer(&self, py: Python<'_>, outcome: &[u8], execution: Option<&str>) -> PyResult<()> {
        self.end(py, |pending| {
            pending.answer(|call| call.answer(outcome, execution))
        })
    }

    /// Refuses the call, by the name of a refusal such as `key_reused`.
    #[pyo3(signature = (refusal, detail = None, retry_after = None, execution = None, /))]
    fn refuse(
        &self,
        py: Python<'_>,
        refusal: &str,
        detail: Option<String>,
        retry_after: Option<f64>,
        execution: Option<String>,
    ) -> PyResult<()> {
        let kind = RefusalKind::of_name(refusal)
            .ok_or_else(|| PyValueError::new_err(format!("there is no refusal `{refusal}`")))?;
        let retry_after = retry_after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let refusal = Refusal {
            kind,
            detail,
            retry_after,
            execution,
        };
        self.end(py, |pending| pending.refuse(&refusal))
    }

    /// Answers with a page of the server.
    #[pyo3(signature = (status, headers, body, /))]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes new objects")]
    fn send(
        &self,
        py: Python<'_>,
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> PyResult<()> {
        self.end(py, move |pending| {
            pending.answer(|call| call.page(status, &headers, body))
        })
    }

    /// Answers with a head, and returns the body, to be written part by part.
    #[pyo3(signature = (status, headers, /))]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes new objects")]
    fn stream(&self, py: Python<'_>, status: u16, headers: Vec<(String, String)>) -> PyResult<HttpStream> {
        py.detach(|| self.0.stream(|call| call.page(status, &headers, Vec::new())))
            .map(|parts| HttpStream(Mutex::new(Some(parts))))
            .ok_or_else(|| PyRuntimeError::new_err("the call has an answer already"))
    }
}

/// The body of an answer, written part by part. Dropped, it ends.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct HttpStream(Mutex<Option<Parts>>);

#[pymethods]
impl HttpStream {
    /// Sends a part; returns false if the stream has ended, or its client has gone or does not read.
    #[pyo3(signature = (part, /))]
    fn send(&self, part: Vec<u8>) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .is_some_and(|parts| parts.send(part.into()))
    }

    /// Ends the body.
    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
