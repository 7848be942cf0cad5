//! The decision of a route for native calls, which do not hold the global lock.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use vesper_interp::{Path, Program};
use vesper_serve::Engine;

use super::{DIRECT_ONLY, Duration, PYTHON_ONLY, Py, RANDOM_STEP, Route, TrustedPaths, mix};

/// The mode, the sample share and the trusted paths of a route, and its native calls.
pub(super) struct NativeView {
    decision: RwLock<Decision>,
    random_state: AtomicU64,
    served: AtomicU64,
}

struct Decision {
    mode: u8,
    /// Random numbers below this are in the sample.
    sample: u64,
    trusted: TrustedPaths,
}

impl NativeView {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            decision: RwLock::new(Decision {
                mode: PYTHON_ONLY,
                sample: u64::MAX,
                trusted: TrustedPaths::These(HashSet::default()),
            }),
            random_state: AtomicU64::new(seed),
            served: AtomicU64::new(0),
        }
    }

    /// Sets the decision, which holds for every call that is answered afterwards.
    pub(super) fn set(&self, mode: u8, trusted: TrustedPaths, sample: u64) {
        let decision = Decision {
            mode,
            sample,
            trusted,
        };
        let last = {
            let mut current = self.decision.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, decision)
        };
        drop(last);
    }

    pub(super) fn trusts(&self, path: &Path) -> bool {
        self.read(|decision| decision.trusted.trusts(path))
    }

    pub(super) fn take_served(&self) -> u64 {
        self.served.swap(0, Ordering::Relaxed)
    }

    fn read<T>(&self, does: impl FnOnce(&Decision) -> T) -> T {
        does(&self.decision.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn draw(&self) -> u64 {
        mix(self.random_state.fetch_add(RANDOM_STEP, Ordering::Relaxed))
    }
}

/// A route as the engine of the HTTP server.
pub(crate) struct NativeRoute(pub(crate) Py<Route>);

impl Engine for NativeRoute {
    fn program(&self) -> &Program {
        self.0.get().program.get().compiled()
    }

    fn admits(&self) -> bool {
        let view = &self.0.get().native;
        // The sample goes to Python, which compares it.
        view.read(|decision| decision.mode == DIRECT_ONLY && view.draw() >= decision.sample)
    }

    fn has_paths(&self) -> bool {
        true
    }

    fn trusts(&self, path: &Path) -> bool {
        let view = &self.0.get().native;
        // The mode may have changed during the run.
        view.read(|decision| decision.mode == DIRECT_ONLY && decision.trusted.trusts(path))
    }

    fn time_limit(&self) -> Option<Duration> {
        Some(self.0.get().deadline)
    }

    fn enter(&self) {
        self.0.get().thread_flight.get().enter_shared();
    }

    fn leave(&self) {
        self.0.get().thread_flight.get().leave_shared();
    }

    fn count_served(&self) {
        let route = self.0.get();
        route.native.served.fetch_add(1, Ordering::Relaxed);
        let [_, direct] = &route.metrics;
        direct.count(None);
    }
}
