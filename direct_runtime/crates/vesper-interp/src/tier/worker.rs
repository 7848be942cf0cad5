//! The thread that compiles, one for a process. It begins with the first form that is hot and ends when it has had
//! nothing to do for a while: a process that forks should have no threads that it does not need.
//!
//! It holds weak references, so that a program that is dropped while it waits is gone at once. It knows nothing of Python
//! and never asks for the global lock.
//!
//! A fork copies one thread. Whoever forks calls `before_fork` first, which waits for what is being compiled and then
//! holds the locks, and one of the other two after it; so the child finds them free, and what waited in the parent waits
//! in the child, which has a thread of its own. In a process that forks without telling anybody nothing hangs: callers
//! never wait for these locks.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use super::Hot;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Weak<dyn Hot>>,
    /// The process whose thread is at work; 0 for none.
    process: u32,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    waiting: VecDeque::new(),
    process: 0,
});
static CHANGED: Condvar = Condvar::new();
/// ForkLocks while something is taken out of the queue and compiled; always before the queue.
static BUSY: Mutex<()> = Mutex::new(());

const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// Tests run side by side and have one queue: none of them may miss its turn.
const LOCK_ATTEMPTS: usize = if cfg!(test) { usize::MAX } else { 100 };

/// Hands over a form that is hot; false where that could not be done.
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

/// Sees to it that there is a thread.
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

/// A lock that is free at once or almost.
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

/// Until there is something to do; false where there was nothing for so long that the thread should end.
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
    /// What a thread holds that is about to fork.
    static FORK_LOCKS: RefCell<Option<ForkLocks>> = const { RefCell::new(None) };
}

/// To be called by a thread that is about to fork.
pub fn before_fork() {
    let both = (lock(&BUSY), lock(&QUEUE));
    FORK_LOCKS.with_borrow_mut(|forking| *forking = Some(both));
}

/// To be called by that thread in the process that has forked.
pub fn after_fork_in_parent() {
    FORK_LOCKS.with_borrow_mut(Option::take);
}

/// To be called by that thread in the process that was made.
pub fn after_fork_in_child() {
    let Some((_busy, mut queue)) = FORK_LOCKS.with_borrow_mut(Option::take) else {
        return;
    };
    queue.process = 0;
    if !queue.waiting.is_empty() {
        // Where there is no thread, what waits is compiled after what comes next.
        ensure_thread(&mut queue);
    }
}

/// Waits until nothing waits; for tests.
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

/// Nothing is compiled while this is held; for tests.
#[cfg(test)]
pub(super) fn pause() -> MutexGuard<'static, ()> {
    lock(&BUSY)
}
