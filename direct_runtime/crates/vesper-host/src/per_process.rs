//! State that a forked process must not share with its parent: connections, locks and sockets.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Number of known forks between the first process and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Learns that this process was forked. A fork that is not reported is found by the process id, which the operating
/// system may use twice.
pub fn after_fork_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Returns a name of this process that none before it had.
fn identity() -> (u32, u64) {
    (process::id(), FORKS.load(Ordering::Relaxed))
}

/// One state for each process, made at its first use.
///
/// A fork copies locks as they are, held ones too, and sockets that two processes then read from. So a child makes its
/// own state and leaves that of its parent alone: it is never used there, and never dropped.
#[derive(Debug)]
pub struct PerProcess<T> {
    process: (u32, u64),
    state: Arc<T>,
    child: OnceLock<Box<PerProcess<T>>>,
}

impl<T> PerProcess<T> {
    /// Creates the state of this process.
    pub fn new(state: T) -> Self {
        Self {
            process: identity(),
            state: Arc::new(state),
            child: OnceLock::new(),
        }
    }

    /// Returns the state of this process; `make` makes it after a fork.
    pub fn get_or_make(&self, make: impl Fn() -> T) -> &T {
        let process = identity();
        let mut found = self;
        while found.process != process {
            found = found.child.get_or_init(|| Box::new(Self::new(make())));
        }
        &found.state
    }
}

impl<T: Default> PerProcess<T> {
    /// Returns the state of this process.
    pub fn get(&self) -> &T {
        self.get_or_make(T::default)
    }
}

impl<T: Default> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        if self.process != identity() {
            std::mem::forget(Arc::clone(&self.state));
        }
    }
}
