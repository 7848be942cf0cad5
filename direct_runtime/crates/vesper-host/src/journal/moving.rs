//! Moves runs between owners: takes over those of dead processes, resolves those in doubt.

use std::fmt::Write as _;

use vesper_ir::json::quote;

use crate::journal::batch::Row;
use crate::journal::begin::StoreJournal;
use crate::journal::lines::{Hash, next_hash, write_line};
use crate::journal::owner::is_dead;
use crate::journal::reading::ExecutionRow;
use crate::journal::run::{RunHead, StoreRun, last_hash};
use crate::journal::sealing::RunKey;
use crate::journal::store::{Cell, Transaction, read, write};
use crate::journal::verifying::open_doubts;
use crate::journal::writing::write_rows;
use crate::journal::{Entry, ErrorKind, JournalError, Kind, Status};
use crate::sources::kill_point;

/// The end of a chain: the number of its entries, and the hash of the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) count: u64,
    pub(crate) last: Hash,
}

impl StoreJournal {
    /// Makes a run ours whose lease is over, or that is ours, or that was resolved.
    ///
    /// A compare-and-swap of the fence together with a HANDOFF, committed.
    pub fn take_over(&self, execution: &str, engine: &str) -> Result<StoreRun, JournalError> {
        let store = &*self.store;
        // Read before the store is locked: no writer waits while a long run is read. It is read again where it grew.
        let (id, mut entries, mut last) = read(store, |transaction| {
            let row = ExecutionRow::find(transaction, execution, store.name())?;
            self.check_takable(&row, transaction.now_us()?)?;
            let key = row.key(transaction, &self.keys, &self.sources)?;
            let (entries, last) = row.entries(transaction, key.as_ref(), store.name())?;
            Ok((row.summary.execution, entries, last))
        })?;
        let (head, key) = write(store, |transaction| {
            let row = ExecutionRow::find(transaction, &id, store.name())?;
            let now = transaction.now_us()?;
            self.check_takable(&row, now)?;
            let key = row.key(transaction, &self.keys, &self.sources)?;
            if row.summary.is_sensitive && key.is_none() {
                return Err(not_taken(&row, "its key was deleted"));
            }
            if last_hash(transaction, row.id)? != last {
                (entries, last) = row.entries(transaction, key.as_ref(), store.name())?;
            }
            let end = Head {
                count: entries.len() as u64,
                last,
            };
            let head = self.hand_over(transaction, &row, key.as_ref(), engine, &end, now)?;
            Ok((head, key))
        })?;
        kill_point("handoff.committed");
        Ok(StoreRun::new(self, head, key, None, entries))
    }

    /// Writes the HANDOFF of a run, and moves its fence.
    fn hand_over(
        &self,
        transaction: &mut dyn Transaction,
        row: &ExecutionRow,
        key: Option<&RunKey>,
        engine: &str,
        end: &Head,
        now: i64,
    ) -> Result<RunHead, JournalError> {
        let (owner, fence) = (self.owner(), row.summary.fence + 1);
        let body = handoff_body(engine, fence, &row.summary.owner, &owner);
        let handoff = plain_entry(Kind::Handoff, self.sources.now_us(), &body);
        let change = "UPDATE vesper_executions SET status = 'running', owner = ?, engine = ?, fence = fence + 1, \
            lease_until_us = ?, updated_us = ?, head_seq = ?, head_hash = ? \
            WHERE id = ? AND fence = ? AND status IN ('running', 'queued')";
        let values = [
            Cell::Text(owner),
            Cell::Text(engine.to_owned()),
            Cell::Integer(now + self.limits.lease_us()),
            Cell::Integer(now),
        ];
        let appended = self.append(transaction, row, key, &handoff, end, change, &values)?;
        let Head { count, last } = appended.ok_or_else(|| not_taken(row, "another process was faster"))?;
        // A run of no named queue needs its row no more. Workers of a queue count theirs until they are done.
        let id = [Cell::Integer(row.id)];
        transaction.run("DELETE FROM vesper_due WHERE run = ? AND queue = ''", &id)?;
        let queued = "SELECT 1 FROM vesper_due WHERE run = ?";
        Ok(RunHead {
            execution: row.summary.execution.as_str().into(),
            fence,
            row: row.id,
            seq: count,
            last_hash: last,
            is_synced: row.is_synced,
            is_queued: !transaction.rows(queued, &id)?.is_empty(),
        })
    }

