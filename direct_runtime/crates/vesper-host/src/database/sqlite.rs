//! SQLite: connections, transactions and failures.
//!
//! Reads run on a connection that can only read (`query_only`), writes take the lock of the database at their begin
//! (`BEGIN IMMEDIATE`): of two writers one waits, and then sees what the other has done. Statements block the calling
//! thread: a transaction begins and ends within one poll, so no lock is held while anything else is waited for.

pub mod affinity;
#[allow(unsafe_code, reason = "calls SQLite's C API, behind a safe interface")]
mod connection;
mod guard;
#[allow(unsafe_code, reason = "calls SQLite's C API, behind a safe interface")]
mod library;
mod turns;

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use library::{Library, SqliteError};

use crate::database::pool::{Permit, Pool};
use crate::database::session::{Answer, Backend, Kind, Purpose, Rows, Session, SessionError, Table};
use crate::database::settings::DatabaseSettings;
use crate::database::statement::{PureNames, Statement};
use crate::database::values::{Cell, Column, Values};
use crate::effect::Failure;
use connection::{Connection, Row};
use guard::Guard;
use library::Parameter;
use turns::Turns;

/// Length of a value, or a row, beyond which SQLite itself refuses it.
const MAX_LENGTH: usize = 64 << 20;
/// Time that SQLite itself waits for another writer, before the thread waits in the queue.
const BRIEF_WAIT: Duration = Duration::from_millis(1);
const BEGIN_WRITE: &str = "BEGIN IMMEDIATE";

const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const INTERRUPT: i32 = 9;
const TOO_BIG: i32 = 18;
const CONSTRAINT: i32 = 19;
const MISMATCH: i32 = 20;
const RANGE: i32 = 25;

/// One SQLite database.
#[derive(Debug)]
pub struct SqliteBackend {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Arc<DatabaseSettings>,
    library: Library,
    pure: Arc<PureNames>,
    turns: Turns,
    pool: Arc<Pool<Open>>,
}

/// An open connection, with its settings.
#[derive(Debug)]
struct Open {
    raw: Connection,
    guard: Guard,
    is_reading: bool,
    /// True in WAL mode: there a transaction that has the lock waits for nothing more.
    is_wal: bool,
    busy_milliseconds: i32,
}

impl Open {
    fn set_up(&mut self, purpose: &Purpose, wait: Duration, is_reading: bool) -> Result<(), SqliteError> {
        self.raw.set_deadline(Some(purpose.deadline.at));
        let milliseconds = wait
            .min(purpose.deadline.left())
            .as_micros()
            .div_ceil(1000)
            .max(1);
        let milliseconds = i32::try_from(milliseconds).unwrap_or(i32::MAX);
        if milliseconds != self.busy_milliseconds {
            self.raw.set_busy_timeout(milliseconds);
            self.busy_milliseconds = milliseconds;
        }
        if is_reading != self.is_reading {
            self.raw.execute(if is_reading {
                "PRAGMA query_only = 1"
            } else {
                "PRAGMA query_only = 0"
            })?;
            self.is_reading = is_reading;
        }
        Ok(())
    }

    /// Ends what is left of a transaction; returns false where the connection is of no more use.
    fn roll_back(&mut self) -> bool {
        self.raw.set_deadline(None);
        !self.raw.in_transaction() || self.raw.execute("ROLLBACK").is_ok()
    }
}

impl SqliteBackend {
    /// Creates a database; nothing is opened before it is used.
    pub fn new(settings: Arc<DatabaseSettings>, library: Library, pure: Arc<PureNames>) -> Self {
        let pool = Pool::new(&settings.name, settings.pool_size, true);
        let shared = Shared {
            settings,
            library,
            pure,
            turns: Turns::default(),
            pool,
        };
        Self {
            shared: Arc::new(shared),
        }
    }
}

impl Backend for SqliteBackend {
    fn kind(&self) -> Kind {
        Kind::Sqlite
    }

