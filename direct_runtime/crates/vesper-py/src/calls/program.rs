//! A loaded node, called with a dict of inputs. The outcome is a tuple.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use vesper_interp::guard::guarded;
use vesper_interp::inputs::ProblemKind;
use vesper_interp::problems::{Path, Problems};
use vesper_interp::{
    FingerprintKey, Limits, LoopClass, Outcome, Point, ProvenChecks, Room, Rule, Rules,
    fingerprint_of_problems,
};
use vesper_ir::types::Outside;
use vesper_ir::{Type, Value};

use crate::IrRejected;
use crate::calls::execution::{Execution, ExecutionState, PathTaken, misuse_error};
use crate::calls::frame_pool::FramePool;
use crate::calls::frameless_call::FramelessCalls;
use crate::calls::outcome::{NamedShapes, Presenter, bad_input, fault};
use crate::inputs::checked_inputs::{Conversion, hidden_defaults};
use crate::inputs::dict_fields::gather;
use crate::inputs::shapes::{Shape, Shapes};
use crate::inputs::values::{any_scalar, to_dict};
use crate::tier::{JitOptions, listing, report_dict};
use crate::watch::{WATCH, run_detached, run_watched};

/// A loaded node: verified, compiled, immutable, safe to call from any thread.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Program {
    compiled: vesper_interp::Program,
    inputs: NamedShapes,
    inputs_by_name: HashMap<Arc<str>, usize>,
    outputs: NamedShapes,
    shapes: Shapes,
    /// True if reading the inputs runs no Python code.
    has_plain_inputs: bool,
    frames: FramePool<Room>,
    pathed_frames: FramePool<Room>,
    frameless_calls: FramelessCalls,
}

/// The converted inputs, or their problems.
pub(crate) type Converted = Result<Vec<Value>, Problems>;

