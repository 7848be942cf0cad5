//! A run of the journal for Python.

use std::sync::Arc;

use pyo3::exceptions::{PyOverflowError, PyRecursionError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyTuple};
use vesper_host::journal::run::StoreRun;
use vesper_host::journal::{Entry, JournalError, Kind, Run as _, Status};
use vesper_ir::json::quote;

use crate::host::errors::journal_exception;
use crate::host::journal::values::{audit_text, entry_object, plain_text, status_of, undecodable};
use crate::journal::text::{Writer, typed_text};

static DIGEST_BYTES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static EXACT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
/// Bytes of a request whose digest is made here; a larger one is written by Python.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// A run that this process owns. One thread at a time may use it; another one may call `renew`.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Run {
    inner: Arc<StoreRun>,
    store: String,
    recorded: PyOnceLock<Py<PyTuple>>,
}

impl Run {
    pub(crate) fn new(inner: Arc<StoreRun>, store: String) -> Self {
        let recorded = PyOnceLock::new();
        Self {
            inner,
            store,
            recorded,
        }
    }

    /// Returns the run in the form of the run loop.
    pub(crate) fn native(&self) -> Arc<StoreRun> {
        Arc::clone(&self.inner)
    }
}

fn raise(py: Python<'_>, error: &JournalError) -> PyErr {
    journal_exception(py, error)
}

#[pymethods]
impl Run {
    #[getter]
    fn execution(&self) -> &str {
        self.inner.execution()
    }

    #[getter]
    fn fence(&self) -> i64 {
        self.inner.fence()
    }

    #[getter]
    fn recorded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let made = self.recorded.get_or_try_init(py, || {
            let mut entries = Vec::with_capacity(self.inner.recorded().len());
            for stored in self.inner.recorded() {
                let entry = entry_object(py, stored);
                entries.push(entry.map_err(|error| {
                    undecodable(py, error, &self.store, self.inner.execution(), stored.seq)
                })?);
            }
            PyTuple::new(py, entries).map(Bound::unbind)
        });
        made.map(|made| made.bind(py).clone())
    }

    fn digest(
        &self,
        effect: &Bound<'_, PyAny>,
        effect_class: &Bound<'_, PyAny>,
        fixed: &Bound<'_, PyAny>,
        arguments: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<String> {
        let py = effect.py();
        let digest_bytes = DIGEST_BYTES.import(py, "vesper.journal.typed_json", "digest_bytes")?;
        let bytes = digest_bytes.call1((effect, effect_class, fixed, arguments, key))?;
        let bytes = bytes.cast::<PyBytes>()?;
        let text = String::from_utf8(bytes.as_bytes().to_vec())?;
        Ok(self.inner.digest(&text))
    }

    fn append(&self, entry: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = entry.py();
        let digest = entry.getattr(intern!(py, "digest"))?;
        let body = typed_text(&entry.getattr(intern!(py, "body"))?)?;
        self.write(entry, digest.extract()?, &body)
    }

    fn intend(&self, entry: &Bound<'_, PyAny>) -> PyResult<String> {
        let py = entry.py();
        let body = entry.getattr(intern!(py, "body"))?;
        let (fixed, arguments) = (
            body.get_item(intern!(py, "fixed"))?,
            body.get_item(intern!(py, "arguments"))?,
        );
        let Some(request) = Request::of(entry, &fixed, &arguments)? else {
            let (effect, class) = (
                entry.getattr(intern!(py, "effect"))?,
                entry.getattr(intern!(py, "effect_class"))?,
            );
            let digest = self.digest(
                &effect,
                &class,
                &fixed,
                &arguments,
                &entry.getattr(intern!(py, "key"))?,
            )?;
            self.write(entry, &digest, &typed_text(&body)?)?;
            return Ok(digest);
        };
        let digest = self.inner.digest(&request.digested);
        self.write(entry, &digest, &request.body)?;
        Ok(digest)
    }

    fn audit(&self, event: &Bound<'_, PyAny>) -> PyResult<()> {
        let text = audit_text(event)?;
        self.inner.audit(&text).map_err(|error| raise(event.py(), &error))
    }

    #[pyo3(signature = (status = None, outcome = None))]
    fn commit(
        &self,
        py: Python<'_>,
        status: Option<&Bound<'_, PyAny>>,
        outcome: Option<&str>,
    ) -> PyResult<()> {
        let status = status.map_or(Ok(Status::Running), status_of)?;
        py.detach(|| self.inner.commit(status, outcome))
            .map_err(|error| raise(py, &error))
    }

    fn renew(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.renew())
            .map_err(|error| raise(py, &error))
    }
}

