//! What waits in a program for its next run: the room of one, or the words of one without a frame.

use std::cell::UnsafeCell;

use pyo3::prelude::*;

/// At most one, which whoever has the global lock takes and brings back. Who finds none, because another call is under
/// way, makes one.
pub(crate) struct Waiting<T> {
    kept: UnsafeCell<Option<Box<T>>>,
    /// False in a Python that runs without the global lock: there nothing waits.
    is_kept: bool,
}

// SAFETY: the cell is touched in `take` and `put` only, by a thread that is attached to a Python with a global lock, and
// so by one at a time: neither runs code of Python, nor lets go of the lock. Where Python has no such lock nothing is ever
// put there, and nobody looks. What is taken by another thread than brought it may be sent there.
unsafe impl<T: Send> Sync for Waiting<T> {}

impl<T> Waiting<T> {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let sys = py.import("sys")?;
        let is_kept = match sys.getattr_opt("_is_gil_enabled")? {
            Some(asked) => asked.call0()?.is_truthy()?,
            // Before 3.13 there was no other Python.
            None => true,
        };
        Ok(Self {
            kept: UnsafeCell::new(None),
            is_kept,
        })
    }

    /// False in a Python that runs without the global lock.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    #[inline]
    pub(crate) fn take(&self, _py: Python<'_>) -> Option<Box<T>> {
        if !self.is_kept {
            return None;
        }
        // SAFETY: as above.
        unsafe { (*self.kept.get()).take() }
    }

    /// INVARIANT: it is clear, and holds no object of Python.
    #[inline]
    pub(crate) fn put(&self, _py: Python<'_>, clear: Box<T>) {
        if self.is_kept {
            // SAFETY: as above. One that was there goes away after this, and holds no object of Python.
            let other = unsafe { (*self.kept.get()).replace(clear) };
            drop(other);
        }
    }
}