#[pymethods]
impl Program {
    /// Reads, verifies and compiles a document.
    ///
    /// `dependencies` are the documents of the nodes that it calls. `rules` names the rules of the optimizer to
    /// apply; the default is all. `proven` has the proven clauses and calls of nodes by semantic hash, which the plain
    /// form leaves out.
    #[staticmethod]
    #[pyo3(signature = (
        ir, dependencies = Vec::new(), /, optimise = true, rules = None, *,
        jit = "off", jit_calls = 100, jit_operations = 20_000, max_code_bytes = 1 << 26, jit_fail_guard = None,
        proven = Vec::new(),
    ))]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes a new list")]
    #[allow(
        clippy::too_many_arguments,
        reason = "all but two are keyword arguments in Python"
    )]
    fn load(
        py: Python<'_>,
        ir: &Bound<'_, PyBytes>,
        dependencies: Vec<Bound<'_, PyBytes>>,
        optimise: bool,
        rules: Option<Vec<String>>,
        jit: &str,
        jit_calls: u32,
        jit_operations: u64,
        max_code_bytes: usize,
        jit_fail_guard: Option<u32>,
        proven: Vec<(String, Vec<u32>, Vec<u32>)>,
    ) -> PyResult<Self> {
        let options = JitOptions {
            jit,
            calls: jit_calls,
            operations: jit_operations,
            max_code_bytes,
            fail_guard: jit_fail_guard,
        };
        let tiering = options.tiering()?;
        let rules = select_rules(optimise, rules.as_deref())?;
        let bytes = ir.as_bytes();
        let others: Vec<&[u8]> = dependencies.iter().map(PyBytesMethods::as_bytes).collect();
        let proven: Vec<_> = proven
            .into_iter()
            .map(|(hash, clauses, calls)| ProvenChecks { hash, clauses, calls })
            .collect();
        let compiled =
            guarded(|| vesper_interp::Program::load_tiered(bytes, &others, rules, &proven, tiering))
                .map_err(|message| PyRuntimeError::new_err(format!("engine fault while loading: {message}")))?
                .map_err(|rejected| IrRejected::new_err(rejected.to_string()))?;
        let shapes = Shapes::new(py, compiled.nodes());
        let node = compiled.node();
        let inputs = node.inputs.iter().map(|input| (&input.name, &input.ty));
        let inputs = NamedShapes::new(py, &shapes, inputs);
        let inputs_by_name = node
            .inputs
            .iter()
            .map(|input| Arc::clone(&input.name))
            .zip(0..)
            .collect();
        let outputs = node.outputs.iter().map(|output| (&output.name, &output.ty));
        let outputs = NamedShapes::new(py, &shapes, outputs);
        let has_flags = node.outside_inputs.as_ref().is_some_and(Outside::is_sparse);
        Ok(Self {
            frameless_calls: FramelessCalls::new(py, &inputs, &outputs)?,
            compiled,
            has_plain_inputs: !has_flags && inputs.shapes.iter().all(|shape| shape.is_plain),
            inputs,
            inputs_by_name,
            outputs,
            shapes,
            frames: FramePool::new(py)?,
            pathed_frames: FramePool::new(py)?,
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

    /// Returns the optimised form of the node as readable text (docs/spec/optimizer.md).
    fn optimised_listing(&self) -> PyResult<String> {
        guarded(|| self.compiled.optimised_listing())
            .map_err(|message| PyRuntimeError::new_err(format!("engine fault while optimising: {message}")))
    }

    /// Returns true if an execution may make requests; such a node is started, not called.
    #[getter]
    fn asks(&self) -> bool {
        self.compiled.asks()
    }

    /// Returns true if an execution uses its start time.
    #[getter]
    fn uses_now(&self) -> bool {
        self.compiled.uses_now()
    }

    /// Returns tier reports of the plain forms by node id. Adds that of the pathed form if it is in use.
    fn tier<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (units, pathed) = self.compiled.tiers();
        let plain = PyDict::new(py);
        for (node, report) in &units {
            plain.set_item(&*node.node_id, report_dict(py, report)?)?;
        }
        let found = PyDict::new(py);
        found.set_item("plain", plain)?;
        found.set_item(
            "pathed",
            pathed.map(|report| report_dict(py, &report)).transpose()?,
        )?;
        Ok(found)
    }

    /// Returns the code of the node as text: `ir-optimized`, `bytecode`, `clif` or `asm`.
    #[pyo3(signature = (what, /))]
    fn look(&self, what: &str) -> PyResult<String> {
        listing(&self.compiled, what)
    }

    /// Returns the outcome of an execution on these inputs, within these limits.
    #[pyo3(signature = (inputs, /, now = None, fuel = None, seconds = None, memory = None))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyAny>,
        now: Option<&Bound<'py, PyAny>>,
        fuel: Option<u64>,
        seconds: Option<f64>,
        memory: Option<u64>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let limits = limits(fuel, seconds, memory)?;
        let inputs = as_dict(inputs)?;
        self.refuse_effects()?;
        let now = self.now(now)?;
        match self.run_checked(py, inputs, now, limits)? {
            Ok(Ok(outcome)) => self.presenter().outcome(py, &outcome),
            Ok(Err(problems)) => bad_input(py, &problems),
            Err(message) => fault(py, &message),
        }
    }

    /// Returns the marks and the outcome of an execution on these inputs.
    #[pyo3(signature = (inputs, /, now = None))]
    fn trace<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyAny>,
        now: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyTuple>)> {
        let inputs = as_dict(inputs)?;
        self.refuse_effects()?;
        let now = self.now(now)?;
        let ran = match guarded(|| self.convert(inputs)) {
            Ok(Ok(Ok(frame))) => run_detached(py, || guarded(|| self.compiled.run_traced(frame, now)))?,
            Ok(Ok(Err(problems))) => return Ok((PyList::empty(py), bad_input(py, &problems)?)),
            Ok(Err(error)) => return Err(error),
            Err(message) => Err(message),
        };
        match ran {
            Ok((marks, outcome)) => Ok((
                self.presenter().marks(py, &marks)?,
                self.presenter().outcome(py, &outcome)?,
            )),
            Err(message) => Ok((PyList::empty(py), fault(py, &message)?)),
        }
    }

    /// Returns the points of the node by number: kind, expression or handler number, and outcome.
    fn points(&self) -> PyResult<Vec<(&'static str, u32, &'static str)>> {
        let points = guarded(|| self.compiled.points())
            .map_err(|message| PyRuntimeError::new_err(format!("engine fault: {message}")))?;
        let shown = points.iter().map(|point| match *point {
            Point::Condition {
                expression,
                outcome: true,
            } => ("condition", expression, "true"),
            Point::Condition { expression, .. } => ("condition", expression, "false"),
            Point::Loop { expression, class } => {
                let outcome = match class {
                    LoopClass::None => "none",
                    LoopClass::One => "one",
                    LoopClass::Many => "many",
                };
                ("loop", expression, outcome)
            }
            Point::Handler { number } => ("handler", number, "ran"),
        });
        Ok(shown.collect())
    }

    /// Returns the outcome, the path and the fingerprint of an execution on these inputs.
    #[pyo3(signature = (inputs, key, /, now = None, fuel = None, seconds = None, memory = None))]
    #[allow(clippy::too_many_arguments, reason = "all are keyword arguments in Python")]
    fn call_pathed<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyAny>,
        key: &[u8],
        now: Option<&Bound<'py, PyAny>>,
        fuel: Option<u64>,
        seconds: Option<f64>,
        memory: Option<u64>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyBytes>, u64)> {
        let limits = limits(fuel, seconds, memory)?;
        let (ended, path, fingerprint) = self.run_pathed(py, inputs, key, now, limits)?;
        let outcome = match ended {
            Ok(Ok(outcome)) => self.presenter().outcome(py, &outcome)?,
            Ok(Err(problems)) => bad_input(py, &problems)?,
            Err(message) => fault(py, &message)?,
        };
        Ok((outcome, PyBytes::new(py, &path.bytes()), fingerprint))
    }

    /// Creates an execution on these inputs that records its path.
    #[pyo3(signature = (inputs, key, /, now = None, fuel = None, seconds = None, memory = None))]
    fn start_pathed<'py>(
        program: &Bound<'py, Self>,
        inputs: &Bound<'py, PyAny>,
        key: &[u8],
        now: Option<&Bound<'py, PyAny>>,
        fuel: Option<u64>,
        seconds: Option<f64>,
        memory: Option<u64>,
    ) -> PyResult<Execution> {
        let limits = limits(fuel, seconds, memory)?;
        let key = fingerprint_key(key)?;
        let own = program.get();
        let inputs = as_dict(inputs)?;
        let now = own.now(now)?;
        let engine_fault =
            |message| PyRuntimeError::new_err(format!("engine fault while beginning: {message}"));
        let frame = || own.compiled.new_pathed_frame();
        let converted = guarded(|| own.convert_into(frame(), inputs)).map_err(engine_fault)?;
        let empty = PathTaken {
            path: own.compiled.empty_path(),
            fingerprint: 0,
        };
        Ok(match converted? {
            Ok(frame) => {
                let started =
                    guarded(|| own.compiled.start_pathed(frame, now, limits, &key)).map_err(engine_fault)?;
                let state = ExecutionState::Running(Box::new(started.map_err(misuse_error)?));
                Execution::with_path(program.clone().unbind(), state, empty)
            }
            Err(problems) => {
                let way = PathTaken {
                    fingerprint: fingerprint_of_problems(&key, &problems),
                    ..empty
                };
                Execution::with_path(program.clone().unbind(), ExecutionState::BadInput(problems), way)
            }
        })
    }

    /// Creates an execution on these inputs, which runs when it is advanced.
    #[pyo3(signature = (inputs, /, now = None, is_traced = true, fuel = None, seconds = None, memory = None))]
    fn start<'py>(
        program: &Bound<'py, Self>,
        inputs: &Bound<'py, PyAny>,
        now: Option<&Bound<'py, PyAny>>,
        is_traced: bool,
        fuel: Option<u64>,
        seconds: Option<f64>,
        memory: Option<u64>,
    ) -> PyResult<Execution> {
        let limits = limits(fuel, seconds, memory)?;
        let own = program.get();
        let inputs = as_dict(inputs)?;
        let now = own.now(now)?;
        let converted = guarded(|| own.convert(inputs)).map_err(|message| {
            PyRuntimeError::new_err(format!("engine fault while converting: {message}"))
        })?;
        let state = match converted? {
            Ok(frame) => {
                let started = own.compiled.start_within(frame, now, is_traced, limits);
                ExecutionState::Running(Box::new(started.map_err(misuse_error)?))
            }
            Err(problems) => ExecutionState::BadInput(problems),
        };
        Ok(Execution::new(program.clone().unbind(), state))
    }
}

