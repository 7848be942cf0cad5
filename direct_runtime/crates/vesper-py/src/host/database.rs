//! Databases and state machines for Python: made from the configuration, and handed to the run loop.

mod joined;
mod requests;
mod statements;

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use vesper_host::database::{
    Backend, DatabaseSettings, Databases as Native, Library, Machines, PostgresBackend, PureNames, SqlReader,
    SqliteBackend, StateMachines as NativeStates,
};
use vesper_host::effect::{Failure, Performer, Secrets};
use vesper_host::sources::SystemSources;
use zeroize::Zeroizing;

use crate::host::native_performer::{NativePerformer, seconds, wait_for};
use crate::host::performer::failure_of;
use joined::PythonJoiner;
use requests::AskOfPython;
use statements::PythonSqlReader;

static NOT_DONE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The configured databases.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct Databases {
    native: Arc<Native>,
    /// The same, for runs that are part of a caller's transaction.
    joined: Arc<Native>,
}

#[pymethods]
impl Databases {
    /// Takes the settings of all databases, the functions that read SQL, suggest names, join transactions and return
    /// secrets, and the file and version of the SQLite library that Python uses; None where that is part of Python.
    #[new]
    #[pyo3(signature = (settings, read_sql, pure_names, did_you_mean, join, secret, sqlite, /))]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes new lists")]
    fn new(
        settings: Vec<Bound<'_, PyAny>>,
        read_sql: Py<PyAny>,
        pure_names: (Vec<String>, Vec<String>),
        did_you_mean: Py<PyAny>,
        join: Py<PyAny>,
        secret: Py<PyAny>,
        sqlite: (Option<PathBuf>, String),
    ) -> PyResult<Self> {
        let (functions, syntax) = pure_names;
        let pure = PureNames {
            functions: functions.into_iter().collect(),
            syntax: syntax.into_iter().collect(),
        };
        let reader: Arc<dyn SqlReader> = Arc::new(PythonSqlReader {
            read_sql,
            did_you_mean,
        });
        let (pure, secrets) = (Arc::new(pure), Arc::new(PythonSecrets(secret)));
        let settings: Vec<DatabaseSettings> = settings.iter().map(read_settings).collect::<PyResult<_>>()?;
        let library = match settings.iter().find(|each| each.path.is_some()) {
            None => None,
            Some(database) => Some(load(&sqlite, &database.name)?),
        };
        let mut databases: Vec<(Arc<DatabaseSettings>, Box<dyn Backend>)> = Vec::new();
        for each in settings {
            let each = Arc::new(each);
            let backend: Box<dyn Backend> = match (&each.path, &library) {
                (Some(_), Some(library)) => Box::new(SqliteBackend::new(
                    Arc::clone(&each),
                    library.clone(),
                    Arc::clone(&pure),
                )),
                _ => Box::new(PostgresBackend::new(
                    Arc::clone(&each),
                    Arc::clone(&secrets) as Arc<dyn Secrets>,
                )),
            };
            databases.push((each, backend));
        }
        let native = Native::new(databases, reader, SystemSources::shared());
        Ok(Self {
            joined: Arc::new(native.joined(Arc::new(PythonJoiner(join)))),
            native: Arc::new(native),
        })
    }

    /// Performs one request. `types` has the types of the values in `bind`, by name.
    #[pyo3(signature = (ask, types, /))]
    fn perform<'py>(
        &self,
        py: Python<'py>,
        ask: &Bound<'py, PyAny>,
        types: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        perform(py, &*self.joined, ask, types)
    }

    /// Returns the result of an earlier request, or `NOT_DONE`.
    #[pyo3(signature = (ask, types, /))]
    fn probe<'py>(
        &self,
        py: Python<'py>,
        ask: &Bound<'py, PyAny>,
        types: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        probe(py, &*self.joined, ask, types)
    }

    /// Returns the rights of a database's role that no node needs.
    fn role_risks(&self, py: Python<'_>, name: &str) -> PyResult<Vec<String>> {
        wait_for(py, self.native.role_risks(name))
    }

    /// Runs a node's statement and undoes it; returns texts of its rows, or of those of `then` after a write.
    #[pyo3(signature = (name, sql, then, timeout, /))]
    fn try_out(
        &self,
        py: Python<'_>,
        name: &str,
        sql: &str,
        then: Option<&str>,
        timeout: f64,
    ) -> PyResult<Vec<Vec<String>>> {
        let rows = wait_for(py, self.native.try_out(name, sql, then, seconds(timeout)))?;
        let texts = rows
            .iter()
            .map(|row| row.iter().map(|cell| format!("{cell:?}")).collect());
        Ok(texts.collect())
    }

    /// Returns the performer of queries and writes for runs that are part of a caller's transaction, or are not.
    fn performer(&self, is_joined: bool) -> NativePerformer {
        let native = if is_joined { &self.joined } else { &self.native };
        NativePerformer {
            performer: Arc::clone(native) as Arc<dyn Performer>,
        }
    }

    /// Returns the state machines that a database holds.
    fn states(&self, database: &str) -> StateMachines {
        let machines = Arc::new(Machines::default());
        let states = |native: &Arc<Native>| {
            Arc::new(NativeStates::new(
                Arc::clone(native),
                database,
                Arc::clone(&machines),
            ))
        };
        StateMachines {
            native: states(&self.native),
            joined: states(&self.joined),
            machines,
        }
    }

    /// Closes idle connections, and those in use when they are given back.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.native.close());
    }

    /// Prepares for a fork of this process.
    fn before_fork(&self, py: Python<'_>) {
        py.detach(|| self.native.before_fork());
    }

    fn after_fork_in_parent(&self) {
        self.native.after_fork_in_parent();
    }

    fn after_fork_in_child(&self) {
        self.native.after_fork_in_child();
    }
}

