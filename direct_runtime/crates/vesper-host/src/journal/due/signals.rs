//! Signals: each wakes the runs that wait for it, or is kept for the run that asks for it later.

use vesper_ir::json::quote;

use crate::journal::batch::Batch;
use crate::journal::begin::StoreJournal;
use crate::journal::cells::{data, integer, text};
use crate::journal::due::waking::{Settled, check_value, erased};
use crate::journal::due::{DueChange, NO_ENTRY, NextLine, SIGNAL, marks, stored_lane};
use crate::journal::lines::name_of;
use crate::journal::reading::ExecutionRow;
use crate::journal::store::{Cell, Transaction, write};
use crate::journal::{ErrorKind, JournalError, Status};
use crate::sources::kill_point;

/// Signals that are kept for one run, or for one name and lane.
const MAX_KEPT: usize = 1_000;
/// Kept signals that one statement reads.
const KEPT_PAGE: usize = 50;

/// A signal as its sender gives it.
#[derive(Clone, Copy, Debug)]
pub struct Signal<'a> {
    /// The run that it is for; None: the runs that wait with its lane.
    pub execution: Option<&'a str>,
    pub name: &'a str,
    pub lane: &'a str,
    /// Typed JSON.
    pub value: &'a str,
    /// A signal with a key that was sent before is not sent again.
    pub key: Option<&'a str>,
    pub actor: Option<&'a str>,
    /// Executions and paths of waits whose type the value has, sorted; None: it is not checked.
    pub checked: Option<&'a [(String, String)]>,
}

/// What became of a signal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Executions that it woke.
    pub woken: Vec<String>,
    pub is_kept: bool,
    pub is_repeat: bool,
}

impl Signal<'_> {
    /// Refuses to wake a run whose wait the sender has not seen: the value may be of another type.
    fn require_checked(&self, execution: &str, path: &str) -> Result<(), JournalError> {
        let is_checked = self.checked.is_none_or(|checked| {
            let found = checked.binary_search_by(|each| (&*each.0, &*each.1).cmp(&(execution, path)));
            found.is_ok()
        });
        if is_checked {
            return Ok(());
        }
        let message = format!(
            "execution {execution} began to wait for the signal while it was sent; nothing was written. Send it again"
        );
        Err(JournalError::new(ErrorKind::Unchecked, message))
    }

    /// Returns the digest of the key, which is one of the receiver's.
    fn key_digest(&self, execution: Option<&str>) -> Option<String> {
        let key = self.key?;
        let mut text = String::from("[");
        for part in [execution.unwrap_or_default(), self.name, self.lane, key] {
            quote(part, &mut text);
            text.push(',');
        }
        Some(name_of(text.as_bytes()))
    }
}

impl StoreJournal {
    /// Sends a signal: wakes the runs that wait for it, or keeps it for one that asks later.
    pub fn signal(&self, signal: &Signal<'_>) -> Result<Sent, JournalError> {
        check_value(Settled::Value(signal.value))?;
        let sent = write(&*self.store, |transaction| {
            let row = if let Some(execution) = signal.execution {
                // Its lock keeps the run from beginning to wait meanwhile.
                Some(ExecutionRow::find(transaction, execution, self.store.name())?)
            } else {
                transaction.exclude(&lane_lock(signal.name, signal.lane))?;
                None
            };
            let execution = row.as_ref().map(|row| row.summary.execution.as_str());
            let key = signal.key_digest(execution);
            if key.is_some() && !self.keep(transaction, signal, row.as_ref(), key.as_deref())? {
                return Ok(Sent {
                    is_repeat: true,
                    ..Sent::default()
                });
            }
            let woken = match &row {
                Some(row) => self.wake_one(transaction, signal, row)?,
                None => self.wake_lane(transaction, signal)?,
            };
            let is_kept = woken.is_empty();
            match (&key, is_kept) {
                (None, true) => {
                    self.keep(transaction, signal, row.as_ref(), None)?;
                }
                (Some(key), false) => {
                    let sql = "UPDATE vesper_signals SET is_taken = 1, body = ? WHERE key = ?";
                    transaction.run(sql, &[Cell::Bytes(Vec::new()), Cell::Text(key.clone())])?;
                }
                _ => {}
            }
            if is_kept {
                check_room(transaction, signal, row.as_ref())?;
            }
            Ok(Sent {
                woken,
                is_kept,
                is_repeat: false,
            })
        })?;
        kill_point("wake.committed");
        Ok(sent)
    }

