//! Two counters in memory that survives the process: direct executions started and ended (docs/adr/0017).

use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::routing::agreements::lock;

/// The counters of one node for all threads of Python. The global lock serialises them; threads without it have
/// another pair, and count atomically.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Flight {
    /// Address of the two counters inside `buffer`.
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

    /// Switches to other counters and releases the old ones. Only for the child of a fork, which has no other
    /// threads.
    #[pyo3(signature = (counters, at, /))]
    fn bind(&self, counters: &Bound<'_, PyAny>, at: usize) -> PyResult<()> {
        let (buffer, counters) = locate(counters, at)?;
        self.counters.store(counters, Ordering::Relaxed);
        // Not under the lock, because releasing a buffer may run Python code.
        let last = std::mem::replace(&mut *lock(&self.buffer), buffer);
        drop(last);
        Ok(())
    }

    /// Counts the start of an execution.
    #[pyo3(name = "enter")]
    fn count_entry(&self) {
        self.enter();
    }

    /// Counts the end of an execution.
    #[pyo3(name = "leave")]
    fn count_exit(&self) {
        self.leave();
    }
}

impl Flight {
    #[inline]
    pub(crate) fn enter(&self) {
        let began = self.counters.load(Ordering::Relaxed);
        // SAFETY: this is the first of two numbers in a buffer that `buffer` holds, so it does not move. Counting is
        // serialised by the global lock. `bind` releases a buffer only when no other thread can be here.
        unsafe { began.write_volatile(began.read_volatile().wrapping_add(1)) };
    }

    #[inline]
    pub(crate) fn leave(&self) {
        let counters = self.counters.load(Ordering::Relaxed);
        // SAFETY: as above, for the second number.
        unsafe {
            let ended = counters.add(1);
            ended.write_volatile(ended.read_volatile().wrapping_add(1));
        }
    }
}

impl Flight {
    /// Counts a start in a thread without the global lock, which an abandoned thread may do at the same time.
    pub(crate) fn enter_shared(&self) {
        self.add(0);
    }

    /// Counts an end like `enter_shared`.
    pub(crate) fn leave_shared(&self) {
        self.add(1);
    }

    fn add(&self, place: usize) {
        let counters = self.counters.load(Ordering::Relaxed);
        // SAFETY: as in `enter`, for one of the two numbers. All threads that count in this pair do so atomically.
        unsafe { AtomicU64::from_ptr(counters.add(place)) }.fetch_add(1, Ordering::Relaxed);
    }
}

fn locate(counters: &Bound<'_, PyAny>, at: usize) -> PyResult<(PyBuffer<u64>, *mut u64)> {
    let buffer = PyBuffer::<u64>::get(counters)?;
    let all = buffer.as_slice_ptr().filter(|_| !buffer.readonly());
    match (all, at.checked_add(2)) {
        // SAFETY: both numbers are inside the buffer.
        (Some(all), Some(end)) if end <= all.len() => {
            let place = unsafe { all.cast::<u64>().as_ptr().add(at) };
            Ok((buffer, place))
        }
        _ => Err(PyValueError::new_err(
            "expected a writable buffer with two 64-bit numbers at this position",
        )),
    }
}
