//! A run that this process owns: makes lines of entries, chains them, and hands them to the store.

use std::fmt;
use std::process;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::journal::audit::audit_text;
use crate::journal::batch::{Batch, Birth, Lines, Row};
use crate::journal::begin::StoreJournal;
use crate::journal::due::{MakeResult, NO_ENTRY, NewDue, NextLine, SIGNAL, Settled, Wait, Waited, change_of};
use crate::journal::limits::Limits;
use crate::journal::lines::{Blob, HASH_BYTES, Hash, name_of, next_hash, write_line};
use crate::journal::metrics;
use crate::journal::schema::PLACES;
use crate::journal::sealing::{KeyRing, RunKey};
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
    /// True where the run has a row in `vesper_due`, which its end deletes.
    pub is_queued: bool,
}

/// What was appended and is not committed, and the end of the chain.
pub(crate) struct Pending {
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
    is_queued: bool,
    is_joined: bool,
    keys: Arc<KeyRing>,
    key: Option<Arc<RunKey>>,
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
        journal: &StoreJournal,
        head: RunHead,
        key: Option<RunKey>,
        birth: Option<Birth>,
        recorded: Vec<Stored>,
    ) -> Self {
        let limits = journal.limits;
        Self {
            store: journal.store.clone(),
            keys: journal.keys.clone(),
            is_queued: head.is_queued,
            is_joined: birth.as_ref().is_some_and(|birth| birth.is_joined),
            execution: head.execution,
            fence: head.fence,
            is_synced: head.is_synced,
            key: key.map(Arc::new),
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
        // The row of a queued run that failed stays: its worker decides whether the work is tried again.
        batch.removes_due = self.is_queued && matches!(outcome, Some("returned" | "declared_error"));
        batch
    }

    /// Submits a batch; what was appended is durable on return.
    fn submit(&self, pending: &mut Pending, batch: Batch, now: Instant) -> Result<(), JournalError> {
        let (is_prolonged, change) = (batch.is_prolonged, batch.due.clone());
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
        pending.birth = None;
        pending.lines.clear();
        pending.blobs.clear();
        pending.audit.clear();
        if let Some(hash) = change.as_ref().and_then(|change| change.last.get()) {
            pending.seq += 1;
            pending.hash = *hash;
        }
        if is_prolonged {
            self.renewed(now);
        }
        Ok(())
    }

    /// Returns the function that makes the RESULT of a wait from a kept signal.
    fn result_maker(&self, pending: &Pending, wait: &Wait) -> Box<MakeResult> {
        let (seq, before) = (pending.seq + 1, pending.hash);
        let (key, limits, wait) = (self.key.clone(), self.limits, wait.clone());
        Box::new(move |stored, is_addressed| {
            let opened = match &key {
                Some(key) if is_addressed => key.open(stored, NO_ENTRY)?,
                _ => stored.to_vec(),
            };
            let Ok(value) = String::from_utf8(opened) else {
                return Ok(None);
            };
            if !(wait.fits)(&value) {
                return Ok(None);
            }
            let body = Settled::Value(&value).body(None, false);
            let entry = Entry {
                kind: Kind::Result,
                path: &wait.due.path,
                effect: wait.effect,
                class: "wait",
                key: None,
                digest: &wait.digest,
                at_us: wait.at_us,
                body: &body,
            };
            let (line, blob) = write_line(&entry, seq, key.as_deref(), &limits)?;
            let hash = next_hash(&before, line.as_bytes());
            let row = Row {
                first: seq,
                lines: line.into_bytes(),
                hashes: hash.to_vec(),
            };
            Ok(Some(NextLine {
                row,
                hash,
                blob,
                body,
            }))
        })
    }

    /// Commits with a row in `vesper_due`.
    pub(crate) fn commit_due(
        &self,
        status: Status,
        due: NewDue,
        make_result: impl FnOnce(&Pending) -> Option<Box<MakeResult>>,
    ) -> Result<Waited, JournalError> {
        self.check_process()?;
        let mut pending = self.pending();
        if let Some(audited) = pending.tried {
            self.find_out(&mut pending, audited)?;
        }
        let lane = self.key.as_ref().map(|_| self.keys.lane(&due.lane));
        let change = change_of(due, lane, self.key.as_deref(), make_result(&pending))?;
        let change = Arc::new(change);
        let now = Instant::now();
        let mut batch = self.batch(&pending, status, None, now);
        batch.due = Some(change.clone());
        batch.removes_due = self.is_queued;
        batch.is_synced = true; // Only the store remembers the run from now on.
        self.submit(&mut pending, batch, now)?;
        let answer = change.answer.get().cloned().unwrap_or(Waited::Until(None));
        pending.is_over |= matches!(answer, Waited::Until(_));
        Ok(answer)
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
        let (line, blob) = write_line(entry, seq, self.key.as_deref(), &self.limits)?;
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
        self.submit(&mut pending, batch, now)?;
        pending.is_over |= status != Status::Running;
        Ok(())
    }

    fn wait(&self, wait: Wait) -> Result<Waited, JournalError> {
        if self.is_joined {
            return Ok(Waited::Refused(
                "a run that is part of a transaction of its caller cannot wait",
            ));
        }
        let due = wait.due.clone();
        self.commit_due(Status::Waiting, due, |pending| {
            (wait.due.kind == SIGNAL).then(|| self.result_maker(pending, &wait))
        })
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
