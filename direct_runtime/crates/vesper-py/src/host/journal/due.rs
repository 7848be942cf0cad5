//! Rows of due work between Python and the native journal (`vesper/journal/due.py`).

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};
use vesper_host::journal::due::{Depth, Due, Sent};

use crate::host::journal::values::status_object;

const MODULE: &str = "vesper.journal.due";
static DUE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DEPTH: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static SENT: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Returns a `Due`.
pub(crate) fn due_object<'py>(py: Python<'py>, due: &Due) -> PyResult<Bound<'py, PyAny>> {
    let text = |text: &str| PyString::new(py, text).into_any();
    let status = due.status.map(|status| status_object(py, status)).transpose()?;
    let fields = [
        due.id.into_pyobject(py)?.into_any(),
        text(&due.kind),
        due.due_us.into_pyobject(py)?.into_any(),
        due.execution.as_deref().into_pyobject(py)?.into_any(),
        due.node_id.as_deref().into_pyobject(py)?.into_any(),
        text(&due.path),
        text(&due.name),
        text(&due.queue),
        text(&due.lane),
        due.priority.into_pyobject(py)?.into_any(),
        due.attempts.into_pyobject(py)?.into_any(),
        due.fence.into_pyobject(py)?.into_any(),
        text(&due.body),
        text(&due.owner),
        due.lease_until_us.into_pyobject(py)?.into_any(),
        status.into_pyobject(py)?.into_any(),
        due.is_sensitive.into_pyobject(py)?.to_owned().into_any(),
        due.start_in_us.into_pyobject(py)?.into_any(),
    ];
    DUE.import(py, MODULE, "Due")?.call1(PyTuple::new(py, fields)?)
}

/// Returns a list of `Due`.
pub(crate) fn due_objects<'py>(py: Python<'py>, found: &[Due]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    found.iter().map(|due| due_object(py, due)).collect()
}

/// Returns a `QueueDepth`.
pub(crate) fn depth_object<'py>(py: Python<'py>, depth: &Depth) -> PyResult<Bound<'py, PyAny>> {
    let names = (depth.queue.as_str(), depth.lane.as_str());
    let counts = (depth.count, depth.waiting, depth.delayed, depth.running);
    DEPTH.import(py, MODULE, "QueueDepth")?.call1((
        names.0,
        names.1,
        counts.0,
        counts.1,
        counts.2,
        counts.3,
        depth.oldest_us,
    ))
}

/// Returns a `SignalSent`.
pub(crate) fn sent_object<'py>(py: Python<'py>, sent: &Sent) -> PyResult<Bound<'py, PyAny>> {
    let woken = PyTuple::new(py, &sent.woken)?;
    SENT.import(py, MODULE, "SignalSent")?
        .call1((woken, sent.is_kept, sent.is_repeat))
}

/// Reads the ids and fences of one `Due` or of several.
pub(crate) fn claims_of(given: &Bound<'_, PyAny>) -> PyResult<Vec<(i64, i64)>> {
    let py = given.py();
    let claim = |due: &Bound<'_, PyAny>| {
        Ok((
            due.getattr(intern!(py, "id"))?.extract()?,
            due.getattr(intern!(py, "fence"))?.extract()?,
        ))
    };
    if given.is_instance(DUE.import(py, MODULE, "Due")?)? {
        return Ok(vec![claim(given)?]);
    }
    given.try_iter()?.map(|due| claim(&due?)).collect()
}
