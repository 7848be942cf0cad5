//! Offers the planted faults to Python. `tests/proofs/faults/weave.py` adds this file to a copy of the engine.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Returns the name and the kind of every planted fault.
#[pyfunction]
pub(crate) fn faults() -> Vec<(&'static str, &'static str)> {
    vesper_ir::fault::FAULTS.to_vec()
}

/// Selects a planted fault for the whole process, or none.
#[pyfunction]
#[pyo3(signature = (name, /))]
pub(crate) fn select_fault(name: Option<&str>) -> PyResult<()> {
    if vesper_ir::fault::select(name) {
        return Ok(());
    }
    Err(PyValueError::new_err("there is no planted fault of this name"))
}

/// Selects no fault, and notes from now on which places are reached.
#[pyfunction]
pub(crate) fn note_reached() {
    vesper_ir::fault::note_reached();
}

/// Returns the faults whose places were reached since the last call.
#[pyfunction]
pub(crate) fn reached() -> Vec<&'static str> {
    vesper_ir::fault::take_reached()
}
