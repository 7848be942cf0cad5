//! The journal for Python: the protocol of `vesper/journal/journal.py` over `vesper_host::journal`.
//!
//! `store_journal.py` adds what is easier in Python. Python's lock is released around every call that touches the store.

pub(crate) mod backtest;
mod due;
pub(crate) mod forks;
pub(crate) mod run;
pub(crate) mod values;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PySlice};
use vesper_host::journal::batch::Definition;
use vesper_host::journal::begin::{Beginning, StoreJournal};
use vesper_host::journal::due::{Claim, Claimed, DueQuery, Moment, NewDue, Place, QUEUED, Settled, Signal};
use vesper_host::journal::limits::Limits;
use vesper_host::journal::overview::{Query, Recorded};
use vesper_host::journal::postgres::PostgresStore;
use vesper_host::journal::run::StoreRun;
use vesper_host::journal::sqlite::{Prepare, SqliteStore};
use vesper_host::journal::store::Store;
use vesper_host::journal::{ErrorKind, JournalError};
use vesper_host::policy::rate_limit::{DEFAULT_BURST, Rule};
use vesper_host::sources::{Sources, SystemSources};

use crate::host::errors::{journal_error, journal_exception, keep_exception};
use crate::host::journal::due::{claims_of, depth_object, due_object, due_objects, sent_object};
use crate::host::journal::run::Run;
use crate::host::journal::values::{
    audit_text, definition_object, read_definition, recorded_object, status_object, status_of,
    summary_object, text_of,
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
        // It only remembers: the lock of Python need not be released.
        let run = self.given(beginning, |given| Ok(self.inner.begin(given)))?;
        self.run(beginning.py(), run)
    }

    /// Begins a run that a worker takes over: START and its place in a queue in one commit.
    #[pyo3(signature = (beginning, queue, lane, priority, due_us, body, attempts = 0))]
    #[allow(clippy::too_many_arguments, reason = "the protocol of the journal")]
    fn begin_queued(
        &self,
        beginning: &Bound<'_, PyAny>,
        queue: &str,
        lane: &str,
        priority: i64,
        due_us: Option<i64>,
        body: &str,
        attempts: i64,
    ) -> PyResult<String> {
        let py = beginning.py();
        let place = Place {
            queue,
            lane,
            priority,
            due_us,
            attempts,
            body,
        };
        self.given(beginning, |given| {
            self.call(py, |journal| journal.begin_queued(given, &place))
        })
    }

    /// Returns the time of the store's clock in microseconds since 1970.
    fn now_us(&self, py: Python<'_>) -> PyResult<i64> {
        self.call(py, StoreJournal::now_us)
    }

    /// Claims rows that are due and that no living process has.
    #[pyo3(signature = (kinds, limit, lease_us, queue = None, *, queue_limit = None, lane_limit = None))]
    #[allow(clippy::too_many_arguments, reason = "the protocol of the journal")]
    fn claim<'py>(
        &self,
        py: Python<'py>,
        kinds: Vec<String>,
        limit: usize,
        lease_us: i64,
        queue: Option<String>,
        queue_limit: Option<usize>,
        lane_limit: Option<usize>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let claim = Claim {
            kinds,
            limit,
            lease_us,
            queue,
            lane_limit,
            queue_limit,
            ..Claim::default()
        };
        let found = self.call(py, |journal| journal.claim(&claim))?;
        due_objects(py, &found)
    }

    /// Claims queued runs and takes them over in one transaction; None stands for a run that cannot be taken over.
    ///
    /// A rate is a number of starts and the microseconds for them.
    #[pyo3(signature = (queue, limit, lease_us, engine = None, *, queue_limit = None, lane_limit = None,
        queue_rate = None, lane_rate = None, ahead_us = 0, after_lane = None))]
    #[allow(clippy::too_many_arguments, reason = "the protocol of the journal")]
    fn claim_queued<'py>(
        &self,
        py: Python<'py>,
        queue: String,
        limit: usize,
        lease_us: i64,
        engine: Option<&str>,
        queue_limit: Option<usize>,
        lane_limit: Option<usize>,
        queue_rate: Option<(i64, i64)>,
        lane_rate: Option<(i64, i64)>,
        ahead_us: i64,
        after_lane: Option<String>,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, Option<Run>)>> {
        let rule = |(limit, per_us)| Rule {
            limit,
            per_us,
            burst: DEFAULT_BURST,
        };
        let claim = Claim {
            kinds: vec![QUEUED.to_owned()],
            limit,
            lease_us,
            queue: Some(queue),
            lane_limit,
            queue_limit,
            lane_rate: lane_rate.map(rule),
            queue_rate: queue_rate.map(rule),
            ahead_us,
            after_lane,
        };
        let found = self.call(py, |journal| journal.claim_queued(&claim, engine))?;
        let mut claimed = Vec::with_capacity(found.len());
        for Claimed { due, run } in found {
            let run = run.map(|run| self.run(py, Ok(run))).transpose()?;
            claimed.push((due_object(py, &due)?, run));
        }
        Ok(claimed)
    }

    /// Prolongs claims of one row or of several; returns how many are still this process's.
    #[pyo3(signature = (due, lease_us = None))]
    fn renew_due(&self, py: Python<'_>, due: &Bound<'_, PyAny>, lease_us: Option<i64>) -> PyResult<u64> {
        let claims = claims_of(due)?;
        let lease_us = lease_us.unwrap_or(self.inner.limits.lease_us());
        self.call(py, |journal| journal.renew_due(&claims, lease_us))
    }

    /// Gives a row back, due at another time (None: never), in its queue or another one.
    #[pyo3(signature = (due, due_us, attempts, queue = None))]
    fn release(
        &self,
        py: Python<'_>,
        due: &Bound<'_, PyAny>,
        due_us: Option<i64>,
        attempts: i64,
        queue: Option<&str>,
    ) -> PyResult<bool> {
        let claims = claims_of(due)?;
        let [claim] = claims.as_slice() else {
            return Err(PyValueError::new_err("one row is released at a time"));
        };
        self.call(py, |journal| journal.release(*claim, due_us, attempts, queue))
    }

    /// Deletes one row or several, each unless it was changed since it was read; returns whether all were deleted.
    fn remove(&self, py: Python<'_>, due: &Bound<'_, PyAny>) -> PyResult<bool> {
        let claims = claims_of(due)?;
        let removed = self.call(py, |journal| journal.remove_due(&claims))?;
        Ok(removed == claims.len() as u64)
    }

    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes a new list")]
    fn next_due(&self, py: Python<'_>, kinds: Vec<String>) -> PyResult<Option<i64>> {
        self.call(py, |journal| journal.next_due(&kinds))
    }

    #[pyo3(signature = (
        kind = None, name = None, queue = None, node = None, limit = 100, after = None, *, lane = None, execution = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "the protocol of the journal")]
    fn due<'py>(
        &self,
        py: Python<'py>,
        kind: Option<String>,
        name: Option<String>,
        queue: Option<String>,
        node: Option<String>,
        limit: i64,
        after: Option<i64>,
        lane: Option<String>,
        execution: Option<String>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let query = DueQuery {
            kind,
            name,
            queue,
            lane,
            node,
            execution,
            after,
        };
        let found = self.call(py, |journal| journal.due(&query, limit))?;
        due_objects(py, &found)
    }

    /// Returns the depth of each queue, or of each lane of one queue, the longest first.
    #[pyo3(signature = (queue = None, limit = 1000))]
    fn queue_depths<'py>(
        &self,
        py: Python<'py>,
        queue: Option<&str>,
        limit: i64,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = self.call(py, |journal| journal.queue_depths(queue, limit))?;
        found.iter().map(|depth| depth_object(py, depth)).collect()
    }

    /// Puts a row without a run: a new one, or in place of the one that is due at `expected_due_us`.
    #[pyo3(signature = (kind, name, due_us, body, expected_due_us, queue = "", lane = ""))]
    #[allow(clippy::too_many_arguments, reason = "the protocol of the journal")]
    fn put_due(
        &self,
        py: Python<'_>,
        kind: &str,
        name: &str,
        due_us: Option<i64>,
        body: &str,
        expected_due_us: Option<i64>,
        queue: &str,
        lane: &str,
    ) -> PyResult<bool> {
        let due = NewDue {
            kind: kind.to_owned(),
            moment: due_us.map_or(Moment::Never, Moment::At),
            path: String::new(),
            name: name.to_owned(),
            queue: queue.to_owned(),
            lane: lane.to_owned(),
            priority: 0,
            attempts: 0,
            body: body.to_owned(),
        };
        self.call(py, |journal| journal.put_due(&due, expected_due_us))
    }

    /// Wakes a run that waits at a path, with a value in typed JSON or with a failure.
    #[pyo3(signature = (execution, path, value_text, code, message, actor))]
    #[allow(clippy::too_many_arguments, reason = "the protocol of the journal")]
    fn wake(
        &self,
        py: Python<'_>,
        execution: &str,
        path: &str,
        value_text: Option<&str>,
        code: Option<&str>,
        message: &str,
        actor: Option<&str>,
    ) -> PyResult<bool> {
        let settled = match (value_text, code) {
            (Some(value), None) => Settled::Value(value),
            (None, Some(code)) => Settled::Failed { code, message },
            _ => {
                let message = "a wait ends with a value or with a code, and not with both";
                return Err(PyValueError::new_err(message));
            }
        };
        self.call(py, |journal| journal.wake(execution, path, settled, actor))
    }

    /// Wakes waits whose time is over, in one transaction; returns their rows.
    #[pyo3(signature = (limit = 100))]
    fn wake_due<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = self.call(py, |journal| journal.wake_due(limit))?;
        due_objects(py, &found)
    }

    /// Sends a signal to a run, or to the runs that wait with a lane.
    #[pyo3(signature = (execution, name, lane, value_text, key, actor, checked = None))]
    #[allow(clippy::too_many_arguments, reason = "the protocol of the journal")]
    fn signal<'py>(
        &self,
        py: Python<'py>,
        execution: Option<&str>,
        name: &str,
        lane: &str,
        value_text: &str,
        key: Option<&str>,
        actor: Option<&str>,
        mut checked: Option<Vec<(String, String)>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(checked) = &mut checked {
            checked.sort_unstable();
        }
        let signal = Signal {
            execution,
            name,
            lane,
            value: value_text,
            key,
            actor,
            checked: checked.as_deref(),
        };
        let sent = self.call(py, |journal| journal.signal(&signal))?;
        sent_object(py, &sent)
    }

    /// Ends a queued run, or fails the wait of one that waits; returns the status that it has then.
    fn cancel<'py>(
        &self,
        py: Python<'py>,
        execution: &str,
        reason: &str,
        actor: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let status = self.call(py, |journal| journal.cancel(execution, reason, actor))?;
        status_object(py, status)
    }

    /// Returns the row of a run, without its entries.
    fn summary<'py>(&self, py: Python<'py>, execution: &str) -> PyResult<Bound<'py, PyAny>> {
        let summary = self.call(py, |journal| journal.summary(execution))?;
        summary_object(py, &summary)
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

    #[pyo3(signature = (limit = 100, is_released = false))]
    fn unfinished<'py>(
        &self,
        py: Python<'py>,
        limit: usize,
        is_released: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = self.call(py, |journal| journal.unfinished(limit, is_released))?;
        found.iter().map(|summary| summary_object(py, summary)).collect()
    }

    #[pyo3(signature = (*, status = None, node = None, since_us = None, limit = 100, offset = 0))]
    fn find<'py>(
        &self,
        py: Python<'py>,
        status: Option<&Bound<'py, PyAny>>,
        node: Option<String>,
        since_us: Option<i64>,
        limit: i64,
        offset: i64,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let status = status.map(status_of).transpose()?;
        let query = Query {
            status,
            node,
            since_us,
            offset,
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
    /// Returns the store of the journal, whose database has the counts of budgets too.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.inner.store)
    }

    /// Returns the journal without Python.
    pub(crate) fn native(&self) -> Arc<StoreJournal> {
        Arc::clone(&self.inner)
    }

    /// Calls with a `Beginning` in the form of the journal.
    fn given<T>(
        &self,
        beginning: &Bound<'_, PyAny>,
        then: impl FnOnce(&Beginning<'_>) -> PyResult<T>,
    ) -> PyResult<T> {
        let py = beginning.py();
        let definition = self.definition_of(&beginning.getattr(intern!(py, "definition"))?)?;
        let inputs = typed_text(&beginning.getattr(intern!(py, "inputs"))?)?;
        let now = typed_text(&beginning.getattr(intern!(py, "now"))?)?;
        let engine = beginning.getattr(intern!(py, "engine"))?;
        let execution = beginning.getattr(intern!(py, "execution"))?;
        let context = beginning.getattr(intern!(py, "context"))?;
        let context = (!context.is_none()).then(|| typed_text(&context)).transpose()?;
        then(&Beginning {
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
        })
    }

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
