//! Clocks and random bytes of Python, which tests replace.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use vesper_host::sources::{NoRandomness, Sources, SystemSources};

/// A `vesper.storage.sources.Sources`.
pub(crate) struct PythonSources {
    object: Py<PyAny>,
    wait_scale: f64,
    timeout_scale: f64,
}

/// Returns the sources of a Host: those of the operating system for None.
pub(crate) fn sources_of(object: Option<&Bound<'_, PyAny>>) -> PyResult<Arc<dyn Sources>> {
    Ok(match object {
        Some(object) => Arc::new(PythonSources::new(object)?),
        None => SystemSources::shared(),
    })
}

impl PythonSources {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            wait_scale: object.getattr(intern!(object.py(), "wait_scale"))?.extract()?,
            timeout_scale: object.getattr(intern!(object.py(), "timeout_scale"))?.extract()?,
            object: object.clone().unbind(),
        })
    }

    /// Returns the number that a function of the sources gives; 0 where it raises, which is logged.
    fn number(&self, name: &str) -> i64 {
        Python::attach(|py| {
            let number = self
                .object
                .call_method0(py, name)
                .and_then(|number| number.extract(py));
            number.unwrap_or_else(|error: PyErr| {
                error.write_unraisable(py, None);
                0
            })
        })
    }
}

impl Sources for PythonSources {
    fn now_ns(&self) -> i64 {
        self.number("now_ns")
    }

    fn monotonic_us(&self) -> i64 {
        self.number("monotonic_ns") / 1000
    }

    fn wait_scale(&self) -> f64 {
        self.wait_scale
    }

    fn timeout_scale(&self) -> f64 {
        self.timeout_scale
    }

    fn fill(&self, buffer: &mut [u8]) -> Result<(), NoRandomness> {
        Python::attach(|py| {
            let taken = self
                .object
                .bind(py)
                .call_method1(intern!(py, "random_bytes"), (buffer.len(),));
            let taken = taken.map_err(|_| NoRandomness)?;
            let bytes = taken.cast::<PyBytes>().map_err(|_| NoRandomness)?.as_bytes();
            if bytes.len() != buffer.len() {
                return Err(NoRandomness);
            }
            buffer.copy_from_slice(bytes);
            Ok(())
        })
    }
}
