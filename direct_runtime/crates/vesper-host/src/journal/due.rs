//! Rows of `vesper_due`: what is done at a time, and by the process that claims it (docs/spec/journal.md, *Waiting runs*).
//!
//! A run has one row at most: that of its wait, or that of its place in a queue. Schedules have rows without a run.

mod claiming;
mod lanes;
mod queued;
mod signals;
mod waking;

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::journal::batch::{Batch, Row};
use crate::journal::begin::StoreJournal;
use crate::journal::cells::{data, integer, text};
use crate::journal::lines::{Blob, Hash, name_of};
use crate::journal::reading::{optional_text, usable_key_of};
use crate::journal::sealing::RunKey;
use crate::journal::store::{Cell, Transaction, read};
use crate::journal::{JournalError, Status};

pub use crate::journal::due::claiming::Claim;
pub use crate::journal::due::lanes::Depth;
pub use crate::journal::due::queued::{Claimed, Place};
pub(crate) use crate::journal::due::signals::take_kept;
pub use crate::journal::due::signals::{Sent, Signal};
pub use crate::journal::due::waking::Settled;

/// Kind of the rows of queued runs.
pub const QUEUED: &str = "queued";
/// Kind of the rows of runs that wait for a signal.
pub const SIGNAL: &str = "signal";
/// Number of the entry that sealed bodies outside of entries are bound to: no entry has it.
pub(crate) const NO_ENTRY: u64 = 0;

/// Time after which a row that this process cannot read, or whose run it cannot wake, is tried again.
const POSTPONED_US: i64 = 60_000_000;
const MAX_LANE_BYTES: usize = 200;
const COLUMNS: &str = "d.id, d.kind, d.due_us, d.run, e.execution, e.node_id, e.status, e.is_sensitive, d.path, \
    d.name, d.queue, d.lane, d.priority, d.attempts, d.owner, d.fence, d.lease_until_us, d.body";
const TABLES: &str = "vesper_due d LEFT JOIN vesper_executions e ON e.id = d.run";
const PUT: &str = "INSERT INTO vesper_due (due_us, kind, run, path, name, queue, lane, priority, attempts, owner, fence, \
    lease_until_us, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0, 0, ?)";
const REMOVE: &str = "DELETE FROM vesper_due WHERE run = ?";

/// Time of a row by the clock of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Microseconds since 1970.
    At(i64),
    /// Microseconds after the commit.
    After(i64),
    Never,
}

impl Moment {
    fn at(self, now: i64) -> Option<i64> {
        match self {
            Self::At(at) => Some(at),
            Self::After(after) => Some(now.saturating_add(after)),
            Self::Never => None,
        }
    }
}

/// A row to be written.
#[derive(Clone, Debug)]
pub struct NewDue {
    pub kind: String,
    pub moment: Moment,
    pub path: String,
    /// Name of a signal, kind of an interrupt.
    pub name: String,
    pub queue: String,
    /// Key of a limit, or the match of a signal; empty where there is none.
    pub lane: String,
    pub priority: i64,
    pub attempts: i64,
    /// JSON.
    pub body: String,
}

/// Returns whether a value fits a wait.
pub type Fits = dyn Fn(&str) -> bool + Send + Sync;

/// A wait of a run; its INTENT was appended.
#[derive(Clone)]
pub struct Wait {
    pub due: NewDue,
    pub effect: &'static str,
    pub digest: String,
    /// Microseconds since 1970.
    pub at_us: i64,
    pub fits: Arc<Fits>,
}

impl fmt::Debug for Wait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Wait({})", self.due.path)
    }
}

/// What became of a wait that was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The run waits until this time; None has no end.
    Until(Option<i64>),
    /// A kept signal settled it: the body of its RESULT.
    Taken(String),
    /// The run cannot wait; nothing was written.
    Refused(&'static str),
}

/// A RESULT that follows the last line of a batch.
#[derive(Debug)]
pub(crate) struct NextLine {
    pub(crate) row: Row,
    pub(crate) hash: Hash,
    pub(crate) blob: Option<Blob>,
    pub(crate) body: String,
}

/// Makes the RESULT of a wait from the stored body of a signal, which was sent to this run or to any; None: it does not fit.
pub(crate) type MakeResult = dyn Fn(&[u8], bool) -> Result<Option<NextLine>, JournalError> + Send + Sync;

