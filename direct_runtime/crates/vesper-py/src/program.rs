//! A loaded node, as Python calls it: a dict of inputs in, a tuple that says how the execution ended out.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use vesper_interp::inputs::ProblemKind;
use vesper_interp::{Mark, Mention, Outcome};
use vesper_ir::{ErrorCode, Type, Value};

use crate::IrRejected;
use crate::composed::Conversion;
use crate::convert::to_python;
use crate::gather::gather;
use crate::guard::guarded;
use crate::names::Names;
use crate::problems::{Path, Problems};

/// One loaded node: verified, compiled, immutable, safe to call from any thread.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Program {
    compiled: vesper_interp::Program,
    input_names: Vec<Py<PyString>>,
    inputs_by_name: HashMap<Arc<str>, usize>,
    output_names: Vec<Py<PyString>>,
    names: Names,
}

/// What an execution gave, before it has a Python form.
enum Ended {
    BadInput(Problems),
    Ran(Vec<Mark>, Outcome),
}

#[pymethods]
impl Program {
    #[staticmethod]
    fn load(py: Python<'_>, ir: &Bound<'_, PyBytes>) -> PyResult<Self> {
        let bytes = ir.as_bytes();
        let compiled = guarded(|| vesper_interp::Program::load(bytes))
            .map_err(|message| PyRuntimeError::new_err(format!("engine fault while loading: {message}")))?
            .map_err(|rejected| IrRejected::new_err(rejected.to_string()))?;
        let intern = |name: &Arc<str>| PyString::intern(py, name).unbind();
        let node = compiled.node();
        let input_names = node.inputs.iter().map(|input| intern(&input.name)).collect();
        let inputs_by_name = node
            .inputs
            .iter()
            .map(|input| Arc::clone(&input.name))
            .zip(0..)
            .collect();
        let output_names = node.outputs.iter().map(|output| intern(&output.name)).collect();
        let names = Names::new(py, node);
        Ok(Self {
            compiled,
            input_names,
            inputs_by_name,
            output_names,
            names,
        })
    }

    #[getter]
    fn node_id(&self) -> &str {
        &self.compiled.node().node_id
    }

    #[getter]
    fn semantic_hash(&self) -> &str {
        &self.compiled.node().semantic_hash
    }

    /// The outcome of an execution on these inputs.
    #[pyo3(signature = (inputs, /))]
    fn call<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let inputs = as_dict(inputs)?;
        match guarded(|| self.execute(inputs, |frame| (Vec::new(), self.compiled.run(frame)))) {
            Ok(ended) => self.outcome(py, &ended?),
            Err(message) => fault(py, &message),
        }
    }

    /// The marks and the outcome of an execution on these inputs.
    #[pyo3(signature = (inputs, /))]
    fn trace<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyTuple>)> {
        let inputs = as_dict(inputs)?;
        match guarded(|| self.execute(inputs, |frame| self.compiled.run_traced(frame))) {
            Ok(ended) => {
                let ended = ended?;
                Ok((self.marks(py, &ended)?, self.outcome(py, &ended)?))
            }
            Err(message) => Ok((PyList::empty(py), fault(py, &message)?)),
        }
    }
}

fn as_dict<'a, 'py>(inputs: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyDict>> {
    inputs
        .cast::<PyDict>()
        .map_err(|_| PyTypeError::new_err("the inputs of a node are a dict"))
}

fn fault<'py>(py: Python<'py>, message: &str) -> PyResult<Bound<'py, PyTuple>> {
    (intern!(py, "engine_fault"), message).into_pyobject(py)
}

impl Program {
    fn execute(
        &self,
        inputs: &Bound<'_, PyDict>,
        run: impl FnOnce(Vec<Value>) -> (Vec<Mark>, Outcome),
    ) -> PyResult<Ended> {
        let find = |name: &str| self.inputs_by_name.get(name).copied();
        let gathered = gather(inputs, &self.input_names, find)?
            .ok_or_else(|| PyTypeError::new_err("the names of inputs are strings"))?;
        let mut frame = self.compiled.new_frame();
        let mut conversion = Conversion {
            names: &self.names,
            problems: Problems::default(),
        };
        for (input, given) in self.compiled.node().inputs.iter().zip(gathered.given) {
            let path = Path::Input(&input.name);
            frame.extend(conversion.given(&input.ty, input.default.as_ref(), given.as_ref(), &path)?);
        }
        let mut problems = conversion.problems;
        for name in &gathered.unknown {
            problems.add(&Path::UnknownInput(name), ProblemKind::Unknown);
        }
        if !problems.is_empty() {
            return Ok(Ended::BadInput(problems));
        }
        let (marks, outcome) = run(frame);
        Ok(Ended::Ran(marks, outcome))
    }

    fn outcome<'py>(&self, py: Python<'py>, ended: &Ended) -> PyResult<Bound<'py, PyTuple>> {
        match ended {
            Ended::BadInput(problems) => {
                let problems = PyList::new(py, problems.to_python(py)?)?;
                (
                    intern!(py, "failed"),
                    ErrorCode::BadInput.name(),
                    py.None(),
                    problems,
                )
                    .into_pyobject(py)
            }
            Ended::Ran(_, Outcome::Returned(values)) => {
                let outputs = PyDict::new(py);
                let declared = self.compiled.node().outputs.iter().zip(&self.output_names);
                for ((output, name), value) in declared.zip(values) {
                    outputs.set_item(name, to_python(py, &self.names, &output.ty, value)?)?;
                }
                (intern!(py, "returned"), outputs).into_pyobject(py)
            }
            Ended::Ran(_, Outcome::Failed { code, expression }) => {
                (intern!(py, "failed"), code.name(), *expression, PyList::empty(py)).into_pyobject(py)
            }
            Ended::Ran(
                _,
                Outcome::ContractBroken {
                    phase,
                    clause,
                    values,
                },
            ) => {
                let mentioned = PyDict::new(py);
                for (mention, value) in values {
                    let (name, ty) = self.named(*mention).ok_or_else(|| {
                        PyRuntimeError::new_err("engine fault: a clause mentions what is not there")
                    })?;
                    mentioned.set_item(name.as_ref(), to_python(py, &self.names, ty, value)?)?;
                }
                (intern!(py, "contract_broken"), phase.name(), *clause, mentioned).into_pyobject(py)
            }
            Ended::Ran(_, Outcome::Fault(message)) => fault(py, message),
        }
    }

    fn named(&self, mention: Mention) -> Option<(&Arc<str>, &Type)> {
        let node = self.compiled.node();
        Some(match mention {
            Mention::Input(place) => node.inputs.get(place).map(|input| (&input.name, &input.ty))?,
            Mention::Constant(place) => node
                .constants
                .get(place)
                .map(|constant| (&constant.name, &constant.ty))?,
            Mention::Output(place) => node.outputs.get(place).map(|output| (&output.name, &output.ty))?,
            Mention::Step(place) => {
                let step = node.steps.get(place)?;
                (&step.name, &node.expression(step.value)?.ty)
            }
        })
    }

    fn marks<'py>(&self, py: Python<'py>, ended: &Ended) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        if let Ended::Ran(marks, _) = ended {
            for mark in marks {
                let ty = self
                    .compiled
                    .node()
                    .expression(mark.index)
                    .map_or(&Type::Boolean, |found| &found.ty);
                list.append((mark.index, to_python(py, &self.names, ty, &mark.value)?))?;
            }
        }
        Ok(list)
    }
}
