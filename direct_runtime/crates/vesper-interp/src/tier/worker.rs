//! The compiler thread, one per process. It starts with the first hot form and ends when idle, because a forking
//! process should have few threads.
//!
//! The queue holds weak references, so a program dropped while it waits is freed at once. The thread never takes the
//! global interpreter lock.
//!
//! A fork copies one thread. The forking thread calls `before_fork`, which waits for the current compilation and
//! holds the locks, and afterwards one of the other two functions. The child thus finds the locks free, and starts
//! its own thread for the queued forms. A fork without these calls does not hang either, because callers never wait
//! for the locks.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use super::Hot;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Weak<dyn Hot>>,
    /// The process id of the running thread; 0 for none.
    process: u32,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    waiting: VecDeque::new(),
    process: 0,
});
static CHANGED: Condvar = Condvar::new();
/// Held while a form is dequeued and compiled. INVARIANT: locked before the queue.
static BUSY: Mutex<()> = Mutex::new(());

const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// Attempts to take a lock. Tests share one queue and must not miss their turn.
const LOCK_ATTEMPTS: usize = if cfg!(test) { usize::MAX } else { 100 };

/// Queues a hot form. Returns false if that is not possible.
pub(super) fn push(hot: Weak<dyn Hot>) -> bool {
    let Some(mut queue) = lock_soon(&QUEUE) else {
        return false;
    };
    queue.waiting.push_back(hot);
    if ensure_thread(&mut queue) {
        CHANGED.notify_one();
        return true;
    }
    queue.waiting.pop_back();
    false
}

/// Starts the thread if this process has none.
fn ensure_thread(queue: &mut Queue) -> bool {
    let own = std::process::id();
    if queue.process != own {
        let begun = std::thread::Builder::new()
            .name("vesper-compiler".to_owned())
            .spawn(work);
        if begun.is_err() {
            return false;
        }
        queue.process = own;
    }
    true
}

/// Takes a lock that is free now or almost at once.
pub(super) fn lock_soon<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..LOCK_ATTEMPTS {
        match lock.try_lock() {
            Ok(held) => return Some(held),
            Err(TryLockError::Poisoned(held)) => return Some(held.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

fn lock<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work() {
    while wait() {
        let _busy = lock(&BUSY);
        let next = lock(&QUEUE).waiting.pop_front();
        if let Some(hot) = next.and_then(|weak| weak.upgrade()) {
            hot.make();
        }
    }
}

/// Waits for a queued form. Returns false after `IDLE_TIMEOUT`, when the thread should end.
fn wait() -> bool {
    let queue = lock(&QUEUE);
    let (mut queue, waited) = CHANGED
        .wait_timeout_while(queue, IDLE_TIMEOUT, |queue| queue.waiting.is_empty())
        .unwrap_or_else(PoisonError::into_inner);
    if waited.timed_out() && queue.waiting.is_empty() {
        queue.process = 0;
        return false;
    }
    true
}

type ForkLocks = (MutexGuard<'static, ()>, MutexGuard<'static, Queue>);

thread_local! {
    /// The locks held by a thread that is about to fork.
    static FORK_LOCKS: RefCell<Option<ForkLocks>> = const { RefCell::new(None) };
}

/// Prepares for a fork. The forking thread calls it.
pub fn before_fork() {
    let both = (lock(&BUSY), lock(&QUEUE));
    FORK_LOCKS.with_borrow_mut(|forking| *forking = Some(both));
}

/// Releases the locks in the parent, on the thread that forked.
pub fn after_fork_in_parent() {
    FORK_LOCKS.with_borrow_mut(Option::take);
}

/// Releases the locks in the child and restarts the compiler thread if needed.
pub fn after_fork_in_child() {
    let Some((_busy, mut queue)) = FORK_LOCKS.with_borrow_mut(Option::take) else {
        return;
    };
    queue.process = 0;
    if !queue.waiting.is_empty() {
        // If no thread starts, the next queued form retries.
        ensure_thread(&mut queue);
    }
}

/// Waits until the queue is empty; for tests.
#[cfg(test)]
pub(super) fn wait_until_idle() {
    loop {
        {
            let _busy = lock(&BUSY);
            if lock(&QUEUE).waiting.is_empty() {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Blocks compilation while the guard is held; for tests.
#[cfg(test)]
pub(super) fn pause() -> MutexGuard<'static, ()> {
    lock(&BUSY)
}