    fn begin(&self, purpose: Purpose) -> Answer<'_, Box<dyn Session>> {
        Box::pin(async move {
            let (permit, idle) = self
                .shared
                .pool
                // Changing what a connection may do makes SQLite compile all its statements anew.
                .take(&purpose.deadline, |open| open.is_reading != purpose.writes)
                .await?;
            let open = match idle {
                Some(open) => open,
                None => self.shared.open(&purpose)?,
            };
            let mut session = SqliteSession {
                shared: Arc::clone(&self.shared),
                held: Some((permit, open)),
                purpose,
                has_begun: false,
            };
            session.begin()?;
            Ok(Box::new(session) as Box<dyn Session>)
        })
    }

    fn close(&self) {
        self.shared.pool.close();
    }

    fn before_fork(&self) {
        self.shared.pool.before_fork();
    }

    fn after_fork_in_parent(&self) {
        self.shared.pool.after_fork_in_parent();
    }

    fn after_fork_in_child(&self) {
        self.shared.pool.after_fork_in_child();
    }
}

impl Shared {
    fn open(&self, purpose: &Purpose) -> Result<Open, SessionError> {
        let settings = &self.settings;
        let unavailable = |text: String| SessionError::from(Failure::new("unavailable", text));
        let path = settings.path.clone().unwrap_or_default();
        let (shown, name) = (path.display(), &settings.name);
        if !settings.create && !path.exists() {
            let advice = "make it, or say `create = true`";
            return Err(unavailable(format!(
                "there is no file `{shown}` for the database `{name}`; {advice}"
            )));
        }
        let flags = match (settings.read_only, settings.create) {
            (true, _) => library::OPEN_READ_ONLY,
            (false, true) => library::OPEN_READ_WRITE | library::OPEN_CREATE,
            (false, false) => library::OPEN_READ_WRITE,
        };
        let cannot_open = |why: &dyn std::fmt::Display| {
            unavailable(format!("the file `{shown}` of `{name}` cannot be opened: {why}"))
        };
        let absolute = std::path::absolute(&path).map_err(|error| cannot_open(&error))?;
        let opened = self.library.open(&absolute, flags);
        let raw = opened.map_err(|error| cannot_open(&error.message))?;
        let mut open = Open {
            raw,
            guard: Guard::default(),
            is_reading: false,
            is_wal: false,
            busy_milliseconds: -1,
        };
        let setting_up = Purpose {
            refusal: "unavailable",
            writes: false,
            ..*purpose
        };
        let result = self.prepare(&mut open, &setting_up);
        result.map_err(|error| self.failure(&error, &setting_up, false))?;
        Ok(open)
    }

    fn prepare(&self, open: &mut Open, purpose: &Purpose) -> Result<(), SqliteError> {
        let settings = &self.settings;
        let length = i32::try_from(settings.max_value.max(MAX_LENGTH)).unwrap_or(i32::MAX);
        open.raw.set_limit(library::LIMIT_LENGTH, length);
        open.set_up(purpose, settings.busy_timeout, false)?;
        open.raw.execute(if settings.foreign_keys {
            "PRAGMA foreign_keys = 1"
        } else {
            "PRAGMA foreign_keys = 0"
        })?;
        if !settings.read_only {
            open.is_wal = use_wal(&mut open.raw)?;
            // A receipt must not outlive the write that it is for.
            open.raw.execute("PRAGMA synchronous = FULL")?;
        }
        Ok(())
    }

    fn failure(&self, error: &SqliteError, purpose: &Purpose, is_commit: bool) -> SessionError {
        failure(error, purpose, &self.settings.name, is_commit)
    }
}

/// Returns the meaning of an error. Messages of SQLite name tables, columns and constraints, and never a value.
pub fn failure(error: &SqliteError, purpose: &Purpose, name: &str, is_commit: bool) -> SessionError {
    let text = format!("`{name}`: {}", error.message);
    SessionError::Failed(match error.code & 0xFF {
        CONSTRAINT | TOO_BIG | MISMATCH | RANGE => Failure::new(purpose.refusal, text),
        INTERRUPT => purpose.deadline.failure(&format!("the statement on `{name}`")),
        BUSY | LOCKED if purpose.deadline.has_passed() => purpose
            .deadline
            .failure(&format!("waiting for another transaction on `{name}`")),
        BUSY | LOCKED => Failure::new(
            "unavailable",
            format!("{text}: another transaction did not end in time"),
        ),
        _ if error.message.starts_with("no such table") => {
            return SessionError::MissingTable(Failure::new("unavailable", text));
        }
        _ => Failure {
            may_have_happened: is_commit,
            ..Failure::new("unavailable", text)
        },
    })
}

