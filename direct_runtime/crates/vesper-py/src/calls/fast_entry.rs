//! The fast entry of a node without effects: a C function from inputs to outputs.

use std::cell::UnsafeCell;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{Borrowed, PyTypeInfo};
use vesper_interp::Outcome;
use vesper_interp::guard::guarded;

use crate::calls::ending::{End, Raises};
use crate::calls::outcome::{bad_input, fault};
use crate::calls::program::{Program, as_dict};
use crate::inputs::fast_inputs::{DEFAULT_LIMITS, FastRun};
use crate::metrics::CallMetrics;

/// Number of calls of one `map` after which other threads may run and signals are checked.
const CHECK_INTERVAL_CALLS: usize = 1_024;
/// Number of calls of one `map` after which the clock is read. If they took longer than `MAX_LOCK_HOLD`, the switch
/// interval of Python, other threads may run.
const CLOCK_INTERVAL_CALLS: usize = 16;
const MAX_LOCK_HOLD: Duration = Duration::from_millis(5);

/// A node without effects that does not use its start time. Its Python class is `Way`.
#[pyclass(frozen, name = "Way", module = "vesper._direct")]
pub(crate) struct FastEntry {
    program: Py<Program>,
    /// Returns the result of `call`, or raises, for an outcome other than `returned` and its inputs.
    ended: Py<PyAny>,
    /// Takes precedence over `ended`.
    raises: Option<Raises>,
    metrics: CallMetrics,
}

#[pymethods]
impl FastEntry {
    #[new]
    #[pyo3(signature = (program, ended, raises = None, /))]
    fn new(program: Py<Program>, ended: Py<PyAny>, raises: Option<Raises>) -> PyResult<Self> {
        program.get().refuse_effects()?;
        if program.get().compiled().uses_now() {
            return Err(pyo3::exceptions::PyValueError::new_err(
                "the node uses now: a call needs the time of its start",
            ));
        }
        let metrics = CallMetrics::new(&program.get().compiled().node().node_id, "direct");
        Ok(Self {
            program,
            ended,
            raises,
            metrics,
        })
    }

    /// Returns the C function; it passes outcomes other than `returned` to `ended`.
    #[getter]
    fn call<'py>(entry: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        CALL.bind(entry.as_any())
    }

    /// Returns the outputs for each of these inputs, in order.
    ///
    /// The first outcome without outputs goes to `ended`, and a note with its position is added to the exception.
    #[pyo3(signature = (many, /))]
    fn map<'py>(&self, many: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyList>> {
        let py = many.py();
        let answers = PyList::empty(py);
        let mut place = 0;
        let mut since = Instant::now();
        // The length is read in each round, because `ended` may change the list.
        while let Ok(inputs) = many.get_item(place) {
            let timer = self.metrics.timer();
            let answer = match self.run_shortest(py, inputs.as_borrowed()) {
                Ok(outputs) => Ok(outputs.into_any()),
                Err(ran) => self.finish(&inputs, ran),
            };
            self.metrics.count(timer);
            match answer {
                Ok(answer) => answers.append(answer)?,
                Err(error) => {
                    let note = format!("these were the inputs {place} of `map`, counted from 0");
                    error.value(py).call_method1("add_note", (note,))?;
                    return Err(error);
                }
            }
            place += 1;
            // A few long calls take as much time as many short ones, so the clock is read at intervals.
            if place.is_multiple_of(CLOCK_INTERVAL_CALLS)
                && (place.is_multiple_of(CHECK_INTERVAL_CALLS) || since.elapsed() > MAX_LOCK_HOLD)
            {
                py.detach(|| {});
                py.check_signals()?;
                since = Instant::now();
            }
        }
        Ok(answers)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.program)?;
        visit.call(&self.ended)?;
        self.raises
            .as_ref()
            .map_or(Ok(()), |raises| raises.traverse(&visit))
    }
}

/// Result of a run without outputs. The outer error is the message of a panic.
type NotReturned<'py> = Result<PyResult<FastRun<'py>>, String>;