    /// Appends an entry to a run whose row `change` changes; None where the row was changed meanwhile.
    #[allow(
        clippy::too_many_arguments,
        reason = "the state of a run that was read, and the change"
    )]
    pub(super) fn append(
        &self,
        transaction: &mut dyn Transaction,
        row: &ExecutionRow,
        key: Option<&RunKey>,
        entry: &Entry<'_>,
        end: &Head,
        change: &str,
        values: &[Cell],
    ) -> Result<Option<Head>, JournalError> {
        let seq = end.count + 1;
        let (line, blob) = write_line(entry, seq, key, &self.limits)?;
        let hash = next_hash(&end.last, line.as_bytes());
        let head = [
            Cell::Integer(i64::try_from(seq).unwrap_or(i64::MAX)),
            Cell::Bytes(hash.to_vec()),
            Cell::Integer(row.id),
            Cell::Integer(row.summary.fence),
        ];
        if transaction.run(change, &[values, &head].concat())? == 0 {
            return Ok(None);
        }
        let lines = Row {
            first: seq,
            lines: line.into_bytes(),
            hashes: hash.to_vec(),
        };
        write_rows(transaction, row.id, &[lines], blob.as_ref())?;
        Ok(Some(Head {
            count: seq,
            last: hash,
        }))
    }

    pub(super) fn check_takable(&self, row: &ExecutionRow, now: i64) -> Result<(), JournalError> {
        let summary = &row.summary;
        let why = match summary.status {
            Status::Ended => {
                let outcome = summary.outcome.as_deref().unwrap_or("None");
                format!("it has ended ({outcome})")
            }
            Status::InDoubt => {
                "it is in doubt whether a request was performed; say what came of it first (`resolve`)"
                    .to_owned()
            }
            Status::Waiting => "it waits, and nothing is to be done before it is woken".to_owned(),
            Status::Running if summary.is_joined => {
                "it is part of a transaction of its caller, and nobody else can finish it".to_owned()
            }
            Status::Running
                if row.lease_until_us > now && summary.owner != self.owner() && !is_dead(&summary.owner) =>
            {
                let tenths = (row.lease_until_us - now + 50_000) / 100_000;
                let (seconds, tenth) = (tenths / 10, tenths % 10);
                let owner = &summary.owner;
                format!("it belongs to {owner}, whose lease runs for another {seconds}.{tenth} s")
            }
            Status::Running | Status::Queued => return Ok(()),
        };
        Err(not_taken(row, &why))
    }

    /// Writes RESOLVED for a request in doubt; the run may be taken over then. `body` is its typed JSON.
    pub fn resolve(&self, execution: &str, path: &str, body: &str) -> Result<(), JournalError> {
        let store = &*self.store;
        let error = |message: String| JournalError::new(ErrorKind::Journal, message);
        write(store, |transaction| {
            let row = ExecutionRow::find(transaction, execution, store.name())?;
            let name = &row.summary.execution;
            if row.summary.status != Status::InDoubt {
                let status = row.summary.status.name();
                return Err(error(format!("execution {name} is not in doubt: it is {status}")));
            }
            let key = row.key(transaction, &self.keys, &self.sources)?;
            if row.summary.is_sensitive && key.is_none() {
                return Err(error(format!(
                    "execution {name} cannot be resolved: its key was deleted"
                )));
            }
            let (entries, last) = row.entries(transaction, key.as_ref(), store.name())?;
            let (asked, others): (Vec<_>, Vec<_>) = open_doubts(&entries)
                .into_iter()
                .partition(|each| each.path == path);
            let Some(asked) = asked.first() else {
                let places: Vec<String> = others.iter().map(|each| format!("`{}`", each.path)).collect();
                let places = if places.is_empty() {
                    "none".to_owned()
                } else {
                    places.join(", ")
                };
                return Err(error(format!(
                    "execution {name} has no request in doubt at `{path}`; in doubt: {places}"
                )));
            };
            let entry = Entry {
                kind: Kind::Resolved,
                path,
                effect: &asked.effect,
                class: &asked.class,
                key: asked.key.as_deref(),
                digest: &asked.digest,
                at_us: self.sources.now_us(),
                body,
            };
            // The fence moves: the owner may write no more of the run. It belongs to no process until one takes it.
            let change = "UPDATE vesper_executions SET status = ?, owner = '', fence = fence + 1, lease_until_us = 0, \
                updated_us = ?, head_seq = ?, head_hash = ? WHERE id = ? AND fence = ? AND status = 'in_doubt'";
            let status = if others.is_empty() {
                Status::Running
            } else {
                Status::InDoubt
            };
            let values = [
                Cell::Text(status.name().to_owned()),
                Cell::Integer(transaction.now_us()?),
            ];
            let end = Head {
                count: entries.len() as u64,
                last,
            };
            let appended = self.append(transaction, &row, key.as_ref(), &entry, &end, change, &values)?;
            appended.map(drop).ok_or_else(|| {
                error(format!(
                    "execution {name} was changed by somebody else meanwhile; look again"
                ))
            })
        })
    }
}

/// Returns the body of a HANDOFF between processes.
pub(super) fn handoff_body(engine: &str, fence: i64, from: &str, to: &str) -> String {
    let mut body = String::from("{\"engine\":");
    quote(engine, &mut body);
    let _ = write!(body, ",\"fence\":{fence},\"from\":"); // Writing to a string cannot fail.
    quote(from, &mut body);
    body.push_str(",\"to\":");
    quote(to, &mut body);
    body.push('}');
    body
}

/// Returns an entry that belongs to no step.
pub(super) fn plain_entry(kind: Kind, at_us: i64, body: &str) -> Entry<'_> {
    Entry {
        kind,
        path: "",
        effect: "",
        class: "",
        key: None,
        digest: "",
        at_us,
        body,
    }
}

fn not_taken(row: &ExecutionRow, why: &str) -> JournalError {
    let message = format!("execution {} cannot be taken over: {why}", row.summary.execution);
    JournalError::new(ErrorKind::NotTaken, message)
}
