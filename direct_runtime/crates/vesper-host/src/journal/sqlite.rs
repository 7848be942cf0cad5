//! A journal in a file: SQLite with a write-ahead log.
//!
//! Commits are combined. A thread that commits queues its batch and waits for the turn of writing; the thread that has
//! it writes all that is queued in one transaction. A lone thread so writes at once, without a switch to another one;
//! of many that commit while the disk syncs, the next one writes for all. It gives those that the last transaction has
//! just let go half the time of a sync to come with their next batch: a disk that several threads wait for is the
//! bottleneck, and 16 callers of payments need a quarter fewer syncs.
//!
//! A batch that is only a row of lines (nearly every one) is one statement outside of any explicit transaction, which
//! checks the fence and inserts: that is a third of the time that BEGIN, UPDATE, INSERT and COMMIT would take.

mod connections;
mod errors;
mod file;
#[cfg(test)]
mod tests;
mod transaction;
mod turn;

use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ring::hmac;
use rusqlite::{Connection, ffi, params};

use crate::journal::audit::write_audit;
use crate::journal::batch::Batch;
use crate::journal::sqlite::connections::{Connections, Slot, Writer};
use crate::journal::sqlite::transaction::SqliteTransaction;
use crate::journal::store::{Cell, ForkHold, Store, Transaction, Work};
use crate::journal::writing::{fenced, place_of, write_batch};
use crate::journal::{ErrorKind, JournalError};
use crate::sources::{Sources, kill_point};

pub use crate::journal::sqlite::file::{Prepare, create_private};

/// Default of `busy_seconds`.
pub const BUSY_SECONDS: f64 = 5.0;
const FORK_LIMIT: Duration = Duration::from_secs(10);
/// Free pages (1 MiB) for which a file is worth writing anew.
const MIN_FREE_PAGES: i64 = 256;
/// Pages (64 MiB) that are written anew at most: other writers wait for it, less than a second.
const MAX_MOVED_PAGES: i64 = 16_384;
const SCRUB_INTERVAL: Duration = Duration::from_millis(20);

/// One statement, so one transaction: SQLite has one writer at a time, so the run cannot be taken over in between.
const PLAIN: &str = "INSERT INTO vesper_commits (place, lines, hashes) \
     SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM vesper_executions WHERE id = ? AND fence = ?)";

/// A journal in the file at `path`.
pub struct SqliteStore {
    path: PathBuf,
    name: String,
    sources: Arc<dyn Sources>,
    audit_key: Option<hmac::Key>,
    prepare: Prepare,
    /// Time for which another process may hold the file before it counts as locked.
    busy_seconds: f64,
    connections: Connections,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SqliteStore({})", self.name)
    }
}

impl SqliteStore {
    /// Creates the store of a file, which is opened at its first use. `prepare` makes the file and judges its place.
    pub fn new(
        path: PathBuf,
        audit_key: Option<hmac::Key>,
        sources: Arc<dyn Sources>,
        prepare: Prepare,
    ) -> Self {
        Self {
            busy_seconds: BUSY_SECONDS,
            name: path.display().to_string(),
            path,
            sources,
            audit_key,
            prepare,
            connections: Connections::new(),
        }
    }

