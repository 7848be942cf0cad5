//! What only the holder of the global lock touches. In a program what waits for its next run: the room of one, or the words
//! of one without a frame; in a route what was seen.

use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::routing::agreements::lock;

/// At most one, which whoever has the global lock takes and brings back. Who finds none, because another call is under
/// way, makes one.
pub(crate) struct FramePool<T> {
    spare: UnsafeCell<Option<Box<T>>>,
    /// False in a Python that runs without the global lock: there nothing waits.
    is_enabled: bool,
}

// SAFETY: the cell is touched in `take` and `put` only, by a thread that is attached to a Python with a global lock, and
// so by one at a time: neither runs code of Python, nor lets go of the lock. Where Python has no such lock nothing is ever
// put there, and nobody looks. What is taken by another thread than brought it may be sent there.
unsafe impl<T: Send> Sync for FramePool<T> {}

impl<T> FramePool<T> {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        Ok(Self {
            spare: UnsafeCell::new(None),
            is_enabled: has_global_lock(py)?,
        })
    }

    /// False in a Python that runs without the global lock.
    pub(crate) fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    #[inline]
    pub(crate) fn take(&self, _py: Python<'_>) -> Option<Box<T>> {
        if !self.is_enabled {
            return None;
        }
        // SAFETY: as above.
        unsafe { (*self.spare.get()).take() }
    }

    /// INVARIANT: it is clear, and holds no object of Python.
    #[inline]
    pub(crate) fn put(&self, _py: Python<'_>, clear: Box<T>) {
        if self.is_enabled {
            // SAFETY: as above. One that was there goes away after this, and holds no object of Python.
            let other = unsafe { (*self.spare.get()).replace(clear) };
            drop(other);
        }
    }
}

/// What whoever has the global lock looks at and changes. Every call that is compared does, and a lock of its own, that
/// nobody ever waits for, would cost as much as what is done here.
pub(crate) struct GilCell<T> {
    held: UnsafeCell<T>,
    /// True while somebody is at it, who would come again.
    is_busy: AtomicBool,
    /// In a Python that runs without the global lock.
    lock: Option<Mutex<()>>,
}

// SAFETY: the cell is touched in `with` only. That is done by a thread that is attached to a Python with a global lock,
// which it neither lets go of meanwhile nor gives to another, or else with a lock of its own: by one at a time. What it has
// there is done before it comes to `with` again, which is looked at.
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T: Default> GilCell<T> {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let is_locked = has_global_lock(py)?;
        Ok(Self {
            held: UnsafeCell::default(),
            is_busy: AtomicBool::new(false),
            lock: (!is_locked).then(Mutex::default),
        })
    }

    /// INVARIANT: `does` runs no code of Python, lets go of no object of Python, and comes here no second time.
    #[inline]
    pub(crate) fn with<R>(&self, _py: Python<'_>, does: impl FnOnce(&mut T) -> R) -> R {
        let locked = self.lock.as_ref().map(lock);
        assert!(!self.is_busy.load(Ordering::Relaxed), "somebody is at it");
        let busy = Busy::new(&self.is_busy);
        // SAFETY: as above.
        let done = does(unsafe { &mut *self.held.get() });
        drop(busy);
        drop(locked);
        done
    }
}

/// Somebody is at it while this lives, also where that panics.
struct Busy<'a>(&'a AtomicBool);

impl<'a> Busy<'a> {
    #[inline]
    fn new(is_busy: &'a AtomicBool) -> Self {
        is_busy.store(true, Ordering::Relaxed);
        Self(is_busy)
    }
}

impl Drop for Busy<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn has_global_lock(py: Python<'_>) -> PyResult<bool> {
    match py.import("sys")?.getattr_opt("_is_gil_enabled")? {
        Some(asked) => asked.call0()?.is_truthy(),
        // Before 3.13 there was no other Python.
        None => Ok(true),
    }
}
