//! The end of a call without outputs. Its texts are made when they are read.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use vesper_interp::Outcome;
use vesper_interp::problems::Problems;
use vesper_ir::{ErrorCode, Type, Value};

use crate::calls::outcome::{bad_input, fault};
use crate::calls::program::Program;

/// Levels of lists and dicts that a snapshot copies. Deeper ones are shared, as are lists that contain themselves.
const MAX_SNAPSHOT_DEPTH: usize = 64;

/// The exceptions of `vesper.api.remote_exceptions` by kind. Each takes an [`Ending`].
#[derive(FromPyObject)]
pub(crate) struct Raises {
    bad_input: Py<PyAny>,
    contract_broken: Py<PyAny>,
    declared_error: Py<PyAny>,
    failed: Py<PyAny>,
    stopped: Py<PyAny>,
    /// Explains a raw outcome and the refused inputs.
    explain: Py<PyAny>,
}

impl Raises {
    /// Returns the exception of a call that ended this way.
    pub(crate) fn error(
        &self,
        py: Python<'_>,
        program: &Py<Program>,
        end: End,
        inputs: &Bound<'_, PyAny>,
    ) -> PyErr {
        self.exception(py, program, end, inputs)
            .unwrap_or_else(|error| error)
    }

    fn exception(
        &self,
        py: Python<'_>,
        program: &Py<Program>,
        end: End,
        inputs: &Bound<'_, PyAny>,
    ) -> PyResult<PyErr> {
        let (class, inputs) = match &end {
            // The caller may change its objects before the message is read.
            End::Refused(_) => (
                &self.bad_input,
                Some(snapshot(inputs, MAX_SNAPSHOT_DEPTH)?.unbind()),
            ),
            End::Outcome(Outcome::ContractBroken { .. }) => (&self.contract_broken, None),
            End::Outcome(Outcome::DeclaredError(_)) => (&self.declared_error, None),
            End::Outcome(Outcome::Failed { .. }) => (&self.failed, None),
            End::Outcome(_) | End::Panicked(_) => (&self.stopped, None),
        };
        let ending = Ending {
            program: program.clone_ref(py),
            explain: self.explain.clone_ref(py),
            end,
            inputs,
        };
        Ok(PyErr::from_value(
            class.bind(py).call1((Bound::new(py, ending)?,))?,
        ))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for each in [
            &self.bad_input,
            &self.contract_broken,
            &self.declared_error,
            &self.failed,
            &self.stopped,
            &self.explain,
        ] {
            visit.call(each)?;
        }
        Ok(())
    }
}

/// End of a call that returned nothing.
pub(crate) enum End {
    Outcome(Outcome),
    Refused(Problems),
    /// The message of a panic.
    Panicked(String),
}

impl End {
    /// Returns the code of a failure, or the kind of another end.
    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Refused(_) => "bad_input",
            Self::Panicked(_) | Self::Outcome(Outcome::Fault(_)) => "engine_fault",
            Self::Outcome(Outcome::Failed { code, .. }) => code.name(),
            Self::Outcome(Outcome::ContractBroken { .. }) => "contract_broken",
            Self::Outcome(Outcome::DeclaredError(_)) => "declared_error",
            Self::Outcome(Outcome::Denied(_)) => "denied",
            Self::Outcome(Outcome::LimitHit(_)) => "limit_hit",
            Self::Outcome(Outcome::Returned(_)) => "returned",
        }
    }
}

/// The end of one call, for Python.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Ending {
    program: Py<Program>,
    explain: Py<PyAny>,
    end: End,
    /// A copy of the refused inputs.
    inputs: Option<Py<PyAny>>,
}

#[pymethods]
impl Ending {
    /// Returns the kind of the outcome.
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.end {
            End::Refused(_) | End::Outcome(Outcome::Failed { .. }) => "failed",
            End::Panicked(_) | End::Outcome(Outcome::Fault(_)) => "engine_fault",
            End::Outcome(Outcome::Returned(_)) => "returned",
            End::Outcome(Outcome::DeclaredError(_)) => "declared_error",
            End::Outcome(Outcome::ContractBroken { .. }) => "contract_broken",
            End::Outcome(Outcome::Denied(_)) => "denied",
            End::Outcome(Outcome::LimitHit(_)) => "limit_hit",
        }
    }

    /// Returns the code of the error, as `ErrorInfo` has it.
    #[getter]
    fn code(&self) -> &str {
        match &self.end {
            End::Refused(_) => ErrorCode::BadInput.name(),
            End::Outcome(Outcome::Failed { code, .. }) => code.name(),
            End::Outcome(Outcome::ContractBroken { phase, .. }) => phase.name(),
            End::Outcome(Outcome::DeclaredError(values)) => self.declared_code(values),
            End::Outcome(Outcome::Denied(name) | Outcome::LimitHit(name)) => name,
            End::Panicked(_) | End::Outcome(Outcome::Fault(_) | Outcome::Returned(_)) => "engine_fault",
        }
    }

    /// Returns true if the inputs were refused.
    #[getter]
    fn is_refusal(&self) -> bool {
        matches!(self.end, End::Refused(_))
    }

    /// Returns the explanation that Python makes of the outcome.
    fn explain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let inputs = match &self.inputs {
            Some(inputs) => inputs.bind(py).clone(),
            None => PyDict::new(py).into_any(),
        };
        self.explain.bind(py).call1((self.raw(py)?, inputs))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.program)?;
        visit.call(&self.explain)?;
        visit.call(&self.inputs)
    }
}

impl Ending {
    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match &self.end {
            End::Outcome(outcome) => self.program.get().presenter().outcome(py, outcome),
            End::Refused(problems) => bad_input(py, problems),
            End::Panicked(message) => fault(py, message),
        }
    }

    fn declared_code(&self, values: &[Value]) -> &str {
        let declared = self.program.get().compiled().node().errors.iter();
        let mut found = declared
            .zip(values)
            .filter_map(|(field, value)| match (&field.ty, value) {
                (Type::Enum(of), Value::Member(member)) if &*field.name == "error_code" => of.name(*member),
                _ => None,
            });
        found.next().map_or("", |name| name)
    }
}

/// Copies lists and dicts, which a caller may change. All other objects are shared.
fn snapshot<'py>(object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let Some(depth) = depth.checked_sub(1) else {
        return Ok(object.clone());
    };
    if let Ok(dict) = object.cast_exact::<PyDict>() {
        let copy = dict.copy()?;
        for (key, value) in dict {
            if value.is_exact_instance_of::<PyDict>() || value.is_exact_instance_of::<PyList>() {
                copy.set_item(key, snapshot(&value, depth)?)?;
            }
        }
        return Ok(copy.into_any());
    }
    if let Ok(list) = object.cast_exact::<PyList>() {
        let items = list.iter().map(|item| snapshot(&item, depth));
        return Ok(PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any());
    }
    Ok(object.clone())
}
