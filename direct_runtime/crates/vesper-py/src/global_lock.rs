//! The global lock where other libraries call in. They let go of it behind `PyO3`'s back, so that what it believes of this
//! thread may be wrong: Python itself is asked.

use pyo3::ffi;
use pyo3::prelude::*;

fn is_held() -> bool {
    // SAFETY: it asks about this thread, and nothing else.
    unsafe { ffi::PyGILState_Check() == 1 }
}

/// Does this without the lock, whether or not this thread holds it; who holds it has it again afterwards. At the end of
/// Python nobody else can have it, and it is kept.
pub(crate) fn without_lock<T: Send>(mut does: impl FnMut() -> T + Send) -> T {
    if is_held()
        && let Some(done) = Python::try_attach(|py| py.detach(&mut does))
    {
        return done;
    }
    does()
}

/// Does this with the lock, whether or not this thread holds it; nothing at the end of Python.
pub(crate) fn with_lock<T>(does: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // SAFETY: it asks, and nothing else.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    let ensured = (!is_held()).then(Ensured::new);
    let done = Python::try_attach(does);
    drop(ensured);
    done
}

/// The lock, held as long as this lives.
struct Ensured(ffi::PyGILState_STATE);

impl Ensured {
    fn new() -> Self {
        // SAFETY: there is a Python, and this thread does not hold its lock.
        Self(unsafe { ffi::PyGILState_Ensure() })
    }
}

impl Drop for Ensured {
    fn drop(&mut self) {
        // SAFETY: of this thread, and the last that it has ensured.
        unsafe { ffi::PyGILState_Release(self.0) };
    }
}
