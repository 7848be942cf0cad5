//! Journals around a fork: SQLite must not see one, so its connections are closed before and opened anew after it.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use vesper_host::journal::store::{ForkHold, Store};

/// All stores of this process, oldest first. Locked only under the lock of Python, which a fork has.
static STORES: Mutex<Vec<Weak<dyn Store>>> = Mutex::new(Vec::new());

thread_local! {
    /// The stores that this thread holds while it forks; another thread may fork at the same time.
    static HELD: RefCell<Vec<(Arc<dyn Store>, ForkHold)>> = const { RefCell::new(Vec::new()) };
}

/// Prepares a store for every later fork.
pub(crate) fn watch(store: &Arc<dyn Store>) {
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    stores.retain(|store| store.strong_count() > 0);
    stores.push(Arc::downgrade(store));
}

/// Waits for writers and readers of all journals, and closes their files. For `vesper.storage.after_fork`.
#[pyfunction]
pub(crate) fn hold_journals(py: Python<'_>) {
    let stores: Vec<_> = {
        let stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        stores.iter().filter_map(Weak::upgrade).collect()
    };
    // In one order for all threads that fork, so that none deadlocks.
    let held: Vec<_> = py.detach(|| {
        stores
            .into_iter()
            .map(|store| (store.hold_for_fork(), store))
            .collect()
    });
    HELD.with_borrow_mut(|all| all.extend(held.into_iter().map(|(hold, store)| (store, hold))));
}

/// Lets the parent use its journals again.
#[pyfunction]
pub(crate) fn release_journals() {
    let held = HELD.with_borrow_mut(std::mem::take);
    for (store, hold) in held.into_iter().rev() {
        store.release_after_fork(hold);
    }
}

/// Forgets the holds of the parent in a child, whose journals begin anew.
#[pyfunction]
pub(crate) fn forget_journals() {
    HELD.with_borrow_mut(Vec::clear);
}
