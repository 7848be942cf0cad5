//! Outcomes as Python tuples that begin with the kind of the outcome.

use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use vesper_interp::problems::Problems;
use vesper_interp::{Mark, Mention, Outcome};
use vesper_ir::node::Output;
use vesper_ir::{ErrorCode, Node, Type, Value};

use crate::inputs::problems::pairs;
use crate::inputs::shapes::{Shape, Shapes};
use crate::inputs::values::{to_dict, to_python};

pub(crate) fn fault<'py>(py: Python<'py>, message: &str) -> PyResult<Bound<'py, PyTuple>> {
    (intern!(py, "engine_fault"), message).into_pyobject(py)
}

pub(crate) fn bad_input<'py>(py: Python<'py>, problems: &Problems) -> PyResult<Bound<'py, PyTuple>> {
    let problems = PyList::new(py, pairs(py, problems)?)?;
    let code = ErrorCode::BadInput.name();
    (intern!(py, "failed"), code, py.None(), problems).into_pyobject(py)
}

/// Names and shapes of inputs or outputs, in declared order.
pub(crate) struct NamedShapes {
    pub(crate) names: Vec<Py<PyString>>,
    pub(crate) shapes: Vec<Arc<Shape>>,
}

impl NamedShapes {
    pub(crate) fn new<'a>(
        py: Python<'_>,
        shapes: &Shapes,
        declared: impl Iterator<Item = (&'a Arc<str>, &'a Type)>,
    ) -> Self {
        let (names, shapes) = declared
            .map(|(name, ty)| (PyString::intern(py, name).unbind(), shapes.of(py, ty)))
            .unzip();
        Self { names, shapes }
    }
}

/// Converter of the outcomes and marks of a node to Python objects.
pub(crate) struct Presenter<'a> {
    pub(crate) node: &'a Node,
    pub(crate) shapes: &'a Shapes,
    pub(crate) outputs: &'a NamedShapes,
}

impl Presenter<'_> {
    pub(crate) fn outputs_dict<'py>(
        &self,
        py: Python<'py>,
        values: &[Value],
    ) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, &self.outputs.names, &self.outputs.shapes, values)
    }

    pub(crate) fn outcome<'py>(&self, py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyTuple>> {
        match outcome {
            Outcome::Returned(values) => {
                (intern!(py, "returned"), self.outputs_dict(py, values)?).into_pyobject(py)
            }
            Outcome::DeclaredError(values) => {
                let fields = PyDict::new(py);
                for (Output { name, ty }, value) in self.node.errors.iter().zip(values) {
                    fields.set_item(name.as_ref(), to_python(py, &self.shapes.of(py, ty), value)?)?;
                }
                (intern!(py, "declared_error"), fields).into_pyobject(py)
            }
            Outcome::Failed { code, expression } => {
                (intern!(py, "failed"), code.name(), *expression, PyList::empty(py)).into_pyobject(py)
            }
            Outcome::ContractBroken {
                phase,
                clause,
                values,
            } => {
                let mentioned = PyDict::new(py);
                for (mention, value) in values {
                    let (name, ty) = self.find_mention(*mention).ok_or_else(|| {
                        PyRuntimeError::new_err("engine fault: a clause mentions an unknown name")
                    })?;
                    let value = match value {
                        // If a node ends with an error, invariants read null for every output.
                        Value::Null => py.None().into_bound(py),
                        value => to_python(py, &self.shapes.of(py, ty), value)?,
                    };
                    mentioned.set_item(name.trim_start_matches('_'), value)?;
                }
                (intern!(py, "contract_broken"), phase.name(), *clause, mentioned).into_pyobject(py)
            }
            Outcome::Denied(capability) => (intern!(py, "denied"), &**capability).into_pyobject(py),
            Outcome::LimitHit(limit) => (intern!(py, "limit_hit"), &**limit).into_pyobject(py),
            Outcome::Fault(message) => fault(py, message),
        }
    }

    fn find_mention(&self, mention: Mention) -> Option<(&Arc<str>, &Type)> {
        let node = self.node;
        Some(match mention {
            Mention::Input(place) => node.inputs.get(place).map(|input| (&input.name, &input.ty))?,
            Mention::Constant(place) => node
                .constants
                .get(place)
                .map(|constant| (&constant.name, &constant.ty))?,
            Mention::Step(place) => {
                let step = node.steps.get(place)?;
                (&step.name, step.ty.as_ref()?)
            }
            Mention::Error(place) => node.errors.get(place).map(|field| (&field.name, &field.ty))?,
            Mention::Output(place) => node.outputs.get(place).map(|output| (&output.name, &output.ty))?,
        })
    }

    pub(crate) fn marks<'py>(&self, py: Python<'py>, marks: &[Mark]) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for mark in marks {
            let ty = self
                .node
                .expression(mark.index)
                .map_or(&Type::Boolean, |found| &found.ty);
            list.append((mark.index, to_python(py, &self.shapes.of(py, ty), &mark.value)?))?;
        }
        Ok(list)
    }
}
