//! Calls of a node that return an outcome object, the bare outputs or JSON text.
//!
//! No Python function is called in between.

use std::time::Instant;

use pyo3::Borrowed;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};
use vesper_interp::Outcome;
use vesper_interp::guard::guarded;

use crate::calls::fast_entry::Definition;
use crate::calls::outcome::{bad_input, fault};
use crate::calls::program::{Program, as_dict, limits};
use crate::inputs::fast_inputs::FastRun;
use crate::metrics::CallMetrics;
use crate::watch::run_watched;

/// A node without effects, prepared for repeated calls.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Entry {
    program: Py<Program>,
    returned: OneSlot,
    /// Makes an outcome object of a tuple that is not `returned`.
    other: Py<PyAny>,
    /// Raises the exception for such a tuple.
    refuse: Py<PyAny>,
    /// Adds texts to the JSON of an outcome other than `returned`, from it and the JSON text of the inputs.
    explain_json: Option<Py<PyAny>>,
    /// The series of an entry of the API; other entries compare engines.
    metrics: Option<CallMetrics>,
}

/// The start of the JSON of outputs.
const RETURNED: &str = "{\"kind\":\"returned\"";

/// End of a call.
enum CallEnd<'py> {
    Returned(Bound<'py, PyDict>),
    Otherwise(Bound<'py, PyTuple>),
}

#[pymethods]
impl Entry {
    #[new]
    #[pyo3(signature = (program, returned, other, refuse, explain_json = None, /))]
    fn new(
        program: Py<Program>,
        returned: &Bound<'_, PyType>,
        other: Py<PyAny>,
        refuse: Py<PyAny>,
        explain_json: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let returned = OneSlot::new(returned, "value")?;
        let node = &program.get().compiled().node().node_id;
        let metrics = explain_json.as_ref().map(|_| CallMetrics::new(node, "direct"));
        Ok(Self {
            program,
            returned,
            other,
            refuse,
            explain_json,
            metrics,
        })
    }

    /// Returns the outcome of an execution on these inputs.
    #[pyo3(signature = (inputs, /, now = None))]
    fn outcome<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyAny>,
        now: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.run(py, inputs, now)? {
            CallEnd::Returned(outputs) => self.returned.make(outputs.as_any()),
            CallEnd::Otherwise(raw) => self.other.bind(py).call1((raw,)),
        }
    }

    /// Returns the outcome, the path and the fingerprint of an execution on these inputs.
    #[pyo3(signature = (inputs, key, /, now = None))]
    fn pathed<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyAny>,
        key: &[u8],
        now: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyBytes>, u64)> {
        let program = self.program.get();
        let (ended, path, fingerprint) =
            program.run_pathed(py, inputs, key, now, limits(None, None, None)?)?;
        let presenter = program.presenter();
        let other = |raw: Bound<'py, PyTuple>| self.other.bind(py).call1((raw,));
        let outcome = match ended {
            Ok(Ok(Outcome::Returned(values))) => self
                .returned
                .make(presenter.outputs_dict(py, &values)?.as_any())?,
            Ok(Ok(outcome)) => other(presenter.outcome(py, &outcome)?)?,
            Ok(Err(problems)) => other(bad_input(py, &problems)?)?,
            Err(message) => other(fault(py, &message)?)?,
        };
        Ok((outcome, PyBytes::new(py, &path.bytes()), fingerprint))
    }

    /// Returns the outputs of an execution on these inputs; without outputs, `refuse` raises the reason.
    #[pyo3(signature = (inputs, /, now = None))]
    fn outputs<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyAny>,
        now: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        match self.run(py, inputs, now)? {
            CallEnd::Returned(outputs) => Ok(outputs),
            CallEnd::Otherwise(raw) => {
                self.refuse.bind(py).call1((raw,))?;
                Err(PyRuntimeError::new_err(
                    "an outcome without outputs was not refused",
                ))
            }
        }
    }

    /// Returns the C function that runs JSON text and returns the outcome as canonical JSON.
    #[getter]
    fn json<'py>(entry: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        JSON.bind(entry.as_any())
    }

    /// Runs JSON text. `json` calls this for arguments other than one text of the common form.
    #[pyo3(signature = (inputs, /, now = None))]
    fn run_json<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyAny>,
        now: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let program = self.program.get();
        let inputs = inputs.cast::<PyBytes>().map_err(|_| {
            let name = &program.compiled().node().node_id;
            let given = inputs.get_type().name();
            let given = given.map_or_else(|_| "that".to_owned(), |given| given.to_string());
            PyTypeError::new_err(format!("{name}.run_json takes JSON text as bytes, not {given}"))
        })?;
        program.refuse_effects()?;
        let now = program.now(now)?;
        let text = inputs.as_bytes();
        let limits = limits(None, None, None)?;
        let timer = self.timer();
        // The bytes are immutable, and the caller holds them.
        if let Some(mut room) = program.room(py) {
            let run = || guarded(|| program.compiled().run_json_in(&mut room, text, limits));
            match run_watched(py, run)? {
                Ok(answer) => {
                    program.put_back(py, room);
                    if let Some(answer) = answer {
                        return self.answer(inputs, &answer, timer);
                    }
                }
                Err(message) => return self.answer(inputs, &vesper_interp::json::fault(&message), timer),
            }
        }
        let answer = run_watched(py, || guarded(|| program.compiled().run_json(text, now, limits)))?;
        let answer = answer.unwrap_or_else(|message| vesper_interp::json::fault(&message));
        self.answer(inputs, &answer, timer)
    }
}

