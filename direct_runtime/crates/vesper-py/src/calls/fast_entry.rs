//! The way into a node without effects for callers who want its outputs: `call` is a function of C with one argument, and
//! nothing of Python stands between.

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

use crate::calls::outcome::{bad_input, fault};
use crate::calls::program::{Program, as_dict};
use crate::inputs::fast_inputs::{DEFAULT_LIMITS, FastRun};

/// After so many inputs of one `map` other threads may run, and signals are looked at.
const CHECK_INTERVAL_CALLS: usize = 1_024;
/// And after so many where they took longer than this, which is what Python lets its own threads have.
const CLOCK_INTERVAL_CALLS: usize = 16;
const MAX_LOCK_HOLD: Duration = Duration::from_millis(5);

/// A node without effects that needs no time of its start.
#[pyclass(frozen, name = "Way", module = "vesper._direct")]
pub(crate) struct FastEntry {
    program: Py<Program>,
    /// Gives what `call` gives, or raises, for an outcome that is not `returned` and its inputs.
    ended: Py<PyAny>,
}

#[pymethods]
impl FastEntry {
    #[new]
    #[pyo3(signature = (program, ended, /))]
    fn new(program: Py<Program>, ended: Py<PyAny>) -> PyResult<Self> {
        program.get().refuse_effects()?;
        if program.get().compiled().uses_now() {
            return Err(pyo3::exceptions::PyValueError::new_err(
                "the node uses now: a call needs the time of its start",
            ));
        }
        Ok(Self { program, ended })
    }

    /// A dict of inputs to a dict of outputs; for what ends otherwise `ended` is asked.
    #[getter]
    fn call<'py>(entry: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        CALL.bind(entry.as_any())
    }

    /// The outputs for each of these inputs, in their order. The first that ends otherwise goes to `ended`; what that
    /// raises gets a note of the place.
    #[pyo3(signature = (many, /))]
    fn map<'py>(&self, many: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyList>> {
        let py = many.py();
        let answers = PyList::empty(py);
        let mut place = 0;
        let mut since = Instant::now();
        // Not by its length: what `ended` runs may change the list.
        while let Ok(inputs) = many.get_item(place) {
            let answer = match self.run_shortest(py, inputs.as_borrowed()) {
                Ok(outputs) => Ok(outputs.into_any()),
                Err(ran) => self.finish(&inputs, ran),
            };
            match answer {
                Ok(answer) => answers.append(answer)?,
                Err(error) => {
                    let note = format!("these were the inputs {place} of `map`, counted from 0");
                    error.value(py).call_method1("add_note", (note,))?;
                    return Err(error);
                }
            }
            place += 1;
            // A few calls may take as long as many: a clock is looked at, and that not each time.
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
        visit.call(&self.ended)
    }
}

/// What a run came to that is not simply the outputs; the outer error is what it panicked with.
type NotReturned<'py> = Result<PyResult<FastRun<'py>>, String>;

impl FastEntry {
    /// The outputs by the shortest way that there is for these inputs. No panic gets past this.
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

    /// The usual case where there is no machine code without a frame. The room is dropped where this panics.
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

    /// Everything else: inputs of unusual form are converted by all the rules, and what did not return is told to
    /// `ended`.
    #[cold]
    fn finish<'py>(&self, inputs: &Bound<'py, PyAny>, ran: NotReturned<'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = inputs.py();
        let program = self.program.get();
        let presenter = program.presenter();
        let raw = match ran {
            Ok(Ok(FastRun::Returned(outputs))) => return Ok(outputs.into_any()),
            Ok(Ok(FastRun::Otherwise(outcome))) => presenter.outcome(py, &outcome)?,
            Ok(Ok(FastRun::Unusual)) => {
                match program.run_checked(py, as_dict(inputs)?, None, DEFAULT_LIMITS)? {
                    Ok(Ok(Outcome::Returned(values))) => {
                        return Ok(presenter.outputs_dict(py, &values)?.into_any());
                    }
                    Ok(Ok(outcome)) => presenter.outcome(py, &outcome)?,
                    Ok(Err(problems)) => bad_input(py, &problems)?,
                    Err(message) => fault(py, &message)?,
                }
            }
            Ok(Err(error)) => return Err(error),
            Err(message) => fault(py, &message)?,
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

/// What Python knows of a function that is called by hand.
pub(crate) struct Definition(UnsafeCell<ffi::PyMethodDef>);

impl Definition {
    pub(crate) const fn new(definition: ffi::PyMethodDef) -> Self {
        Self(UnsafeCell::new(definition))
    }

    /// A function of Python that is called with this object as its first argument, and holds it.
    pub(crate) fn bind<'py>(&'static self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the definition lives as long as the process, and nobody writes to it. A new object, or nothing and an
        // error.
        unsafe {
            let made = ffi::PyCFunction_NewEx(self.0.get(), object.as_ptr(), std::ptr::null_mut());
            Bound::from_owned_ptr_or_err(object.py(), made)
        }
    }
}

// SAFETY: nobody writes to it, here or in Python, which only reads definitions.
unsafe impl Sync for Definition {}

static CALL: Definition = Definition::new(ffi::PyMethodDef {
    ml_name: c"call".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunction: call },
    ml_flags: ffi::METH_O,
    ml_doc:
        c"call($self, inputs, /)\n--\n\nA dict of inputs to a dict of outputs; what ends otherwise is raised."
            .as_ptr(),
});

/// `Way.call` as Python calls it: by hand, because what PyO3 puts around a method costs as much as a short node.
unsafe extern "C" fn call(entry: *mut ffi::PyObject, inputs: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls this, with the lock held, and holds both objects until it comes back.
    let (py, entry, inputs) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, entry), Borrowed::from_ptr(py, inputs))
    };
    debug_assert!(FastEntry::is_type_of(&entry), "the function was made with a way");
    // SAFETY: `Way::call` made the function, with a way.
    let entry = unsafe { entry.cast_unchecked::<FastEntry>() }.get();
    // No panic gets past this: it would end the process.
    let ran = match entry.run_shortest(py, inputs) {
        Ok(outputs) => return outputs.into_ptr(),
        Err(ran) => ran,
    };
    // From here on as PyO3 does it: it counts who is attached, to know when objects may be let go.
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
