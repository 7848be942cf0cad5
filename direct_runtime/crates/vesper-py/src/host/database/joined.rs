//! Sessions in a caller's transaction: statements run on the caller's connection, which is an object of Python.

use std::borrow::Cow;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString, PyType};
use vesper_host::database::{
    Answer, Cell, Column, DatabaseSettings, ExactDecimal, Joiner, Kind, LOCK_TABLES, Purpose, Rows,
    ServerReport, Session, SessionError, SqliteError, Statement, Table, Values, affinity, check_texts,
    sqlite_failure,
};
use vesper_host::effect::{AttemptError, Broken, Failure};
use vesper_host::runtime;
use vesper_interp::inputs::Given;
use vesper_ir::Decimal;

use crate::host::context::attached;
use crate::host::performer::attempt_error;
use crate::inputs::times::{date_object, duration_object, read_duration, read_moment, timestamp_object};
use crate::inputs::values::read_integer;
use crate::layout::decimals::decimals;

static SQLITE_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static POSTGRES_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UNREADABLE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static JSON_TEXT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
/// SQLite's code for an error without one.
const GENERIC_ERROR: i32 = 1;

/// The function `vesper.effects.database.joined.join`.
pub(super) struct PythonJoiner(pub(super) Py<PyAny>);

impl Joiner for PythonJoiner {
    fn join(
        &self,
        database: &DatabaseSettings,
        purpose: &Purpose,
    ) -> Result<Option<Box<dyn Session>>, SessionError> {
        let kind = if database.path.is_some() {
            Kind::Sqlite
        } else {
            Kind::Postgres
        };
        let mut session = JoinedSession {
            object: None,
            kind,
            database: database.name.clone(),
            purpose: *purpose,
        };
        let seconds = purpose.deadline.left().as_secs_f64();
        let found = session.with_python(|py, _| {
            let found = self
                .0
                .bind(py)
                .call1((&database.name, kind.name(), seconds, purpose.writes))?;
            Ok((!found.is_none()).then(|| found.unbind()))
        })?;
        Ok(found.map(|object| {
            session.object = Some(object);
            Box::new(session) as Box<dyn Session>
        }))
    }
}

/// A savepoint in a caller's transaction.
struct JoinedSession {
    /// A `JoinedSession` of Python; None before it is entered and after it has ended.
    object: Option<Py<PyAny>>,
    kind: Kind,
    database: String,
    purpose: Purpose,
}

impl Drop for JoinedSession {
    fn drop(&mut self) {
        // A run that was interrupted: what it did is undone.
        if let Some(object) = self.object.take() {
            Python::attach(|py| {
                if let Err(error) = object.call_method0(py, intern!(py, "undo")) {
                    error.write_unraisable(py, None);
                }
            });
        }
    }
}