/// The row that a commit puts in place of the run's row, and the answer of the store.
pub(crate) struct DueChange {
    pub(crate) due: NewDue,
    /// The lane as the row has it.
    pub(crate) lane: String,
    pub(crate) body: Vec<u8>,
    /// For waits that kept signals can settle.
    pub(crate) make_result: Option<Box<MakeResult>>,
    pub(crate) answer: OnceLock<Waited>,
    /// The hash of the RESULT behind the lines of the batch, where one was written.
    pub(crate) last: OnceLock<Hash>,
}

impl fmt::Debug for DueChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DueChange({:?})", self.due)
    }
}

/// A row that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub id: i64,
    pub kind: String,
    pub due_us: Option<i64>,
    pub run: Option<i64>,
    pub execution: Option<String>,
    pub node_id: Option<String>,
    pub status: Option<Status>,
    pub is_sensitive: bool,
    pub path: String,
    pub name: String,
    pub queue: String,
    pub lane: String,
    pub priority: i64,
    pub attempts: i64,
    pub owner: String,
    pub fence: i64,
    pub lease_until_us: i64,
    /// JSON; `{}` where it cannot be read.
    pub body: String,
    /// False where the key of its run was deleted, or lies under a master key that this process does not have.
    pub is_readable: bool,
    /// Time from the claim to the start that a rate gives it.
    pub start_in_us: i64,
}

/// Which rows `StoreJournal::due` returns.
#[derive(Clone, Debug, Default)]
pub struct DueQuery {
    pub kind: Option<String>,
    pub name: Option<String>,
    pub queue: Option<String>,
    pub lane: Option<String>,
    pub node: Option<String>,
    pub execution: Option<String>,
    /// Id of the last row of the page before.
    pub after: Option<i64>,
}

impl StoreJournal {
    /// Returns rows in the order of their ids: one page.
    pub fn due(&self, query: &DueQuery, limit: i64) -> Result<Vec<Due>, JournalError> {
        let texts = [
            ("d.kind = ?", &query.kind),
            ("d.name = ?", &query.name),
            ("d.queue = ?", &query.queue),
            ("e.node_id = ?", &query.node),
            ("e.execution = ?", &query.execution),
        ];
        let mut sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE d.id > ?");
        let mut values = vec![Cell::Integer(query.after.unwrap_or(0))];
        for (condition, value) in texts {
            if let Some(value) = value {
                sql.push_str(" AND ");
                sql.push_str(condition);
                values.push(Cell::Text(value.clone()));
            }
        }
        if query.kind.as_deref() == Some(QUEUED) {
            sql.push_str(" AND d.kind = 'queued'"); // for the index of queues
        } else if query.kind.is_some() {
            sql.push_str(" AND d.kind <> 'queued'"); // for the index of names
        }
        if let Some(lane) = &query.lane {
            let lanes = self.lanes(lane);
            sql.push_str(&[" AND d.lane IN (", &marks(lanes.len()), ")"].concat());
            values.extend(lanes.into_iter().map(Cell::Text));
        }
        sql.push_str(" ORDER BY d.id LIMIT ?");
        values.push(Cell::Integer(limit));
        read(&*self.store, |transaction| {
            let rows = transaction.rows(&sql, &values)?;
            rows.iter().map(|row| self.read_due(transaction, row)).collect()
        })
    }

    /// Reads a row of `COLUMNS`.
    fn read_due(&self, transaction: &mut dyn Transaction, row: &[Cell]) -> Result<Due, JournalError> {
        let mut due = sealed_due(row)?;
        let (true, Some(run), Some(execution)) = (due.is_sensitive, due.run, &due.execution) else {
            due.is_readable = true;
            due.body = String::from_utf8_lossy(data(row.get(17))?).into_owned();
            return Ok(due);
        };
        let key = usable_key_of(transaction, run, execution, &self.keys, &self.sources)?;
        let stored = data(row.get(17))?;
        if let Some(body) = key.and_then(|key| key.open(stored, NO_ENTRY).ok()) {
            due.is_readable = true;
            due.body = String::from_utf8_lossy(&body).into_owned();
        }
        Ok(due)
    }

    /// Returns the forms in which rows may have a lane: as it is, and for sensitive runs digests of it.
    fn lanes(&self, lane: &str) -> Vec<String> {
        let mut lanes = vec![stored_lane(lane)];
        if !lane.is_empty() {
            lanes.extend(self.keys.digests(lane.as_bytes()));
        }
        lanes
    }
}

