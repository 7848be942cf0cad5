//! Two counters in memory that outlives the process: direct executions that began, and that ended (docs/adr/0017).

use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::routing::agreements::lock;

/// The counters of one node, for all threads of Python: who counts has the global lock, so that none is lost. A thread
/// without it has a pair of its own.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Flight {
    /// Two numbers, in what `buffer` holds.
    counters: AtomicPtr<u64>,
    buffer: Mutex<PyBuffer<u64>>,
}

#[pymethods]
impl Flight {
    #[new]
    #[pyo3(signature = (counters, at, /))]
    fn new(counters: &Bound<'_, PyAny>, at: usize) -> PyResult<Self> {
        let (buffer, counters) = locate(counters, at)?;
        Ok(Self {
            counters: AtomicPtr::new(counters),
            buffer: Mutex::new(buffer),
        })
    }

    /// Counts elsewhere from now on, and lets go of what it counted in. For the child of a fork, where no other thread
    /// is.
    #[pyo3(signature = (counters, at, /))]
    fn bind(&self, counters: &Bound<'_, PyAny>, at: usize) -> PyResult<()> {
        let (buffer, counters) = locate(counters, at)?;
        self.counters.store(counters, Ordering::Relaxed);
        // Not under the lock: letting go of a buffer may run Python.
        let last = std::mem::replace(&mut *lock(&self.buffer), buffer);
        drop(last);
        Ok(())
    }

    /// An execution begins.
    #[pyo3(name = "enter")]
    fn count_entry(&self) {
        self.enter();
    }

    /// It has ended.
    #[pyo3(name = "leave")]
    fn count_exit(&self) {
        self.leave();
    }
}

impl Flight {
    #[inline]
    pub(crate) fn enter(&self) {
        let began = self.counters.load(Ordering::Relaxed);
        // SAFETY: the first of two numbers in a buffer that `buffer` holds, so that it stays where it is. Whoever counts
        // does so here, one at a time: with the global lock, or in the one thread that has the pair for itself. `bind`
        // lets go of a buffer only where no other thread can be here.
        unsafe { began.write_volatile(began.read_volatile().wrapping_add(1)) };
    }

    #[inline]
    pub(crate) fn leave(&self) {
        let counters = self.counters.load(Ordering::Relaxed);
        // SAFETY: as above, the second of the two.
        unsafe {
            let ended = counters.add(1);
            ended.write_volatile(ended.read_volatile().wrapping_add(1));
        }
    }
}

fn locate(counters: &Bound<'_, PyAny>, at: usize) -> PyResult<(PyBuffer<u64>, *mut u64)> {
    let buffer = PyBuffer::<u64>::get(counters)?;
    let all = buffer.as_slice_ptr().filter(|_| !buffer.readonly());
    match (all, at.checked_add(2)) {
        // SAFETY: the two numbers are within the buffer.
        (Some(all), Some(end)) if end <= all.len() => {
            let place = unsafe { all.cast::<u64>().as_ptr().add(at) };
            Ok((buffer, place))
        }
        _ => Err(PyValueError::new_err(
            "there are no two numbers of 64 bits here that can be written",
        )),
    }
}
