//! Serving of one call: the choice of an engine, and its result.

use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{Borrowed, PyTypeInfo};
use vesper_interp::guard::guarded;
use vesper_interp::{Outcome, Path, Room};

use super::shadow_run::Queued;
use super::{DIRECT_ONLY, DUAL_VERIFY, PYTHON_ONLY, Plan, Route, SHADOW_DIRECT, limits};
use crate::calls::fast_entry::Definition;
use crate::calls::program::as_dict;
use crate::watch::run_watched_within;
use std::sync::atomic::Ordering;

/// The arguments of a call.
#[derive(Clone, Copy)]
pub(super) struct Invocation<'a, 'py> {
    pub(super) inputs: &'a Bound<'py, PyAny>,
    /// The start time, for a node that uses it.
    pub(super) now: Option<&'a Bound<'py, PyAny>>,
}

/// The engine chosen for a call.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    /// Python runs alone.
    Python,
    /// The direct engine serves trusted paths.
    Direct,
    /// Python leads, and the direct engine follows.
    Followed,
    /// Python decides.
    Open,
}

/// The generated function raised; the exception is set in Python.
pub(super) struct Raised;

/// Result of a frameless run: the outputs, or `None` if it had no effect. The error is the message of a panic.
type FramelessRun<'py> = Result<Option<Bound<'py, PyDict>>, String>;

impl Route {
    #[inline]
    pub(super) fn choose(&self, mode: u8) -> Choice {
        match mode {
            PYTHON_ONLY => Choice::Python,
            DIRECT_ONLY if self.draw() >= self.sample.load(Ordering::Relaxed) => Choice::Direct,
            // The sample is always followed: it is the only check of outcomes returned without comparison, and a high
            // load of another, merely observed node must not reduce it.
            DIRECT_ONLY => Choice::Followed,
            SHADOW_DIRECT | DUAL_VERIFY => {
                super::count(&self.admission_draws);
                let admission = self.admission.load(Ordering::Relaxed);
                if admission != u64::MAX && self.draw() >= admission {
                    Choice::Python
                } else {
                    Choice::Followed
                }
            }
            _ => Choice::Open,
        }
    }

