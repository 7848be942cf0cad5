//! A run that this process owns: makes lines of entries, chains them, and hands them to the store.

use std::fmt;
use std::process;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::journal::audit::audit_text;
use crate::journal::batch::{Batch, Birth, Lines};
use crate::journal::limits::Limits;
use crate::journal::lines::{Blob, HASH_BYTES, Hash, name_of, next_hash, write_line};
use crate::journal::metrics;
use crate::journal::schema::PLACES;
use crate::journal::sealing::RunKey;
use crate::journal::store::{Cell, Store, Transaction, read};
use crate::journal::writing::fenced;
use crate::journal::{Entry, ErrorKind, JournalError, Kind, Run, Status, Stored};

/// The last state of an execution in its store.
#[derive(Clone, Debug)]
pub struct RunHead {
    pub execution: Arc<str>,
    pub fence: i64,
    /// Key of its row; 0 before the first commit.
    pub row: i64,
    /// Number of the last entry.
    pub seq: u64,
    pub last_hash: Hash,
    /// True where each commit waits for the disk.
    pub is_synced: bool,
}

/// What was appended and is not committed, and the end of the chain.
struct Pending {
    /// Number of the last entry, written or only appended; `hash` is its hash.
    seq: u64,
    hash: Hash,
    birth: Option<Arc<Birth>>,
    lines: Lines,
    blobs: Vec<Arc<Blob>>,
    audit: Vec<String>,
    is_over: bool,
    /// Number of audit events of a commit whose result is unknown.
    tried: Option<usize>,
}

/// A run over any store. One thread at a time writes it; `renew` may be called by another one meanwhile.
pub struct StoreRun {
    store: Arc<dyn Store>,
    limits: Limits,
    execution: Arc<str>,
    fence: i64,
    is_synced: bool,
    key: Option<RunKey>,
    recorded: Vec<Stored>,
    process: u32,
    /// Key of the run's row; 0 before the first commit. Not in `pending`: `renew` must not wait for a commit.
    row: AtomicI64,
    renew_after: Mutex<Instant>,
    pending: Mutex<Pending>,
}

impl fmt::Debug for StoreRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StoreRun({})", self.execution)
    }
}

