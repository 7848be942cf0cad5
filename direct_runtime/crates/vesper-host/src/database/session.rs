//! One transaction on one database of any kind: the interface that effects on databases are written with.

use std::future::Future;
use std::pin::Pin;

use crate::database::deadline::Deadline;
use crate::database::settings::DatabaseSettings;
use crate::database::statement::Statement;
use crate::database::values::{Cell, Values};
use crate::effect::{AttemptError, Broken, Failure};

/// Kind of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    /// Returns the name that the checker of SQL uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// Purpose of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Purpose {
    pub deadline: Deadline,
    pub writes: bool,
    /// The code for a value that the database refuses: the one that the effect declares for it.
    pub refusal: &'static str,
}

/// Failure of a session.
#[derive(Debug)]
pub enum SessionError {
    Failed(Failure),
    /// A table that the statement names does not exist.
    MissingTable(Failure),
    /// An exception that ends the run.
    Broken(Broken),
}

impl From<Failure> for SessionError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<SessionError> for AttemptError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Failed(failure) | SessionError::MissingTable(failure) => Self::Failed(failure),
            SessionError::Broken(broken) => Self::Broken(broken),
        }
    }
}

/// A result of a session that may have to be waited for.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionError>> + Send + 'a>>;

/// Receiver of the rows of a query.
pub trait Rows: Send {
    /// Takes one row: a cell for each column. A failure ends the query.
    fn take(&mut self, columns: &[String], cells: Vec<Cell>) -> Result<(), Failure>;
}

/// Definition of a table of Vesper, for each kind of database.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

/// An open transaction. One that is dropped is rolled back.
pub trait Session: Send {
    fn kind(&self) -> Kind;

    /// Runs one statement; returns the number of rows that it changed.
    fn change<'a>(&'a mut self, statement: &'a Statement, values: &'a Values) -> Answer<'a, u64>;

    /// Runs one query and passes at most `most` of its rows on.
    fn rows<'a>(
        &'a mut self,
        statement: &'a Statement,
        values: &'a Values,
        most: usize,
        rows: &'a mut dyn Rows,
    ) -> Answer<'a, ()>;

    /// Creates a table of Vesper where it is missing; two sessions that do so at once do not fail.
    fn create(&mut self, table: Table) -> Answer<'_, ()>;

    /// Ends the transaction, so that it happened.
    fn commit<'a>(self: Box<Self>) -> Answer<'a, ()>
    where
        Self: 'a;

    /// Ends the transaction after a failure, so that nothing happened; returns the failure to report.
    fn rollback<'a>(
        self: Box<Self>,
        cause: SessionError,
    ) -> Pin<Box<dyn Future<Output = SessionError> + Send + 'a>>
    where
        Self: 'a;
}

/// One configured database.
pub trait Backend: Send + Sync {
    fn kind(&self) -> Kind;

    /// Begins a transaction.
    fn begin(&self, purpose: Purpose) -> Answer<'_, Box<dyn Session>>;

    /// Closes idle connections, and those in use when they are given back.
    fn close(&self);

    /// Prepares for a fork, which the process makes next.
    fn before_fork(&self);

    fn after_fork_in_parent(&self);

    fn after_fork_in_child(&self);
}

/// Transactions that callers have open, for the runs that are part of them.
pub trait Joiner: Send + Sync {
    /// Enters the caller's transaction on a database; None where it has none there.
    fn join(
        &self,
        database: &DatabaseSettings,
        purpose: &Purpose,
    ) -> Result<Option<Box<dyn Session>>, SessionError>;
}