impl JoinedSession {
    /// Calls Python with the session's object, in the context of the run, which knows the joined connections. An error
    /// of its driver becomes a failure.
    fn with_python<T>(
        &self,
        call: impl FnOnce(Python<'_>, Option<&Py<PyAny>>) -> PyResult<T>,
    ) -> Result<T, SessionError> {
        runtime::blocking(|| {
            attached(|py| call(py, self.object.as_ref()).map_err(|error| self.error(py, error)))
        })
    }

    fn call<T>(
        &self,
        name: &str,
        call: impl FnOnce(Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T, SessionError> {
        self.with_python(|py, object| match object {
            Some(object) => call(object.bind(py).getattr(name)?),
            None => Err(pyo3::exceptions::PyRuntimeError::new_err("the session has ended")),
        })
    }

    fn error(&self, py: Python<'_>, error: PyErr) -> SessionError {
        match self.driver_error(py, &error) {
            Ok(Some(found)) => found,
            Ok(None) => match attempt_error(py, error) {
                AttemptError::Failed(failure) => SessionError::Failed(failure),
                AttemptError::Broken(broken) => SessionError::Broken(broken),
            },
            Err(other) => SessionError::Broken(Broken(Box::new(other))),
        }
    }

    /// Returns the meaning of an error of the driver; None for other exceptions.
    fn driver_error(&self, py: Python<'_>, error: &PyErr) -> PyResult<Option<SessionError>> {
        let object = error.value(py);
        if self.kind == Kind::Sqlite {
            if !object.is_instance(SQLITE_ERROR.import(py, "sqlite3", "Error")?)? {
                return Ok(None);
            }
            let code = object.getattr_opt(intern!(py, "sqlite_errorcode"))?;
            let code = code.map_or(Ok(GENERIC_ERROR), |code| code.extract())?;
            let error = SqliteError::new(code, object.str()?.to_string());
            return Ok(Some(sqlite_failure(&error, &self.purpose, &self.database, false)));
        }
        if !object.is_instance(POSTGRES_ERROR.import(py, "psycopg", "Error")?)? {
            return Ok(None);
        }
        let state: Option<String> = object.getattr(intern!(py, "sqlstate"))?.extract()?;
        let diagnostic = object.getattr(intern!(py, "diag"))?;
        let part = |name: &str| diagnostic.getattr(name)?.extract::<Option<String>>();
        let (Some(state), Some(message)) = (state, part("message_primary")?) else {
            let text = object
                .str()?
                .to_string()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let text = format!("`{}`: the connection was lost: {text}", self.database);
            return Ok(Some(Failure::new("unavailable", text).into()));
        };
        let (constraint, column, table) = (
            part("constraint_name")?,
            part("column_name")?,
            part("table_name")?,
        );
        let report = ServerReport {
            state: &state,
            message: &message,
            constraint: constraint.as_deref(),
            column: column.as_deref(),
            table: table.as_deref(),
        };
        Ok(Some(report.failure(&self.purpose, &self.database, false)))
    }

    fn text<'a>(&self, statement: &'a Statement) -> &'a str {
        match self.kind {
            Kind::Sqlite => &statement.text,
            Kind::Postgres => &statement.formatted,
        }
    }

    fn check(&self, statement: &Statement, values: &Values) -> Result<(), SessionError> {
        statement.check(values)?;
        if self.kind == Kind::Postgres {
            return Ok(check_texts(values, self.purpose.refusal)?);
        }
        let Some(target) = statement.facts.as_ref().and_then(|facts| facts.target.as_ref()) else {
            return Ok(());
        };
        if !affinity::is_checked(target, values) {
            return Ok(());
        }
        let table = vec![(Arc::from("table"), Column::Text(Arc::from(target.table.as_str())))];
        let (_, rows) = self.fetch(affinity::COLUMNS, &table, usize::from(u16::MAX))?;
        let columns: Vec<(String, String)> = rows
            .into_iter()
            .filter_map(|row| match row.as_slice() {
                [Cell::Text(name), Cell::Text(kind)] => Some((name.clone(), kind.clone())),
                _ => None,
            })
            .collect();
        Ok(affinity::check(&columns, target, values, self.purpose.refusal)?)
    }

    fn fetch(
        &self,
        sql: &str,
        values: &Values,
        most: usize,
    ) -> Result<(Vec<String>, Vec<Vec<Cell>>), SessionError> {
        self.call("rows", |rows| {
            let found = rows.call1((sql, self.objects(rows.py(), values)?, most))?;
            let (columns, rows): (Vec<String>, Vec<Vec<Bound<'_, PyAny>>>) = found.extract()?;
            let rows = rows.iter().map(|row| row.iter().map(cell_of).collect());
            Ok((columns, rows.collect::<PyResult<_>>()?))
        })
    }

    fn objects<'py>(&self, py: Python<'py>, values: &Values) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in values {
            let object = match self.kind {
                Kind::Sqlite => object_of(py, &value.for_sqlite()),
                Kind::Postgres => object_of(py, value),
            };
            dict.set_item(&**name, object?)?;
        }
        Ok(dict)
    }
}

