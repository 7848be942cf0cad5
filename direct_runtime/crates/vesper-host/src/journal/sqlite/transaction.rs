//! A transaction of SQLite.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use crate::journal::JournalError;
use crate::journal::sqlite::SqliteStore;
use crate::journal::sqlite::errors::{code_of, error_of};
use crate::journal::store::{Cell, Transaction};

pub(super) struct SqliteTransaction<'a> {
    connection: &'a Connection,
    store: &'a SqliteStore,
    /// Code of the last error of SQLite: it decides whether the connection is used further.
    pub(super) code: Option<i32>,
}

impl<'a> SqliteTransaction<'a> {
    pub(super) fn new(connection: &'a Connection, store: &'a SqliteStore) -> Self {
        Self {
            connection,
            store,
            code: None,
        }
    }

    /// Executes a statement that returns nothing, from the cache.
    pub(super) fn execute(&mut self, sql: &str) -> Result<(), JournalError> {
        self.run(sql, &[]).map(|_| ())
    }

    /// Ends an open transaction; after some errors SQLite has ended it itself.
    pub(super) fn roll_back(&mut self) -> Result<(), JournalError> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.execute("ROLLBACK")
    }

    pub(super) fn checked<T>(&mut self, result: rusqlite::Result<T>) -> Result<T, JournalError> {
        result.map_err(|error| {
            self.code = Some(code_of(&error));
            error_of(&error, &self.store.path, self.store.busy_seconds)
        })
    }

    fn find(&self, sql: &str, parameters: &[Cell]) -> rusqlite::Result<Vec<Vec<Cell>>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(parameters))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let cells = (0..columns).map(|column| row.get_ref(column).map(cell_of));
            found.push(cells.collect::<Result<_, _>>()?);
        }
        Ok(found)
    }

    fn change(&self, sql: &str, parameters: &[Cell]) -> rusqlite::Result<u64> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let changed = statement.execute(params_from_iter(parameters))?;
        Ok(changed as u64)
    }
}

impl Transaction for SqliteTransaction<'_> {
    fn rows(&mut self, sql: &str, parameters: &[Cell]) -> Result<Vec<Vec<Cell>>, JournalError> {
        let found = self.find(sql, parameters);
        self.checked(found)
    }

    fn run(&mut self, sql: &str, parameters: &[Cell]) -> Result<u64, JournalError> {
        let changed = self.change(sql, parameters);
        self.checked(changed)
    }

    fn now_us(&mut self) -> Result<i64, JournalError> {
        Ok(self.store.sources.now_us())
    }

    fn locking(&self) -> &'static str {
        ""
    }

    /// Does nothing: SQLite has one writer at a time.
    fn exclude(&mut self, _name: &str) -> Result<(), JournalError> {
        Ok(())
    }

    fn listed(&self) -> &'static str {
        "(SELECT value FROM json_each(?))"
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) | Self::Other(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn cell_of(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Other(format!("{number:?}")),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
        ValueRef::Text(bytes) => match str::from_utf8(bytes) {
            Ok(text) => Cell::Text(text.to_owned()),
            Err(_) => Cell::Other(String::from_utf8_lossy(bytes).into_owned()),
        },
    }
}