/// Switches a file to WAL mode; returns whether it is in that mode now.
fn use_wal(raw: &mut Connection) -> Result<bool, SqliteError> {
    if journal_mode(raw, "PRAGMA journal_mode")? {
        return Ok(true);
    }
    match journal_mode(raw, "PRAGMA journal_mode = WAL") {
        // Another process uses the file in the other mode: it works as it is, and changes the next time.
        Err(error) if is_busy(&error) => Ok(false),
        result => result,
    }
}

fn journal_mode(raw: &mut Connection, sql: &str) -> Result<bool, SqliteError> {
    let mut is_wal = false;
    raw.run(sql, &|_| None, None, &mut |row| {
        is_wal = row.cell(0) == Cell::Text("wal".to_owned());
        Ok(true)
    })?;
    Ok(is_wal)
}

fn is_busy(error: &SqliteError) -> bool {
    matches!(error.code & 0xFF, BUSY | LOCKED)
}

/// A transaction. INVARIANT: `held` is there until the session ends.
struct SqliteSession {
    shared: Arc<Shared>,
    held: Option<(Permit<Open>, Open)>,
    purpose: Purpose,
    has_begun: bool,
}

impl Drop for SqliteSession {
    fn drop(&mut self) {
        let Some((permit, mut open)) = self.held.take() else {
            return;
        };
        let is_sound = open.roll_back();
        if self.has_begun && self.purpose.writes {
            self.shared.turns.pass_on();
        }
        if is_sound {
            permit.give_back(open);
        } else {
            // Closed before another may be opened.
            drop(open);
            drop(permit);
        }
    }
}

impl SqliteSession {
    fn open(&mut self) -> Result<&mut Open, SessionError> {
        let ended = || Failure::new("unavailable", "the transaction has ended").into();
        self.held.as_mut().map(|(_, open)| open).ok_or_else(ended)
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        let (purpose, shared) = (self.purpose, Arc::clone(&self.shared));
        let wait = shared.settings.busy_timeout;
        let open = self.open()?;
        let result = if purpose.writes && open.is_wal {
            open.set_up(&purpose, BRIEF_WAIT.min(wait), false)
                .and_then(|()| begin_write(&mut open.raw, &shared.turns, wait, &purpose))
        } else {
            open.set_up(&purpose, wait, !purpose.writes)
                .and_then(|()| {
                    open.raw
                        .execute(if purpose.writes { BEGIN_WRITE } else { "BEGIN" })
                })
                .map(|_| ())
        };
        result.map_err(|error| shared.failure(&error, &purpose, false))?;
        self.has_begun = true;
        Ok(())
    }

