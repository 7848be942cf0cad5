//! The journal for Python: the protocol of `vesper/journal/journal.py` over `vesper_host::journal`.
//!
//! `store_journal.py` adds what is easier in Python. Python's lock is released around every call that touches the store.

pub(crate) mod forks;
pub(crate) mod run;
pub(crate) mod values;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PySlice};
use vesper_host::journal::batch::Definition;
use vesper_host::journal::begin::{Beginning, StoreJournal};
use vesper_host::journal::limits::Limits;
use vesper_host::journal::overview::{Query, Recorded};
use vesper_host::journal::postgres::PostgresStore;
use vesper_host::journal::run::StoreRun;
use vesper_host::journal::sqlite::{Prepare, SqliteStore};
use vesper_host::journal::store::Store;
use vesper_host::journal::{ErrorKind, JournalError};
use vesper_host::sources::{Sources, SystemSources};

use crate::host::errors::{journal_error, journal_exception, keep_exception};
use crate::host::journal::run::Run;
use crate::host::journal::values::{
    audit_text, definition_object, read_definition, recorded_object, status_of, summary_object, text_of,
};
use crate::host::sealing::KeyRing;
use crate::host::sources::PythonSources;
use crate::journal::text::typed_text;

/// Definitions that are kept in the form of the journal; more than a process runs at a time.
const MAX_DEFINITIONS: usize = 256;

/// A definition of Python, and the same in the form of the journal.
type KnownDefinition = (Py<PyAny>, Arc<Definition>);

/// A journal in a file or in a database.
#[pyclass(frozen, subclass, module = "vesper._direct")]
pub(crate) struct Journal {
    inner: Arc<StoreJournal>,
    path: Option<PathBuf>,
    /// By the address of the Python object, which is kept, so that no other object has it.
    definitions: Mutex<HashMap<usize, KnownDefinition>>,
}

