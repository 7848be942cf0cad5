//! Keys that encrypt sensitive runs and traces.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use vesper_host::journal::JournalError;
use vesper_host::journal::sealing;
use vesper_host::sources::SystemSources;

use crate::host::errors::journal_exception;

/// The key of one run or trace.
#[pyclass(frozen, module = "vesper._direct")]
#[derive(Debug)]
pub struct RunKey(sealing::RunKey);

#[pymethods]
impl RunKey {
    /// Creates a random key, bound to an execution.
    #[staticmethod]
    #[pyo3(name = "new", signature = (execution, /))]
    fn random(py: Python<'_>, execution: &str) -> PyResult<Self> {
        raised(py, sealing::RunKey::random(execution, SystemSources::shared())).map(Self)
    }

    /// Encrypts data for the entry `seq`.
    #[pyo3(signature = (data, seq, /))]
    fn seal<'py>(&self, py: Python<'py>, data: &[u8], seq: u64) -> PyResult<Bound<'py, PyBytes>> {
        raised(py, self.0.seal(data, seq)).map(|sealed| PyBytes::new(py, &sealed))
    }

    /// Decrypts data of the entry `seq`. Raises `JournalError` where it was changed or moved.
    #[pyo3(signature = (data, seq, /))]
    fn open<'py>(&self, py: Python<'py>, data: &[u8], seq: u64) -> PyResult<Bound<'py, PyBytes>> {
        raised(py, self.0.open(data, seq)).map(|opened| PyBytes::new(py, &opened))
    }
}

/// The keys of a journal. `master` wraps the keys of runs; those that an `earlier` one wrapped stay readable.
#[pyclass(frozen, module = "vesper._direct")]
#[derive(Debug)]
pub struct KeyRing(pub(crate) Arc<sealing::KeyRing>);

#[pymethods]
impl KeyRing {
    #[new]
    #[pyo3(
        signature = (master=None, *, earlier=vec![], audit=None),
        text_signature = "(master=None, *, earlier=(), audit=None)"
    )]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 gives sequences by value")]
    fn new(
        py: Python<'_>,
        master: Option<&[u8]>,
        earlier: Vec<Vec<u8>>,
        audit: Option<&[u8]>,
    ) -> PyResult<Self> {
        let earlier: Vec<&[u8]> = earlier.iter().map(Vec::as_slice).collect();
        raised(py, sealing::KeyRing::new(master, &earlier, audit)).map(|ring| Self(Arc::new(ring)))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }

    #[getter]
    fn has_master(&self) -> bool {
        self.0.has_master()
    }

    /// The key of the audit log, where one is configured.
    #[getter]
    fn audit<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.audit_bytes().map(|bytes| PyBytes::new(py, bytes))
    }

    /// Returns the stored form of a key: the name of the master key that it is under, or `""`, and its bytes.
    #[pyo3(signature = (key, execution, /))]
    fn wrap<'py>(
        &self,
        py: Python<'py>,
        key: &RunKey,
        execution: &str,
    ) -> PyResult<(String, Bound<'py, PyBytes>)> {
        let wrapped = raised(py, self.0.wrap(&key.0, execution))?;
        Ok((wrapped.master, PyBytes::new(py, &wrapped.data)))
    }

    /// Returns a key from its stored form. Raises `JournalError` where its master key is not configured.
    #[pyo3(signature = (master, data, execution, /))]
    fn unwrap(&self, py: Python<'_>, master: &str, data: &[u8], execution: &str) -> PyResult<RunKey> {
        raised(
            py,
            self.0.unwrap(master, data, execution, SystemSources::shared()),
        )
        .map(RunKey)
    }
}

fn raised<T>(py: Python<'_>, result: Result<T, JournalError>) -> PyResult<T> {
    result.map_err(|error| journal_exception(py, &error))
}
