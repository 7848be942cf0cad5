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
use crate::watch::watched_within;
use std::sync::atomic::Ordering;

/// What a caller gives.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a, 'py> {
    pub(super) inputs: &'a Bound<'py, PyAny>,
    /// Of a node that needs the time of its start.
    pub(super) now: Option<&'a Bound<'py, PyAny>>,
}

/// What was drawn for a request.
#[derive(Clone, Copy)]
pub(super) enum Lot {
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
type Shortly<'py> = Result<Option<Bound<'py, PyDict>>, String>;

impl Route {
    #[inline]
    pub(super) fn lot(&self, mode: u8) -> Lot {
        match mode {
            PYTHON_ONLY => Lot::Python,
            DIRECT_ONLY if self.draw() >= self.sample.load(Ordering::Relaxed) => Lot::Direct,
            // No coin for the sample: it is all that guards answers which nobody compares, and a flood of another node,
            // which is only watched, must not thin it out.
            DIRECT_ONLY => Lot::Followed,
            SHADOW_DIRECT | DUAL_VERIFY => {
                super::count(&self.asked);
                let admission = self.admission.load(Ordering::Relaxed);
                if admission != u64::MAX && self.draw() >= admission {
                    Lot::Python
                } else {
                    Lot::Followed
                }
            }
            _ => Lot::Open,
        }
    }

    /// A request from its beginning.
    pub(super) fn serve<'py>(&self, py: Python<'py>, asked: Asked<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mode = self.mode.load(Ordering::Relaxed);
        match self.lot(mode) {
            Lot::Python => {
                self.served(mode, false);
                self.lead(py, asked)
                    .or_else(|Raised| self.raised(py, asked, Plan::Python))
            }
            Lot::Direct => match self.shortly(py, asked) {
                Ok(Some(outputs)) => Ok(outputs.into_any()),
                ran => self.direct(py, asked, ran),
            },
            Lot::Followed => self.followed(py, mode, asked),
            Lot::Open => self.slowly(py, Plan::Open, asked),
        }
    }