/// Returns limits, with defaults for those not given.
pub(crate) fn limits(fuel: Option<u64>, seconds: Option<f64>, memory: Option<u64>) -> PyResult<Limits> {
    let usual = Limits::default();
    let time = match seconds.map(Duration::try_from_secs_f64) {
        None => usual.time,
        Some(Ok(time)) => Some(time),
        Some(Err(_)) => return Err(PyValueError::new_err("seconds are a number that is not negative")),
    };
    Ok(Limits {
        fuel: fuel.unwrap_or(usual.fuel),
        memory: memory.unwrap_or(usual.memory),
        time,
        watch: Some(WATCH),
    })
}

pub(crate) fn as_dict<'a, 'py>(inputs: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyDict>> {
    inputs
        .cast::<PyDict>()
        .map_err(|_| PyTypeError::new_err("the inputs of a node are a dict"))
}

/// Checks that a fingerprint key has sixteen bytes.
pub(crate) fn fingerprint_key(key: &[u8]) -> PyResult<FingerprintKey> {
    FingerprintKey::try_from(key).map_err(|_| {
        PyValueError::new_err(format!(
            "the key of fingerprints has 16 bytes; this one has {}",
            key.len()
        ))
    })
}

/// Result, path and fingerprint of a pathed call. The outer error is the message of a panic.
pub(crate) type PathedRun = (
    Result<Result<Outcome, Problems>, String>,
    vesper_interp::Path,
    u64,
);

impl Program {
    /// Converts inputs and runs a node without effects, recording its path. Releases the lock, as a follower does.
    ///
    /// Inputs with problems have an empty path and the fingerprint of their problems; a panic has an empty path and
    /// the fingerprint 0.
    pub(crate) fn run_pathed(
        &self,
        py: Python<'_>,
        inputs: &Bound<'_, PyAny>,
        key: &[u8],
        now: Option<&Bound<'_, PyAny>>,
        limits: Limits,
    ) -> PyResult<PathedRun> {
        let inputs = as_dict(inputs)?;
        let key = fingerprint_key(key)?;
        self.refuse_effects()?;
        let now = self.now(now)?;
        Ok(
            match guarded(|| self.convert_into(self.compiled.new_pathed_frame(), inputs)) {
                Ok(Ok(Ok(frame))) => {
                    let run = || guarded(|| self.compiled.run_pathed(frame, now, limits, &key));
                    match run_detached(py, run)? {
                        Ok(ran) => (Ok(Ok(ran.outcome)), ran.path, ran.fingerprint),
                        Err(message) => (Err(message), self.compiled.empty_path(), 0),
                    }
                }
                Ok(Ok(Err(problems))) => {
                    let fingerprint = fingerprint_of_problems(&key, &problems);
                    (Ok(Err(problems)), self.compiled.empty_path(), fingerprint)
                }
                Ok(Err(error)) => return Err(error),
                Err(message) => (Err(message), self.compiled.empty_path(), 0),
            },
        )
    }

    /// Converts inputs into a frame that records its path. The error is the message of a panic.
    pub(crate) fn convert_pathed(&self, inputs: &Bound<'_, PyDict>) -> Result<PyResult<Converted>, String> {
        guarded(|| self.convert_into(self.compiled.new_pathed_frame(), inputs))
    }

    /// Returns these inputs as a Python dict.
    pub(crate) fn inputs_object<'py>(
        &self,
        py: Python<'py>,
        values: &[Value],
    ) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, &self.inputs.names, &self.inputs.shapes, values)
    }

    pub(crate) fn outputs(&self) -> &NamedShapes {
        &self.outputs
    }

    /// Converts inputs by all rules and runs a node without effects. The inner error is the message of a panic.
    pub(crate) fn run_checked(
        &self,
        py: Python<'_>,
        inputs: &Bound<'_, PyDict>,
        now: Option<Value>,
        limits: Limits,
    ) -> PyResult<Result<Result<Outcome, Problems>, String>> {
        Ok(match guarded(|| self.convert(inputs)) {
            Ok(Ok(Ok(frame))) => {
                let run = || guarded(|| self.compiled.run_within(frame, now, limits));
                run_watched(py, run)?.map(Ok)
            }
            Ok(Ok(Err(problems))) => Ok(Err(problems)),
            Ok(Err(error)) => return Err(error),
            Err(message) => Err(message),
        })
    }

    /// Returns a room for a run. Nodes that make requests, call nodes or use the time have none.
    #[inline]
    pub(crate) fn room(&self, py: Python<'_>) -> Option<Box<Room>> {
        match self.frames.take(py) {
            Some(room) => Some(room),
            None => self.compiled.room().map(Box::new),
        }
    }

    /// Puts a room back.
    ///
    /// INVARIANT: the room is clear and came from `room`.
    #[inline]
    pub(crate) fn put_back(&self, py: Python<'_>, room: Box<Room>) {
        self.frames.put(py, room);
    }

    /// Returns a room for a run that records its path.
    #[inline]
    pub(crate) fn pathed_room(&self, py: Python<'_>) -> Option<Box<Room>> {
        match self.pathed_frames.take(py) {
            Some(room) => Some(room),
            None => self.compiled.pathed_room().map(Box::new),
        }
    }

    /// Puts a pathed room back.
    ///
    /// INVARIANT: the room is clear and came from `pathed_room`.
    #[inline]
    pub(crate) fn put_back_pathed(&self, py: Python<'_>, room: Box<Room>) {
        self.pathed_frames.put(py, room);
    }

    pub(crate) fn frameless_calls(&self) -> &FramelessCalls {
        &self.frameless_calls
    }

    pub(crate) fn inputs(&self) -> &NamedShapes {
        &self.inputs
    }

    pub(crate) fn has_plain_inputs(&self) -> bool {
        self.has_plain_inputs
    }

    pub(crate) fn place_of_input(&self, name: &str) -> Option<usize> {
        self.inputs_by_name.get(name).copied()
    }

    pub(crate) fn compiled(&self) -> &vesper_interp::Program {
        &self.compiled
    }

    pub(crate) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    pub(crate) fn input_shape(&self, name: &str) -> Option<&Shape> {
        let place = *self.inputs_by_name.get(name)?;
        self.inputs.shapes.get(place).map(|shape| &**shape)
    }

    pub(crate) fn presenter(&self) -> Presenter<'_> {
        Presenter {
            node: self.compiled.node(),
            shapes: &self.shapes,
            outputs: &self.outputs,
        }
    }

    pub(crate) fn refuse_effects(&self) -> PyResult<()> {
        if self.compiled.asks() {
            return Err(PyValueError::new_err(
                "the node asks for effects: start it, and advance it with what comes of them",
            ));
        }
        Ok(())
    }

    /// Converts the start time of a program that uses it; other programs ignore the argument.
    pub(crate) fn now(&self, given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Value>> {
        if !self.compiled.uses_now() {
            return Ok(None);
        }
        let given = given.ok_or_else(|| PyValueError::new_err("the node uses now, and no time was given"))?;
        match any_scalar(&Type::Timestamp, given)? {
            Ok(now) => Ok(Some(now)),
            Err(problem) => Err(PyValueError::new_err(format!(
                "now is a timestamp; what was given is {}",
                problem.name()
            ))),
        }
    }

    pub(crate) fn convert(&self, inputs: &Bound<'_, PyDict>) -> PyResult<Converted> {
        self.convert_into(self.compiled.new_frame(), inputs)
    }

    /// Converts inputs into an empty frame.
    fn convert_into(&self, mut frame: Vec<Value>, inputs: &Bound<'_, PyDict>) -> PyResult<Converted> {
        let find = |name: &str| self.inputs_by_name.get(name).copied();
        let mut conversion = Conversion::default();
        let unknown = gather(inputs, &self.inputs.names, find, &mut conversion.held)?
            .ok_or_else(|| PyTypeError::new_err("the names of inputs are strings"))?;
        let node = self.compiled.node();
        let flags = hidden_defaults(node.outside_inputs.as_ref(), &conversion.held);
        let declared = node.inputs.iter().zip(&self.inputs.shapes);
        for (place, (input, shape)) in declared.enumerate() {
            let given = conversion.held.get_mut(place).and_then(Option::take);
            let path = Path::Input(&input.name);
            frame.push(Value::Null);
            if let Some(out) = frame.last_mut() {
                let default = flags
                    .get(place)
                    .and_then(Option::as_ref)
                    .or(input.default.as_ref());
                conversion.value_or_default(shape, default, given.as_ref(), &path, out)?;
            }
        }
        let mut problems = conversion.problems;
        for name in &unknown {
            problems.add(&Path::UnknownInput(name), ProblemKind::Unknown);
        }
        Ok(if problems.is_empty() {
            Ok(frame)
        } else {
            Err(problems)
        })
    }
}

/// Returns the optimizer rules to apply.
fn select_rules(optimise: bool, names: Option<&[String]>) -> PyResult<Rules> {
    match names {
        _ if !optimise => Ok(Rules::NONE),
        None => Ok(Rules::ALL),
        Some(names) => names.iter().try_fold(Rules::NONE, |rules, name| {
            let rule = Rule::from_name(name).ok_or_else(|| {
                let known: Vec<_> = Rule::names().collect();
                PyValueError::new_err(format!(
                    "the optimizer has no rule `{name}`; its rules are {}",
                    known.join(", ")
                ))
            })?;
            Ok(rules.with(rule))
        }),
    }
}
