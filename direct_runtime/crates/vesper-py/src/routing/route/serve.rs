//! One request: which engine it is, and what its caller gets.

use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{Borrowed, PyTypeInfo};
use vesper_interp::guard::guarded;
use vesper_interp::{Outcome, Path, Room};

use super::shadow_run::Counted;
use super::{DIRECT_ONLY, DUAL_VERIFY, PYTHON_ONLY, Plan, Route, SHADOW_DIRECT, limits};
use crate::calls::fast_entry::Definition;
use crate::calls::program::as_dict;
use crate::watch::run_watched_within;
use std::sync::atomic::Ordering;

/// What a caller gives.
#[derive(Clone, Copy)]
pub(super) struct Invocation<'a, 'py> {
    pub(super) inputs: &'a Bound<'py, PyAny>,
    /// Of a node that needs the time of its start.
    pub(super) now: Option<&'a Bound<'py, PyAny>>,
}

/// What was drawn for a request.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    /// Python alone.
    Python,
    /// The direct engine, as far as it is trusted.
    Direct,
    /// Python leads, and is followed.
    Followed,
    /// That is for Python to say.
    Open,
}

/// The generated function has raised: Python has the exception.
pub(super) struct Raised;

/// What came of a run without a frame: the outputs, or nothing and nothing was done; the error is what it panicked with.
type FramelessRun<'py> = Result<Option<Bound<'py, PyDict>>, String>;

impl Route {
    #[inline]
    pub(super) fn choose(&self, mode: u8) -> Choice {
        match mode {
            PYTHON_ONLY => Choice::Python,
            DIRECT_ONLY if self.draw() >= self.sample.load(Ordering::Relaxed) => Choice::Direct,
            // No coin for the sample: it is all that guards answers which nobody compares, and a flood of another node,
            // which is only watched, must not thin it out.
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

    /// A request from its beginning.
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
        // The first place is for whom is called, should it need one. One call: what PyO3 has for one
        // argument is made of three.
        // SAFETY: objects that are alive, and hold on to each other; a new one, or nothing and an exception.
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

    /// What becomes of a request where the generated function raised: it is done from the beginning, unless what was
    /// raised is what its caller should see.
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
            return Err(error);
        }
        drop(error);
        self.run_in_python(py, plan, call)
    }

    /// By Python, as it was planned.
    #[cold]
    pub(super) fn run_in_python<'py>(
        &self,
        py: Python<'py>,
        plan: Plan,
        call: Invocation<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.slow.bind(py).call1((plan as u8, call.inputs, call.now))
    }

    /// The direct engine where there is machine code without a frame, and its answer where that is trusted. No panic gets
    /// past this.
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

    /// The direct engine in every other case; `ran` is what came of `shortly`.
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
        // Inputs as most callers give them, in the room of the node; for others from the beginning, by all the rules.
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

    /// A run by all the rules; nothing where the inputs are refused. The inner error is what it panicked with.
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

    /// What becomes of a run in the room of the node; the outer error is what it panicked with.
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
        c"call($self, inputs, /)\n--\n\nA dict of inputs to a dict of outputs; what ends otherwise is raised."
            .as_ptr(),
});

/// `Route.call` as Python calls it: by hand, because what PyO3 puts around a method is a large part of what routing costs.
unsafe extern "C" fn call(route: *mut ffi::PyObject, inputs: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: Python calls this, with the lock held, and holds both objects until it comes back.
    let (py, route, inputs) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, route), Borrowed::from_ptr(py, inputs))
    };
    debug_assert!(Route::is_type_of(&route), "the function was made with a route");
    // SAFETY: `Route::call` made the function, with a route.
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
                Err(Raised) if route.is_bare => std::ptr::null_mut(),
                Err(Raised) => call_attached(|py| route.handle_exception(py, call, Plan::Python)),
            }
        }
        Choice::Direct => match route.run_frameless(py, call) {
            Ok(Some(outputs)) => outputs.into_ptr(),
            ran => call_attached(|py| route.run_direct(py, call, ran)),
        },
        Choice::Followed => match route.lead_timed(py, mode, call) {
            Ok(leader) => match route.follow_frameless(py, call, &leader) {
                Ok(Counted) => leader.outputs.into_ptr(),
                Err(follow_up) => call_attached(|py| route.finish_following(py, call, leader, *follow_up)),
            },
            Err(Raised) => call_attached(|py| route.handle_exception(py, call, Plan::Followed)),
        },
        Choice::Open => call_attached(|py| route.run_in_python(py, Plan::Open, call)),
    }
}

/// As PyO3 does it for its own methods: it counts who is attached, to know when objects may be let go. No panic gets past
/// this: it would end the process.
#[inline]
fn call_attached<'py>(does: impl FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>>) -> *mut ffi::PyObject {
    Python::attach(|_| {
        // SAFETY: attached just before, and whoever called this was, for as long as the objects in `does` live.
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
