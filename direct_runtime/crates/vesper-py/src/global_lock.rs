//! Access to the global lock for calls from other libraries.
//!
//! They may release the lock without the knowledge of `PyO3`, so this module queries Python for the state of the
//! thread.

use pyo3::ffi;
use pyo3::prelude::*;

fn is_held() -> bool {
    // SAFETY: the function only reads the state of this thread.
    unsafe { ffi::PyGILState_Check() == 1 }
}

/// Calls `does` without the lock and restores the previous state. At the shutdown of Python no other thread can
/// acquire the lock, so it is kept.
pub(crate) fn without_lock<T: Send>(mut does: impl FnMut() -> T + Send) -> T {
    if is_held()
        && let Some(done) = Python::try_attach(|py| py.detach(&mut does))
    {
        return done;
    }
    does()
}

/// Calls `does` with the lock, whether or not this thread holds it. Returns `None` at the shutdown of Python.
pub(crate) fn with_lock<T>(does: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // SAFETY: the function only reads a flag.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    let ensured = (!is_held()).then(Ensured::new);
    let done = Python::try_attach(does);
    drop(ensured);
    done
}

/// Holds the lock until dropped.
struct Ensured(ffi::PyGILState_STATE);

impl Ensured {
    fn new() -> Self {
        // SAFETY: Python is initialised, and this thread does not hold its lock.
        Self(unsafe { ffi::PyGILState_Ensure() })
    }
}

impl Drop for Ensured {
    fn drop(&mut self) {
        // SAFETY: the state belongs to this thread and is the last that it ensured.
        unsafe { ffi::PyGILState_Release(self.0) };
    }
}