impl Entry {
    #[inline]
    fn timer(&self) -> Option<Instant> {
        self.metrics.as_ref().and_then(CallMetrics::timer)
    }

    #[inline]
    fn count(&self, timer: Option<Instant>) {
        if let Some(metrics) = &self.metrics {
            metrics.count(timer);
        }
    }

    /// Counts an outcome, and returns its JSON as Python gets it.
    fn answer<'py>(
        &self,
        inputs: &Bound<'py, PyBytes>,
        answer: &str,
        timer: Option<Instant>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let py = inputs.py();
        self.count(timer);
        if let Some(metrics) = self.metrics.as_ref().filter(|_| !answer.starts_with(RETURNED)) {
            metrics.count_json(answer);
        }
        let answered = PyBytes::new(py, answer.as_bytes());
        match &self.explain_json {
            Some(explain) if !answer.starts_with(RETURNED) => Ok(explain
                .bind(py)
                .call1((answered, inputs))?
                .cast_into::<PyBytes>()?),
            _ => Ok(answered),
        }
    }

    #[inline]
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyAny>,
        now: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<CallEnd<'py>> {
        let program = self.program.get();
        let inputs = as_dict(inputs)?;
        program.refuse_effects()?;
        let now = program.now(now)?;
        match guarded(|| program.call_frameless(py, inputs.as_any().as_borrowed())) {
            Ok(Some(outputs)) => return Ok(CallEnd::Returned(outputs)),
            Ok(None) => {}
            Err(message) => return Ok(CallEnd::Otherwise(fault(py, &message)?)),
        }
        let presenter = program.presenter();
        // A node that runs in a room does not use the start time.
        if let Some(mut room) = program.room(py) {
            match guarded(|| program.run_fast(py, &mut room, inputs, None)) {
                Ok(ran) => {
                    program.put_back(py, room);
                    match ran? {
                        FastRun::Returned(outputs) => return Ok(CallEnd::Returned(outputs)),
                        FastRun::Otherwise(outcome) => {
                            return Ok(CallEnd::Otherwise(presenter.outcome(py, &outcome)?));
                        }
                        FastRun::Unusual => {}
                    }
                }
                Err(message) => return Ok(CallEnd::Otherwise(fault(py, &message)?)),
            }
        }
        Ok(
            match program.run_checked(py, inputs, now, limits(None, None, None)?)? {
                Ok(Ok(Outcome::Returned(values))) => CallEnd::Returned(presenter.outputs_dict(py, &values)?),
                Ok(Ok(outcome)) => CallEnd::Otherwise(presenter.outcome(py, &outcome)?),
                Ok(Err(problems)) => CallEnd::Otherwise(bad_input(py, &problems)?),
                Err(message) => CallEnd::Otherwise(fault(py, &message)?),
            },
        )
    }
}