    /// Changes the time for which another process may hold the file.
    #[must_use]
    pub fn with_busy_seconds(self, busy_seconds: f64) -> Self {
        Self { busy_seconds, ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write_queued(&self, here: &Connections) {
        let slots = here.take_queued();
        let mut batches: Vec<_> = slots.iter().map(|slot| lock(slot)).collect();
        if let Err(error) = self.write_all(here, &mut batches) {
            for batch in &mut batches {
                batch.error = Some(error.clone());
            }
        }
        drop(batches);
        for slot in slots {
            slot.finish();
        }
    }

    fn write_all(
        &self,
        here: &Connections,
        batches: &mut [MutexGuard<'_, Batch>],
    ) -> Result<(), JournalError> {
        let is_synced = batches.iter().any(|batch| batch.is_synced);
        let is_plain = matches!(batches, [batch] if batch.plain_row().is_some());
        let mut writer = here.writer();
        self.open(here, &mut writer)?;
        if !is_plain {
            self.check_file(here, &mut writer)?;
        }
        let began = Instant::now();
        let written = self.using(&mut writer, is_synced, |transaction, connection| {
            if is_plain {
                kill_point("commit.written"); // before the one statement, which commits itself
                return write_plain(transaction, connection, batches);
            }
            transaction.execute("BEGIN IMMEDIATE")?;
            for batch in batches.iter_mut() {
                if batch.plain_row().is_some() {
                    write_plain(transaction, connection, std::slice::from_mut(batch))?;
                } else {
                    write_batch(transaction, batch)?;
                }
            }
            write_audit(
                transaction,
                batches.iter().map(|batch| &**batch),
                self.audit_key.as_ref(),
            )?;
            kill_point("commit.written");
            transaction.execute("COMMIT")
        });
        if is_synced {
            here.synced(began.elapsed());
        }
        written
    }

    /// Works with the open writer at a level of durability; ends what the work leaves open.
    ///
    /// FULL syncs the log at every commit; NORMAL may lose the last commits with a loss of power.
    fn using(
        &self,
        writer: &mut Writer,
        is_full: bool,
        work: impl FnOnce(&mut SqliteTransaction<'_>, &Connection) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let Some(connection) = &writer.connection else {
            return Err(self.error("the journal is closed"));
        };
        let mut transaction = SqliteTransaction::new(connection, self);
        let mut result = Ok(());
        if writer.is_full != is_full {
            result = transaction.execute(if is_full {
                "PRAGMA synchronous = FULL"
            } else {
                "PRAGMA synchronous = NORMAL"
            });
            if result.is_ok() {
                writer.is_full = is_full;
            }
        }
        let result = result.and_then(|()| work(&mut transaction, connection));
        let ended = transaction.roll_back();
        // A connection that met a broken file or disk is not used any more.
        let is_usable = |code| matches!(code, ffi::SQLITE_BUSY | ffi::SQLITE_FULL);
        if transaction.code.is_some_and(|code| !is_usable(code)) {
            writer.connection = None;
        }
        result.and(ended)
    }

    fn error(&self, text: impl std::fmt::Display) -> JournalError {
        JournalError::new(ErrorKind::Journal, format!("{}: {text}", self.name))
    }

    /// Opens the writer, which makes the tables, where the reader is not open yet.
    fn make_ready(&self, here: &Connections) -> Result<(), JournalError> {
        let _turn = here.writing.hold();
        self.open(here, &mut here.writer())
    }
}

impl Store for SqliteStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn submit(&self, batch: Batch) -> Result<i64, JournalError> {
        let here = self.connections.here();
        let is_synced = batch.is_synced;
        let slot = Arc::new(Slot::new(batch));
        here.enqueue(slot.clone());
        if let Some(turn) = here.writing.hold_unless(|| slot.is_done()) {
            if turn.has_waited && is_synced {
                thread::sleep(here.gathering());
            }
            self.write_queued(here);
        }
        let mut batch = lock(&slot);
        match batch.error.take() {
            Some(error) => Err(error),
            None if slot.is_done() => Ok(batch.run),
            None => Err(self.error("the thread that wrote the journal was interrupted")),
        }
    }

    fn reading(&self, work: &mut Work<'_>) -> Result<(), JournalError> {
        let here = self.connections.here();
        if here.reader().is_none() {
            self.make_ready(here)?;
        }
        let _turn = here.reading.hold();
        let mut reader = here.reader();
        if reader.is_none() {
            *reader = Some(self.open_reader(here)?);
        }
        let Some(connection) = &*reader else {
            return Err(self.error("the journal is closed"));
        };
        let mut transaction = SqliteTransaction::new(connection, self);
        let result = transaction.execute("BEGIN").and_then(|()| work(&mut transaction));
        let ended = transaction.roll_back();
        if transaction.code.is_some() {
            *reader = None;
        }
        result.and(ended)
    }

    fn writing(&self, work: &mut Work<'_>) -> Result<(), JournalError> {
        let here = self.connections.here();
        let _turn = here.writing.hold();
        let mut writer = here.writer();
        self.open(here, &mut writer)?;
        self.check_file(here, &mut writer)?;
        self.using(&mut writer, true, |transaction, _| {
            transaction.execute("BEGIN IMMEDIATE")?;
            work(transaction)?;
            kill_point("commit.written");
            transaction.execute("COMMIT")
        })
    }

    /// Empties the log: what was deleted was overwritten in its page already (`secure_delete`).
    fn scrub(&self) -> Result<(), JournalError> {
        let here = self.connections.here();
        let _turn = here.writing.hold();
        let mut writer = here.writer();
        self.open(here, &mut writer)?;
        let is_full = writer.is_full;
        let last = Instant::now() + Duration::from_secs_f64(self.busy_seconds);
        self.using(&mut writer, is_full, |transaction, _| {
            loop {
                let rows = transaction.rows("PRAGMA wal_checkpoint(TRUNCATE)", &[])?;
                let is_busy = rows.first().and_then(|row| row.first()).map(Cell::integer);
                if is_busy.transpose()?.unwrap_or(0) == 0 {
                    return Ok(());
                }
                if Instant::now() > last {
                    return Err(self.error(
                        "the key was deleted, but somebody reads the journal, and an old copy of it stays in the \
                         write-ahead log until that is done; erase again",
                    ));
                }
                thread::sleep(SCRUB_INTERVAL);
            }
        })
    }

    /// Writes the file anew where half of it or more is free and the rest is small.
    fn shrink(&self) -> Result<(), JournalError> {
        let here = self.connections.here();
        let _turn = here.writing.hold();
        let mut writer = here.writer();
        self.open(here, &mut writer)?;
        let is_full = writer.is_full;
        self.using(&mut writer, is_full, |transaction, _| {
            let pages = number(transaction, "PRAGMA page_count")?;
            let free = number(transaction, "PRAGMA freelist_count")?;
            if free >= MIN_FREE_PAGES && 2 * free >= pages && pages - free <= MAX_MOVED_PAGES {
                let written = transaction.execute("VACUUM");
                if transaction.code == Some(ffi::SQLITE_BUSY) {
                    return Ok(()); // Another process writes: a later prune shrinks the file.
                }
                written?;
                transaction.rows("PRAGMA wal_checkpoint(TRUNCATE)", &[])?; // A reader delays it to a later checkpoint.
            }
            Ok(())
        })
    }

    /// Does nothing: SQLite has one writer at a time.
    fn lock_for_prune(&self, _transaction: &mut dyn Transaction) -> Result<(), JournalError> {
        Ok(())
    }

    fn close(&self) {
        let here = self.connections.here();
        let _writing = here.writing.hold();
        let _reading = here.reading.hold();
        here.close(&mut here.writer());
    }

    fn hold_for_fork(&self) -> ForkHold {
        let here = self.connections.here();
        let hold = ForkHold {
            has_writer: here.writing.take_within(FORK_LIMIT),
            has_reader: here.reading.take_within(FORK_LIMIT),
        };
        if hold.has_writer && hold.has_reader {
            here.close(&mut here.writer());
        }
        hold
    }

    fn release_after_fork(&self, hold: ForkHold) {
        let here = self.connections.here();
        if hold.has_reader {
            here.reading.free();
        }
        if hold.has_writer {
            here.writing.free();
        }
    }
}

fn number(transaction: &mut SqliteTransaction<'_>, sql: &str) -> Result<i64, JournalError> {
    let rows = transaction.rows(sql, &[])?;
    rows.first()
        .and_then(|row| row.first())
        .unwrap_or(&Cell::Null)
        .integer()
}

fn lock(slot: &Slot) -> MutexGuard<'_, Batch> {
    slot.batch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the row of a batch that has nothing else.
fn write_plain(
    transaction: &mut SqliteTransaction<'_>,
    connection: &Connection,
    batches: &mut [MutexGuard<'_, Batch>],
) -> Result<(), JournalError> {
    for batch in batches {
        let Some(row) = batch.plain_row() else {
            continue;
        };
        let values = params![
            place_of(batch.run, row.first),
            row.lines,
            row.hashes,
            batch.run,
            batch.fence
        ];
        let written = connection
            .prepare_cached(PLAIN)
            .and_then(|mut statement| statement.execute(values));
        if transaction.checked(written)? != 1 {
            batch.error = Some(fenced(&batch.execution));
        }
    }
    Ok(())
}
