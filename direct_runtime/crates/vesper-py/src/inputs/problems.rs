//! Problems of inputs as Python objects.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use vesper_interp::problems::Problems;

/// Returns pairs of path and kind.
pub(crate) fn pairs<'py>(
    py: Python<'py>,
    problems: &Problems,
) -> PyResult<Vec<(Bound<'py, PyString>, &'static str)>> {
    let pairs = problems.iter().map(|problem| {
        let path = match std::str::from_utf8(&problem.path) {
            Ok(text) => PyString::new(py, text),
            Err(_) => PyBytes::new(py, &problem.path)
                .call_method1("decode", ("utf-8", "surrogatepass"))?
                .cast_into()?,
        };
        Ok((path, problem.kind.name()))
    });
    pairs.collect()
}
