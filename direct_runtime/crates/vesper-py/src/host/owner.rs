//! Names of processes that own runs.

use pyo3::prelude::*;
use vesper_host::journal::owner;

/// Returns the name of this process; another one after a fork.
#[pyfunction]
pub fn this_owner() -> String {
    owner::this_owner().to_string()
}

/// Returns true where the owner is known to be gone; false where it lives or that cannot be known.
#[pyfunction]
#[pyo3(signature = (owner, /))]
pub fn is_dead(owner: &str) -> bool {
    owner::is_dead(owner)
}