static JSON: Definition = Definition::new(ffi::PyMethodDef {
    ml_name: c"run_json".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer {
        PyCFunctionFastWithKeywords: json,
    },
    ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
    ml_doc:
        c"run_json($self, inputs, /, now=None)\n--\n\nRun JSON text and return the outcome as canonical JSON."
            .as_ptr(),
});

/// Implements `Entry.json` as a C function. The wrapper of PyO3 costs as much as a short node.
///
/// Answers calls with one argument of the common form, and passes others to `Entry.run_json`.
unsafe extern "C" fn json(
    entry: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with the lock held, holds all objects until it returns, and passes `count` arguments.
    // `Entry::json` made the function with an entry.
    let (py, own, first) = unsafe {
        let py = Python::assume_attached();
        let own = Borrowed::from_ptr(py, entry).cast_unchecked::<Entry>();
        let is_usual = count == 1 && names.is_null();
        (py, own, is_usual.then(|| Borrowed::from_ptr(py, *arguments)))
    };
    if let Some(Ok(text)) = first.map(Borrowed::cast::<PyBytes>) {
        let timer = own.get().timer();
        match guarded(|| own.get().program.get().call_frameless_json(py, text.as_bytes())) {
            Ok(Some(answer)) => {
                own.get().count(timer);
                return answer.into_ptr();
            }
            Ok(None) => {}
            Err(message) => {
                let answer = own
                    .get()
                    .answer(&text, &vesper_interp::json::fault(&message), timer);
                return answer.map_or_else(
                    |error| {
                        error.restore(py);
                        std::ptr::null_mut()
                    },
                    Bound::into_ptr,
                );
            }
        }
    }
    // PyO3 parses the arguments and reports wrong ones.
    //
    // SAFETY: as above; the name is alive and the arguments are those that Python passed. The result is a new object,
    // or null and an error.
    unsafe {
        let method = ffi::PyObject_GetAttr(entry, intern!(py, "run_json").as_ptr());
        if method.is_null() {
            return method;
        }
        let answer = ffi::PyObject_Vectorcall(method, arguments, count.unsigned_abs(), names);
        ffi::Py_DECREF(method);
        answer
    }
}

/// A Python class with one slot, whose objects are made without `__init__`.
struct OneSlot {
    class: Py<PyType>,
    slot: Py<PyString>,
}

impl OneSlot {
    fn new(class: &Bound<'_, PyType>, slot: &str) -> PyResult<Self> {
        let py = class.py();
        let found = Self {
            class: class.clone().unbind(),
            slot: PyString::intern(py, slot).unbind(),
        };
        // A base class written in C may need more initialisation than the slot.
        let object = py.import("builtins")?.getattr("object")?;
        if !class.getattr("__base__")?.is(&object) {
            return Err(PyTypeError::new_err("the class of outcomes has a base"));
        }
        let probe = PyDict::new(py);
        if !found.make(probe.as_any())?.getattr(slot)?.is(&probe) {
            return Err(PyTypeError::new_err(
                "the class of outcomes does not keep what it is given",
            ));
        }
        Ok(found)
    }

    /// Makes an object with this value in its slot.
    #[inline]
    fn make<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = value.py();
        let class: *mut ffi::PyTypeObject = self.class.as_ptr().cast();
        // SAFETY: the class is alive and derives from `object` alone, so `tp_alloc` returns a complete object with
        // empty slots and a reference count of one, or null and an error. The attribute is set as by
        // `object.__setattr__`, which takes its own reference.
        unsafe {
            let Some(allocate) = (*class).tp_alloc else {
                return Err(PyTypeError::new_err("the class of outcomes has no allocator"));
            };
            let object = Bound::from_owned_ptr_or_err(py, allocate(class, 0))?;
            match ffi::PyObject_GenericSetAttr(object.as_ptr(), self.slot.as_ptr(), value.as_ptr()) {
                0 => Ok(object),
                _ => Err(PyErr::fetch(py)),
            }
        }
    }
}