    fn wake_one(
        &self,
        transaction: &mut dyn Transaction,
        signal: &Signal<'_>,
        row: &ExecutionRow,
    ) -> Result<Vec<String>, JournalError> {
        let sql = "SELECT name, lane, path FROM vesper_due WHERE run = ? AND kind = 'signal'";
        let rows = transaction.rows(sql, &[Cell::Integer(row.id)])?;
        let Some(found) = rows.first() else {
            return Ok(Vec::new());
        };
        let lane = text(found.get(1))?;
        let is_meant = signal.lane.is_empty() || self.lanes(signal.lane).iter().any(|each| each == lane);
        if text(found.first())? != signal.name || !is_meant {
            return Ok(Vec::new());
        }
        let path = text(found.get(2))?;
        signal.require_checked(&row.summary.execution, path)?;
        let is_woken = self.wake_row(
            transaction,
            row,
            Some(path),
            Settled::Value(signal.value),
            signal.actor,
        )?;
        Ok(is_woken
            .then(|| row.summary.execution.clone())
            .into_iter()
            .collect())
    }

    fn wake_lane(
        &self,
        transaction: &mut dyn Transaction,
        signal: &Signal<'_>,
    ) -> Result<Vec<String>, JournalError> {
        let lanes = self.lanes(signal.lane);
        let sql = format!(
            "SELECT e.execution, d.path FROM vesper_due d JOIN vesper_executions e ON e.id = d.run \
             WHERE d.kind <> 'queued' AND d.kind = '{SIGNAL}' AND d.name = ? AND d.lane IN ({}) ORDER BY d.id",
            marks(lanes.len())
        );
        let names = std::iter::once(signal.name.to_owned()).chain(lanes);
        let values: Vec<Cell> = names.map(Cell::Text).collect();
        let mut woken = Vec::new();
        for found in transaction.rows(&sql, &values)? {
            let (execution, path) = (text(found.first())?, text(found.get(1))?);
            signal.require_checked(execution, path)?;
            let row = ExecutionRow::find(transaction, execution, self.store.name())?;
            if self.is_unreadable(transaction, &row)? {
                continue; // It was erased: it keeps no other from its signal.
            }
            // The row was not locked when it was read: the run may wait elsewhere by now.
            if self.wake_row(
                transaction,
                &row,
                Some(path),
                Settled::Value(signal.value),
                signal.actor,
            )? {
                woken.push(row.summary.execution);
            }
        }
        Ok(woken)
    }

    /// Returns whether a run is sensitive and this process cannot use its key.
    fn is_unreadable(
        &self,
        transaction: &mut dyn Transaction,
        row: &ExecutionRow,
    ) -> Result<bool, JournalError> {
        let is_sensitive = row.summary.is_sensitive;
        Ok(is_sensitive && row.usable_key(transaction, &self.keys, &self.sources)?.is_none())
    }

    /// Keeps a signal; returns false where one has its key.
    fn keep(
        &self,
        transaction: &mut dyn Transaction,
        signal: &Signal<'_>,
        row: Option<&ExecutionRow>,
        key: Option<&str>,
    ) -> Result<bool, JournalError> {
        let mut body = signal.value.as_bytes().to_vec();
        if let Some(row) = row.filter(|row| row.summary.is_sensitive) {
            match row.key(transaction, &self.keys, &self.sources)? {
                Some(key) => body = key.seal(&body, NO_ENTRY)?,
                None if row.summary.status == Status::Ended => body.clear(),
                None => return Err(erased(row)),
            }
        }
        let optional = |text: Option<&str>| text.map_or(Cell::Null, |text| Cell::Text(text.to_owned()));
        let values = [
            row.map_or(Cell::Null, |row| Cell::Integer(row.id)),
            Cell::Text(signal.name.to_owned()),
            Cell::Text(match row {
                Some(row) if row.summary.is_sensitive => self.keys.lane(signal.lane),
                _ => stored_lane(signal.lane),
            }),
            optional(key),
            Cell::Bytes(body),
            Cell::Integer(transaction.now_us()?),
            optional(signal.actor),
        ];
        let sql = "INSERT INTO vesper_signals (run, name, lane, key, body, at_us, actor, is_taken) \
            VALUES (?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING";
        let is_new = transaction.run(sql, &values)? > 0;
        match row.map(|row| &row.summary) {
            Some(summary) if is_new && summary.status == Status::Ended => {
                let name = &summary.execution;
                let message = format!("execution {name} has ended: no step of it takes a signal");
                Err(JournalError::new(ErrorKind::Journal, message))
            }
            _ => Ok(is_new),
        }
    }
}

