//! An execution that Python advances with the completions of one wave after the other.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use vesper_interp::guard::guarded;
use vesper_interp::problems::{Path, Problems};
use vesper_interp::{Advanced, Completion, Misuse, Request};
use vesper_ir::{ErrorCode, FailureCode, Type, Value};

use crate::calls::outcome::{bad_input, fault};
use crate::calls::program::Program;
use crate::inputs::checked_inputs::Conversion;
use crate::inputs::values::to_python;
use crate::watch::run_detached;

/// State of an execution.
pub(crate) enum ExecutionState {
    /// The inputs have problems; the first `advance` ends the execution.
    BadInput(Problems),
    Running(Box<vesper_interp::Execution>),
    Ended,
}

/// The path and the fingerprint of an execution.
pub(crate) struct PathTaken {
    pub(crate) path: vesper_interp::Path,
    pub(crate) fingerprint: u64,
}

/// One execution of a node, which suspends at each wave of requests.
#[pyclass(module = "vesper._direct")]
pub(crate) struct Execution {
    program: Py<Program>,
    state: ExecutionState,
    /// The path after the end, and an empty path before. None unless started with a path.
    taken: Option<PathTaken>,
}

impl Execution {
    pub(crate) fn new(program: Py<Program>, state: ExecutionState) -> Self {
        let taken = None;
        Self {
            program,
            state,
            taken,
        }
    }

    /// Creates an execution that records its path.
    pub(crate) fn with_path(program: Py<Program>, state: ExecutionState, taken: PathTaken) -> Self {
        let taken = Some(taken);
        Self {
            program,
            state,
            taken,
        }
    }

    /// Returns the program and the state for a run loop, which advances it from now on.
    pub(crate) fn take(&mut self, py: Python<'_>) -> (Py<Program>, ExecutionState) {
        let state = std::mem::replace(&mut self.state, ExecutionState::Ended);
        (self.program.clone_ref(py), state)
    }

    /// Ends the execution and keeps its path.
    fn end(&mut self) {
        if let (ExecutionState::Running(execution), Some(taken)) = (&self.state, &mut self.taken)
            && let Ok(ended) = guarded(|| (execution.path(), execution.fingerprint()))
        {
            (taken.path, taken.fingerprint) = ended;
        }
        self.state = ExecutionState::Ended;
    }

    fn path_taken(&self) -> PyResult<&PathTaken> {
        self.taken.as_ref().ok_or_else(|| {
            PyValueError::new_err("this execution records no path; start it with start_pathed")
        })
    }
}

pub(crate) fn misuse_error(Misuse(what): Misuse) -> PyErr {
    PyValueError::new_err(what)
}

#[pymethods]
impl Execution {
    /// Returns the marks from this position on; none after the end.
    #[pyo3(signature = (start = 0, /))]
    fn marks_from<'py>(&self, py: Python<'py>, start: usize) -> PyResult<Bound<'py, PyList>> {
        let marks = match &self.state {
            ExecutionState::Running(execution) => execution.marks(),
            ExecutionState::BadInput(_) | ExecutionState::Ended => &[],
        };
        let presenter = self.program.bind(py).get().presenter();
        presenter.marks(py, marks.get(start..).unwrap_or(&[]))
    }

    /// Returns the points passed so far.
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let taken = self.path_taken()?;
        Ok(match &self.state {
            ExecutionState::Running(execution) => PyBytes::new(py, &execution.path().bytes()),
            ExecutionState::BadInput(_) | ExecutionState::Ended => PyBytes::new(py, &taken.path.bytes()),
        })
    }

    /// Returns the fingerprint of the inputs and completions read so far.
    fn fingerprint(&self) -> PyResult<u64> {
        let taken = self.path_taken()?;
        Ok(match &self.state {
            ExecutionState::Running(execution) => execution.fingerprint(),
            ExecutionState::BadInput(_) | ExecutionState::Ended => taken.fingerprint,
        })
    }

    /// Runs until the next wave or the end.
    #[pyo3(signature = (*completions))]
    fn advance<'py>(
        &mut self,
        py: Python<'py>,
        completions: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let program = self.program.bind(py).clone();
        let program = program.get();
        let done = |outcome: Bound<'py, PyTuple>, marks: Bound<'py, PyList>| {
            (intern!(py, "done"), outcome, marks).into_pyobject(py)
        };
        match &mut self.state {
            ExecutionState::Ended => Err(PyValueError::new_err("this execution has ended")),
            ExecutionState::BadInput(_) if !completions.is_empty() => {
                Err(PyValueError::new_err("nothing was asked for yet"))
            }
            ExecutionState::BadInput(problems) => {
                let outcome = bad_input(py, problems)?;
                self.state = ExecutionState::Ended;
                done(outcome, PyList::empty(py))
            }
            ExecutionState::Running(execution) => {
                let mut given = Vec::with_capacity(completions.len());
                if !completions.is_empty() {
                    let awaited = execution.awaited();
                    for completion in completions {
                        given.push(read_completion(program, &awaited, completion.cast()?)?);
                    }
                }
                match run_detached(py, || guarded(|| execution.advance(given))) {
                    // The execution cannot continue after a signal.
                    Err(interrupted) => {
                        self.end();
                        Err(interrupted)
                    }
                    Ok(Err(message)) => {
                        self.end();
                        done(fault(py, &message)?, PyList::empty(py))
                    }
                    Ok(Ok(Err(wrong))) => Err(misuse_error(wrong)),
                    Ok(Ok(Ok(Advanced::Blocked(wave)))) => {
                        let wave = wave.iter().map(|request| request_dict(py, program, request));
                        let wave = PyTuple::new(py, wave.collect::<PyResult<Vec<_>>>()?)?;
                        (intern!(py, "blocked"), wave).into_pyobject(py)
                    }
                    Ok(Ok(Ok(Advanced::Done(outcome, marks)))) => {
                        self.end();
                        let presenter = program.presenter();
                        done(presenter.outcome(py, &outcome)?, presenter.marks(py, &marks)?)
                    }
                }
            }
        }
    }
}

