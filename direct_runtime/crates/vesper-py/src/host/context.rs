//! The context variables of a run that has no thread of its own.

use std::cell::RefCell;

use pyo3::ffi;
use pyo3::prelude::*;

thread_local! {
    /// The context of the run that this thread advances; none while it is entered.
    static CONTEXT: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// Advances a run with its context; returns what `advance` returns.
pub(crate) fn with_context<T>(context: &mut Option<Py<PyAny>>, advance: impl FnOnce() -> T) -> T {
    let before = CONTEXT.replace(context.take());
    let result = advance();
    *context = CONTEXT.replace(before);
    result
}

/// Calls Python under its lock, in the context of the run; in that of the thread where the run has none.
pub(crate) fn attached<T>(call: impl FnOnce(Python<'_>) -> T) -> T {
    Python::attach(|py| {
        let Some(context) = CONTEXT.take() else {
            return call(py);
        };
        // SAFETY: the object is a `contextvars.Context`, and the lock is held. Only this thread advances the run, so that
        // nothing else enters it; an error is an exception, which is reported.
        let is_entered = unsafe { ffi::PyContext_Enter(context.as_ptr()) } == 0;
        if !is_entered {
            PyErr::fetch(py).write_unraisable(py, Some(context.bind(py)));
        }
        let result = call(py);
        if is_entered {
            // SAFETY: as above; the context was entered on this thread, and every call inside has left its own.
            if unsafe { ffi::PyContext_Exit(context.as_ptr()) } != 0 {
                PyErr::fetch(py).write_unraisable(py, Some(context.bind(py)));
            }
        }
        CONTEXT.set(Some(context));
        result
    })
}
