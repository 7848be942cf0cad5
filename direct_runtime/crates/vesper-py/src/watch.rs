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

pub(crate) const WATCH: Watch = Watch(poll);

/// How long a signal waits at most, and a bit.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);

// What the run on this thread has done with the global lock. A number, which a short run sets twice; what else there is
// to know stands beside it.
/// There is no run, or one that may not let it go.
const UNMANAGED: u8 = 0;
/// Held since the beginning.
const HELD: u8 = 1;
const RELEASED: u8 = 2;
/// It is held again, and Python has an exception: a signal came.
const INTERRUPTED: u8 = 3;

/// Since when the lock is let go, and until when the run may take.
#[derive(Clone, Copy)]
struct Release {
    thread: *mut ffi::PyThreadState,
    since: Instant,
    end: Option<Instant>,
}

thread_local! {
    static STATE: Cell<u8> = const { Cell::new(UNMANAGED) };
    /// How long a run may take from its first look on; none where there is no end.
    static LIMIT: Cell<Option<Duration>> = const { Cell::new(None) };
    /// Something while the lock is let go.
    static RELEASE: Cell<Option<Release>> = const { Cell::new(None) };
}

/// Runs what touches no object of Python; the error is what a signal raised.
pub(crate) fn run_watched<T>(py: Python<'_>, run: impl FnOnce() -> T) -> PyResult<T> {
    run_watched_within(py, None, run)
}

/// The same for a run that is stopped when it has taken this long. No clock is read in a short one; in another, time
/// counts from the first look.
#[inline]
pub(crate) fn run_watched_within<T>(
    py: Python<'_>,
    limit: Option<Duration>,
    run: impl FnOnce() -> T,
) -> PyResult<T> {
    // There may be a run around this one: the handler of a signal may call a node.
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

/// What was so before a run, and is again after it, also where it panics.
struct OuterRun {
    state: u8,
    limit: Option<Duration>,
}

impl OuterRun {
    /// True where a signal ended the run.
    #[inline]
    fn end(self) -> bool {
        let state = self.restore();
        std::mem::forget(self);
        state == INTERRUPTED
    }

    /// Takes the lock back where it was let go, and says what the run did with it.
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
        // SAFETY: `look` let go of the lock on this thread and gave this back; nothing took it since.
        unsafe { ffi::PyEval_RestoreThread(release.thread) };
    }
}

/// True when the run should stop.
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
            // SAFETY: as in `take_back`. Then the lock is held, and Python may run its handlers.
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
    // SAFETY: the lock is held: by `watched`, which has the token, or since it was just taken again. Until it is taken
    // back, by `watched` or above, only the interpreter runs, which knows nothing of Python; PyO3 believes that this
    // thread is attached, but nobody asks it.
    let thread = unsafe { ffi::PyEval_SaveThread() };
    RELEASE.set(Some(Release {
        thread,
        since: now,
        end,
    }));
    STATE.set(RELEASED);
}