/// Refuses a signal with which too many are kept; its transaction is rolled back.
fn check_room(
    transaction: &mut dyn Transaction,
    signal: &Signal<'_>,
    row: Option<&ExecutionRow>,
) -> Result<(), JournalError> {
    let name = Cell::Text(signal.name.to_owned());
    let (condition, values) = match row {
        Some(row) => ("run = ?", vec![Cell::Integer(row.id)]),
        None => (
            "name = ? AND lane = ? AND run IS NULL",
            vec![name, Cell::Text(stored_lane(signal.lane))],
        ),
    };
    let sql = format!(
        "SELECT id FROM vesper_signals WHERE {condition} AND is_taken = 0 LIMIT {}",
        MAX_KEPT + 1
    );
    if transaction.rows(&sql, &values)?.len() <= MAX_KEPT {
        return Ok(());
    }
    let receiver = match row {
        Some(row) => format!("execution {}", row.summary.execution),
        None => format!("the signal {} with this match", signal.name.escape_debug()),
    };
    let message = format!(
        "{MAX_KEPT} signals are kept for {receiver} already, and no run has taken them; nothing was written. Send it \
         again when a run waits for it"
    );
    Err(JournalError::new(ErrorKind::NotTaken, message))
}

/// A kept signal that settles a wait.
pub(crate) struct Kept {
    id: i64,
    pub(crate) next: NextLine,
}

impl Kept {
    /// Marks the signal as taken; its key is remembered.
    pub(crate) fn remove(&self, transaction: &mut dyn Transaction) -> Result<(), JournalError> {
        let id = [Cell::Integer(self.id)];
        if transaction.run("DELETE FROM vesper_signals WHERE id = ? AND key IS NULL", &id)? == 0 {
            let sql = "UPDATE vesper_signals SET is_taken = 1, body = ? WHERE id = ? AND is_taken = 0";
            transaction.run(sql, &[Cell::Bytes(Vec::new()), Cell::Integer(self.id)])?;
        }
        Ok(())
    }
}

/// Finds the oldest kept signal that fits the wait of a batch: one to the run, or one of its lane.
pub(crate) fn take_kept(
    transaction: &mut dyn Transaction,
    batch: &Batch,
    change: &DueChange,
) -> Result<Option<Kept>, JournalError> {
    let Some(make_result) = &change.make_result else {
        return Ok(None);
    };
    let due = &change.due;
    transaction.exclude(&lane_lock(&due.name, &due.lane))?;
    let text = |text: &str| Cell::Text(text.to_owned());
    if batch.run != 0 {
        let lock = transaction.locking();
        let run = Cell::Integer(batch.run);
        let sql = format!("SELECT 1 FROM vesper_executions WHERE id = ?{lock}");
        transaction.rows(&sql, std::slice::from_ref(&run))?;
        let condition = "run = ? AND name = ? AND is_taken = 0 AND lane IN ('', ?)";
        let values = [run, text(&due.name), text(&change.lane)];
        let found = first_fitting(transaction, condition, &values, |body| make_result(body, true))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    let condition = "name = ? AND lane = ? AND is_taken = 0 AND run IS NULL";
    let values = [text(&due.name), Cell::Text(stored_lane(&due.lane))];
    first_fitting(transaction, condition, &values, |body| make_result(body, false))
}

/// Reads kept signals, oldest first, until one fits.
fn first_fitting(
    transaction: &mut dyn Transaction,
    condition: &str,
    values: &[Cell],
    make_result: impl Fn(&[u8]) -> Result<Option<NextLine>, JournalError>,
) -> Result<Option<Kept>, JournalError> {
    let sql = format!(
        "SELECT id, body FROM vesper_signals WHERE {condition} AND id > ? ORDER BY id LIMIT {KEPT_PAGE}"
    );
    let mut id = 0;
    loop {
        let rows = transaction.rows(&sql, &[values, &[Cell::Integer(id)]].concat())?;
        for row in &rows {
            id = integer(row.first())?;
            if let Some(next) = make_result(data(row.get(1))?)? {
                return Ok(Some(Kept { id, next }));
            }
        }
        if rows.len() < KEPT_PAGE {
            return Ok(None);
        }
    }
}

fn lane_lock(name: &str, lane: &str) -> String {
    format!("signal\n{name}\n{}", stored_lane(lane))
}
