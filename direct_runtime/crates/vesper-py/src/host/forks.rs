//! The runtime around a fork: futures that are being polled may hold locks, which a child would never see released.
//! `vesper.storage.after_fork` calls these functions.

use pyo3::prelude::*;
use vesper_host::runtime;

/// Waits until no other thread advances a run, and lets none begin until the fork is over.
#[pyfunction]
pub(crate) fn hold_runtime(py: Python<'_>) {
    py.detach(runtime::before_fork);
}

/// Lets runs of the parent advance again.
#[pyfunction]
pub(crate) fn release_runtime() {
    runtime::after_fork_in_parent();
}

/// Lets a child make its own runtime.
#[pyfunction]
pub(crate) fn forget_runtime() {
    runtime::after_fork_in_child();
}
