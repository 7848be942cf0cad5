//! Objects of `vesper/journal` between Python and the native journal.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};
use vesper_host::journal::batch::Definition;
use vesper_host::journal::lines::hexadecimal;
use vesper_host::journal::overview::Recorded;
use vesper_host::journal::reading::{Summary, broken};
use vesper_host::journal::{ErrorKind, JournalError, Status, Stored};

use crate::host::errors::{journal_error, journal_exception};
use crate::journal::text::typed_text;

const ENTRIES: &str = "vesper.journal.entry";
const JOURNAL: &str = "vesper.journal.journal";
static ENTRY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static STORED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DEFINITION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static KIND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static STATUS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static SUMMARY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static RECORDED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DECODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Reads a text; raises `JournalError` with a message for one with a lone surrogate, which has no UTF-8.
pub(crate) fn text_of<'a>(
    object: &'a Bound<'_, PyAny>,
    message: impl FnOnce() -> PyResult<String>,
) -> PyResult<&'a str> {
    let text = object.cast::<PyString>()?;
    if let Ok(text) = text.to_str() {
        return Ok(text);
    }
    let error = JournalError::new(ErrorKind::Journal, message()?);
    Err(journal_exception(object.py(), &error))
}

/// Reads a text of an entry.
pub(crate) fn plain_text<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    text_of(object, || {
        let text = object.repr()?;
        Ok(format!(
            "{text} cannot be written into the journal: it holds half of a character"
        ))
    })
}

/// Reads a `Status`.
pub(crate) fn status_of(object: &Bound<'_, PyAny>) -> PyResult<Status> {
    let name: &str = object.extract()?;
    Status::from_name(name).ok_or_else(|| PyValueError::new_err(format!("no status is called `{name}`")))
}

/// Returns a `Status`.
pub(crate) fn status_object(py: Python<'_>, status: Status) -> PyResult<Bound<'_, PyAny>> {
    STATUS.import(py, JOURNAL, "Status")?.call1((status.name(),))
}

/// Returns a `Summary`.
pub(crate) fn summary_object<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyAny>> {
    let status = status_object(py, summary.status)?;
    SUMMARY.import(py, JOURNAL, "Summary")?.call1((
        &summary.execution,
        &summary.node_id,
        &summary.semantic_hash,
        status,
        summary.outcome.as_ref(),
        summary.started_us,
        summary.updated_us,
        &summary.owner,
        summary.fence,
        &summary.engine,
        summary.is_joined,
        summary.is_sensitive,
    ))
}

/// Returns an `Entry`, its body decoded.
pub(crate) fn entry_object<'py>(py: Python<'py>, stored: &Stored) -> PyResult<Bound<'py, PyAny>> {
    let decode = DECODE.import(py, "vesper.journal.typed_json", "decode")?;
    let body = decode.call1((PyBytes::new(py, stored.body.as_bytes()),))?;
    if !body.is_instance_of::<PyDict>() {
        let message = "the body of an entry in the journal is malformed";
        let error =
            vesper_host::journal::JournalError::new(vesper_host::journal::ErrorKind::Journal, message);
        return Err(journal_exception(py, &error));
    }
    let kind = KIND.import(py, ENTRIES, "Kind")?.call1((stored.kind.name(),))?;
    ENTRY.import(py, ENTRIES, "Entry")?.call1((
        kind,
        &stored.path,
        &stored.effect,
        &stored.class,
        stored.key.as_ref(),
        &stored.digest,
        body,
        stored.at_us,
    ))
}

/// Returns the error of an entry whose body cannot be decoded, which names the entry.
pub(crate) fn undecodable(py: Python<'_>, error: PyErr, store: &str, execution: &str, seq: u64) -> PyErr {
    match journal_error(py, &error) {
        Some(known) => {
            let seq = i64::try_from(seq).unwrap_or(i64::MAX);
            journal_exception(py, &broken(store, execution, seq, &known.message))
        }
        None => error,
    }
}

/// Returns a `Recorded`.
pub(crate) fn recorded_object<'py>(
    py: Python<'py>,
    recorded: &Recorded,
    store: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let class = STORED.import(py, ENTRIES, "Stored")?;
    let mut entries = Vec::with_capacity(recorded.entries.len());
    for stored in &recorded.entries {
        let entry = entry_object(py, stored)
            .map_err(|error| undecodable(py, error, store, &recorded.summary.execution, stored.seq))?;
        let hash = hexadecimal(&stored.hash);
        entries.push(class.call1((entry, stored.seq, &stored.branch, hash, stored.is_erased))?);
    }
    let summary = summary_object(py, &recorded.summary)?;
    RECORDED
        .import(py, JOURNAL, "Recorded")?
        .call1((summary, entries))
}

/// Reads a `Definition` with all that it calls.
pub(crate) fn read_definition(object: &Bound<'_, PyAny>) -> PyResult<Arc<Definition>> {
    let py = object.py();
    let mut callees = Vec::new();
    for callee in object.getattr(intern!(py, "callees"))?.try_iter()? {
        callees.push(read_definition(&callee?)?);
    }
    Ok(Arc::new(Definition {
        semantic_hash: object.getattr(intern!(py, "semantic_hash"))?.extract()?,
        node_id: object.getattr(intern!(py, "node_id"))?.extract()?,
        path: object.getattr(intern!(py, "path"))?.extract()?,
        source: object.getattr(intern!(py, "source"))?.extract()?,
        ir: object.getattr(intern!(py, "ir"))?.extract()?,
        callees,
    }))
}

/// Returns a `Definition`; nodes that are called twice are one object.
pub(crate) fn definition_object<'py>(
    py: Python<'py>,
    definition: &Arc<Definition>,
    known: &mut HashMap<String, Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(object) = known.get(&definition.semantic_hash) {
        return Ok(object.clone());
    }
    let mut callees = Vec::with_capacity(definition.callees.len());
    for callee in &definition.callees {
        callees.push(definition_object(py, callee, known)?);
    }
    let object = DEFINITION.import(py, ENTRIES, "Definition")?.call1((
        &definition.semantic_hash,
        &definition.node_id,
        &definition.path,
        &definition.source,
        PyBytes::new(py, &definition.ir),
        PyTuple::new(py, callees)?,
    ))?;
    known.insert(definition.semantic_hash.clone(), object.clone());
    Ok(object)
}

/// Returns the typed JSON of an `AuditEvent`, with the number 0.
pub(crate) fn audit_text(event: &Bound<'_, PyAny>) -> PyResult<String> {
    let fields = PyDict::new(event.py());
    fields.update(event.getattr("caller")?.cast()?)?;
    fields.set_item("seq", 0)?;
    for name in ["action", "at_us", "execution", "fields", "level", "node_id"] {
        fields.set_item(name, event.getattr(name)?)?;
    }
    typed_text(&fields)
}
