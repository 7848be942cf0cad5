//! Wakes runs that wait: the RESULT or FAILED of their wait, in the transaction that deletes their row.

use serde_json::value::RawValue;
use vesper_ir::json::quote;
use vesper_ir::{Type, Value};

use crate::journal::begin::StoreJournal;
use crate::journal::cells::data;
use crate::journal::due::{COLUMNS, Due, REMOVE, postpone, sealed_due, skip_locked};
use crate::journal::lines::{HASH_BYTES, Hash};
use crate::journal::moving::{Head, plain_entry};
use crate::journal::reading::{ExecutionRow, broken, places};
use crate::journal::store::{Cell, Transaction, write};
use crate::journal::stored_line;
use crate::journal::{Entry, ErrorKind, JournalError, Kind, Status};
use crate::sources::kill_point;
use crate::typed_json::write_value;

/// What a wait came to. The value is typed JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled<'a> {
    Value(&'a str),
    Failed { code: &'a str, message: &'a str },
}

impl Settled<'_> {
    /// Returns the body of the entry; `woken` distinguishes it from one that a run wrote itself.
    pub(crate) fn body(&self, actor: Option<&str>, is_woken: bool) -> String {
        let mut body = begun_body(actor);
        match self {
            Self::Value(value) => {
                body.push_str("\"value\":");
                body.push_str(value);
            }
            Self::Failed { code, message } => {
                body.push_str("\"code\":");
                quote(code, &mut body);
                body.push_str(",\"may_have_happened\":false,\"message\":");
                quote(message, &mut body);
            }
        }
        body.push_str(if is_woken { ",\"woken\":true}" } else { "}" });
        body
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Value(_) => Kind::Result,
            Self::Failed { .. } => Kind::Failed,
        }
    }
}

impl StoreJournal {
    /// Wakes a run that waits at a path; false where it no longer does.
    pub fn wake(
        &self,
        execution: &str,
        path: &str,
        settled: Settled<'_>,
        actor: Option<&str>,
    ) -> Result<bool, JournalError> {
        check_value(settled)?;
        let is_woken = write(&*self.store, |transaction| {
            let row = ExecutionRow::find(transaction, execution, self.store.name())?;
            self.wake_row(transaction, &row, Some(path), settled, actor)
        })?;
        kill_point("wake.committed");
        Ok(is_woken)
    }

    /// Ends a queued run, and fails the wait of one that waits; returns the status that the run has then.
    pub fn cancel(&self, execution: &str, reason: &str, actor: Option<&str>) -> Result<Status, JournalError> {
        write(&*self.store, |transaction| {
            let row = ExecutionRow::find(transaction, execution, self.store.name())?;
            let name = &row.summary.execution;
            let why = match row.summary.status {
                Status::Waiting if self.is_erased(transaction, &row)? => {
                    self.end_idle(transaction, &row, reason, actor)?;
                    return Ok(Status::Ended);
                }
                Status::Waiting => {
                    let settled = Settled::Failed {
                        code: "cancelled",
                        message: reason,
                    };
                    self.wake_row(transaction, &row, None, settled, actor)?;
                    return Ok(Status::Running);
                }
                Status::Queued => {
                    self.end_idle(transaction, &row, reason, actor)?;
                    return Ok(Status::Ended);
                }
                Status::Running => "it is running: only a run that is queued or waits can be cancelled",
                Status::InDoubt => {
                    "it is in doubt whether a request was performed; say what came of it first (`resolve`)"
                }
                Status::Ended => "it has ended",
            };
            Err(JournalError::new(
                ErrorKind::NotTaken,
                format!("execution {name} cannot be cancelled: {why}"),
            ))
        })
    }

