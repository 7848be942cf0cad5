//! Performers that are objects of Python: custom effects, test doubles, and those without a native form.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyBool, PyDict, PyString, PyTuple, PyType};
use vesper_host::effect::{
    Ask, AttemptError, Broken, Chunk, ChunkSink, Failure, Pending, Performer, Secrets,
};
use vesper_host::model::Catalog;
use vesper_host::run::contract::{Performers, Plan};
use vesper_host::runtime;
use vesper_host::secret_store::SecretStore;
use vesper_ir::json::quote;
use vesper_ir::{Effect, FailureCode, Value};
use zeroize::Zeroizing;

use crate::host::context::attached;
use crate::host::http::models::ModelCatalog;
use crate::host::native_performer::native_form;
use crate::host::plans::{PlannedRequest, RequestPlans};
use crate::host::secrets;

static ASK: PyOnceLock<Py<PyType>> = PyOnceLock::new();
pub(crate) static FAILED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
pub(crate) static NOT_DONE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
pub(crate) const MODULE: &str = "vesper.effects.performer";

/// Returns the failure that an `EffectFailed` reports; None for other exceptions.
fn read_failure(py: Python<'_>, error: &PyErr) -> PyResult<Option<Failure>> {
    let class = FAILED.import(py, MODULE, "EffectFailed")?;
    let object = error.value(py);
    if !object.is_instance(class)? {
        return Ok(None);
    }
    let code: String = object.getattr(intern!(py, "code"))?.extract()?;
    let wait: Option<f64> = object.getattr(intern!(py, "retry_after"))?.extract()?;
    Ok(Some(Failure {
        code: FailureCode::new(&code),
        message: object.getattr(intern!(py, "message"))?.extract()?,
        retry_after: wait.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        may_have_happened: object.getattr(intern!(py, "may_have_happened"))?.is_truthy()?,
    }))
}

/// Converts an exception of an attempt: an `EffectFailed` to its failure, another one to the end of the run.
pub(crate) fn attempt_error(py: Python<'_>, error: PyErr) -> AttemptError {
    match read_failure(py, &error) {
        Ok(Some(failure)) => AttemptError::Failed(failure),
        Ok(None) => AttemptError::Broken(Broken(Box::new(error))),
        Err(other) => AttemptError::Broken(Broken(Box::new(other))),
    }
}

/// Converts an exception where only a failure can be reported. Another one is logged.
pub(crate) fn failure_of(py: Python<'_>, error: PyErr) -> Failure {
    if let Ok(Some(failure)) = read_failure(py, &error) {
        return failure;
    }
    error.write_unraisable(py, None);
    Failure::new(
        "unavailable",
        "an exception was raised while the effect was prepared",
    )
}

/// The performers and secrets of a Host for the runs of one node.
pub(crate) struct HostPerformers {
    plans: Arc<RequestPlans>,
    /// `vesper.host.performers.Performers`.
    parts: Py<PyAny>,
    /// Returns the text of a secret that the node may use, for performers of Python.
    secret: Py<PyAny>,
    store: Arc<SecretStore>,
    models: Arc<Catalog>,
    /// Capabilities of the node.
    granted: HashSet<String>,
    found: Mutex<HashMap<Effect, Arc<dyn Performer>>>,
    /// True where the runs are part of a transaction of their caller.
    is_joined: bool,
}

impl HostPerformers {
    pub(crate) fn new(
        py: Python<'_>,
        plans: Arc<RequestPlans>,
        parts: Py<PyAny>,
        secret: Py<PyAny>,
        granted: HashSet<String>,
        is_joined: bool,
    ) -> PyResult<Self> {
        let store = parts.bind(py).getattr(intern!(py, "secrets"))?;
        let models = parts.bind(py).getattr(intern!(py, "models"))?;
        Ok(Self {
            plans,
            parts,
            secret,
            store: Arc::clone(&store.cast::<secrets::SecretStore>()?.get().inner),
            models: Arc::clone(&models.cast::<ModelCatalog>()?.get().inner),
            granted,
            found: Mutex::default(),
            is_joined,
        })
    }

    fn find(&self, py: Python<'_>, effect: Effect) -> PyResult<Arc<dyn Performer>> {
        let object = self
            .parts
            .call_method1(py, intern!(py, "performer_of"), (effect.name(),))?;
        if let Some(native) = native_form(object.bind(py), self.is_joined)? {
            return Ok(native);
        }
        Ok(Arc::new(PythonPerformer {
            object,
            plans: Arc::clone(&self.plans),
            secret: self.secret.clone_ref(py),
        }))
    }
}

impl Secrets for HostPerformers {
    fn text(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        let capability = format!("secrets.read.{name}");
        if !self.granted.contains(&capability) {
            let message = format!("the node has no handle for `{capability}`");
            return Err(Failure::new("not_found", message));
        }
        self.store.text(name)
    }
}