    /// Runs the generated function.
    #[inline]
    pub(super) fn lead<'py>(
        &self,
        py: Python<'py>,
        asked: Asked<'_, 'py>,
    ) -> Result<Bound<'py, PyAny>, Raised> {
        let Asked { inputs, now } = asked;
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
    pub(super) fn raised<'py>(
        &self,
        py: Python<'py>,
        asked: Asked<'_, 'py>,
        plan: Plan,
    ) -> PyResult<Bound<'py, PyAny>> {
        let error = PyErr::fetch(py);
        let is_shown = self.is_bare && matches!(plan, Plan::Python);
        if is_shown || !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        drop(error);
        self.slowly(py, plan, asked)
    }

    /// By Python, as it was planned.
    #[cold]
    pub(super) fn slowly<'py>(
        &self,
        py: Python<'py>,
        plan: Plan,
        asked: Asked<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.slow.bind(py).call1((plan as u8, asked.inputs, asked.now))
    }

    /// The direct engine where there is machine code without a frame, and its answer where that is trusted. No panic gets
    /// past this.
    #[inline]
    pub(super) fn shortly<'py>(&self, py: Python<'py>, asked: Asked<'_, 'py>) -> Shortly<'py> {
        let flight = self.flight.get();
        flight.enter();
        let inputs = asked.inputs.as_borrowed();
        let ran = guarded(|| {
            self.program
                .get()
                .expressly_by(py, inputs, |path| self.trusts(path))
        });
        flight.leave();
        if let Ok(Some(_)) = ran {
            self.served(DIRECT_ONLY, true);
        }
        ran
    }

    /// The direct engine in every other case; `ran` is what came of `shortly`.
    #[inline(never)]
    fn direct<'py>(
        &self,
        py: Python<'py>,
        asked: Asked<'_, 'py>,
        ran: Shortly<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Err(message) = ran {
            self.broke(py, asked, &message)?;
            return self.slowly(py, Plan::Direct, asked);
        }
        let Ok(dict) = as_dict(asked.inputs) else {
            return self.slowly(py, Plan::Direct, asked);
        };
        let program = self.program.get();
        let flight = self.flight.get();
        flight.enter();
        // Inputs as most callers give them, in the room of the node; for others from the beginning, by all the rules.
        if let Some(mut room) = program.pathed_room(py) {
            let ran = guarded(|| program.run_taken(py, &mut room, dict, Some(self.deadline)));
            if !matches!(ran, Ok(Ok(None))) {
                flight.leave();
                return self.in_room(py, asked, room, ran);
            }
            room.clear();
            program.put_back_pathed(py, room);
        }
        let ran = self.run_unhashed(py, dict, asked.now);
        flight.leave();
        match ran {
            Ok(Ok(Some((Outcome::Returned(values), path)))) if self.trusts(&path) => {
                self.served(DIRECT_ONLY, true);
                return Ok(program.shown().returned(py, &values)?.into_any());
            }
            Ok(Ok(Some((Outcome::Fault(what), _)))) => self.broke(py, asked, what)?,
            Ok(Ok(_)) => {}
            Ok(Err(message)) => self.broke(py, asked, &message)?,
            Err(error) if error.is_instance_of::<PyException>(py) => {}
            Err(error) => return Err(error),
        }
        self.slowly(py, Plan::Direct, asked)
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
        match program.converted_pathed(inputs) {
            Ok(Ok(Ok(frame))) => {
                let run = || guarded(|| program.compiled().run_unhashed(frame, now, limits()));
                watched_within(py, Some(self.deadline), run).map(|ran| ran.map(Some))
            }
            Ok(Ok(Err(_))) => Ok(Ok(None)),
            Ok(Err(error)) => Err(error),
            Err(message) => Ok(Err(message)),
        }
    }

    /// What becomes of a run in the room of the node; the outer error is what it panicked with.
    #[inline]
    fn in_room<'py>(
        &self,
        py: Python<'py>,
        asked: Asked<'_, 'py>,
        mut room: Box<Room>,
        ran: Result<PyResult<Option<Outcome>>, String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let program = self.program.get();
        match ran {
            Ok(Ok(Some(Outcome::Returned(_)))) if self.trusts(&program.compiled().path_in(&room)) => {
                self.served(DIRECT_ONLY, true);
                let outputs = program.outputs_of(py, &room);
                room.clear();
                program.put_back_pathed(py, room);
                return outputs.map(Bound::into_any);
            }
            Ok(Ok(Some(Outcome::Fault(what)))) => self.broke(py, asked, what)?,
            Ok(Ok(_)) => {}
            Ok(Err(error)) if error.is_instance_of::<PyException>(py) => {}
            Ok(Err(error)) => return Err(error),
            Err(message) => self.broke(py, asked, &message)?,
        }
        self.slowly(py, Plan::Direct, asked)
    }

    #[cold]
    fn broke(&self, py: Python<'_>, asked: Asked<'_, '_>, what: &str) -> PyResult<()> {
        let Asked { inputs, now } = asked;
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
    let asked = Asked {
        inputs: &inputs,
        now: None,
    };
    let mode = route.mode.load(Ordering::Relaxed);
    match route.lot(mode) {
        Lot::Python => {
            route.served(mode, false);
            match route.lead(py, asked) {
                Ok(outputs) => outputs.into_ptr(),
                Err(Raised) if route.is_bare => std::ptr::null_mut(),
                Err(Raised) => attached(|py| route.raised(py, asked, Plan::Python)),
            }
        }
        Lot::Direct => match route.shortly(py, asked) {
            Ok(Some(outputs)) => outputs.into_ptr(),
            ran => attached(|py| route.direct(py, asked, ran)),
        },
        Lot::Followed => match route.led(py, mode, asked) {
            Ok(led) => match route.beside(py, asked, &led) {
                Ok(Counted) => led.outputs.into_ptr(),
                Err(beside) => attached(|py| route.look_closer(py, asked, led, *beside)),
            },
            Err(Raised) => attached(|py| route.raised(py, asked, Plan::Followed)),
        },
        Lot::Open => attached(|py| route.slowly(py, Plan::Open, asked)),
    }
}

/// As PyO3 does it for its own methods: it counts who is attached, to know when objects may be let go. No panic gets past
/// this: it would end the process.
#[inline]
fn attached<'py>(does: impl FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>>) -> *mut ffi::PyObject {
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
