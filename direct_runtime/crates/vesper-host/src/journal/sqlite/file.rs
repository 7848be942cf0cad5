//! The file of a journal: how it is made, opened and recognised.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, ffi};

use crate::journal::schema::{self, VERSION, check_version, version_of};
use crate::journal::sqlite::SqliteStore;
use crate::journal::sqlite::connections::{Connections, Writer};
use crate::journal::sqlite::errors::{code_of, error_of};
use crate::journal::sqlite::transaction::SqliteTransaction;
use crate::journal::store::Transaction;
use crate::journal::{ErrorKind, JournalError};

const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// Pages of the log (16 MiB) before a checkpoint: a page that many commits wrote is moved once.
const LOG_PAGES: u32 = 4000;
const CACHED_STATEMENTS: usize = 64;

/// Makes the file of a journal where there is none, and judges whether it may be used.
pub type Prepare = Arc<dyn Fn(&Path) -> Result<(), JournalError> + Send + Sync>;

/// Makes a file that only its owner can read, because it holds inputs of nodes.
///
/// SQLite gives the files beside it the same permissions.
pub fn create_private(path: &Path) -> Result<(), JournalError> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(JournalError::new(
            ErrorKind::Journal,
            format!("{}: the journal cannot be created: {error}", path.display()),
        )),
    }
}

impl SqliteStore {
    /// Opens the writer, where it is not open; makes the file and its tables where there are none.
    pub(super) fn open(&self, here: &Connections, writer: &mut Writer) -> Result<(), JournalError> {
        if writer.connection.is_some() {
            return Ok(());
        }
        if here.is_torn {
            return Err(self.error(
                "this process was forked while its parent was writing the journal; it cannot use it. Fork before the \
                 journal is used, or start a new process instead",
            ));
        }
        (self.prepare)(&self.path)?;
        here.opened();
        let connection = self
            .set_up()
            .map_err(|error| error_of(&error, &self.path, self.busy_seconds))??;
        let status = fs::metadata(&self.path).map_err(|error| self.error(error))?;
        *writer = Writer {
            connection: Some(connection),
            is_full: true,
            file: (status.dev(), status.ino()),
        };
        Ok(())
    }

    pub(super) fn open_reader(&self, here: &Connections) -> Result<Connection, JournalError> {
        here.opened();
        let opened = self.connect().and_then(|connection| {
            connection.execute_batch("PRAGMA query_only = ON")?;
            Ok(connection)
        });
        opened.map_err(|error| error_of(&error, &self.path, self.busy_seconds))
    }

    /// Refuses a file that was deleted or replaced: SQLite would write to one that no other process finds.
    pub(super) fn check_file(&self, here: &Connections, writer: &mut Writer) -> Result<(), JournalError> {
        let found = fs::metadata(&self.path)
            .ok()
            .map(|status| (status.dev(), status.ino()));
        if found == Some(writer.file) {
            return Ok(());
        }
        let _turn = here.reading.hold();
        here.close(writer);
        Err(self.error("somebody deleted or replaced the journal while it was in use"))
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        // One thread at a time uses a connection.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_EXRESCODE;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(Duration::from_secs_f64(self.busy_seconds))?;
        connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        Ok(connection)
    }

    fn set_up(&self) -> rusqlite::Result<Result<Connection, JournalError>> {
        let connection = self.connect()?;
        let mode = use_write_ahead_log(&connection, self.busy_seconds)?;
        if mode != "wal" {
            return Ok(Err(self.error(format!(
                "the file system has no shared memory for a write-ahead log (mode {mode}): put the journal on a local \
                 disk"
            ))));
        }
        connection.execute_batch(&format!(
            "PRAGMA secure_delete = ON; PRAGMA wal_autocheckpoint = {LOG_PAGES}; PRAGMA synchronous = FULL"
        ))?;
        Ok(self.make_tables(&connection).map(|()| connection))
    }

    fn make_tables(&self, connection: &Connection) -> Result<(), JournalError> {
        let mut transaction = SqliteTransaction::new(connection, self);
        let known = transaction.rows(
            "SELECT 1 FROM sqlite_master WHERE name = 'vesper_migrations'",
            &[],
        )?;
        if !known.is_empty() {
            let version = version_of(&mut transaction)?;
            check_version(version, &self.name)?;
            if version == VERSION {
                return Ok(());
            }
        }
        transaction.execute("BEGIN IMMEDIATE")?;
        let made = schema::migrate(&mut transaction, &self.name, schema::SQLITE);
        let made = made.and_then(|()| transaction.execute("COMMIT"));
        made.and(transaction.roll_back())
    }
}

/// Returns the mode of the log after the change to a write-ahead log.
///
/// SQLite does not wait for the lock of this change: two that open a new file at once would meet "database is locked".
fn use_write_ahead_log(connection: &Connection, seconds: f64) -> rusqlite::Result<String> {
    let last = Instant::now() + Duration::from_secs_f64(seconds);
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)) {
            Err(error) if code_of(&error) == ffi::SQLITE_BUSY && Instant::now() < last => {
                thread::sleep(RETRY_INTERVAL);
            }
            mode => return mode,
        }
    }
}