    /// Appends the outcome of the wait, makes the run one that belongs to no process, and deletes its row.
    pub(super) fn wake_row(
        &self,
        transaction: &mut dyn Transaction,
        row: &ExecutionRow,
        path: Option<&str>,
        settled: Settled<'_>,
        actor: Option<&str>,
    ) -> Result<bool, JournalError> {
        if row.summary.status != Status::Waiting {
            return Ok(false);
        }
        let lines = self.last_lines(transaction, row)?;
        let last = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let intent = stored_line::read(last)?;
        if path.is_some_and(|path| path != intent.path) {
            return Ok(false);
        }
        let key = row.key(transaction, &self.keys, &self.sources)?;
        if row.summary.is_sensitive && key.is_none() {
            return Err(erased(row));
        }
        let entry = Entry {
            kind: settled.kind(),
            path: &intent.path,
            effect: &intent.effect,
            class: &intent.class,
            key: None,
            digest: &intent.digest,
            at_us: self.sources.now_us(),
            body: &settled.body(actor, true),
        };
        // The fence moves: a renewal of the process that began the wait must not prolong anything.
        let change = "UPDATE vesper_executions SET status = 'running', owner = '', fence = fence + 1, \
            lease_until_us = 0, updated_us = ?, head_seq = ?, head_hash = ? \
            WHERE id = ? AND fence = ? AND status = 'waiting'";
        let values = [Cell::Integer(transaction.now_us()?)];
        let appended = self.append(
            transaction,
            row,
            key.as_ref(),
            &entry,
            &head_of(row)?,
            change,
            &values,
        )?;
        if appended.is_none() {
            return Ok(false);
        }
        transaction.run(REMOVE, &[Cell::Integer(row.id)])?;
        Ok(true)
    }

    /// Returns whether a run is sensitive and its key was deleted.
    fn is_erased(&self, transaction: &mut dyn Transaction, row: &ExecutionRow) -> Result<bool, JournalError> {
        let is_sensitive = row.summary.is_sensitive;
        Ok(is_sensitive && row.key(transaction, &self.keys, &self.sources)?.is_none())
    }

    /// Writes the END of a run that never began, or that waits and was erased: no handler of it can run.
    fn end_idle(
        &self,
        transaction: &mut dyn Transaction,
        row: &ExecutionRow,
        reason: &str,
        actor: Option<&str>,
    ) -> Result<(), JournalError> {
        let key = row.key(transaction, &self.keys, &self.sources)?;
        // Of a sensitive run without a key nothing is written in clear.
        let is_erased = row.summary.is_sensitive && key.is_none();
        let mut body = begun_body(actor.filter(|_| !is_erased));
        body.push_str("\"duration_us\":0,\"limit\":\"cancelled\",\"outcome\":\"limit_hit\"");
        if !is_erased {
            body.push_str(",\"why\":");
            quote(reason, &mut body);
        }
        body.push('}');
        let entry = plain_entry(Kind::End, self.sources.now_us(), &body);
        let change = "UPDATE vesper_executions SET status = 'ended', outcome = 'limit_hit', lease_until_us = 0, \
            updated_us = ?, head_seq = ?, head_hash = ? WHERE id = ? AND fence = ? AND status IN ('queued', 'waiting')";
        let values = [Cell::Integer(transaction.now_us()?)];
        self.append(
            transaction,
            row,
            key.as_ref(),
            &entry,
            &head_of(row)?,
            change,
            &values,
        )?;
        transaction.run(REMOVE, &[Cell::Integer(row.id)]).map(drop)
    }

    /// Returns the lines of the last commit of a run that no process has; checks their end against the row.
    fn last_lines(
        &self,
        transaction: &mut dyn Transaction,
        row: &ExecutionRow,
    ) -> Result<Vec<u8>, JournalError> {
        let rows = transaction.rows(
            "SELECT lines, hashes FROM vesper_commits WHERE place >= ? AND place < ? ORDER BY place DESC LIMIT 1",
            &places(row.id),
        )?;
        let found = rows.first().map(Vec::as_slice).unwrap_or_default();
        let hashes = data(found.get(1))?;
        let last = hashes
            .get(hashes.len().saturating_sub(HASH_BYTES)..)
            .unwrap_or_default();
        if last != row.head_hash {
            let why = "the row of the execution has another hash for it";
            return Err(broken(
                self.store.name(),
                &row.summary.execution,
                row.head_seq,
                why,
            ));
        }
        Ok(data(found.first())?.to_vec())
    }