/// Reads a row of `COLUMNS` but for its body.
fn sealed_due(row: &[Cell]) -> Result<Due, JournalError> {
    let number = |cell: Option<&Cell>| match cell {
        Some(Cell::Null) => Ok(None),
        cell => integer(cell).map(Some),
    };
    let words = |index: usize| text(row.get(index)).map(str::to_owned);
    Ok(Due {
        id: integer(row.first())?,
        kind: words(1)?,
        due_us: number(row.get(2))?,
        run: number(row.get(3))?,
        execution: optional_text(row.get(4))?,
        node_id: optional_text(row.get(5))?,
        status: optional_text(row.get(6))?.and_then(|name| Status::from_name(&name)),
        is_sensitive: number(row.get(7))?.unwrap_or(0) != 0,
        path: words(8)?,
        name: words(9)?,
        queue: words(10)?,
        lane: words(11)?,
        priority: integer(row.get(12))?,
        attempts: integer(row.get(13))?,
        owner: words(14)?,
        fence: integer(row.get(15))?,
        lease_until_us: integer(row.get(16))?,
        body: "{}".to_owned(),
        is_readable: false,
        start_in_us: 0,
    })
}

/// Leaves a row to later claims, of processes that may have its key.
fn postpone(transaction: &mut dyn Transaction, id: i64, now: i64) -> Result<(), JournalError> {
    // Its time stays: it is the value of a sleep.
    let sql = "UPDATE vesper_due SET lease_until_us = ? WHERE id = ?";
    let until = Cell::Integer(now + POSTPONED_US);
    transaction.run(sql, &[until, Cell::Integer(id)]).map(drop)
}

/// Returns the change of a run's row with a commit; that of a sensitive run holds no value in clear.
pub(crate) fn change_of(
    due: NewDue,
    lane_digest: Option<String>,
    key: Option<&RunKey>,
    make_result: Option<Box<MakeResult>>,
) -> Result<DueChange, JournalError> {
    let body = match key {
        Some(key) => key.seal(due.body.as_bytes(), NO_ENTRY)?,
        None => due.body.clone().into_bytes(),
    };
    Ok(DueChange {
        lane: lane_digest.unwrap_or_else(|| stored_lane(&due.lane)),
        due,
        body,
        make_result,
        answer: OnceLock::new(),
        last: OnceLock::new(),
    })
}

/// Writes the row that a batch puts for its run, or removes the one that it ends.
pub(crate) fn write_due(
    transaction: &mut dyn Transaction,
    batch: &Batch,
    now: i64,
) -> Result<(), JournalError> {
    let run = Cell::Integer(batch.run);
    if batch
        .due
        .as_ref()
        .is_some_and(|change| change.answer.get().is_some())
    {
        return Ok(()); // The run does not wait: it keeps the row that it has.
    }
    if batch.removes_due {
        transaction.run(REMOVE, std::slice::from_ref(&run))?;
    }
    let Some(change) = &batch.due else {
        return Ok(());
    };
    let due = &change.due;
    let due_us = due.moment.at(now);
    let values = [
        due_us.map_or(Cell::Null, Cell::Integer),
        Cell::Text(due.kind.clone()),
        run,
        Cell::Text(due.path.clone()),
        Cell::Text(due.name.clone()),
        Cell::Text(due.queue.clone()),
        Cell::Text(change.lane.clone()),
        Cell::Integer(due.priority),
        Cell::Integer(due.attempts),
        Cell::Bytes(change.body.clone()),
    ];
    transaction.run(PUT, &values)?;
    let _ = change.answer.set(Waited::Until(due_us)); // It was empty.
    Ok(())
}

/// Returns a lane as rows have it: the digest of one that an index or a text of a store may not take.
pub(crate) fn stored_lane(lane: &str) -> String {
    if lane.len() > MAX_LANE_BYTES || lane.chars().any(char::is_control) {
        return name_of(lane.as_bytes());
    }
    lane.to_owned()
}

/// Returns the words that lock the rows of a query, or of one of its tables, and leave out those that are locked.
fn skip_locked(transaction: &dyn Transaction, of: &str) -> String {
    match transaction.locking() {
        "" => String::new(),
        locking => format!("{locking}{of} SKIP LOCKED"),
    }
}

/// Returns the parameters of a list.
fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}
