//! The contract between the journal and the stores that hold its tables.
//!
//! SQL is written once, with `?` for parameters; a store whose server wants another form translates it.

use crate::journal::batch::Batch;
use crate::journal::cells::{MAX_SHOWN, shown, truncate};
use crate::journal::{ErrorKind, JournalError};

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
    /// A cell of another type, which no table of the journal has; with its text for messages.
    Other(String),
}

impl Cell {
    /// Returns a whole number. A cell of another type was changed by somebody, which is an error.
    pub fn integer(&self) -> Result<i64, JournalError> {
        match self {
            Self::Integer(number) => Ok(*number),
            _ => Err(self.wrong("a whole number")),
        }
    }

    pub fn bytes(&self) -> Result<&[u8], JournalError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(self.wrong("bytes")),
        }
    }

    pub fn text(&self) -> Result<&str, JournalError> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err(self.wrong("a text")),
        }
    }

    fn wrong(&self, expected: &str) -> JournalError {
        let content = truncate(&shown(self), MAX_SHOWN);
        JournalError::new(
            ErrorKind::Journal,
            format!(
                "a cell of the journal's tables holds {content} where {expected} belongs: somebody changed the journal"
            ),
        )
    }
}

/// A transaction of a store.
pub trait Transaction {
    /// Returns the rows of a query.
    fn rows(&mut self, sql: &str, parameters: &[Cell]) -> Result<Vec<Vec<Cell>>, JournalError>;

    /// Executes a statement; returns the number of rows that it changed.
    fn run(&mut self, sql: &str, parameters: &[Cell]) -> Result<u64, JournalError>;

    /// Returns the time of the store in microseconds since 1970.
    fn now_us(&mut self) -> Result<i64, JournalError>;

    /// Returns the words that lock the rows of a query for an update; empty where the store needs none.
    fn locking(&self) -> &'static str;

    /// Keeps other transactions that exclude the same name out until this one ends.
    fn exclude(&mut self, name: &str) -> Result<(), JournalError>;

    /// Returns the query of the numbers in a parameter that is a JSON list.
    fn listed(&self) -> &'static str;
}

/// Work in a transaction; `read` and `write` call it once.
pub type Work<'a> = dyn FnMut(&mut dyn Transaction) -> Result<(), JournalError> + 'a;

/// Locks of a store that one thread holds while it forks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForkHold {
    pub has_writer: bool,
    pub has_reader: bool,
}

/// Place of a journal. Any number of threads may use it; after a fork the child opens it anew.
pub trait Store: Send + Sync {
    /// Returns the name for messages; it holds no password.
    fn name(&self) -> &str;

    /// Writes a batch, perhaps together with those of other threads; it is durable when this returns.
    ///
    /// Returns the key of the run's row, or what was refused.
    fn submit(&self, batch: Batch) -> Result<i64, JournalError>;

    /// Reads one state of the store, whatever is written meanwhile. `read` is the convenient form.
    fn reading(&self, work: &mut Work<'_>) -> Result<(), JournalError>;

    /// Writes in a transaction that is synced, and rolled back where the work fails. `write` is the convenient form.
    fn writing(&self, work: &mut Work<'_>) -> Result<(), JournalError>;

    /// Removes what was deleted from where the store still keeps it, as far as it can.
    fn scrub(&self) -> Result<(), JournalError>;

    /// Prevents others from adding blobs or definitions until the transaction ends.
    fn lock_for_prune(&self, transaction: &mut dyn Transaction) -> Result<(), JournalError>;

    /// Gives room that was pruned back to the system, where the store can do so at once.
    fn shrink(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Closes connections. The store stays usable.
    fn close(&self);

    /// Prepares for a fork: waits for writers and readers, keeps others out, closes what a child must not inherit.
    ///
    /// The caller must not hold a lock that an open transaction may wait for.
    fn hold_for_fork(&self) -> ForkHold {
        ForkHold::default()
    }

    /// Ends the preparation in the parent. A child needs no call: it recognises that it is another process.
    fn release_after_fork(&self, _hold: ForkHold) {}
}

/// Returns what the work reads from one state of the store.
pub fn read<T>(
    store: &dyn Store,
    work: impl FnOnce(&mut dyn Transaction) -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    once(work, |work| store.reading(work))
}

/// Returns the result of work in a transaction that is synced; rolled back where the work fails.
pub fn write<T>(
    store: &dyn Store,
    work: impl FnOnce(&mut dyn Transaction) -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    once(work, |work| store.writing(work))
}

fn once<T>(
    work: impl FnOnce(&mut dyn Transaction) -> Result<T, JournalError>,
    within: impl FnOnce(&mut Work<'_>) -> Result<(), JournalError>,
) -> Result<T, JournalError> {
    let mut work = Some(work);
    let mut found = None;
    within(&mut |transaction| {
        if let Some(work) = work.take() {
            found = Some(work(transaction)?);
        }
        Ok(())
    })?;
    found.ok_or_else(|| {
        JournalError::new(
            ErrorKind::Journal,
            "the store ended a transaction without its work",
        )
    })
}