    /// Wakes waits whose time is over, in one transaction: sleeps with their time, others with their failure.
    ///
    /// Returns the rows that were deleted: their runs can be taken over.
    pub fn wake_due(&self, limit: usize) -> Result<Vec<Due>, JournalError> {
        let woken = write(&*self.store, |transaction| {
            let now_us = transaction.now_us()?;
            let now = Cell::Integer(now_us);
            // All that changes the row of a wait locks the execution first.
            let locking = skip_locked(transaction, " OF e");
            let sql = format!(
                "SELECT {COLUMNS} FROM vesper_due d JOIN vesper_executions e ON e.id = d.run WHERE d.kind <> 'queued' \
                 AND d.kind IN ('sleep', 'signal', 'interrupt') AND d.due_us <= ? AND d.lease_until_us <= ? \
                 ORDER BY d.due_us, d.id LIMIT ?{locking}"
            );
            let most = Cell::Integer(i64::try_from(limit).unwrap_or(i64::MAX));
            let mut woken = Vec::new();
            for cells in transaction.rows(&sql, &[now.clone(), now, most])? {
                let due = sealed_due(&cells)?;
                if matches!(self.wake_late(transaction, &due), Ok(true)) {
                    woken.push(due);
                } else {
                    // A run that was damaged or erased must not keep others from being woken; `verify` reports it.
                    postpone(transaction, due.id, now_us)?;
                }
            }
            Ok(woken)
        })?;
        kill_point("wake.committed");
        Ok(woken)
    }

    /// Wakes the run of a row whose time is over.
    fn wake_late(&self, transaction: &mut dyn Transaction, due: &Due) -> Result<bool, JournalError> {
        let Some(execution) = &due.execution else {
            return Ok(false);
        };
        let row = ExecutionRow::find(transaction, execution, self.store.name())?;
        let failed = |code, message| Settled::Failed { code, message };
        let value;
        let settled = match due.kind.as_str() {
            "sleep" => {
                value = timestamp_text(due.due_us.unwrap_or_default())?;
                Settled::Value(&value)
            }
            "signal" => failed("timeout", "no signal came in time"),
            _ => failed("expired", "no answer came in time"),
        };
        self.wake_row(transaction, &row, Some(&due.path), settled, None)
    }
}

/// Returns the typed JSON of a timestamp.
fn timestamp_text(us: i64) -> Result<String, JournalError> {
    let mut out = String::new();
    write_value(&mut out, &Type::Timestamp, &Value::Timestamp(us))?;
    Ok(out)
}

/// Begins a body with the actor, where there is one.
fn begun_body(actor: Option<&str>) -> String {
    let mut body = String::from("{");
    if let Some(actor) = actor {
        body.push_str("\"by\":");
        quote(actor, &mut body);
        body.push(',');
    }
    body
}

/// Refuses a value that is no JSON: it would make the entry unreadable.
pub(super) fn check_value(settled: Settled<'_>) -> Result<(), JournalError> {
    match settled {
        Settled::Value(value) if serde_json::from_str::<&RawValue>(value).is_err() => Err(JournalError::new(
            ErrorKind::Journal,
            "the value of a wait is no JSON; nothing was written",
        )),
        _ => Ok(()),
    }
}

/// Returns the error of a run whose values were erased.
pub(super) fn erased(row: &ExecutionRow) -> JournalError {
    let name = &row.summary.execution;
    let message =
        format!("execution {name} cannot go on: its key was deleted; `vesper journal cancel {name}` ends it");
    JournalError::new(ErrorKind::Journal, message)
}

fn head_of(row: &ExecutionRow) -> Result<Head, JournalError> {
    let hash: Result<Hash, _> = row.head_hash.as_slice().try_into();
    let hash = hash.map_err(|_| {
        let message = format!("the row of execution {} has no hash", row.summary.execution);
        JournalError::new(ErrorKind::Journal, message)
    })?;
    Ok(Head {
        count: u64::try_from(row.head_seq).unwrap_or_default(),
        last: hash,
    })
}
