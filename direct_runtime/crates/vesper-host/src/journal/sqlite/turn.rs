//! A lock that can be held across a fork: no guard borrows it, and it can be waited for with a limit.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(super) struct Turn {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_taken: bool,
    /// Number of threads that wait. Without any, nothing has to be woken.
    waiting: usize,
}

/// A turn that is freed at the end of the scope.
pub(super) struct Held<'a> {
    turn: &'a Turn,
    /// True where another thread had the turn before.
    pub(super) has_waited: bool,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.turn.free();
    }
}

impl Turn {
    /// Waits for the turn.
    pub(super) fn hold(&self) -> Held<'_> {
        self.take(self.state(), false)
    }

    /// Waits for the turn, or until another thread has done the work; None then.
    pub(super) fn hold_unless(&self, is_done: impl Fn() -> bool) -> Option<Held<'_>> {
        let mut state = self.state();
        let mut has_waited = false;
        while !is_done() {
            if !state.is_taken {
                return Some(self.take(state, has_waited));
            }
            state = self.wait(state);
            has_waited = true;
        }
        None
    }

    /// Waits for the turn at most so long; returns whether it is taken, to be freed by `free`.
    pub(super) fn take_within(&self, limit: Duration) -> bool {
        let last = Instant::now() + limit;
        let mut state = self.state();
        while state.is_taken {
            let rest = last.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return false;
            }
            state.waiting += 1;
            let waited = self.freed.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting -= 1;
        }
        state.is_taken = true;
        true
    }

    /// Frees the turn and wakes all that wait: one writes, and finds the work of others done.
    pub(super) fn free(&self) {
        let mut state = self.state();
        state.is_taken = false;
        let has_waiting = state.waiting > 0;
        drop(state);
        if has_waiting {
            self.freed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, mut state: MutexGuard<'_, State>, mut has_waited: bool) -> Held<'_> {
        while state.is_taken {
            state = self.wait(state);
            has_waited = true;
        }
        state.is_taken = true;
        Held {
            turn: self,
            has_waited,
        }
    }

    fn wait<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        let mut state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }
}
