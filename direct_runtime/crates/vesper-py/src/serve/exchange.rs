//! The exchange for servers that are written in Python.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use vesper_serve::http::{HeaderMap, HeaderName, HeaderValue, Method};
use vesper_serve::{Answer, Call, Endpoint, Head, Peer, Refusal, RefusalKind, Routed, Webhook};

use crate::serve::server::hexadecimal;

/// The routes and settings of one epoch.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Exchange(vesper_serve::Exchange);

#[pymethods]
impl Exchange {
    #[new]
    #[pyo3(signature = (table, /))]
    fn new(table: &[u8]) -> PyResult<Self> {
        vesper_serve::Exchange::new(table)
            .map(Self)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Decides on a request by its head: returns a call, or status, headers and body of an answer.
    #[pyo3(signature = (method, target, headers, subject = None, /))]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes a new list")]
    fn route<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        target: &str,
        headers: Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>,
        subject: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let malformed = || answer_tuple(py, &Refusal::from(RefusalKind::Malformed).answer());
        let Ok(method) = Method::from_bytes(method.as_bytes()) else {
            return Ok(malformed()?.into_any());
        };
        let mut found = HeaderMap::with_capacity(headers.len());
        for (name, value) in &headers {
            match (
                HeaderName::from_bytes(name.as_bytes()),
                HeaderValue::from_bytes(value.as_bytes()),
            ) {
                (Ok(name), Ok(value)) => found.append(name, value),
                _ => return Ok(malformed()?.into_any()),
            };
        }
        let head = Head {
            method: &method,
            target,
            headers: &found,
            peer: Peer { subject },
            now: SystemTime::now(),
        };
        match self.0.route(&head) {
            Routed::Answer(answer) => Ok(answer_tuple(py, &answer)?.into_any()),
            Routed::Call(call) => Ok(Bound::new(py, ExchangeCall(call))?.into_any()),
        }
    }
}

/// Returns status, headers and body, as ASGI takes them.
fn answer_tuple<'py>(py: Python<'py>, answer: &Answer) -> PyResult<Bound<'py, PyTuple>> {
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        let (name, value) = (name.as_str().as_bytes(), value.as_bytes());
        (PyBytes::new(py, name), PyBytes::new(py, value))
    };
    let headers = PyList::new(py, answer.headers.iter().map(header).collect::<Vec<_>>())?;
    (answer.status.as_u16(), headers, PyBytes::new(py, &answer.body)).into_pyobject(py)
}

/// A request for a node, or for a page of the server. Its answers are tuples: status, headers, body.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct ExchangeCall(Box<Call>);

#[pymethods]
impl ExchangeCall {
    /// Index of the endpoint, or -1 for a page of the server.
    #[getter]
    fn endpoint(&self) -> isize {
        match self.0.endpoint() {
            Endpoint::Node(index) => isize::try_from(index).unwrap_or(-1),
            Endpoint::Builtin(_) => -1,
        }
    }

    /// Path of a page of the server.
    #[getter]
    fn builtin(&self) -> Option<&'static str> {
        match self.0.endpoint() {
            Endpoint::Node(_) => None,
            Endpoint::Builtin(builtin) => Some(builtin.path()),
        }
    }

    /// Subject of the caller.
    #[getter]
    fn actor(&self) -> Option<&str> {
        self.0.actor().map(|actor| actor.subject.as_str())
    }

    /// The authority that names the caller: `key`, `mtls`, or `jwt:` and the issuer.
    #[getter]
    fn via(&self) -> Option<&str> {
        self.0.actor().map(|actor| &*actor.via)
    }

    #[getter]
    fn tenant(&self) -> Option<&str> {
        self.0.tenant()
    }

    #[getter]
    fn scopes(&self) -> Vec<String> {
        self.0
            .actor()
            .map(|actor| actor.scopes.clone())
            .unwrap_or_default()
    }

    #[getter]
    fn key(&self) -> Option<&str> {
        self.0.key()
    }

    /// `Accept` of a request for a page, or for an event stream.
    #[getter]
    fn accept(&self) -> Option<&str> {
        self.0.accept()
    }

    /// Seconds that the caller grants, from the head on.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.0.timeout().map(|timeout| timeout.as_secs_f64())
    }

    /// Trace context of the caller.
    #[getter]
    fn traceparent(&self) -> Option<String> {
        self.0.trace().parent_id.map(|_| self.0.traceparent())
    }

    /// Trace id of the answer.
    #[getter]
    fn trace_id(&self) -> String {
        hexadecimal(&self.0.trace().trace_id)
    }

    #[getter]
    fn tracestate(&self) -> Option<&str> {
        self.0.tracestate()
    }

    /// Returns the JSON object of the inputs, or an answer.
    #[pyo3(signature = (body, /))]
    fn inputs<'py>(&self, py: Python<'py>, body: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self.0.inputs(body) {
            Ok(inputs) => Ok(PyBytes::new(py, &inputs).into_any()),
            Err(answer) => Ok(answer_tuple(py, &answer)?.into_any()),
        }
    }

    /// Returns the answer to an outcome, the bytes of `run_json`.
    #[pyo3(signature = (outcome, execution = None, /))]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        outcome: &[u8],
        execution: Option<&str>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        answer_tuple(py, &self.0.answer(outcome, execution))
    }

    /// Returns the answer of a refusal, by its name such as `key_reused`.
    #[pyo3(signature = (refusal, detail = None, retry_after = None, execution = None, /))]
    fn refuse<'py>(
        &self,
        py: Python<'py>,
        refusal: &str,
        detail: Option<String>,
        retry_after: Option<f64>,
        execution: Option<String>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let kind = RefusalKind::of_name(refusal)
            .ok_or_else(|| PyValueError::new_err(format!("there is no refusal `{refusal}`")))?;
        let retry_after = retry_after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let refusal = Refusal {
            kind,
            detail,
            retry_after,
            execution,
        };
        answer_tuple(py, &self.0.refuse(&refusal))
    }

    /// Returns the answer of a page of the server.
    #[pyo3(signature = (status, headers, body, /))]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes new objects")]
    fn send<'py>(
        &self,
        py: Python<'py>,
        status: u16,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        answer_tuple(py, &self.0.page(status, &headers, body))
    }
}

/// Checks the signature of a webhook by its scheme, as JSON; `now` is in seconds since 1970.
#[pyfunction]
#[pyo3(signature = (scheme, headers, body, now, /))]
pub(crate) fn verify_webhook(
    scheme: &[u8],
    headers: Vec<(String, String)>,
    body: &[u8],
    now: f64,
) -> PyResult<()> {
    let refused = |problem: &str| PyValueError::new_err(problem.to_owned());
    let webhook = Webhook::of_json(scheme).map_err(|error| refused(&error.0))?;
    let mut found = HeaderMap::new();
    for (name, value) in headers {
        // Headers that HTTP does not know hold no signature.
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(&value),
        ) {
            found.append(name, value);
        }
    }
    let now = UNIX_EPOCH + Duration::try_from_secs_f64(now).unwrap_or_default();
    let signature = webhook.signature(&found, now).map_err(refused)?;
    webhook.verify(&signature, body).map_err(refused)
}