/// Reads `(id, kind, what)`; a value is read as the result type of the awaited request.
fn read_completion(
    program: &Program,
    awaited: &[(u64, &Type)],
    given: &Bound<'_, PyTuple>,
) -> PyResult<(u64, Completion)> {
    let (id, kind, what): (u64, String, Bound<'_, PyAny>) = given.extract()?;
    let text = || what.extract::<String>();
    let completion = match kind.as_str() {
        "failed" => Completion::Failed(FailureCode::new(&text()?)),
        "denied" => Completion::Denied(Arc::from(text()?)),
        "limit_hit" => Completion::LimitHit(Arc::from(text()?)),
        "value" => {
            let mut conversion = Conversion::default();
            let mut value = Value::Null;
            let fits = match awaited.iter().find(|(waiting, _)| *waiting == id) {
                Some((_, ty)) => {
                    let shape = program.shapes().of(given.py(), ty);
                    conversion.value(&shape, &what, &Path::Input("result"), &mut value)?
                }
                // The execution rejects it with the id that it waits for.
                None => false,
            };
            if fits && conversion.problems.is_empty() {
                Completion::Value(value)
            } else {
                Completion::Failed(ErrorCode::BadResponse.into())
            }
        }
        other => {
            return Err(PyTypeError::new_err(format!(
                "a completion is value, failed, denied or limit_hit, not `{other}`"
            )));
        }
    };
    Ok((id, completion))
}

fn request_dict<'py>(py: Python<'py>, program: &Program, request: &Request) -> PyResult<Bound<'py, PyDict>> {
    let fixed = PyDict::new(py);
    for (name, text) in &request.fixed {
        fixed.set_item(name.as_ref(), text.as_ref())?;
    }
    let arguments = PyDict::new(py);
    for argument in &request.arguments {
        let value = to_python(py, &program.shapes().of(py, &argument.ty), &argument.value)?;
        arguments.set_item(argument.name.as_ref(), value)?;
    }
    let dict = PyDict::new(py);
    dict.set_item(intern!(py, "id"), request.id)?;
    dict.set_item(intern!(py, "node"), request.node.as_ref())?;
    dict.set_item(intern!(py, "step"), request.step.as_ref())?;
    dict.set_item(intern!(py, "path"), &request.path)?;
    dict.set_item(intern!(py, "effect"), request.effect.name())?;
    dict.set_item(intern!(py, "class"), request.class.name())?;
    dict.set_item(intern!(py, "key"), request.key.as_deref())?;
    dict.set_item(intern!(py, "fixed"), fixed)?;
    dict.set_item(intern!(py, "arguments"), arguments)?;
    Ok(dict)
}