impl Performers for HostPerformers {
    fn performer(&self, plan: &Plan) -> Result<Arc<dyn Performer>, Failure> {
        // Not held while Python makes a performer: another thread may wait for it with the lock of Python.
        let lock = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&plan.effect).map(Arc::clone);
        if let Some(known) = known {
            return Ok(known);
        }
        let made = attached(|py| self.find(py, plan.effect).map_err(|error| failure_of(py, error)))?;
        lock().insert(plan.effect, Arc::clone(&made));
        Ok(made)
    }

    fn key_ttl(&self, plan: &Plan) -> Option<Duration> {
        attached(|py| {
            let seconds = || -> PyResult<Option<f64>> {
                let fixed = plan
                    .fixed
                    .iter()
                    .map(|(name, text)| (&**name, &**text))
                    .into_py_dict(py)?;
                let seconds =
                    self.parts
                        .call_method1(py, intern!(py, "key_ttl"), (plan.effect.name(), fixed))?;
                seconds.extract(py)
            };
            match seconds() {
                Ok(seconds) => seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
                Err(error) => {
                    // A time that is unknown is over: the request is in doubt, and not repeated.
                    error.write_unraisable(py, None);
                    Some(Duration::ZERO)
                }
            }
        })
    }

    fn redact(&self, text: String) -> String {
        self.store.redact(&text)
    }

    fn secrets(&self) -> &dyn Secrets {
        self
    }

    fn sink(&self, execution: &str) -> Option<Arc<dyn ChunkSink>> {
        attached(|py| {
            let followed = self
                .parts
                .call_method1(py, intern!(py, "is_followed"), (execution,));
            match followed.and_then(|followed| followed.is_truthy(py)) {
                Ok(false) => None,
                Ok(true) => Some(Arc::new(PythonSink {
                    parts: self.parts.clone_ref(py),
                    execution: execution.to_owned(),
                }) as Arc<dyn ChunkSink>),
                Err(error) => {
                    error.write_unraisable(py, None);
                    None
                }
            }
        })
    }

    fn models(&self) -> Option<&Catalog> {
        Some(&self.models)
    }
}

/// The subscribers of a Host to the answers of one run.
struct PythonSink {
    parts: Py<PyAny>,
    execution: String,
}

impl ChunkSink for PythonSink {
    fn put(&self, chunk: Chunk<'_>) {
        let text = chunk_text(chunk);
        attached(|py| {
            let publish = intern!(py, "publish");
            if let Err(error) = self.parts.call_method1(py, publish, (&self.execution, text)) {
                error.write_unraisable(py, None);
            }
        });
    }
}

/// Returns a chunk as `RunEvents.publish_text` reads it.
fn chunk_text(chunk: Chunk<'_>) -> String {
    let mut out = String::from("{\"kind\":");
    quote(chunk.kind, &mut out);
    out.push_str(",\"path\":");
    quote(chunk.path, &mut out);
    if let Some(call) = chunk.call {
        out.push_str(",\"call\":{\"id\":");
        quote(call, &mut out);
        if chunk.kind == "tool_start" {
            out.push_str(",\"name\":");
            quote(chunk.text, &mut out);
        }
        out.push('}');
    }
    match chunk.kind {
        "usage" => {
            out.push_str(",\"usage\":");
            out.push_str(chunk.text);
        }
        "tool_start" => {}
        _ => {
            out.push_str(",\"text\":");
            quote(chunk.text, &mut out);
        }
    }
    out.push('}');
    out
}

/// A performer with the methods `perform`, `probe` and `close` of Python.
struct PythonPerformer {
    object: Py<PyAny>,
    plans: Arc<RequestPlans>,
    secret: Py<PyAny>,
}

impl PythonPerformer {
    /// Calls a method with an `Ask`; None is `NOT_DONE`.
    fn call(&self, ask: &Ask<'_>, method: &Bound<'_, PyString>) -> PyResult<Result<Option<Value>, Failure>> {
        let py = method.py();
        let path = &ask.request.path;
        let Some(planned) = self.plans.of(path) else {
            return Ok(Err(Failure::new(
                "unavailable",
                format!("the node has no request `{path}`"),
            )));
        };
        let asked = self.ask(py, ask, planned)?;
        let answer = self.object.bind(py).call_method1(method, (asked,))?;
        if answer.is(NOT_DONE.import(py, MODULE, "NOT_DONE")?) {
            return Ok(Ok(None));
        }
        let value = planned.value(&answer)?;
        Ok(value.map(Some).ok_or_else(|| Failure {
            may_have_happened: true,
            ..Failure::new(
                "bad_response",
                format!("what `{path}` was given is not of the type of the step"),
            )
        }))
    }

    /// Builds the `Ask` of Python.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        ask: &Ask<'_>,
        planned: &PlannedRequest,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (effect, class, fixed, arguments) = planned.fields(py, ask.request)?;
        let references = PyDict::new(py);
        for (reference, name) in ask.references {
            references.set_item(&**reference, &**name)?;
        }
        let fields = [
            PyString::new(py, ask.execution).into_any(),
            PyString::new(py, &ask.request.path).into_any(),
            effect.into_any(),
            class.into_any(),
            fixed.into_any(),
            arguments.into_any(),
            planned.gives.bind(py).clone(),
            ask.request.key.as_deref().into_pyobject(py)?,
            ask.timeout.map(|time| time.as_secs_f64()).into_pyobject(py)?,
            PyBool::new(py, ask.is_repeat).to_owned().into_any(),
            self.secret.bind(py).clone(),
            references.into_any(),
            PyBool::new(py, ask.is_sensitive).to_owned().into_any(),
        ];
        ASK.import(py, MODULE, "Ask")?.call1(PyTuple::new(py, fields)?)
    }

    fn answer(&self, ask: &Ask<'_>, method: &str) -> Result<Option<Value>, AttemptError> {
        attached(|py| match self.call(ask, &PyString::intern(py, method)) {
            Ok(answered) => Ok(answered?),
            Err(error) => Err(attempt_error(py, error)),
        })
    }
}

impl Performer for PythonPerformer {
    fn perform<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Value> {
        Box::pin(async move {
            let value = runtime::blocking(|| self.answer(&ask, "perform"))?;
            Ok(value
                .ok_or_else(|| Failure::new("bad_response", "a performer reported that it did nothing"))?)
        })
    }

    fn probe<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Option<Value>> {
        Box::pin(async move { runtime::blocking(|| self.answer(&ask, "probe")) })
    }

    fn close(&self) {
        // The Host closes the object: it outlives the run.
    }
}
