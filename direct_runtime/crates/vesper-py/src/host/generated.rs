//! Executions of generated Python: the run loop sends completions to the generator itself.
//!
//! `vesper/engines/python_engine.py` begins the execution and makes outcomes; between the two, one call of Python a
//! request is enough.

use std::sync::Arc;

use pyo3::exceptions::{PyException, PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple, PyType};
use vesper_interp::{Completion, Request};
use vesper_ir::Value;

use crate::host::plans::{Given, RequestPlans};
use crate::inputs::shapes::{Parts, Shape};
use crate::inputs::values::to_python;

const MODULE: &str = "vesper.engines.python_engine";
static EXECUTION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static RAISED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static RETURNED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static WAVE: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// A generator that waits for the completions of its requests.
pub(crate) struct Generated {
    execution: Py<PyAny>,
    program: Py<PyAny>,
    steps: Py<PyAny>,
    /// The requests of the wave in the form of the generator.
    asked: Vec<Py<PyAny>>,
    /// True where the generator gave a `Wave`, and takes a list.
    is_wave: bool,
    /// The clock of its limits; None where its time is not measured.
    budget: Option<Py<PyAny>>,
    /// True where values for callers differ from those of the generator.
    has_json: bool,
    next_id: u64,
}

/// A completion in the form of the generator.
enum Answer<'py> {
    Value(Bound<'py, PyAny>),
    Raised(Bound<'py, PyAny>),
}

/// State of a generator after it was advanced.
pub(crate) enum Advanced<'py> {
    Asked(Vec<Request>),
    Outcome(Bound<'py, PyAny>),
}

impl Generated {
    /// Returns the generator of an execution that waits for its first request; None for other executions.
    pub(crate) fn of(execution: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = execution.py();
        let class = EXECUTION.import(py, MODULE, "PythonExecution")?;
        if !execution.get_type().is(class) {
            return Ok(None);
        }
        let is_timed = execution.getattr(intern!(py, "_is_timed"))?.is_truthy()?;
        let program = execution.getattr(intern!(py, "_program"))?;
        Ok(Some(Self {
            steps: execution.getattr(intern!(py, "_steps"))?.unbind(),
            asked: execution.getattr(intern!(py, "_asked"))?.extract()?,
            is_wave: execution.getattr(intern!(py, "_is_wave"))?.is_truthy()?,
            has_json: program.getattr(intern!(py, "has_json"))?.is_truthy()?,
            program: program.unbind(),
            budget: if is_timed {
                Some(execution.getattr(intern!(py, "_budget"))?.unbind())
            } else {
                None
            },
            next_id: execution.getattr(intern!(py, "_requests"))?.extract()?,
            execution: execution.clone().unbind(),
        }))
    }

    /// Continues with the completions of the wave. `awaited` has the types of their results, and receives those of the next
    /// wave.
    pub(crate) fn advance<'py>(
        &mut self,
        py: Python<'py>,
        plans: &RequestPlans,
        awaited: &mut Vec<(u64, Arc<Shape>)>,
        completions: Vec<(u64, Completion)>,
    ) -> PyResult<Advanced<'py>> {
        if completions.len() != awaited.len() || awaited.is_empty() {
            return Err(PyRuntimeError::new_err("the execution waits for its completions"));
        }
        let steps = self.steps.bind(py);
        if let Some(budget) = &self.budget {
            budget.call_method0(py, intern!(py, "go"))?;
        }
        let mut answers = Vec::with_capacity(completions.len());
        for ((asked, (_, shape)), (_, completion)) in self.asked.iter().zip(&*awaited).zip(completions) {
            answers.push(self.answer(py, asked, shape, completion)?);
        }
        awaited.clear();
        let sent = if self.is_wave {
            let answers = answers.into_iter().map(|answer| match answer {
                Answer::Value(object) | Answer::Raised(object) => object,
            });
            steps.call_method1(intern!(py, "send"), (PyList::new(py, answers)?,))
        } else {
            match answers.pop() {
                Some(Answer::Raised(raised)) => steps.call_method1(intern!(py, "throw"), (raised,)),
                Some(Answer::Value(value)) => steps.call_method1(intern!(py, "send"), (value,)),
                None => return Err(PyRuntimeError::new_err("the execution waits for its completion")),
            }
        };
        if let Some(budget) = &self.budget {
            budget.call_method0(py, intern!(py, "wait"))?;
        }
        match sent {
            Ok(asked) => self.requests(plans, &asked, awaited).map(Advanced::Asked),
            Err(error) => self.outcome(py, &error).map(Advanced::Outcome),
        }
    }

    /// Returns a completion in the form of the generator.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        asked: &Py<PyAny>,
        shape: &Shape,
        completion: Completion,
    ) -> PyResult<Answer<'py>> {
        let raised = |code: &str| {
            let class = RAISED.import(py, "vesper.kernels.raised", "Raised")?;
            class.call1((code,)).map(Answer::Raised)
        };
        match completion {
            Completion::Value(value) => match self.accepted(py, asked, shape, &value)? {
                Some(value) => Ok(Answer::Value(value)),
                None => raised("bad_response"),
            },
            Completion::Failed(code) => raised(code.name()),
            Completion::Denied(_) | Completion::LimitHit(_) => Err(PyRuntimeError::new_err(
                "the run loop ends a run that is denied or has hit a limit",
            )),
        }
    }

    /// Returns a value in the form of the generator; None where it is not of the declared type.
    fn accepted<'py>(
        &self,
        py: Python<'py>,
        asked: &Py<PyAny>,
        shape: &Shape,
        value: &Value,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let object = to_python(py, shape, value)?;
        if !self.has_json || !has_json(shape) {
            return Ok(Some(object));
        }
        let execution = self.execution.bind(py);
        let accepted = execution.call_method1(intern!(py, "_accept_result"), (asked.bind(py), object))?;
        let (value, is_sound): (Bound<'_, PyAny>, bool) = accepted.extract()?;
        Ok(is_sound.then_some(value))
    }

    /// Reads what the generator gave: a request, or a `Wave` of them.
    fn requests(
        &mut self,
        plans: &RequestPlans,
        given: &Bound<'_, PyAny>,
        awaited: &mut Vec<(u64, Arc<Shape>)>,
    ) -> PyResult<Vec<Request>> {
        let py = given.py();
        self.asked.clear();
        self.is_wave = given
            .get_type()
            .is(WAVE.import(py, "vesper.kernels.runtime.flow", "Wave")?);
        if !self.is_wave {
            return Ok(vec![self.request(plans, given, awaited)?]);
        }
        let wave = given.getattr(intern!(py, "requests"))?;
        wave.try_iter()?
            .map(|asked| self.request(plans, &asked?, awaited))
            .collect()
    }

    /// Reads a request: a tuple of path, effect, class, fixed texts, arguments and key.
    fn request(
        &mut self,
        plans: &RequestPlans,
        asked: &Bound<'_, PyAny>,
        awaited: &mut Vec<(u64, Arc<Shape>)>,
    ) -> PyResult<Request> {
        let py = asked.py();
        let fields = asked.cast::<PyTuple>()?;
        let path: String = fields.get_item(0)?.extract()?;
        let planned = plans
            .of(&path)
            .ok_or_else(|| PyRuntimeError::new_err(format!("the node has no request `{path}`")))?;
        let mut arguments = fields.get_item(4)?;
        if self.has_json {
            arguments = self
                .program
                .bind(py)
                .call_method1(intern!(py, "outside"), (arguments,))?;
        }
        let given = Given {
            effect: &fields.get_item(1)?,
            class: &fields.get_item(2)?,
            fixed: &fields.get_item(3)?,
            arguments: &arguments,
            key: &fields.get_item(5)?,
        };
        let request = planned.request(self.next_id, path, &given)?;
        self.next_id += 1;
        self.asked.push(asked.clone().unbind());
        awaited.push((request.id, Arc::clone(&planned.result)));
        Ok(request)
    }

    /// Returns the outcome of a generator that ended.
    fn outcome<'py>(&self, py: Python<'py>, error: &PyErr) -> PyResult<Bound<'py, PyAny>> {
        let program = self.program.bind(py);
        if error.is_instance_of::<PyStopIteration>(py) {
            let value = error.value(py).getattr(intern!(py, "value"))?;
            let value = program.call_method1(intern!(py, "outside"), (value,))?;
            return RETURNED
                .import(py, "vesper.engines.outcome", "Returned")?
                .call1((value,));
        }
        if !error.is_instance_of::<PyException>(py) {
            return Err(error.clone_ref(py)); // Ctrl-C
        }
        let loaded = self.execution.bind(py).getattr(intern!(py, "_loaded"))?;
        program.call_method1(intern!(py, "ended"), (loaded, error.value(py)))
    }
}

fn has_json(shape: &Shape) -> bool {
    match &shape.parts {
        Parts::None => matches!(shape.ty, vesper_ir::Type::Json),
        Parts::Enum(_) => false,
        Parts::Optional(of) | Parts::Array(of) | Parts::Set(of) => has_json(of),
        Parts::Map(key, value) => has_json(key) || has_json(value),
        Parts::Record(fields) => fields.shapes.iter().any(|field| has_json(field)),
    }
}
