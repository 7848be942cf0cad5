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
use crate::convert::{to_python, to_value};
use crate::guard::guarded;

/// Up to this many inputs, looking through all names is quicker than hashing one.
const FEW_INPUTS: usize = 16;

/// One loaded node: verified, compiled, immutable, safe to call from any thread.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Program {
    compiled: vesper_interp::Program,
    input_names: Vec<Py<PyString>>,
    inputs_by_name: HashMap<Arc<str>, usize>,
    outputs: Vec<OutputForm>,
}

/// What is made once for each output.
struct OutputForm {
    name: Py<PyString>,
    /// The strings of an enum's members; empty for other types.
    members: Vec<Py<PyString>>,
}

/// What an execution gave, before it has a Python form.
enum Ended {
    BadInput(Vec<Problem>),
    Ran(Vec<Mark>, Outcome),
}

/// What is given for each input.
type GivenObjects<'py> = Vec<Option<Bound<'py, PyAny>>>;

struct Problem {
    path: Py<PyString>,
    kind: ProblemKind,
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
        let outputs = node.outputs.iter().map(|output| OutputForm {
            name: intern(&output.name),
            members: match &output.ty {
                Type::Enum(of) => of.members().iter().map(intern).collect(),
                _ => Vec::new(),
            },
        });
        let outputs = outputs.collect();
        Ok(Self {
            compiled,
            input_names,
            inputs_by_name,
            outputs,
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
        let py = inputs.py();
        let (given, unknown) = self.gather(inputs)?;
        let mut frame = self.compiled.new_frame();
        let mut problems = Vec::new();
        let declared = self.compiled.node().inputs.iter().zip(&self.input_names);
        for ((input, name), given) in declared.zip(given) {
            let value = match (given, &input.default) {
                (Some(object), _) => to_value(&input.ty, &object)?,
                (None, Some(default)) => Ok(default.clone()),
                (None, None) => Err(ProblemKind::Missing),
            };
            match value {
                Ok(value) => frame.push(value),
                Err(kind) => problems.push(Problem {
                    path: name.clone_ref(py),
                    kind,
                }),
            }
        }
        for path in unknown {
            problems.push(Problem {
                path,
                kind: ProblemKind::Unknown,
            });
        }
        if !problems.is_empty() {
            return Ok(Ended::BadInput(problems));
        }
        let (marks, outcome) = run(frame);
        Ok(Ended::Ran(marks, outcome))
    }

    /// What is given for each input, and the names that no input has, in code-point order.
    ///
    /// Goes through the dict instead of asking it: a look-up may call `__eq__` of keys that are subclasses of `str`.
    fn gather<'py>(&self, inputs: &Bound<'py, PyDict>) -> PyResult<(GivenObjects<'py>, Vec<Py<PyString>>)> {
        let py = inputs.py();
        let mut given: GivenObjects<'py> = vec![None; self.input_names.len()];
        let mut unknown: Vec<Vec<u8>> = Vec::new();
        for (position, (key, value)) in inputs.iter().enumerate() {
            let key = key
                .cast_into::<PyString>()
                .map_err(|_| PyTypeError::new_err("the names of inputs are strings"))?;
            match self.place(&key, position).and_then(|place| given.get_mut(place)) {
                Some(slot) => *slot = Some(value),
                None => unknown.push(bytes_with_surrogates(&key)?),
            }
        }
        // UTF-8, surrogates included, sorts by code point.
        unknown.sort();
        let decode = |bytes: &Vec<u8>| {
            let text = PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogatepass"))?;
            Ok(text.cast_into::<PyString>()?.unbind())
        };
        let unknown = unknown.iter().map(decode).collect::<PyResult<Vec<_>>>()?;
        Ok((given, unknown))
    }

    /// The input with this name. Callers mostly write the names in their source, in declared order: then the key is
    /// the very string that was interned here.
    fn place(&self, key: &Bound<'_, PyString>, position: usize) -> Option<usize> {
        if self.input_names.get(position).is_some_and(|name| name.is(key)) {
            return Some(position);
        }
        if self.input_names.len() <= FEW_INPUTS
            && let Some(place) = self.input_names.iter().position(|name| name.is(key))
        {
            return Some(place);
        }
        self.inputs_by_name.get(key.to_str().ok()?).copied()
    }

    fn outcome<'py>(&self, py: Python<'py>, ended: &Ended) -> PyResult<Bound<'py, PyTuple>> {
        match ended {
            Ended::BadInput(problems) => {
                let problems = problems
                    .iter()
                    .map(|problem| (problem.path.bind(py), problem.kind.name()));
                let problems = PyList::new(py, problems.collect::<Vec<_>>())?;
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
                let declared = self.compiled.node().outputs.iter().zip(&self.outputs);
                for ((output, form), value) in declared.zip(values) {
                    match value {
                        Value::Member(member) if let Some(text) = form.members.get(member.0 as usize) => {
                            outputs.set_item(&form.name, text)?;
                        }
                        _ => outputs.set_item(&form.name, to_python(py, &output.ty, value)?)?,
                    }
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
                    mentioned.set_item(name.as_ref(), to_python(py, ty, value)?)?;
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
                list.append((mark.index, to_python(py, ty, &mark.value)?))?;
            }
        }
        Ok(list)
    }
}

/// The UTF-8 of a string, with lone surrogates encoded as if they were characters.
fn bytes_with_surrogates(text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    if let Ok(text) = text.to_str() {
        return Ok(text.as_bytes().to_vec());
    }
    // From the base type, because a subclass may have its own `encode`.
    let class = text.py().get_type::<PyString>();
    let bytes = class.call_method1("encode", (text, "utf-8", "surrogatepass"))?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
}
