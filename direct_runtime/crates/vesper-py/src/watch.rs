//! Release of the global lock and checks for signals during long runs.
//!
//! The interpreter calls `poll` after some thousand units of fuel, and then after each further thousand. The first
//! call releases the global lock: the run has converted its inputs and holds no Python object. Later calls check
//! signals every few milliseconds. A short run never calls `poll` and costs nothing.

use std::cell::Cell;
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;
use vesper_interp::Watch;

pub(crate) const WATCH: Watch = Watch(poll);

/// Approximate maximum delay of a signal.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);

// State of the global lock for the run on this thread. It is a number, because a short run sets it twice; other data
// is in `RELEASE`.
/// There is no run, or one that must keep the lock.
const UNMANAGED: u8 = 0;
/// The lock is held since the start of the run.
const HELD: u8 = 1;
const RELEASED: u8 = 2;
/// The lock is held again, and a signal handler raised an exception.
const INTERRUPTED: u8 = 3;

/// A release of the lock: its time, and the deadline of the run.
#[derive(Clone, Copy)]
struct Release {
    thread: *mut ffi::PyThreadState,
    since: Instant,
    end: Option<Instant>,
}

thread_local! {
    static STATE: Cell<u8> = const { Cell::new(UNMANAGED) };
    /// Maximum duration of a run from its first poll.
    static LIMIT: Cell<Option<Duration>> = const { Cell::new(None) };
    /// Set while the lock is released.
    static RELEASE: Cell<Option<Release>> = const { Cell::new(None) };
}

/// Runs code that accesses no Python object. The error is the exception of a signal handler.
pub(crate) fn run_watched<T>(py: Python<'_>, run: impl FnOnce() -> T) -> PyResult<T> {
    run_watched_within(py, None, run)
}

/// Runs code as `run_watched` does, for at most `limit`. A short run reads no clock; in a long one the time starts at
/// the first poll.
#[inline]
pub(crate) fn run_watched_within<T>(
    py: Python<'_>,
    limit: Option<Duration>,
    run: impl FnOnce() -> T,
) -> PyResult<T> {
    // A run may be nested, because a signal handler may call a node.
    let outer = OuterRun {
        state: STATE.replace(HELD),
        limit: LIMIT.replace(limit),
    };
    let result = run();
    if outer.end() {
        return Err(PyErr::fetch(py));
    }
    Ok(result)
}

/// State of the outer run, restored at the end of a run, also on a panic.
struct OuterRun {
    state: u8,
    limit: Option<Duration>,
}

impl OuterRun {
    /// Restores the state; returns true if a signal ended the run.
    #[inline]
    fn end(self) -> bool {
        let state = self.restore();
        std::mem::forget(self);
        state == INTERRUPTED
    }

    /// Restores the outer state and returns that of the run. Reacquires the lock if it was released.
    #[inline]
    fn restore(&self) -> u8 {
        LIMIT.set(self.limit);
        let state = STATE.replace(self.state);
        if state == RELEASED {
            reacquire_lock();
        }
        state
    }
}

impl Drop for OuterRun {
    fn drop(&mut self) {
        self.restore();
    }
}

#[cold]
fn reacquire_lock() {
    if let Some(release) = RELEASE.take() {
        // SAFETY: `poll` released the lock on this thread and stored this state; nothing has acquired the lock since.
        unsafe { ffi::PyEval_RestoreThread(release.thread) };
    }
}

/// Returns true if the run should stop.
fn poll() -> bool {
    match (STATE.get(), RELEASE.get()) {
        (HELD, _) => {
            let now = Instant::now();
            release_lock(now, LIMIT.get().and_then(|limit| now.checked_add(limit)));
            false
        }
        (RELEASED, Some(Release { thread, since, end })) => {
            let now = Instant::now();
            if end.is_some_and(|end| now >= end) {
                return true;
            }
            if now.duration_since(since) < SIGNAL_INTERVAL {
                return false;
            }
            STATE.set(UNMANAGED);
            RELEASE.set(None);
            // SAFETY: as in `reacquire_lock`. The lock is held afterwards, and Python may run signal handlers.
            let is_interrupted = unsafe {
                ffi::PyEval_RestoreThread(thread);
                ffi::PyErr_CheckSignals() != 0
            };
            if is_interrupted {
                STATE.set(INTERRUPTED);
            } else {
                release_lock(now, end);
            }
            is_interrupted
        }
        (state, _) => state == INTERRUPTED,
    }
}

fn release_lock(now: Instant, end: Option<Instant>) {
    // SAFETY: the lock is held, either by the caller of `run_watched`, which has the token, or because it was just
    // reacquired. Until it is reacquired, only the interpreter runs, which accesses no Python object. PyO3 assumes
    // that this thread is attached, but is not called.
    let thread = unsafe { ffi::PyEval_SaveThread() };
    RELEASE.set(Some(Release {
        thread,
        since: now,
        end,
    }));
    STATE.set(RELEASED);
}
