//! The room that waits in a program for its next run.

use std::cell::UnsafeCell;

use pyo3::prelude::*;
use vesper_interp::Room;

/// At most one room, which whoever has the global lock takes and brings back. Who finds none, because another call is
/// under way, makes one.
pub(crate) struct Waiting {
    room: UnsafeCell<Option<Box<Room>>>,
    /// False in a Python that runs without the global lock: there nothing waits.
    is_kept: bool,
}

// SAFETY: the cell is touched in `take` and `put` only, by a thread that is attached to a Python with a global lock, and
// so by one at a time: neither runs code of Python, nor lets go of the lock. Where Python has no such lock nothing is ever
// put there, and nobody looks.
unsafe impl Sync for Waiting {}

impl Waiting {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let sys = py.import("sys")?;
        let is_kept = match sys.getattr_opt("_is_gil_enabled")? {
            Some(asked) => asked.call0()?.is_truthy()?,
            // Before 3.13 there was no other Python.
            None => true,
        };
        Ok(Self {
            room: UnsafeCell::new(None),
            is_kept,
        })
    }

    #[inline]
    pub(crate) fn take(&self, _py: Python<'_>) -> Option<Box<Room>> {
        if !self.is_kept {
            return None;
        }
        // SAFETY: as above.
        unsafe { (*self.room.get()).take() }
    }

    /// INVARIANT: the room is clear.
    #[inline]
    pub(crate) fn put(&self, _py: Python<'_>, room: Box<Room>) {
        if self.is_kept {
            // SAFETY: as above. A room that was there goes away after this, and holds no object of Python.
            let other = unsafe { (*self.room.get()).replace(room) };
            drop(other);
        }
    }
}
