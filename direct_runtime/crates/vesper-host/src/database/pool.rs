//! Connections that wait to be used again, at most so many at once.
//!
//! Each request opens its connection itself: what the database reports when it refuses is what the caller gets, at
//! once. A forked child begins with an empty pool, and never touches, nor closes, the connections of its parent.
//!
//! SQLite needs more. It keeps in memory which locks the process has, and a child inherits that, but not the locks: a
//! child that opens a file which its parent had open can lose writes. So these connections are closed before a fork.
//! Where one is in use just then, and does not come back soon, the child may not use the file.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout_at;

use crate::database::deadline::Deadline;
use crate::effect::Failure;
use crate::messages::seconds;
use crate::per_process::PerProcess;

/// Time that a fork waits for connections in use.
const WAIT_BEFORE_FORK: Duration = Duration::from_secs(2);
const POLL_BEFORE_FORK: Duration = Duration::from_millis(1);

/// Connections to one database.
#[derive(Debug)]
pub(super) struct Pool<C> {
    /// The database, for messages.
    name: String,
    size: usize,
    closes_before_fork: bool,
    /// True where connections are in use in spite of a fork.
    is_in_use: AtomicBool,
    /// True in a child that must not open the file.
    is_refused: AtomicBool,
    state: PerProcess<State<C>>,
}

#[derive(Debug)]
struct State<C> {
    inner: Mutex<Inner<C>>,
    changed: Notify,
}

/// INVARIANT: `taken` counts the connections in use; with the idle ones they are at most `size`.
#[derive(Debug)]
struct Inner<C> {
    idle: Vec<C>,
    taken: usize,
    /// Number of the last `close`; connections that were taken before it are not used again.
    generation: u64,
    /// Threads that fork now: of two at a time, the first to be done must not let others at the file.
    forking: usize,
}

impl<C> Default for State<C> {
    fn default() -> Self {
        let inner = Inner {
            idle: Vec::new(),
            taken: 0,
            generation: 0,
            forking: 0,
        };
        Self {
            inner: Mutex::new(inner),
            changed: Notify::new(),
        }
    }
}

impl<C> State<C> {
    fn lock(&self) -> MutexGuard<'_, Inner<C>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to use one connection; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Permit<C> {
    pool: Arc<Pool<C>>,
    generation: u64,
}

impl<C> Permit<C> {
    /// Gives a sound connection back for others.
    pub(super) fn give_back(self, connection: C) {
        let mut unused = Some(connection);
        let mut inner = self.pool.state().lock();
        if self.generation == inner.generation && inner.forking == 0 {
            inner.idle.extend(unused.take());
        }
        drop(inner);
        // A connection from before `close` is closed here, outside of the lock, before another may be opened.
        drop(unused);
    }

    /// Closes the idle connections: one of them turned out to be dead, and the others are no better.
    pub(super) fn close_idle(&self) {
        let idle = std::mem::take(&mut self.pool.state().lock().idle);
        drop(idle);
    }
}

impl<C> Drop for Permit<C> {
    fn drop(&mut self) {
        let state = self.pool.state();
        let mut inner = state.lock();
        inner.taken = inner.taken.saturating_sub(1);
        drop(inner);
        // One place is free: waking all of ten thousand runs for it would cost each of them a poll.
        state.changed.notify_one();
    }
}

impl<C> Pool<C> {
    fn state(&self) -> &State<C> {
        self.state.get()
    }

    pub(super) fn new(name: &str, size: usize, closes_before_fork: bool) -> Arc<Self> {
        Arc::new(Self {
            name: format!("`{name}`"),
            size,
            closes_before_fork,
            is_in_use: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
            state: PerProcess::default(),
        })
    }

    /// Returns the right to use a connection, and an idle one, if possible one that `is_preferred`; without one the
    /// caller opens its own.
    pub(super) async fn take(
        self: &Arc<Self>,
        deadline: &Deadline,
        is_preferred: impl Fn(&C) -> bool,
    ) -> Result<(Permit<C>, Option<C>), Failure> {
        if self.is_refused.load(Ordering::Acquire) {
            let text = format!(
                "this process was forked while {} was in use, which SQLite does not survive",
                self.name
            );
            let advice = "fork before it is used, or start processes with `spawn`";
            return Err(Failure::new("unavailable", format!("{text}; {advice}")));
        }
        let state = self.state();
        loop {
            let changed = state.changed.notified();
            tokio::pin!(changed);
            // A change after this line wakes the wait below.
            changed.as_mut().enable();
            if let Some(taken) = self.try_take(state, &is_preferred) {
                return Ok(taken);
            }
            if timeout_at(deadline.at.into(), changed).await.is_err() {
                let seconds = seconds(deadline.whole);
                let text = format!(
                    "all {} connections of {} were in use for {seconds} s",
                    self.size, self.name
                );
                return Err(Failure::new(
                    "unavailable",
                    format!("{text}; raise `pool_size`, or do less at once"),
                ));
            }
        }
    }

    fn try_take(
        self: &Arc<Self>,
        state: &State<C>,
        is_preferred: &impl Fn(&C) -> bool,
    ) -> Option<(Permit<C>, Option<C>)> {
        let mut inner = state.lock();
        if inner.forking > 0 || (inner.idle.is_empty() && inner.taken >= self.size) {
            return None;
        }
        let preferred = inner.idle.iter().rposition(is_preferred);
        let found = match preferred {
            Some(place) => Some(inner.idle.remove(place)),
            None if inner.idle.len() + inner.taken < self.size => None,
            None => inner.idle.pop(),
        };
        inner.taken += 1;
        let permit = Permit {
            pool: Arc::clone(self),
            generation: inner.generation,
        };
        Some((permit, found))
    }

    /// Closes idle connections, and those in use when they are given back.
    pub(super) fn close(&self) {
        let mut inner = self.state().lock();
        inner.generation += 1;
        let idle = std::mem::take(&mut inner.idle);
        drop(inner);
        drop(idle);
    }

    /// Closes all connections before the process forks, where the database needs it.
    pub(super) fn before_fork(&self) {
        if !self.closes_before_fork {
            return;
        }
        let state = self.state();
        state.lock().forking += 1;
        let until = Instant::now() + WAIT_BEFORE_FORK;
        while state.lock().taken > 0 && Instant::now() < until {
            sleep(POLL_BEFORE_FORK);
        }
        let mut inner = state.lock();
        self.is_in_use.store(inner.taken > 0, Ordering::Release);
        let idle = std::mem::take(&mut inner.idle);
        drop(inner);
        drop(idle);
    }

    pub(super) fn after_fork_in_parent(&self) {
        if self.closes_before_fork {
            let state = self.state();
            let mut inner = state.lock();
            inner.forking = inner.forking.saturating_sub(1);
            drop(inner);
            state.changed.notify_waiters();
        }
    }

    pub(super) fn after_fork_in_child(&self) {
        if self.closes_before_fork && self.is_in_use.load(Ordering::Acquire) {
            self.is_refused.store(true, Ordering::Release);
        }
    }
}