impl StoreRun {
    /// Creates the run that continues from `head`. `birth` is there for a new run, `recorded` for one taken over.
    pub fn new(
        store: Arc<dyn Store>,
        limits: Limits,
        head: RunHead,
        key: Option<RunKey>,
        birth: Option<Birth>,
        recorded: Vec<Stored>,
    ) -> Self {
        Self {
            store,
            execution: head.execution,
            fence: head.fence,
            is_synced: head.is_synced,
            key,
            recorded,
            process: process::id(),
            row: AtomicI64::new(head.row),
            renew_after: Mutex::new(Instant::now() + renewal(&limits)),
            pending: Mutex::new(Pending {
                seq: head.seq,
                hash: head.last_hash,
                birth: birth.map(Arc::new),
                lines: Lines::default(),
                blobs: Vec::new(),
                audit: Vec::new(),
                is_over: false,
                tried: None,
            }),
            limits,
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_renewal_due(&self, now: Instant) -> bool {
        now >= *self.renew_after.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renewed(&self, now: Instant) {
        *self.renew_after.lock().unwrap_or_else(PoisonError::into_inner) = now + renewal(&self.limits);
    }

    fn check_process(&self) -> Result<(), JournalError> {
        if process::id() == self.process {
            return Ok(());
        }
        Err(JournalError::new(
            ErrorKind::Fenced,
            format!(
                "execution {} belongs to the process that began it, and this one was forked from it",
                self.execution
            ),
        ))
    }

    fn batch(&self, pending: &Pending, status: Status, outcome: Option<&str>, now: Instant) -> Batch {
        let first = pending.seq + 1 - pending.lines.len() as u64;
        let row = self.row.load(Ordering::Relaxed);
        let rows = pending.lines.rows(first);
        let mut batch = Batch::new(self.execution.clone(), row, self.fence, rows, self.is_synced);
        batch.head_seq = pending.seq;
        batch.head_hash = pending.hash;
        batch.lease_us = self.limits.lease_us();
        batch.blobs.clone_from(&pending.blobs);
        batch.audit.clone_from(&pending.audit);
        let is_changing = status != Status::Running;
        if is_changing || pending.birth.is_some() || self.is_renewal_due(now) {
            batch.is_prolonged = true;
            batch.status = is_changing.then_some(status);
            batch.outcome = outcome.map(str::to_owned);
            batch.birth.clone_from(&pending.birth);
        }
        batch
    }

    /// Finds out whether a commit with an unknown result was written: as a whole or not at all.
    fn find_out(&self, pending: &mut Pending, audited: usize) -> Result<(), JournalError> {
        let (found, last) = read(&*self.store, |transaction| {
            let sql = "SELECT id, fence FROM vesper_executions WHERE execution = ?";
            let rows = transaction.rows(sql, &[Cell::Text(self.execution.as_ref().to_owned())])?;
            let found = match rows.first().map(Vec::as_slice) {
                Some([id, fence]) => Some((id.integer()?, fence.integer()?)),
                _ => None,
            };
            let last = last_hash(transaction, found.map_or(0, |(run, _)| run))?;
            Ok((found, last))
        })?;
        if let Some((run, fence)) = found {
            if fence != self.fence {
                return Err(fenced(&self.execution));
            }
            if let Some(written) = pending.lines.position_after(&last) {
                self.row.store(run, Ordering::Relaxed);
                pending.birth = None;
                // Blobs are kept: one that is there already is not written twice.
                pending.lines.remove_first(written);
                pending.audit.drain(..audited.min(pending.audit.len()));
            }
        }
        pending.tried = None;
        Ok(())
    }
}

impl Run for StoreRun {
    fn execution(&self) -> &str {
        &self.execution
    }

    fn fence(&self) -> i64 {
        self.fence
    }

    fn recorded(&self) -> &[Stored] {
        &self.recorded
    }

    fn append(&self, entry: &Entry<'_>) -> Result<(), JournalError> {
        let mut pending = self.pending();
        if pending.is_over {
            return Err(JournalError::new(
                ErrorKind::Journal,
                format!(
                    "execution {} has ended: nothing can be appended to it",
                    self.execution
                ),
            ));
        }
        let seq = pending.seq + 1;
        let (line, blob) = write_line(entry, seq, self.key.as_ref(), &self.limits)?;
        let hash = next_hash(&pending.hash, line.as_bytes());
        pending.blobs.extend(blob.map(Arc::new));
        pending.lines.push(&line, &hash);
        pending.seq = seq;
        pending.hash = hash;
        pending.is_over = entry.kind == Kind::End;
        Ok(())
    }

    fn digest(&self, text: &str) -> String {
        match &self.key {
            Some(key) => key.digest(text.as_bytes()),
            None => name_of(text.as_bytes()),
        }
    }

    fn audit(&self, event: &str) -> Result<(), JournalError> {
        let text = audit_text(event, self.limits.max_body)?;
        self.pending().audit.push(text);
        Ok(())
    }

    fn commit(&self, status: Status, outcome: Option<&str>) -> Result<(), JournalError> {
        self.check_process()?;
        let mut pending = self.pending();
        if let Some(audited) = pending.tried {
            self.find_out(&mut pending, audited)?;
        }
        if status == Status::Running && pending.lines.is_empty() && pending.audit.is_empty() {
            drop(pending);
            return self.renew();
        }
        let now = Instant::now();
        let batch = self.batch(&pending, status, outcome, now);
        let is_prolonged = batch.is_prolonged;
        pending.tried = Some(pending.audit.len());
        match metrics::timed(|| self.store.submit(batch)) {
            Ok(row) => self.row.store(row, Ordering::Relaxed),
            Err(error) => {
                if matches!(error.kind, ErrorKind::Fenced | ErrorKind::KeyTaken) {
                    pending.tried = None;
                }
                return Err(error);
            }
        }
        pending.tried = None;
        pending.is_over |= status != Status::Running;
        pending.birth = None;
        pending.lines.clear();
        pending.blobs.clear();
        pending.audit.clear();
        if is_prolonged {
            self.renewed(now);
        }
        Ok(())
    }

    fn renew(&self) -> Result<(), JournalError> {
        self.check_process()?;
        let row = self.row.load(Ordering::Relaxed);
        if row == 0 {
            return Ok(()); // no other process knows of the run yet
        }
        let now = Instant::now();
        let mut batch = Batch::new(self.execution.clone(), row, self.fence, Vec::new(), false);
        batch.is_prolonged = true;
        batch.lease_us = self.limits.lease_us();
        self.store.submit(batch)?;
        self.renewed(now);
        Ok(())
    }
}

/// Returns the hash of the last entry that is stored of a run; empty where there is none.
pub fn last_hash(transaction: &mut dyn Transaction, run: i64) -> Result<Vec<u8>, JournalError> {
    let rows = transaction.rows(
        "SELECT hashes FROM vesper_commits WHERE place >= ? AND place < ? ORDER BY place DESC LIMIT 1",
        &[Cell::Integer(run * PLACES), Cell::Integer((run + 1) * PLACES)],
    )?;
    let Some(cell) = rows.first().and_then(|row| row.first()) else {
        return Ok(Vec::new());
    };
    let hashes = cell.bytes()?;
    let start = hashes.len().saturating_sub(HASH_BYTES);
    Ok(hashes.get(start..).unwrap_or_default().to_vec())
}

fn renewal(limits: &Limits) -> Duration {
    Duration::from_secs_f64(limits.lease_seconds / 3.0)
}
