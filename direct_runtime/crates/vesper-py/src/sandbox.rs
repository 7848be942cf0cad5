//! `confine`: the sandbox of a worker process.

use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::{PyResult, pyfunction};

/// Confines this process for good and returns what the kernel lacks.
#[pyfunction]
#[pyo3(signature = (readable, /))]
#[allow(
    clippy::needless_pass_by_value,
    reason = "a function for Python takes ownership of its arguments"
)]
pub(crate) fn confine(readable: Vec<PathBuf>) -> PyResult<Vec<String>> {
    vesper_sandbox::confine(&readable).map_err(PyOSError::new_err)
}
