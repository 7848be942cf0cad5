//! Executions of both engines in the form of the run loop.

use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};
use vesper_host::effect::Broken;
use vesper_host::journal::JournalError;
use vesper_host::run::contract::{Ended, Execution, Halted, Step};
use vesper_host::run::outcome::Outcome;
use vesper_host::typed_json::{write_text, write_value};
use vesper_interp::guard::guarded;
use vesper_interp::{Advanced, Completion, Request};
use vesper_ir::{Type, Value};

use crate::calls::execution::ExecutionState;
use crate::calls::outcome::{bad_input, fault};
use crate::calls::program::Program;
use crate::host::context::attached;
use crate::host::errors::journal_error;
use crate::host::generated::{self, Generated};
use crate::host::outcome::{DirectOutcome, limit_hit, outcome_object, read_outcome, typed_json};
use crate::host::plans::{Given, RequestPlans};
use crate::inputs::shapes::Shape;
use crate::inputs::values::to_python;
use crate::watch::run_unlocked;

const ENGINE: &str = "vesper.engines.engine";
const ROUTED_MODULE: &str = "vesper.host.routed";
static BLOCKED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static COMPLETION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static REQUEST: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static ROUTED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static PARTED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static FROM_RAW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Returns an execution of Python in the form of the run loop. One of the direct engine runs without Python.
pub(crate) fn execution_of(
    object: &Bound<'_, PyAny>,
    plans: &Arc<RequestPlans>,
) -> PyResult<Box<dyn Execution>> {
    let py = object.py();
    if let Some(native) = object.getattr_opt(intern!(py, "native"))?
        && let Ok(native) = native.cast::<crate::calls::execution::Execution>()
    {
        let (program, state) = native.borrow_mut().take(py);
        return Ok(Box::new(DirectExecution { program, state }));
    }
    Ok(Box::new(PythonExecution {
        object: object.clone().unbind(),
        plans: Arc::clone(plans),
        is_routed: object.is_instance(ROUTED.import(py, ROUTED_MODULE, "Routed")?)?,
        awaited: Vec::new(),
        generated: None,
    }))
}

/// Returns the typed JSON of named values.
fn record_text(mut values: Vec<(&str, &Type, &Value)>) -> Result<String, JournalError> {
    values.sort_unstable_by_key(|(name, ..)| *name);
    let mut text = String::with_capacity(128);
    for (name, ty, value) in values {
        text.push(if text.is_empty() { '{' } else { ',' });
        write_text(&mut text, name);
        text.push(':');
        write_value(&mut text, ty, value)?;
    }
    text.push_str(if text.is_empty() { "{}" } else { "}" });
    Ok(text)
}

fn broken(error: PyErr) -> Halted {
    Halted::Broken(Broken(Box::new(error)))
}

/// Reads an outcome; one that no journal takes is the limit `max_body`.
pub(crate) fn ended(outcome: &Bound<'_, PyAny>) -> PyResult<Ended> {
    let py = outcome.py();
    read_outcome(outcome).or_else(|error| match journal_error(py, &error) {
        Some(_) => read_outcome(&limit_hit(py, "max_body")?),
        None => Err(error),
    })
}

/// Any execution with the method `advance` of Python.
struct PythonExecution {
    object: Py<PyAny>,
    plans: Arc<RequestPlans>,
    is_routed: bool,
    /// The requests that wait to be completed, with the types of their results.
    awaited: Vec<(u64, Arc<Shape>)>,
    /// The generator of generated Python, once it waits for a request.
    generated: Option<Generated>,
}