    fn run(
        &mut self,
        statement: &Statement,
        values: &Values,
        on_row: &mut dyn FnMut(&Row<'_>) -> Result<bool, SqliteError>,
    ) -> Result<u64, SessionError> {
        statement.check(values)?;
        let (purpose, shared) = (self.purpose, Arc::clone(&self.shared));
        let open = self.open()?;
        let failed = |error: SqliteError| shared.failure(&error, &purpose, false);
        let bound: Vec<(&str, Column)> = values
            .iter()
            .map(|(name, value)| (&**name, value.for_sqlite()))
            .collect();
        let value_of = |name: &str| {
            let found = bound.iter().find(|(each, _)| *each == name);
            found.map(|(_, value)| parameter(value))
        };
        let authorizer = match &statement.facts {
            None => None,
            Some(facts) => {
                let limits = facts
                    .limits
                    .as_ref()
                    .map_err(|why| Failure::new("unavailable", why.clone()))?;
                let Open { raw, guard, .. } = open;
                Some(
                    guard
                        .authorizer(raw, &statement.text, limits, &shared.pure)
                        .map_err(failed)?,
                )
            }
        };
        open.raw
            .run(&statement.text, &value_of, authorizer, on_row)
            .map_err(failed)
    }

    /// Fails where a column would not keep a value of the statement.
    fn refuse_changed(&mut self, statement: &Statement, values: &Values) -> Result<(), SessionError> {
        let Some(target) = statement.facts.as_ref().and_then(|facts| facts.target.as_ref()) else {
            return Ok(());
        };
        if !affinity::is_checked(target, values) {
            return Ok(());
        }
        let (purpose, shared) = (self.purpose, Arc::clone(&self.shared));
        let Open { raw, guard, .. } = self.open()?;
        let columns = guard.columns(raw, &target.table);
        let columns = columns.map_err(|error| shared.failure(&error, &purpose, false))?;
        Ok(affinity::check(&columns, target, values, purpose.refusal)?)
    }

    fn end(&mut self) -> Result<(), SessionError> {
        let (purpose, shared) = (self.purpose, Arc::clone(&self.shared));
        if purpose.deadline.has_passed() {
            let doing = format!("the transaction on `{}`", shared.settings.name);
            return Err(purpose.deadline.failure(&doing).into());
        }
        let open = self.open()?;
        // A commit is not stopped half-way.
        open.raw.set_deadline(None);
        let result = open.raw.execute("COMMIT");
        result.map_err(|error| shared.failure(&error, &purpose, purpose.writes))?;
        Ok(())
    }
}

/// Takes the lock of the database, which others may hold for a while.
fn begin_write(
    raw: &mut Connection,
    turns: &Turns,
    wait: Duration,
    purpose: &Purpose,
) -> Result<(), SqliteError> {
    let now = Instant::now();
    let until = now
        .checked_add(wait)
        .map_or(purpose.deadline.at, |until| until.min(purpose.deadline.at));
    let mut begin = || match raw.execute(BEGIN_WRITE) {
        Ok(_) => Ok(true),
        Err(error) if is_busy(&error) => Ok(false),
        Err(error) => Err(error),
    };
    if !turns.take(until, &mut begin)? {
        raw.execute(BEGIN_WRITE)?;
    }
    Ok(())
}

impl Session for SqliteSession {
    fn kind(&self) -> Kind {
        Kind::Sqlite
    }

    fn change<'a>(&'a mut self, statement: &'a Statement, values: &'a Values) -> Answer<'a, u64> {
        Box::pin(async move {
            self.refuse_changed(statement, values)?;
            // Nothing reads the rows of a RETURNING, but only at its end the changes are counted.
            self.run(statement, values, &mut |_| Ok(true))
        })
    }

    fn rows<'a>(
        &'a mut self,
        statement: &'a Statement,
        values: &'a Values,
        most: usize,
        rows: &'a mut dyn Rows,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            let mut columns: Option<Vec<String>> = None;
            let mut left = most;
            let mut refused = None;
            self.run(statement, values, &mut |row| {
                if left == 0 {
                    return Ok(false);
                }
                left -= 1;
                let columns =
                    columns.get_or_insert_with(|| (0..row.columns).map(|each| row.name(each)).collect());
                let cells = (0..row.columns).map(|each| row.cell(each)).collect();
                refused = rows.take(columns, cells).err();
                Ok(refused.is_none() && left > 0)
            })?;
            refused.map_or(Ok(()), |failure| Err(failure.into()))
        })
    }

    fn create(&mut self, table: Table) -> Answer<'_, ()> {
        Box::pin(async move {
            let (purpose, shared) = (self.purpose, Arc::clone(&self.shared));
            let result = self.open()?.raw.execute(table.sqlite);
            result
                .map(|_| ())
                .map_err(|error| shared.failure(&error, &purpose, false))
        })
    }

    fn commit<'a>(mut self: Box<Self>) -> Answer<'a, ()> {
        Box::pin(async move { self.end() })
    }

    fn rollback<'a>(
        self: Box<Self>,
        cause: SessionError,
    ) -> Pin<Box<dyn Future<Output = SessionError> + Send + 'a>> {
        drop(self);
        Box::pin(ready(cause))
    }
}

/// Returns the parameter of a value that `Column::for_sqlite` gave.
fn parameter(value: &Column) -> Parameter<'_> {
    match value {
        Column::Integer(value) => Parameter::Integer(*value),
        Column::Float(value) => Parameter::Float(*value),
        Column::Text(text) => Parameter::Text(text),
        Column::Bytes(bytes) => Parameter::Bytes(bytes),
        _ => Parameter::Null,
    }
}