/// The state machines of one database.
#[pyclass(frozen, module = "vesper._direct")]
pub(crate) struct StateMachines {
    native: Arc<NativeStates>,
    joined: Arc<NativeStates>,
    machines: Arc<Machines>,
}

#[pymethods]
impl StateMachines {
    /// Learns the initial state of a machine.
    fn know(&self, machine: &str, initial: &str) {
        self.machines.know(machine, initial);
    }

    /// Performs one request.
    #[pyo3(signature = (ask, /))]
    fn perform<'py>(&self, py: Python<'py>, ask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        perform(py, &*self.joined, ask, py.None().bind(py))
    }

    /// Returns the result of an earlier request, or `NOT_DONE`.
    #[pyo3(signature = (ask, /))]
    fn probe<'py>(&self, py: Python<'py>, ask: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        probe(py, &*self.joined, ask, py.None().bind(py))
    }

    /// Returns the performer of moves and reads for runs that are part of a caller's transaction, or are not.
    fn performer(&self, is_joined: bool) -> NativePerformer {
        let native = if is_joined { &self.joined } else { &self.native };
        NativePerformer {
            performer: Arc::clone(native) as Arc<dyn Performer>,
        }
    }
}

fn perform<'py>(
    py: Python<'py>,
    performer: &dyn Performer,
    ask: &Bound<'py, PyAny>,
    types: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let asked = AskOfPython::new(ask, types)?;
    let value = wait_for(py, performer.perform(asked.ask()))?;
    asked.object(py, &value)
}

fn probe<'py>(
    py: Python<'py>,
    performer: &dyn Performer,
    ask: &Bound<'py, PyAny>,
    types: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let asked = AskOfPython::new(ask, types)?;
    match wait_for(py, performer.probe(asked.ask()))? {
        Some(value) => asked.object(py, &value),
        None => Ok(NOT_DONE
            .import(py, "vesper.effects.performer", "NOT_DONE")?
            .clone()
            .into_any()),
    }
}

fn load((path, version): &(Option<PathBuf>, String), database: &str) -> PyResult<Library> {
    Library::load(path.as_deref(), version).map_err(|why| {
        let place = path
            .as_ref()
            .map_or_else(|| "this Python".to_owned(), |path| path.display().to_string());
        let text = format!("the SQLite library that Python's sqlite3 uses cannot be used for `{database}`");
        PyValueError::new_err(format!("{text}: {place}: {why}"))
    })
}

fn read_settings(settings: &Bound<'_, PyAny>) -> PyResult<DatabaseSettings> {
    let py = settings.py();
    let time = |name: &str| settings.getattr(name)?.extract::<f64>().map(seconds);
    let count = |name: &str| settings.getattr(name)?.extract::<usize>();
    let is_set = |name: &str| settings.getattr(name)?.extract::<bool>();
    Ok(DatabaseSettings {
        name: settings.getattr(intern!(py, "name"))?.extract()?,
        dsn: settings.getattr(intern!(py, "dsn"))?.extract()?,
        path: settings.getattr(intern!(py, "path"))?.extract()?,
        password_secret: settings.getattr(intern!(py, "password_secret"))?.extract()?,
        timeout: time("timeout")?,
        pool_size: count("pool_size")?,
        max_rows: count("max_rows")?,
        max_value: count("max_value")?,
        max_result: count("max_result")?,
        read_only: is_set("read_only")?,
        foreign_keys: is_set("foreign_keys")?,
        create: is_set("create")?,
        busy_timeout: time("busy_timeout")?,
    })
}

/// A function of Python that returns secrets.
struct PythonSecrets(Py<PyAny>);

impl Secrets for PythonSecrets {
    fn text(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        Python::attach(|py| {
            let text = self.0.call1(py, (name,)).and_then(|text| text.extract(py));
            text.map(Zeroizing::new).map_err(|error| failure_of(py, error))
        })
    }
}