impl PythonExecution {
    fn step(&mut self, py: Python<'_>, completions: Vec<(u64, Completion)>) -> PyResult<Step> {
        if let Some(generated) = &mut self.generated {
            return Ok(
                match generated.advance(py, &self.plans, &mut self.awaited, completions)? {
                    generated::Advanced::Outcome(outcome) => Step::Done(ended(&outcome)?),
                    generated::Advanced::Asked(wave) => Step::Blocked(wave),
                },
            );
        }
        let mut given = Vec::with_capacity(completions.len());
        for (id, completion) in completions {
            given.push(self.completion(py, id, completion)?);
        }
        let step = self
            .object
            .bind(py)
            .call_method1(intern!(py, "advance"), (PyTuple::new(py, given)?,))?;
        if !step.is_instance(BLOCKED.import(py, ENGINE, "Blocked")?)? {
            return Ok(Step::Done(ended(&step.getattr(intern!(py, "outcome"))?)?));
        }
        let mut requests = Vec::new();
        self.awaited.clear();
        for request in step.getattr(intern!(py, "requests"))?.try_iter()? {
            let request = read_request(&self.plans, &request?)?;
            if let Some(planned) = self.plans.of(&request.path) {
                self.awaited.push((request.id, Arc::clone(&planned.result)));
            }
            requests.push(request);
        }
        self.generated = Generated::of(self.object.bind(py))?;
        Ok(Step::Blocked(requests))
    }

    fn completion<'py>(
        &self,
        py: Python<'py>,
        id: u64,
        completion: Completion,
    ) -> PyResult<Bound<'py, PyAny>> {
        let class = COMPLETION.import(py, ENGINE, "Completion")?;
        match completion {
            Completion::Failed(code) => class.call1((id, py.None(), code.name())),
            Completion::Value(value) => {
                let awaited = self.awaited.iter().find(|(each, _)| *each == id);
                let (_, shape) = awaited.ok_or_else(|| {
                    PyRuntimeError::new_err(format!("no request {id} waits to be completed"))
                })?;
                class.call1((id, to_python(py, shape, &value)?))
            }
            Completion::Denied(_) | Completion::LimitHit(_) => Err(PyRuntimeError::new_err(
                "the run loop ends a run that is denied or has hit a limit",
            )),
        }
    }

    fn halted(&self, py: Python<'_>, error: PyErr) -> Halted {
        match self.parted(py, &error) {
            Ok(Some(parted)) => parted,
            Ok(None) => broken(error),
            Err(other) => broken(other),
        }
    }

    fn parted(&self, py: Python<'_>, error: &PyErr) -> PyResult<Option<Halted>> {
        let parted = error.value(py);
        if !parted.is_instance(PARTED.import(py, ROUTED_MODULE, "Parted")?)? {
            return Ok(None);
        }
        let asked = parted.getattr(intern!(py, "asked"))?;
        Ok(Some(Halted::Parted {
            performed: Box::new(read_request(
                &self.plans,
                &parted.getattr(intern!(py, "performed"))?,
            )?),
            asked: if asked.is_none() {
                None
            } else {
                Some(Box::new(read_request(&self.plans, &asked)?))
            },
        }))
    }

    /// Calls a method that raises nothing. An exception of it is logged.
    fn tell<'py>(&self, py: Python<'py>, method: &str, argument: Bound<'py, PyAny>) {
        if self.is_routed
            && let Err(error) = self.object.call_method1(py, method, (argument,))
        {
            error.write_unraisable(py, Some(self.object.bind(py)));
        }
    }
}

impl Execution for PythonExecution {
    fn advance(&mut self, completions: Vec<(u64, Completion)>) -> Result<Step, Halted> {
        attached(|py| {
            let step = self.step(py, completions);
            step.map_err(|error| self.halted(py, error))
        })
    }

    fn begin(&mut self, execution: &str) {
        if self.is_routed {
            attached(|py| self.tell(py, "begin", PyString::new(py, execution).into_any()));
        }
    }

    fn handed_over(&mut self) -> Option<String> {
        if !self.is_routed {
            return None;
        }
        attached(|py| {
            let read = || -> PyResult<Option<String>> {
                let body = self.object.bind(py).call_method0(intern!(py, "handed_over"))?;
                if body.is_none() {
                    Ok(None)
                } else {
                    typed_json(&body).map(Some)
                }
            };
            read().unwrap_or_else(|error| {
                error.write_unraisable(py, Some(self.object.bind(py)));
                None
            })
        })
    }

    fn stop(&mut self, outcome: Option<&Outcome>) {
        if !self.is_routed {
            return;
        }
        attached(|py| {
            let outcome = outcome.map_or_else(
                || Ok(py.None().into_bound(py)),
                |outcome| outcome_object(py, outcome),
            );
            match outcome {
                Ok(outcome) => self.tell(py, "stop", outcome),
                Err(error) => error.write_unraisable(py, None),
            }
        });
    }
}

