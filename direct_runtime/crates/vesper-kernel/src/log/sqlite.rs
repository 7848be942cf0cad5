//! A log in a file: SQLite with a write-ahead log, held by one process.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use prost::Message as _;
use rusqlite::{Connection, params};

use super::{Entry, Log, LogError, encoded, read_changes, read_part};
use crate::proto::log::v1::{Change, SnapshotPart};

/// Version of the tables.
const VERSION: i64 = 1;

const TABLES: &str = "
    CREATE TABLE vesper_kernel_log (
        first INTEGER PRIMARY KEY,
        last INTEGER NOT NULL,
        changes BLOB NOT NULL
    );
    CREATE TABLE vesper_kernel_snapshot (
        sequence INTEGER NOT NULL,
        part INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (sequence, part)
    ) WITHOUT ROWID;
";

#[derive(Debug)]
pub struct SqliteLog {
    path: PathBuf,
    connection: Connection,
}

impl SqliteLog {
    /// Opens the file, which is made where there is none, and holds it until the process ends.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let fail = |error: &dyn std::fmt::Display| LogError::Failed(format!("{}: {error}", path.display()));
        let made = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path);
        drop(made.map_err(|error| fail(&error))?);
        let connection = Connection::open(path).map_err(|error| fail(&error))?;
        let prepare = || -> rusqlite::Result<i64> {
            connection.execute_batch(
                "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 BEGIN IMMEDIATE; COMMIT;",
            )?;
            let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            if version == 0 {
                connection.execute_batch(&format!(
                    "BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;"
                ))?;
                return Ok(VERSION);
            }
            Ok(version)
        };
        match prepare() {
            Ok(VERSION) => {}
            Ok(version) => {
                return Err(fail(&format!(
                    "its tables have version {version}; this kernel knows {VERSION}. Use a newer kernel."
                )));
            }
            Err(rusqlite::Error::SqliteFailure(error, _))
                if error.code == rusqlite::ErrorCode::DatabaseBusy =>
            {
                return Err(fail(
                    &"another kernel has this file. Stop it, or name another file.",
                ));
            }
            Err(error) => return Err(fail(&error)),
        }
        Ok(Self {
            path: path.to_owned(),
            connection,
        })
    }

    fn error(&self, error: &dyn std::fmt::Display) -> LogError {
        LogError::Failed(format!("{}: {error}", self.path.display()))
    }

    fn read_rows(
        &self,
        reader: &mut dyn FnMut(Entry) -> Result<(), LogError>,
    ) -> Result<Result<(), LogError>, rusqlite::Error> {
        let mut parts = self.connection.prepare(
            "SELECT sequence, body FROM vesper_kernel_snapshot
             WHERE sequence = (SELECT max(sequence) FROM vesper_kernel_snapshot) ORDER BY part",
        )?;
        let mut rows = parts.query([])?;
        while let Some(row) = rows.next()? {
            let (sequence, body): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            if let Err(error) = read_part(sequence, &body, reader) {
                return Ok(Err(self.error(&error)));
            }
        }
        let mut commits = self.connection.prepare(
            "SELECT first, changes FROM vesper_kernel_log
             WHERE last > (SELECT coalesce(max(sequence), 0) FROM vesper_kernel_snapshot) ORDER BY first",
        )?;
        let mut rows = commits.query([])?;
        while let Some(row) = rows.next()? {
            let (first, body): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            if let Err(error) = read_changes(first, &body, reader) {
                return Ok(Err(self.error(&error)));
            }
        }
        Ok(Ok(()))
    }
}

impl Log for SqliteLog {
    fn read(&mut self, reader: &mut dyn FnMut(Entry) -> Result<(), LogError>) -> Result<(), LogError> {
        self.read_rows(reader).map_err(|error| self.error(&error))?
    }

    fn append(&mut self, first: u64, changes: &[Change]) -> Result<(), LogError> {
        let (last, body) = encoded(first, changes);
        let insert = || -> rusqlite::Result<usize> {
            self.connection
                .prepare_cached("INSERT INTO vesper_kernel_log (first, last, changes) VALUES (?, ?, ?)")?
                .execute(params![first.cast_signed(), last, body])
        };
        insert().map(drop).map_err(|error| self.error(&error))
    }

    fn compact(&mut self, sequence: u64, parts: &[SnapshotPart]) -> Result<(), LogError> {
        let write = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            transaction.execute("DELETE FROM vesper_kernel_snapshot", [])?;
            for (number, part) in (0_i64..).zip(parts) {
                let row = params![sequence.cast_signed(), number, part.encode_to_vec()];
                transaction
                    .prepare_cached(
                        "INSERT INTO vesper_kernel_snapshot (sequence, part, body) VALUES (?, ?, ?)",
                    )?
                    .execute(row)?;
            }
            transaction.execute(
                "DELETE FROM vesper_kernel_log WHERE last <= ?",
                [sequence.cast_signed()],
            )?;
            transaction.commit()
        };
        let written = write(&mut self.connection);
        written.map_err(|error| self.error(&error))
    }
}