impl Session for JoinedSession {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn change<'a>(&'a mut self, statement: &'a Statement, values: &'a Values) -> Answer<'a, u64> {
        let changed = self.check(statement, values).and_then(|()| {
            let sql = self.text(statement);
            self.call("change", |change| {
                change.call1((sql, self.objects(change.py(), values)?))?.extract()
            })
        });
        Box::pin(ready(changed))
    }

    fn rows<'a>(
        &'a mut self,
        statement: &'a Statement,
        values: &'a Values,
        most: usize,
        rows: &'a mut dyn Rows,
    ) -> Answer<'a, ()> {
        let mut read = || {
            self.check(statement, values)?;
            let (columns, found) = self.fetch(self.text(statement), values, most)?;
            for cells in found {
                rows.take(&columns, cells)?;
            }
            Ok(())
        };
        Box::pin(ready(read()))
    }

    fn create(&mut self, table: Table) -> Answer<'_, ()> {
        let sql = match self.kind {
            Kind::Sqlite => table.sqlite.to_owned(),
            Kind::Postgres => format!("{LOCK_TABLES}; {}", table.postgres),
        };
        Box::pin(ready(
            self.call("create", |create| create.call1((sql,)).map(|_| ())),
        ))
    }

    fn commit<'a>(mut self: Box<Self>) -> Answer<'a, ()> {
        let left = self.call("leave", |leave| leave.call0().map(|_| ()));
        self.object = None;
        Box::pin(ready(left))
    }

    fn rollback<'a>(
        mut self: Box<Self>,
        cause: SessionError,
    ) -> Pin<Box<dyn Future<Output = SessionError> + Send + 'a>> {
        let is_lost = self.call("undo", |undo| undo.call0()?.extract::<bool>());
        self.object = None;
        Box::pin(ready(match (is_lost, cause) {
            (Err(error), _) => error,
            (Ok(true), SessionError::Failed(failure) | SessionError::MissingTable(failure)) => {
                let lost = format!(
                    "SQLite has rolled back the caller's whole transaction on `{}`",
                    self.database
                );
                SessionError::Failed(Failure {
                    message: format!("{}; {lost}", failure.message),
                    ..failure
                })
            }
            (Ok(_), cause) => cause,
        }))
    }
}

fn object_of<'py>(py: Python<'py>, value: &Column) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Column::Null => py.None().into_bound(py),
        Column::Boolean(value) => PyBool::new(py, *value).to_owned().into_any(),
        Column::Integer(value) => value.into_pyobject(py)?.into_any(),
        Column::Decimal(text) => match Decimal::parse(text) {
            Ok(number) => decimals(py)?.object(py, &number)?,
            Err(_) => PyString::new(py, text).into_any(),
        },
        Column::Float(value) => PyFloat::new(py, *value).into_any(),
        Column::Text(text) => PyString::new(py, text).into_any(),
        Column::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Column::Timestamp(value) => timestamp_object(py, *value)?,
        Column::Date(value) => date_object(py, *value)?,
        Column::Duration(value) => duration_object(py, *value)?,
    })
}

fn cell_of(object: &Bound<'_, PyAny>) -> PyResult<Cell> {
    let py = object.py();
    let unreadable = || Cell::Unreadable(Cow::Borrowed("a value of a type that only the application reads"));
    if object.is_none() {
        return Ok(Cell::Null);
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Cell::Boolean(value.is_true()));
    }
    if let Ok(number) = object.cast::<PyInt>() {
        return Ok(match read_integer(number, false)? {
            Given::Integer(value) => Cell::Integer(value),
            _ => unreadable(),
        });
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(Cell::Float(number.value()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        let is_json = object.is_instance(JSON_TEXT.import(
            py,
            "vesper.effects.database.postgres_values",
            "JsonText",
        )?)?;
        let text = text.to_str()?.to_owned();
        return Ok(if is_json {
            Cell::Json(text)
        } else {
            Cell::Text(text)
        });
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Cell::Bytes(bytes.as_bytes().to_vec()));
    }
    if object.is_instance(UNREADABLE.import(py, "vesper.effects.database.joined", "Unreadable")?)? {
        return Ok(Cell::Unreadable(Cow::Owned(
            object.getattr(intern!(py, "called"))?.extract()?,
        )));
    }
    if let Some(Ok(number)) = decimals(py)?.read(object)? {
        return Ok(Cell::Decimal(ExactDecimal(number)));
    }
    Ok(match read_moment(object)?.or_else(|| read_duration(object)) {
        Some(Given::Moment(value)) => i64::try_from(value).map_or_else(|_| unreadable(), Cell::Timestamp),
        Some(Given::Day(value)) => i32::try_from(value).map_or_else(|_| unreadable(), Cell::Date),
        Some(Given::Length(value)) => Cell::Duration(value),
        _ => unreadable(),
    })
}