    /// Serves a call.
    pub(super) fn serve<'py>(
        &self,
        py: Python<'py>,
        call: Invocation<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mode = self.mode.load(Ordering::Relaxed);
        match self.choose(mode) {
            Choice::Python => {
                self.count_served(mode, false);
                self.lead(py, call)
                    .or_else(|Raised| self.handle_exception(py, call, Plan::Python))
            }
            Choice::Direct => match self.run_frameless(py, call) {
                Ok(Some(outputs)) => Ok(outputs.into_any()),
                ran => self.run_direct(py, call, ran),
            },
            Choice::Followed => self.lead_and_follow(py, mode, call),
            Choice::Open => self.run_in_python(py, Plan::Open, call),
        }
    }

    /// Runs the generated function.
    #[inline]
    pub(super) fn lead<'py>(
        &self,
        py: Python<'py>,
        call: Invocation<'_, 'py>,
    ) -> Result<Bound<'py, PyAny>, Raised> {
        let Invocation { inputs, now } = call;
        let reference = self.reference.as_ptr();
        let count = 1 | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET;
        // The first element is reserved for the callee by the vectorcall protocol. One call, where PyO3 needs three
        // for one argument.
        //
        // SAFETY: all objects are alive during the call. The result is a new object, or null and an exception.
        let outputs = unsafe {
            match now {
                None => {
                    let mut given = [std::ptr::null_mut(), inputs.as_ptr()];
                    ffi::PyObject_Vectorcall(
                        reference,
                        given.as_mut_ptr().add(1),
                        count,
                        std::ptr::null_mut(),
                    )
                }
                Some(now) => {
                    let mut given = [std::ptr::null_mut(), inputs.as_ptr(), now.as_ptr()];
                    let names = self.now_named.as_ptr();
                    ffi::PyObject_Vectorcall(reference, given.as_mut_ptr().add(1), count, names)
                }
            }
        };
        // SAFETY: as above.
        unsafe { Bound::from_owned_ptr_or_opt(py, outputs) }.ok_or(Raised)
    }

    /// Counts an exception that the caller gets.
    #[cold]
    fn counted(&self, py: Python<'_>, error: PyErr) -> PyErr {
        let [metrics, _] = &self.metrics;
        if let Err(other) = metrics.count_exception(py, &error) {
            other.write_unraisable(py, None);
        }
        error
    }

    /// Handles an exception of the generated function. Serves the call again in Python, unless the exception is for
    /// the caller.
    #[cold]
    pub(super) fn handle_exception<'py>(
        &self,
        py: Python<'py>,
        call: Invocation<'_, 'py>,
        plan: Plan,
    ) -> PyResult<Bound<'py, PyAny>> {
        let error = PyErr::fetch(py);
        let is_shown = self.is_bare && matches!(plan, Plan::Python);
        if is_shown || !error.is_instance_of::<PyException>(py) {
            return Err(self.counted(py, error));
        }
        drop(error);
        self.run_in_python(py, plan, call)
    }

    /// Serves the call in Python according to the plan.
    #[cold]
    pub(super) fn run_in_python<'py>(
        &self,
        py: Python<'py>,
        plan: Plan,
        call: Invocation<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let answer = self.slow.bind(py).call1((plan as u8, call.inputs, call.now));
        answer.map_err(|error| self.counted(py, error))
    }

    /// Runs the direct engine without a frame, and returns the outputs of a trusted path. Catches every panic.
    #[inline]
    pub(super) fn run_frameless<'py>(&self, py: Python<'py>, call: Invocation<'_, 'py>) -> FramelessRun<'py> {
        let flight = self.flight.get();
        flight.enter();
        let inputs = call.inputs.as_borrowed();
        let ran = guarded(|| {
            self.program
                .get()
                .call_frameless_trusted(py, inputs, |path| self.trusts(path))
        });
        flight.leave();
        if let Ok(Some(_)) = ran {
            self.count_served(DIRECT_ONLY, true);
        }
        ran
    }

    /// Runs the direct engine in all other cases; `ran` is the result of `run_frameless`.
    #[inline(never)]
    fn run_direct<'py>(
        &self,
        py: Python<'py>,
        call: Invocation<'_, 'py>,
        ran: FramelessRun<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Err(message) = ran {
            self.hand_over_fault(py, call, &message)?;
            return self.run_in_python(py, Plan::Direct, call);
        }
        let Ok(dict) = as_dict(call.inputs) else {
            return self.run_in_python(py, Plan::Direct, call);
        };
        let program = self.program.get();
        let flight = self.flight.get();
        flight.enter();
        // Common inputs run in the room of the node; others are converted by all rules.
        if let Some(mut room) = program.pathed_room(py) {
            let ran = guarded(|| program.run_in_room(py, &mut room, dict, Some(self.deadline)));
            if !matches!(ran, Ok(Ok(None))) {
                flight.leave();
                return self.finish_in_room(py, call, room, ran);
            }
            room.clear();
            program.put_back_pathed(py, room);
        }
        let ran = self.run_unhashed(py, dict, call.now);
        flight.leave();
        match ran {
            Ok(Ok(Some((Outcome::Returned(values), path)))) if self.trusts(&path) => {
                self.count_served(DIRECT_ONLY, true);
                return Ok(program.presenter().outputs_dict(py, &values)?.into_any());
            }
            Ok(Ok(Some((Outcome::Fault(what), _)))) => self.hand_over_fault(py, call, what)?,
            Ok(Ok(_)) => {}
            Ok(Err(message)) => self.hand_over_fault(py, call, &message)?,
            Err(error) if error.is_instance_of::<PyException>(py) => {}
            Err(error) => return Err(error),
        }
        self.run_in_python(py, Plan::Direct, call)
    }

    /// Converts inputs by all rules and runs the node; returns `None` for rejected inputs. The inner error is the
    /// message of a panic.
    fn run_unhashed(
        &self,
        py: Python<'_>,
        inputs: &Bound<'_, PyDict>,
        now: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Result<Option<(Outcome, Path)>, String>> {
        let program = self.program.get();
        let now = program.now(now)?;
        match program.convert_pathed(inputs) {
            Ok(Ok(Ok(frame))) => {
                let run = || guarded(|| program.compiled().run_unhashed(frame, now, limits()));
                run_watched_within(py, Some(self.deadline), run).map(|ran| ran.map(Some))
            }
            Ok(Ok(Err(_))) => Ok(Ok(None)),
            Ok(Err(error)) => Err(error),
            Err(message) => Ok(Err(message)),
        }
    }

    /// Handles the result of a run in the room of the node. The outer error is the message of a panic.
    #[inline]
    fn finish_in_room<'py>(
        &self,
        py: Python<'py>,
        call: Invocation<'_, 'py>,
        mut room: Box<Room>,
        ran: Result<PyResult<Option<Outcome>>, String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let program = self.program.get();
        match ran {
            Ok(Ok(Some(Outcome::Returned(_)))) if self.trusts(&program.compiled().path_in(&room)) => {
                self.count_served(DIRECT_ONLY, true);
                let outputs = program.outputs_of(py, &room);
                room.clear();
                program.put_back_pathed(py, room);
                return outputs.map(Bound::into_any);
            }
            Ok(Ok(Some(Outcome::Fault(what)))) => self.hand_over_fault(py, call, what)?,
            Ok(Ok(_)) => {}
            Ok(Err(error)) if error.is_instance_of::<PyException>(py) => {}
            Ok(Err(error)) => return Err(error),
            Err(message) => self.hand_over_fault(py, call, &message)?,
        }
        self.run_in_python(py, Plan::Direct, call)
    }

    #[cold]
    fn hand_over_fault(&self, py: Python<'_>, call: Invocation<'_, '_>, what: &str) -> PyResult<()> {
        let Invocation { inputs, now } = call;
        self.hand_over
            .bind(py)
            .call1((inputs, py.None(), py.None(), false, what, now))?;
        Ok(())
    }
}