impl Run {
    /// Appends an entry with this digest and body.
    fn write(&self, entry: &Bound<'_, PyAny>, digest: &str, body: &str) -> PyResult<()> {
        let py = entry.py();
        let (kind, path) = (
            entry.getattr(intern!(py, "kind"))?,
            entry.getattr(intern!(py, "path"))?,
        );
        let (effect, class) = (
            entry.getattr(intern!(py, "effect"))?,
            entry.getattr(intern!(py, "effect_class"))?,
        );
        let key = entry.getattr(intern!(py, "key"))?;
        let kind: &str = kind.extract()?;
        let written = Entry {
            kind: Kind::from_name(kind).ok_or_else(|| {
                pyo3::exceptions::PyValueError::new_err(format!("no kind is called `{kind}`"))
            })?,
            path: plain_text(&path)?,
            effect: plain_text(&effect)?,
            class: plain_text(&class)?,
            key: if key.is_none() {
                None
            } else {
                Some(plain_text(&key)?)
            },
            digest,
            at_us: entry.getattr(intern!(py, "at_us"))?.extract()?,
            body,
        };
        self.inner.append(&written).map_err(|error| raise(py, &error))
    }
}

/// The texts of a request: its body, and the one that its digest is made of.
struct Request {
    body: String,
    digested: String,
}

impl Request {
    /// Writes both from one text of the arguments; None where Python has to write them.
    fn of(
        entry: &Bound<'_, PyAny>,
        fixed: &Bound<'_, PyAny>,
        arguments: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Self>> {
        let py = entry.py();
        let other = EXACT.import(py, "vesper.journal.typed_json", "EXACT_IN_PYTHON")?;
        let mut writer = Writer::new(py, other, MAX_REQUEST_BYTES)?;
        let is_written = writer.value(arguments, 0);
        if !or_python(py, is_written)? {
            return Ok(None);
        }
        let arguments = std::mem::take(&mut writer.text);
        let is_written = writer.value(fixed, 0);
        // A digest writes the numbers of a json in another form.
        if !or_python(py, is_written)? || writer.has_json {
            return Ok(None);
        }
        let fixed = writer.text;
        let mut digested = String::with_capacity(fixed.len() + arguments.len() + 128);
        for (before, name) in [("[", intern!(py, "effect")), (",", intern!(py, "effect_class"))] {
            digested.push_str(before);
            quote(entry.getattr(name)?.extract()?, &mut digested);
        }
        for part in [",", &fixed, ",", &arguments, ","] {
            digested.push_str(part);
        }
        match entry.getattr(intern!(py, "key"))?.extract::<Option<&str>>()? {
            Some(key) => quote(key, &mut digested),
            None => digested.push_str("null"),
        }
        digested.push(']');
        let body = ["{\"arguments\":", &arguments, ",\"fixed\":", &fixed, "}"].concat();
        Ok(Some(Self { body, digested }))
    }
}

/// Leaves a value that is too large or too deep for this writer to Python.
fn or_python(py: Python<'_>, written: PyResult<bool>) -> PyResult<bool> {
    match written {
        Err(error)
            if error.is_instance_of::<PyOverflowError>(py)
                || error.is_instance_of::<PyRecursionError>(py) =>
        {
            Ok(false)
        }
        other => other,
    }
}