/// Reads a `Request` of Python.
pub(crate) fn read_request(plans: &RequestPlans, request: &Bound<'_, PyAny>) -> PyResult<Request> {
    let py = request.py();
    let path: String = request.getattr(intern!(py, "path"))?.extract()?;
    let planned = plans
        .of(&path)
        .ok_or_else(|| PyRuntimeError::new_err(format!("the node has no request `{path}`")))?;
    let given = Given {
        effect: &request.getattr(intern!(py, "effect"))?,
        class: &request.getattr(intern!(py, "effect_class"))?,
        fixed: &request.getattr(intern!(py, "fixed"))?,
        arguments: &request.getattr(intern!(py, "arguments"))?,
        key: &request.getattr(intern!(py, "key"))?,
    };
    planned.request(request.getattr(intern!(py, "id"))?.extract()?, path, &given)
}

/// Returns a request as a `Request` of Python.
pub(crate) fn request_object<'py>(
    py: Python<'py>,
    plans: &RequestPlans,
    request: &Request,
) -> PyResult<Bound<'py, PyAny>> {
    let path = &request.path;
    let planned = plans
        .of(path)
        .ok_or_else(|| PyRuntimeError::new_err(format!("the node has no request `{path}`")))?;
    let (effect, class, fixed, arguments) = planned.fields(py, request)?;
    let key = request.key.as_deref();
    REQUEST
        .import(py, ENGINE, "Request")?
        .call1((request.id, path, effect, class, fixed, arguments, key))
}

/// An execution of the direct engine, which runs without Python's lock.
struct DirectExecution {
    program: Py<Program>,
    state: ExecutionState,
}

impl DirectExecution {
    /// Returns the end of the execution. Outputs are converted when Python reads them.
    fn end(&self, outcome: vesper_interp::Outcome) -> PyResult<Step> {
        if let vesper_interp::Outcome::Returned(values) = &outcome {
            let node = self.program.get().compiled().node();
            let outputs = node
                .outputs
                .iter()
                .map(|output| (&*output.name, &output.ty))
                .zip(values.iter());
            // One that no journal takes is the limit `max_body`, as in Python.
            if let Ok(value) = record_text(outputs.map(|((name, ty), value)| (name, ty, value)).collect()) {
                return Ok(Step::Done(Ended {
                    kind: "returned",
                    record: vec![("value", value)],
                    failed: None,
                    payload: Box::new(DirectOutcome {
                        program: attached(|py| self.program.clone_ref(py)),
                        outcome,
                    }),
                }));
            }
        }
        attached(|py| {
            let presenter = self.program.bind(py).get().presenter();
            done(py, presenter.outcome(py, &outcome))
        })
    }
}

/// Returns the end of an execution with a raw outcome.
fn done(py: Python<'_>, raw: PyResult<Bound<'_, PyTuple>>) -> PyResult<Step> {
    let from_raw = FROM_RAW.import(py, "vesper.engines.direct_engine", "outcome_from_raw")?;
    Ok(Step::Done(ended(&from_raw.call1((raw?,))?)?))
}

impl Execution for DirectExecution {
    fn advance(&mut self, completions: Vec<(u64, Completion)>) -> Result<Step, Halted> {
        match std::mem::replace(&mut self.state, ExecutionState::Ended) {
            ExecutionState::Ended => Err(broken(PyRuntimeError::new_err("this execution has ended"))),
            ExecutionState::BadInput(problems) => {
                attached(|py| done(py, bad_input(py, &problems))).map_err(broken)
            }
            ExecutionState::Running(mut execution) => {
                match run_unlocked(|| guarded(|| execution.advance(completions))) {
                    Err(interrupted) => Err(broken(interrupted)),
                    Ok(Err(message)) => attached(|py| done(py, fault(py, &message))).map_err(broken),
                    Ok(Ok(Err(misuse))) => Err(broken(PyRuntimeError::new_err(misuse.0))),
                    Ok(Ok(Ok(Advanced::Blocked(wave)))) => {
                        self.state = ExecutionState::Running(execution);
                        Ok(Step::Blocked(wave))
                    }
                    Ok(Ok(Ok(Advanced::Done(outcome, _)))) => self.end(outcome).map_err(broken),
                }
            }
        }
    }
}
