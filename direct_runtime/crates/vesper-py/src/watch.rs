//! A run that is not short lets other threads of Python run, and notices signals.
//!
//! The interpreter asks `look` after some thousand units of fuel and then every thousand. The first time, the global lock
//! is let go: the run has converted its inputs and holds no object of Python. From then on signals are looked at every
//! few milliseconds. A short run never gets there, and pays nothing.

use std::cell::Cell;
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;
use vesper_interp::Watch;

pub(crate) const WATCH: Watch = Watch(look);

/// How long a signal waits at most, and a bit.
const PATIENCE: Duration = Duration::from_millis(20);

/// What the run on this thread has done with the global lock.
#[derive(Clone, Copy)]
enum Lock {
    /// There is no run, or one that may not let it go.
    NotOurs,
    /// Held since the beginning by a run that may take so long from its first look on; none where there is no end.
    Held(Option<Duration>),
    LetGo(*mut ffi::PyThreadState, Instant, Option<Instant>),
    /// It is held again, and Python has an exception: a signal came.
    Interrupted,
}

thread_local! {
    static LOCK: Cell<Lock> = const { Cell::new(Lock::NotOurs) };
}

/// Runs what touches no object of Python and does not panic; the error is what a signal raised.
pub(crate) fn watched<T>(py: Python<'_>, run: impl FnOnce() -> T) -> PyResult<T> {
    watched_within(py, None, run)
}

/// The same for a run that is stopped when it has taken this long. No clock is read in a short one; in another, time
/// counts from the first look.
#[inline]
pub(crate) fn watched_within<T>(
    py: Python<'_>,
    limit: Option<Duration>,
    run: impl FnOnce() -> T,
) -> PyResult<T> {
    // There may be a run around this one: the handler of a signal may call a node.
    let outer = LOCK.replace(Lock::Held(limit));
    let result = run();
    match LOCK.replace(outer) {
        Lock::LetGo(thread, ..) => {
            // SAFETY: `look` let go of the lock on this thread and gave this back; nothing took it since.
            unsafe { ffi::PyEval_RestoreThread(thread) };
            Ok(result)
        }
        Lock::Interrupted => Err(PyErr::fetch(py)),
        Lock::Held(_) | Lock::NotOurs => Ok(result),
    }
}

/// True when the run should stop.
fn look() -> bool {
    match LOCK.get() {
        Lock::NotOurs => false,
        Lock::Interrupted => true,
        Lock::Held(limit) => {
            let now = Instant::now();
            let_go(now, limit.and_then(|limit| now.checked_add(limit)));
            false
        }
        Lock::LetGo(thread, since, end) => {
            let now = Instant::now();
            if end.is_some_and(|end| now >= end) {
                return true;
            }
            if now.duration_since(since) < PATIENCE {
                return false;
            }
            LOCK.set(Lock::NotOurs);
            // SAFETY: as in `watched`. Then the lock is held, and Python may run its handlers.
            let is_interrupted = unsafe {
                ffi::PyEval_RestoreThread(thread);
                ffi::PyErr_CheckSignals() != 0
            };
            if is_interrupted {
                LOCK.set(Lock::Interrupted);
            } else {
                let_go(now, end);
            }
            is_interrupted
        }
    }
}

fn let_go(now: Instant, end: Option<Instant>) {
    // SAFETY: the lock is held: by `watched`, which has the token, or since it was just taken again. Until it is taken
    // back, by `watched` or above, only the interpreter runs, which knows nothing of Python; PyO3 believes that this
    // thread is attached, but nobody asks it.
    let thread = unsafe { ffi::PyEval_SaveThread() };
    LOCK.set(Lock::LetGo(thread, now, end));
}
