//! Release of the global lock and checks for signals during runs.
//!
//! A run of a pure leader keeps the lock while it is short: reacquiring it takes milliseconds when other threads are
//! busy. The interpreter calls `poll` after each thousand units of fuel. The first call reads the clock, and the first
//! one after `MAX_LOCK_HOLD` releases the lock: the run has converted its inputs and holds no Python object. Later
//! calls check signals every few milliseconds. A short run never calls `poll` and costs nothing.
//!
//! A follower, and a run with effects, releases the lock before it starts (`run_detached`), because a kernel that
//! hangs never polls.

use std::cell::Cell;
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;
use vesper_interp::Watch;

pub(crate) const WATCH: Watch = Watch(poll);

/// Approximate maximum delay of a signal.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);
/// Time from the first poll to the release of the lock. The units before the first poll take as long at most.
const MAX_LOCK_HOLD: Duration = Duration::from_micros(400);

// State of the global lock for the run on this thread. It is a number, because a short run sets it twice; other data
// is in `RELEASE`.
/// There is no run, or one that must keep the lock.
const UNMANAGED: u8 = 0;
/// The lock is held since the start of the run.
const HELD: u8 = 1;
/// The lock is held, and `FIRST_POLL` is set.
const POLLED: u8 = 2;
const RELEASED: u8 = 3;
/// The lock is held again, and a signal handler raised an exception.
const INTERRUPTED: u8 = 4;
/// The run started without the lock; signals are checked under it.
const UNLOCKED: u8 = 5;

/// A release of the lock: its time, and the deadline of the run.
#[derive(Clone, Copy)]
struct Release {
    thread: *mut ffi::PyThreadState,
    since: Instant,
    end: Option<Instant>,
}

thread_local! {
    static STATE: Cell<u8> = const { Cell::new(UNMANAGED) };
    /// Time of the first poll of a run that holds the lock.
    static FIRST_POLL: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Maximum duration of a run from its first poll.
    static LIMIT: Cell<Option<Duration>> = const { Cell::new(None) };
    /// Set while the lock is released.
    static RELEASE: Cell<Option<Release>> = const { Cell::new(None) };
    /// The exception of a signal handler, of a run that started without the lock.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
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
    let outer = OuterRun::new(limit);
    let result = run();
    if outer.end() {
        return Err(PyErr::fetch(py));
    }
    Ok(result)
}

/// Runs code as `run_watched` does, without the lock from the start.
pub(crate) fn run_detached<T>(py: Python<'_>, run: impl FnOnce() -> T) -> PyResult<T> {
    let outer = OuterRun::new(None);
    release_lock(Instant::now(), None);
    let result = run();
    if outer.end() {
        return Err(PyErr::fetch(py));
    }
    Ok(result)
}

/// Runs code as `run_detached` does, on a thread that does not hold the lock.
pub(crate) fn run_unlocked<T>(run: impl FnOnce() -> T) -> PyResult<T> {
    let outer = OuterRun::new(None);
    STATE.set(UNLOCKED);
    FIRST_POLL.set(None);
    let result = run();
    outer.end();
    RAISED.take().map_or(Ok(result), Err)
}

/// Runs the handlers of signals that arrived; the error is an exception of one.
#[allow(
    clippy::redundant_closure_for_method_calls,
    reason = "the method is not general enough"
)]
pub(crate) fn check_signals() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}

/// State of the outer run, restored at the end of a run, also on a panic.
struct OuterRun {
    state: u8,
    limit: Option<Duration>,
}

impl OuterRun {
    /// Begins a run. It may be nested, because a signal handler may call a node.
    #[inline]
    fn new(limit: Option<Duration>) -> Self {
        Self {
            state: STATE.replace(HELD),
            limit: LIMIT.replace(limit),
        }
    }

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
            FIRST_POLL.set(Some(Instant::now()));
            STATE.set(POLLED);
            false
        }
        (POLLED, _) => {
            let (now, limit) = (Instant::now(), LIMIT.get());
            let first = FIRST_POLL.get().unwrap_or(now);
            if limit.is_some_and(|limit| now.duration_since(first) >= limit) {
                return true;
            }
            if now.duration_since(first) >= MAX_LOCK_HOLD {
                release_lock(now, limit.and_then(|limit| first.checked_add(limit)));
            }
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
        (UNLOCKED, _) => {
            let now = Instant::now();
            let checked = FIRST_POLL.get().unwrap_or(now);
            let is_due = now.duration_since(checked) >= SIGNAL_INTERVAL;
            FIRST_POLL.set(Some(if is_due { now } else { checked }));
            if is_due && let Err(raised) = check_signals() {
                RAISED.set(Some(raised));
                STATE.set(INTERRUPTED);
                return true;
            }
            false
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