impl FastEntry {
    /// Returns the outputs by the fastest tier available. Catches every panic.
    #[inline]
    fn run_shortest<'py>(
        &self,
        py: Python<'py>,
        inputs: Borrowed<'_, 'py, PyAny>,
    ) -> Result<Bound<'py, PyDict>, NotReturned<'py>> {
        match guarded(|| self.program.get().call_frameless(py, inputs)) {
            Ok(Some(outputs)) => Ok(outputs),
            Ok(None) => match guarded(|| self.run_fast(py, &inputs)) {
                Ok(Ok(FastRun::Returned(outputs))) => Ok(outputs),
                ran => Err(ran),
            },
            Err(message) => Err(Err(message)),
        }
    }

    /// Runs in a room if there is no frameless machine code. A panic drops the room.
    #[inline]
    fn run_fast<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyAny>) -> PyResult<FastRun<'py>> {
        let program = self.program.get();
        let Ok(dict) = inputs.cast::<PyDict>() else {
            return Ok(FastRun::Unusual);
        };
        let Some(mut room) = program.room(py) else {
            return Ok(FastRun::Unusual);
        };
        let ran = program.run_fast(py, &mut room, dict, None);
        program.put_back(py, room);
        ran
    }

    /// Handles all other results. Converts uncommon inputs by all rules, and calls `ended` for an outcome without
    /// outputs.
    #[cold]
    fn finish<'py>(&self, inputs: &Bound<'py, PyAny>, ran: NotReturned<'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = inputs.py();
        let program = self.program.get();
        let presenter = program.presenter();
        let end = match ran {
            Ok(Ok(FastRun::Returned(outputs))) => return Ok(outputs.into_any()),
            Ok(Ok(FastRun::Otherwise(outcome))) => End::Outcome(outcome),
            Ok(Ok(FastRun::Unusual)) => {
                match program.run_checked(py, as_dict(inputs)?, None, DEFAULT_LIMITS)? {
                    Ok(Ok(Outcome::Returned(values))) => {
                        return Ok(presenter.outputs_dict(py, &values)?.into_any());
                    }
                    Ok(Ok(outcome)) => End::Outcome(outcome),
                    Ok(Err(problems)) => End::Refused(problems),
                    Err(message) => End::Panicked(message),
                }
            }
            Ok(Err(error)) => return Err(error),
            Err(message) => End::Panicked(message),
        };
        self.metrics.count_error(end.label());
        if let Some(raises) = &self.raises {
            return Err(raises.error(py, &self.program, end, inputs));
        }
        let raw = match &end {
            End::Outcome(outcome) => presenter.outcome(py, outcome)?,
            End::Refused(problems) => bad_input(py, problems)?,
            End::Panicked(message) => fault(py, message)?,
        };
        self.call_ended(raw, inputs)
    }

    fn call_ended<'py>(
        &self,
        raw: Bound<'py, PyTuple>,
        inputs: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.ended.bind(inputs.py()).call1((raw, inputs))
    }
}

/// Definition of a C function that Python calls without PyO3.
pub(crate) struct Definition(UnsafeCell<ffi::PyMethodDef>);

impl Definition {
    pub(crate) const fn new(definition: ffi::PyMethodDef) -> Self {
        Self(UnsafeCell::new(definition))
    }

    /// Makes a Python function that is bound to this object and holds it.
    pub(crate) fn bind<'py>(&'static self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the definition is static and never written. The result is a new object, or null and an error.
        unsafe {
            let made = ffi::PyCFunction_NewEx(self.0.get(), object.as_ptr(), std::ptr::null_mut());
            Bound::from_owned_ptr_or_err(object.py(), made)
        }
    }
}

// SAFETY: neither this crate nor Python writes to a definition.
unsafe impl Sync for Definition {}

static CALL: Definition = Definition::new(ffi::PyMethodDef {
    ml_name: c"call".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunction: call },
    ml_flags: ffi::METH_O,
    ml_doc:
        c"call($self, inputs, /)\n--\n\nReturn the outputs for a dict of inputs; raise for any other outcome."
            .as_ptr(),
});

/// Implements `Way.call` as a C function. The wrapper of PyO3 costs as much as a short node.
unsafe extern "C" fn call(entry: *mut ffi::PyObject, inputs: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with the lock held, and holds both objects until it returns.
    let (py, entry, inputs) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, entry), Borrowed::from_ptr(py, inputs))
    };
    debug_assert!(
        FastEntry::is_type_of(&entry),
        "the function is bound to a fast entry"
    );
    // SAFETY: `FastEntry::call` made the function with a fast entry.
    let entry = unsafe { entry.cast_unchecked::<FastEntry>() }.get();
    // `run_shortest` catches panics, which would otherwise end the process.
    let timer = entry.metrics.timer();
    let ran = entry.run_shortest(py, inputs);
    entry.metrics.count(timer);
    let ran = match ran {
        Ok(outputs) => return outputs.into_ptr(),
        Err(ran) => ran,
    };
    // From here on PyO3 must know that the thread is attached, because it releases objects only then.
    Python::attach(|py| {
        let answer = guarded(|| entry.finish(&inputs, ran))
            .unwrap_or_else(|message| Err(PyRuntimeError::new_err(format!("engine fault: {message}"))));
        match answer {
            Ok(answer) => answer.into_ptr(),
            Err(error) => {
                error.restore(py);
                std::ptr::null_mut()
            }
        }
    })
}
