//! The connections of one process to a journal's file: a writer and a reader.
//!
//! SQLite must not see a fork: its locks belong to the process, and its knowledge of them would be wrong in the child.
//! So connections are closed before a fork (`Store::hold_for_fork`) and opened again, by parent and child, at their next
//! use. A child that was forked while a connection was open cannot use SQLite any more, and closes nothing of its
//! parent's: that would end logs that the parent still writes.

use std::mem;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use crate::journal::batch::Batch;
use crate::journal::sqlite::turn::Turn;

const MAX_GATHERING: Duration = Duration::from_millis(1);

/// A batch that waits for its commit.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) batch: Mutex<Batch>,
    is_done: AtomicBool,
}

impl Slot {
    pub(super) fn new(batch: Batch) -> Self {
        Self {
            batch: Mutex::new(batch),
            is_done: AtomicBool::new(false),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    pub(super) fn finish(&self) {
        self.is_done.store(true, Ordering::Release);
    }
}

/// The connection that writes.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) connection: Option<Connection>,
    /// True where commits are synced at the moment.
    pub(super) is_full: bool,
    /// Device and inode of the file that was opened.
    pub(super) file: (u64, u64),
}

/// The connections of one process, and of the processes that are forked from it.
#[derive(Debug)]
pub(super) struct Connections {
    process: u32,
    /// True in a child that was forked while a connection was open.
    pub(super) is_torn: bool,
    has_opened: AtomicBool,
    pub(super) queue: Mutex<Vec<Arc<Slot>>>,
    /// Time of the last synced transaction in nanoseconds.
    sync_ns: AtomicU64,
    pub(super) writing: Turn,
    writer: Mutex<Writer>,
    pub(super) reading: Turn,
    reader: Mutex<Option<Connection>>,
    /// The connections of a child. A child never uses a lock of its parent, which may be held for ever in its copy.
    child: OnceLock<Box<Connections>>,
}

impl Connections {
    pub(super) fn new() -> Self {
        Self::of(process::id(), false)
    }

    pub(super) fn of(process: u32, is_torn: bool) -> Self {
        Self {
            process,
            is_torn,
            has_opened: AtomicBool::new(false),
            queue: Mutex::default(),
            sync_ns: AtomicU64::new(0),
            writing: Turn::default(),
            writer: Mutex::default(),
            reading: Turn::default(),
            reader: Mutex::default(),
            child: OnceLock::new(),
        }
    }

    /// Returns the connections of this process.
    pub(super) fn here(&self) -> &Self {
        let mut last = self;
        while let Some(child) = last.child.get() {
            last = child;
        }
        let process = process::id();
        if last.process == process {
            return last;
        }
        let is_torn = last.is_torn || last.has_opened.load(Ordering::Acquire);
        last.child.get_or_init(|| Box::new(Self::of(process, is_torn)))
    }

    /// Returns the writer. The caller has the turn of writing.
    pub(super) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reader. The caller has the turn of reading.
    pub(super) fn reader(&self) -> MutexGuard<'_, Option<Connection>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that a connection is open, which a child must know.
    pub(super) fn opened(&self) {
        self.has_opened.store(true, Ordering::Release);
    }

    /// Closes both connections. The caller has both turns.
    pub(super) fn close(&self, writer: &mut Writer) {
        *self.reader() = None;
        writer.connection = None;
        self.has_opened.store(false, Ordering::Release);
    }

    /// Remembers the time of a synced transaction.
    pub(super) fn synced(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.sync_ns.store(nanoseconds, Ordering::Relaxed);
    }

    /// Returns the time for which a synced transaction waits for more batches, where several threads commit.
    pub(super) fn gathering(&self) -> Duration {
        MAX_GATHERING.min(Duration::from_nanos(self.sync_ns.load(Ordering::Relaxed)) / 2)
    }

    pub(super) fn take_queued(&self) -> Vec<Arc<Slot>> {
        mem::take(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn enqueue(&self, slot: Arc<Slot>) {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(slot);
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        if self.process == process::id() {
            return;
        }
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
        mem::forget(writer.connection.take());
        mem::forget(
            self.reader
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}