#[pymethods]
impl Journal {
    /// Opens the journal at a path or, where that is None, at a DSN of Postgres. Nothing is touched before its first use.
    #[new]
    #[pyo3(signature = (path, dsn, owner, keys, lease_seconds, max_inline, max_body, busy_seconds, prepare, sources, /))]
    #[allow(clippy::too_many_arguments, reason = "one for each setting of a journal")]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        dsn: &str,
        owner: Option<String>,
        keys: &Bound<'_, KeyRing>,
        lease_seconds: f64,
        max_inline: i64,
        max_body: i64,
        busy_seconds: f64,
        prepare: Py<PyAny>,
        sources: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let raise = |error: JournalError| journal_exception(py, &error);
        let sources: Arc<dyn Sources> = match sources {
            Some(sources) => Arc::new(PythonSources::new(sources)?),
            None => SystemSources::shared(),
        };
        let ring = Arc::clone(&keys.get().0);
        let audit = ring.audit().cloned();
        let store: Arc<dyn Store> = match &path {
            Some(path) => {
                let store = SqliteStore::new(path.clone(), audit, sources.clone(), preparation(prepare));
                Arc::new(store.with_busy_seconds(busy_seconds))
            }
            None => Arc::new(PostgresStore::new(dsn, audit).map_err(raise)?),
        };
        let limits = Limits::new(lease_seconds, max_inline, max_body).map_err(raise)?;
        let journal = StoreJournal::new(store.clone(), ring, limits, sources, owner).map_err(raise)?;
        forks::watch(&store);
        Ok(Self {
            inner: Arc::new(journal),
            path,
            definitions: Mutex::default(),
        })
    }

    /// Returns the path of a journal in a file.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// Returns the name of the store, for messages.
    #[getter]
    fn name(&self) -> String {
        self.inner.store.name().to_owned()
    }

    #[getter]
    fn owner(&self) -> String {
        self.inner.owner()
    }

    #[getter]
    fn keys_lie_beside_data(&self) -> bool {
        !self.inner.keys.has_master()
    }

    #[getter]
    fn audit_key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.inner.keys.audit_bytes().map(|key| PyBytes::new(py, key))
    }

    fn begin(&self, beginning: &Bound<'_, PyAny>) -> PyResult<Run> {
        let py = beginning.py();
        let definition = self.definition_of(&beginning.getattr(intern!(py, "definition"))?)?;
        let inputs = typed_text(&beginning.getattr(intern!(py, "inputs"))?)?;
        let now = typed_text(&beginning.getattr(intern!(py, "now"))?)?;
        let engine = beginning.getattr(intern!(py, "engine"))?;
        let execution = beginning.getattr(intern!(py, "execution"))?;
        let context = beginning.getattr(intern!(py, "context"))?;
        let context = (!context.is_none()).then(|| typed_text(&context)).transpose()?;
        let given = Beginning {
            execution: text_of(&execution, || {
                let start = execution.get_item(PySlice::new(py, 0, 40, 1))?.repr()?;
                Ok(format!(
                    "{start} cannot be the id of an execution: 1 to 200 printable signs"
                ))
            })?,
            definition,
            inputs: &inputs,
            now: &now,
            engine: engine.extract()?,
            is_sensitive: beginning.getattr(intern!(py, "is_sensitive"))?.is_truthy()?,
            writes: beginning.getattr(intern!(py, "writes"))?.is_truthy()?,
            is_joined: beginning.getattr(intern!(py, "is_joined"))?.is_truthy()?,
            context: context.as_deref(),
        };
        // It only remembers: the lock of Python need not be released.
        let run = self.inner.begin(&given);
        self.run(py, run)
    }

    /// Returns the run of a node with the key of a context, and whether its owner may still end it.
    #[pyo3(signature = (node_id, context, /))]
    fn keyed<'py>(
        &self,
        py: Python<'py>,
        node_id: &str,
        context: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, bool)>> {
        let context = typed_text(context)?;
        let found = self.call(py, |journal| journal.keyed(node_id, &context))?;
        found
            .map(|(summary, is_owned)| Ok((summary_object(py, &summary)?, is_owned)))
            .transpose()
    }

    fn take_over(&self, py: Python<'_>, execution: &str, engine: &str) -> PyResult<Run> {
        let run = py.detach(|| self.inner.take_over(execution, engine));
        self.run(py, run)
    }

    #[pyo3(signature = (limit = 100))]
    fn unfinished<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = self.call(py, |journal| journal.unfinished(limit))?;
        found.iter().map(|summary| summary_object(py, summary)).collect()
    }

    #[pyo3(signature = (*, status = None, node = None, since_us = None, limit = 100))]
    fn find<'py>(
        &self,
        py: Python<'py>,
        status: Option<&Bound<'py, PyAny>>,
        node: Option<String>,
        since_us: Option<i64>,
        limit: i64,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let status = status.map(status_of).transpose()?;
        let query = Query {
            status,
            node,
            since_us,
        };
        let found = self.call(py, |journal| journal.find(&query, limit))?;
        found.iter().map(|summary| summary_object(py, summary)).collect()
    }

    fn read<'py>(&self, py: Python<'py>, execution: &str) -> PyResult<Bound<'py, PyAny>> {
        let recorded = self.call(py, |journal| journal.read(execution))?;
        self.recorded(py, &recorded)
    }

    fn verify(&self, py: Python<'_>, execution: &str) -> PyResult<Vec<String>> {
        let (recorded, problems) = self.call(py, |journal| journal.verify(execution))?;
        self.recorded(py, &recorded)?; // Every value is readable.
        Ok(problems)
    }

    fn verify_shared(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.call(py, StoreJournal::verify_shared)
    }

    fn definition<'py>(&self, py: Python<'py>, semantic_hash: &str) -> PyResult<Bound<'py, PyAny>> {
        let found = self.call(py, |journal| journal.definition(semantic_hash))?;
        definition_object(py, &found, &mut HashMap::new())
    }

    /// Returns ids that start with a prefix and come after `after`: some of them, none at the end.
    #[pyo3(signature = (prefix, after, /))]
    fn executions_page(&self, py: Python<'_>, prefix: &str, after: Option<&str>) -> PyResult<Vec<String>> {
        self.call(py, |journal| journal.executions(prefix, after))
    }

    fn node_ids(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.call(py, StoreJournal::node_ids)
    }

    #[pyo3(signature = (execution, path, result, failure, by, why, not_done = false))]
    #[allow(clippy::too_many_arguments, reason = "the protocol of the journal")]
    fn resolve(
        &self,
        py: Python<'_>,
        execution: &str,
        path: &str,
        result: &Bound<'_, PyAny>,
        failure: Option<&Bound<'_, PyAny>>,
        by: &Bound<'_, PyAny>,
        why: &Bound<'_, PyAny>,
        not_done: bool,
    ) -> PyResult<()> {
        let body = PyDict::new(py);
        match failure {
            _ if not_done => body.set_item("not_done", true)?,
            None => body.set_item("value", result)?,
            Some(code) => body.set_item("code", code)?,
        }
        body.set_item("by", by)?;
        body.set_item("why", why)?;
        let body = typed_text(&body)?;
        self.call(py, |journal| journal.resolve(execution, path, &body))
    }

    fn erase(&self, py: Python<'_>, execution: &str) -> PyResult<bool> {
        self.call(py, |journal| journal.erase(execution))
    }

    #[pyo3(signature = (before_us, node = None))]
    fn prune(&self, py: Python<'_>, before_us: i64, node: Option<&str>) -> PyResult<u64> {
        self.call(py, |journal| journal.prune(before_us, node))
    }

    #[pyo3(signature = (before_us, node = None))]
    fn prunable(&self, py: Python<'_>, before_us: i64, node: Option<&str>) -> PyResult<u64> {
        self.call(py, |journal| journal.prunable(before_us, node))
    }

    fn check_writable(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, StoreJournal::check_writable)
    }

    fn audit_head(&self, py: Python<'_>) -> PyResult<(i64, String)> {
        let (count, hash) = self.call(py, StoreJournal::audit_head)?;
        Ok((count, vesper_host::journal::lines::hexadecimal(&hash)))
    }

    /// Returns lines of the audit log that come after a number: some of them, none at the end.
    #[pyo3(signature = (after, /))]
    fn audit_page<'py>(&self, py: Python<'py>, after: Option<i64>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.call(py, |journal| journal.audit_rows(after))?;
        PyList::new(
            py,
            rows.iter()
                .map(|row| (row.seq, PyBytes::new(py, &row.line), PyBytes::new(py, &row.hash))),
        )
    }

    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes a new list")]
    fn audit(&self, py: Python<'_>, events: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let texts = events.iter().map(audit_text).collect::<PyResult<Vec<_>>>()?;
        self.call(py, |journal| journal.audit(&texts))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.inner.store.close());
    }
}