pub(super) static CALL: Definition = Definition::new(ffi::PyMethodDef {
    ml_name: c"call".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunction: call },
    ml_flags: ffi::METH_O,
    ml_doc:
        c"call($self, inputs, /)\n--\n\nReturn the outputs for a dict of inputs; raise for any other outcome."
            .as_ptr(),
});

/// Implements `Route.call` as a C function. The wrapper of PyO3 would be a large part of the cost of routing.
unsafe extern "C" fn call(route: *mut ffi::PyObject, inputs: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls this with the lock held, and holds both objects until it returns.
    let (py, route, inputs) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, route), Borrowed::from_ptr(py, inputs))
    };
    debug_assert!(Route::is_type_of(&route), "the function was made with a route");
    // SAFETY: `Route::call` made the function with a route.
    let route = unsafe { route.cast_unchecked::<Route>() }.get();
    let call = Invocation {
        inputs: &inputs,
        now: None,
    };
    let mode = route.mode.load(Ordering::Relaxed);
    match route.choose(mode) {
        Choice::Python => {
            route.count_served(mode, false);
            match route.lead(py, call) {
                Ok(outputs) => outputs.into_ptr(),
                Err(Raised) if route.is_bare => call_attached(|py| Err(route.counted(py, PyErr::fetch(py)))),
                Err(Raised) => call_attached(|py| route.handle_exception(py, call, Plan::Python)),
            }
        }
        Choice::Direct => match route.run_frameless(py, call) {
            Ok(Some(outputs)) => outputs.into_ptr(),
            ran => call_attached(|py| route.run_direct(py, call, ran)),
        },
        Choice::Followed => match route.lead_timed(py, mode, call) {
            Ok(leader) => match route.queue_words(py, call, &leader) {
                Some(Queued) => leader.outputs.into_ptr(),
                None => call_attached(|py| route.queue_values(py, call, leader)),
            },
            Err(Raised) => call_attached(|py| route.handle_exception(py, call, Plan::Followed)),
        },
        Choice::Open => call_attached(|py| route.run_in_python(py, Plan::Open, call)),
    }
}

/// Attaches the thread like PyO3 does for its own methods, because it releases objects only then. Catches every
/// panic, which would otherwise end the process.
#[inline]
fn call_attached<'py>(does: impl FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>>) -> *mut ffi::PyObject {
    Python::attach(|_| {
        // SAFETY: the thread was just attached, and so was the caller, for as long as the objects in `does` live.
        let py = unsafe { Python::assume_attached() };
        let answer = guarded(|| does(py))
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
