//! Containers that only the holder of the global lock accesses.
//!
//! A program pools the frame of its next run; a route collects its findings.

use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::routing::agreements::lock;

/// A pool of at most one spare frame. A call that finds the pool empty makes a new frame.
pub(crate) struct FramePool<T> {
    spare: UnsafeCell<Option<Box<T>>>,
    /// False in a Python without the global lock, where nothing is pooled.
    is_enabled: bool,
}

// SAFETY: only `take` and `put` access the cell, from a thread attached to a Python with a global lock, hence one at
// a time: neither runs Python code nor releases the lock. Without a global lock the cell stays empty and unread. `T:
// Send` lets another thread take the content.
unsafe impl<T: Send> Sync for FramePool<T> {}

impl<T> FramePool<T> {
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        Ok(Self {
            spare: UnsafeCell::new(None),
            is_enabled: has_global_lock(py)?,
        })
    }

    /// Returns false in a Python without the global lock.
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

    /// Puts a frame back.
    ///
    /// INVARIANT: the frame is clear and holds no Python object.
    #[inline]
    pub(crate) fn put(&self, _py: Python<'_>, clear: Box<T>) {
        if self.is_enabled {
            // SAFETY: as above. The replaced frame holds no Python object, so dropping it runs no Python code.
            let other = unsafe { (*self.spare.get()).replace(clear) };
            drop(other);
        }
    }
}

/// A cell guarded by the global lock. Every compared call accesses it, and a mutex without contention would cost as
/// much as the access.
pub(crate) struct GilCell<T> {
    held: UnsafeCell<T>,
    /// True during an access, to detect a nested one.
    is_busy: AtomicBool,
    /// A mutex for a Python without the global lock.
    lock: Option<Mutex<()>>,
}

// SAFETY: only `with` accesses the cell, either from a thread attached to a Python with a global lock, which it keeps
// meanwhile, or under `lock`: one thread at a time. `is_busy` detects nested accesses.
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

    /// Calls `does` with the content.
    ///
    /// INVARIANT: `does` runs no Python code, releases no Python object, and does not call `with` again.
    #[inline]
    pub(crate) fn with<R>(&self, _py: Python<'_>, does: impl FnOnce(&mut T) -> R) -> R {
        let locked = self.lock.as_ref().map(lock);
        assert!(!self.is_busy.load(Ordering::Relaxed), "nested access to a cell");
        let busy = Busy::new(&self.is_busy);
        // SAFETY: as above.
        let done = does(unsafe { &mut *self.held.get() });
        drop(busy);
        drop(locked);
        done
    }
}

impl<T> GilCell<T> {
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.held.get_mut()
    }
}

/// Marks an access; dropped also on a panic.
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
        // Every Python before 3.13 has the global lock.
        None => Ok(true),
    }
}
