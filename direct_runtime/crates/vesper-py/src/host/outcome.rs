//! Outcomes of runs between the run loop and Python.

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use vesper_host::run::contract::Ended;
use vesper_host::run::outcome::Outcome;
use vesper_ir::FailureCode;

use crate::calls::program::Program;
pub(crate) use crate::journal::text::typed_text as typed_json;

const MODULE: &str = "vesper.engines.outcome";
static DENIED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static RETURNED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static LIMIT_HIT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static REPLACE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Reads an outcome of Python. Raises `JournalError` where its values are too large for any journal.
pub(crate) fn read_outcome(outcome: &Bound<'_, PyAny>) -> PyResult<Ended> {
    let py = outcome.py();
    let name: String = outcome.getattr(intern!(py, "kind"))?.extract()?;
    let (kind, members): (_, &[&'static str]) = match name.as_str() {
        "returned" => ("returned", &["value"]),
        "declared_error" => ("declared_error", &["value"]),
        "failed" => ("failed", &["code", "at"]),
        "contract_broken" => ("contract_broken", &["phase", "index", "values"]),
        "denied" => ("denied", &["capability", "why"]),
        "limit_hit" => ("limit_hit", &["limit"]),
        "engine_fault" => ("engine_fault", &["message"]),
        other => return Err(PyRuntimeError::new_err(format!("no outcome is called `{other}`"))),
    };
    let mut record = Vec::with_capacity(members.len());
    for member in members {
        record.push((*member, member_text(&outcome.getattr(*member)?, member)?));
    }
    let failed = if kind == "failed" {
        let code = outcome.getattr(intern!(py, "code"))?.str()?;
        let has_place = !outcome.getattr(intern!(py, "at"))?.is_none();
        Some((FailureCode::new(code.to_str()?), has_place))
    } else {
        None
    };
    Ok(Ended {
        kind,
        record,
        failed,
        payload: Box::new(outcome.clone().unbind()),
    })
}

/// Returns the typed JSON of a member. A code is a text, and a mapping is a dict.
fn member_text(object: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    match name {
        "code" => typed_json(object.str()?.as_any()),
        "value" | "values" if !object.is_exact_instance_of::<PyDict>() => {
            typed_json(&object.py().get_type::<PyDict>().call1((object,))?)
        }
        _ => typed_json(object),
    }
}

/// Outputs of the direct engine that Python has not read yet.
pub(crate) struct DirectOutcome {
    pub(crate) program: Py<Program>,
    pub(crate) outcome: vesper_interp::Outcome,
}

impl DirectOutcome {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let program = self.program.bind(py).get();
        match &self.outcome {
            vesper_interp::Outcome::Returned(values) => {
                let outputs = program.presenter().outputs_dict(py, values)?;
                RETURNED.import(py, MODULE, "Returned")?.call1((outputs,))
            }
            _ => Err(PyRuntimeError::new_err("only outputs are kept unread")),
        }
    }
}

/// Returns an outcome as an object of Python.
pub(crate) fn outcome_object<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyAny>> {
    match outcome {
        Outcome::Ended { ended, why } => {
            let found = if let Some(direct) = ended.payload.downcast_ref::<DirectOutcome>() {
                direct.object(py)?
            } else {
                let found = ended.payload.downcast_ref::<Py<PyAny>>();
                let unknown = || PyRuntimeError::new_err("an outcome is of another engine");
                found.ok_or_else(unknown)?.bind(py).clone()
            };
            let Some(why) = why else { return Ok(found) };
            let changes = PyDict::new(py);
            changes.set_item(intern!(py, "why"), why)?;
            REPLACE
                .import(py, "dataclasses", "replace")?
                .call((found,), Some(&changes))
        }
        Outcome::Denied { capability, why } => {
            DENIED.import(py, MODULE, "Denied")?.call1((&**capability, why))
        }
        Outcome::LimitHit(limit) => limit_hit(py, limit),
    }
}

pub(crate) fn limit_hit<'py>(py: Python<'py>, limit: &str) -> PyResult<Bound<'py, PyAny>> {
    LIMIT_HIT.import(py, MODULE, "LimitHit")?.call1((limit,))
}