impl Journal {
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&StoreJournal) -> Result<T, JournalError> + Send,
    ) -> PyResult<T> {
        py.detach(|| work(&self.inner))
            .map_err(|error| journal_exception(py, &error))
    }

    fn run(&self, py: Python<'_>, run: Result<StoreRun, JournalError>) -> PyResult<Run> {
        let run = run.map_err(|error| journal_exception(py, &error))?;
        Ok(Run::new(Arc::new(run), self.inner.store.name().to_owned()))
    }

    fn recorded<'py>(&self, py: Python<'py>, recorded: &Recorded) -> PyResult<Bound<'py, PyAny>> {
        recorded_object(py, recorded, self.inner.store.name())
    }

    /// Returns a definition of Python in the form of the journal.
    fn definition_of(&self, object: &Bound<'_, PyAny>) -> PyResult<Arc<Definition>> {
        let address = object.as_ptr() as usize;
        // Not held while Python reads or frees an object: another thread may wait for it with the lock of Python.
        let lock = || self.definitions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&address).map(|(_, definition)| Arc::clone(definition));
        if let Some(known) = known {
            return Ok(known);
        }
        let definition = read_definition(object)?;
        let mut known = lock();
        let forgotten = (known.len() >= MAX_DEFINITIONS).then(|| std::mem::take(&mut *known));
        let before = known.insert(address, (object.clone().unbind(), Arc::clone(&definition)));
        drop(known);
        drop((forgotten, before));
        Ok(definition)
    }
}

/// Returns the function that makes the file of a journal and judges its place, from one of Python.
fn preparation(prepare: Py<PyAny>) -> Prepare {
    Arc::new(move |path| {
        Python::attach(|py| {
            let done = prepare.call1(py, (path,));
            done.map(drop).map_err(|error| {
                journal_error(py, &error).unwrap_or_else(|| {
                    let message = error.to_string();
                    keep_exception(error);
                    JournalError::new(ErrorKind::Journal, message)
                })
            })
        })
    })
}
