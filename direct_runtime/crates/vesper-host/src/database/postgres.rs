//! Postgres: connections, transactions and failures.
//!
//! A session can only read, so that a query is one round trip; a write begins a transaction that can do more.

mod connection;
mod failures;
mod stream;
mod values;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_core::Stream as _;
use tokio_postgres::types::Type;
use tokio_postgres::{Row, Statement as Prepared};

use crate::database::deadline::Deadline;
use crate::database::pool::{Permit, Pool};
use crate::database::session::{Answer, Backend, Kind, Purpose, Rows, Session, SessionError, Table};
use crate::database::settings::DatabaseSettings;
use crate::database::statement::Statement;
use crate::database::values::{Column, Values};
use crate::effect::{Failure, Secrets};
use crate::postgres::dsn::Dsn;
use connection::{Connection, Problem};
pub use failures::ServerReport;
use failures::{GRACE, failure};
use values::{Parameter, Raw, cell_of, is_readable, type_of};

/// Settings of a session that decide what SQL and texts mean, and that it can only read.
const SESSION_OPTIONS: &str = "-c timezone=UTC -c datestyle=ISO -c intervalstyle=iso_8601 -c bytea_output=hex \
    -c extra_float_digits=1 -c standard_conforming_strings=on -c default_transaction_read_only=on \
    -c client_encoding=UTF8";
/// Takes the lock under which tables of Vesper are created: two sessions that create one would both find it missing.
pub const LOCK_TABLES: &str = "SELECT pg_advisory_xact_lock(1986360176)";
/// Rows that are waited for after a refusal, so that the connection stays usable.
const MAX_UNREAD_ROWS: usize = 16;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MIN_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// One Postgres database.
pub struct PostgresBackend {
    settings: Arc<DatabaseSettings>,
    /// Source of the password, which may change.
    secrets: Arc<dyn Secrets>,
    pool: Arc<Pool<Connection>>,
}

impl fmt::Debug for PostgresBackend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PostgresBackend({})", self.settings.name)
    }
}

impl PostgresBackend {
    /// Creates a database; nothing is opened before it is used.
    pub fn new(settings: Arc<DatabaseSettings>, secrets: Arc<dyn Secrets>) -> Self {
        let pool = Pool::new(&settings.name, settings.pool_size, false);
        Self {
            settings,
            secrets,
            pool,
        }
    }

    /// Returns a connection for a query, or with an open transaction for a write.
    ///
    /// An idle one may have died since: then a new one is opened, because nothing has been asked of it yet.
    async fn begun(
        &self,
        permit: &Permit<Connection>,
        idle: Option<Connection>,
        purpose: &Purpose,
    ) -> Result<Connection, SessionError> {
        let failed = |problem| failure(problem, purpose, &self.settings.name, false);
        if let Some(mut connection) = idle {
            if !connection.has_ended() {
                match begin(&mut connection, purpose).await {
                    Ok(()) => return Ok(connection),
                    Err(_) if connection.has_ended() && !purpose.deadline.has_passed() => {}
                    Err(problem) => return Err(failed(problem)),
                }
            }
            permit.close_idle();
        }
        let mut connection = self.open(&purpose.deadline).await?;
        begin(&mut connection, purpose).await.map_err(failed)?;
        Ok(connection)
    }

    async fn open(&self, deadline: &Deadline) -> Result<Connection, SessionError> {
        let name = &self.settings.name;
        let unreachable =
            |why: &str| Failure::new("unavailable", format!("`{name}` cannot be reached: {why}"));
        let password = match &self.settings.password_secret {
            None => None,
            Some(secret) => Some(self.secrets.text(secret)?),
        };
        let bad = |_| unreachable("its address has a parameter that is not known here");
        let dsn = Dsn::parse(&self.settings.dsn).map_err(bad)?;
        let mut target = dsn
            .resolve(|variable| std::env::var(variable).ok())
            .map_err(bad)?;
        let given = target
            .options
            .take()
            .map_or_else(String::new, |options| format!("{options} "));
        target.options = Some(format!("{given}{SESSION_OPTIONS}"));
        let patience = target.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
        let patience = patience.min(deadline.left()).max(MIN_CONNECT_TIMEOUT);
        let opened = Connection::open(&target, password.as_ref().map(|text| text.as_str()), patience).await;
        let connection = opened.map_err(|why| {
            if deadline.has_passed() {
                return deadline.failure(&format!("connecting to `{name}`"));
            }
            unreachable(&why)
        })?;
        if !connection.is_known() {
            let text = format!("`{name}` is older than PostgreSQL 14, which is needed");
            return Err(Failure::new("unavailable", text).into());
        }
        Ok(connection)
    }
}

async fn begin(connection: &mut Connection, purpose: &Purpose) -> Result<(), Problem> {
    connection.cut_at = Instant::now() + purpose.deadline.left() + GRACE;
    if purpose.writes {
        let limit = milliseconds(purpose.deadline.left());
        return connection
            .batch(&format!(
                "BEGIN READ WRITE; SET LOCAL statement_timeout = {limit}"
            ))
            .await;
    }
    // Mostly the same as the last time.
    let limit = milliseconds(purpose.deadline.whole);
    if limit != connection.limit {
        connection
            .batch(&format!("SET statement_timeout = {limit}"))
            .await?;
        connection.limit = limit;
    }
    Ok(())
}

fn milliseconds(time: Duration) -> u128 {
    // The largest limit that the server takes.
    time.as_micros()
        .div_ceil(1000)
        .clamp(1, i32::MAX.unsigned_abs().into())
}

impl Backend for PostgresBackend {
    fn kind(&self) -> Kind {
        Kind::Postgres
    }

    fn begin(&self, purpose: Purpose) -> Answer<'_, Box<dyn Session>> {
        Box::pin(async move {
            let (permit, idle) = self.pool.take(&purpose.deadline, |_| true).await?;
            let connection = self.begun(&permit, idle, &purpose).await?;
            let session = PostgresSession {
                database: self.settings.name.clone(),
                held: Some((permit, connection)),
                purpose,
                is_sound: true,
            };
            Ok(Box::new(session) as Box<dyn Session>)
        })
    }

    fn close(&self) {
        self.pool.close();
    }

    fn before_fork(&self) {
        self.pool.before_fork();
    }

    fn after_fork_in_parent(&self) {
        self.pool.after_fork_in_parent();
    }

    fn after_fork_in_child(&self) {
        self.pool.after_fork_in_child();
    }
}

/// A transaction. One that is dropped closes its connection, which rolls back.
struct PostgresSession {
    database: String,
    held: Option<(Permit<Connection>, Connection)>,
    purpose: Purpose,
    /// False where an answer was not read to its end.
    is_sound: bool,
}

impl PostgresSession {
    fn connection(&mut self) -> Result<&mut Connection, SessionError> {
        let ended = || Failure::new("unavailable", "the transaction has ended").into();
        self.held
            .as_mut()
            .map(|(_, connection)| connection)
            .ok_or_else(ended)
    }

    fn failure(&self, problem: Problem, is_commit: bool) -> SessionError {
        failure(problem, &self.purpose, &self.database, is_commit)
    }

    /// Returns the parameters of a statement with their types, in the order of their numbers.
    fn bound(
        &self,
        statement: &Statement,
        values: &Values,
    ) -> Result<(Vec<Type>, Vec<Parameter>), SessionError> {
        statement.check(values)?;
        check_texts(values, self.purpose.refusal)?;
        let (mut types, mut parameters) = (Vec::new(), Vec::new());
        for name in &statement.parameters {
            let found = values.iter().find(|(each, _)| each == name);
            let value = found.map_or(&Column::Null, |(_, value)| value);
            types.push(type_of(value));
            parameters.push(Parameter::of(value));
        }
        Ok((types, parameters))
    }

    async fn change_rows(
        &mut self,
        sql: &str,
        types: &[Type],
        parameters: &[Parameter],
    ) -> Result<u64, Problem> {
        let Some((_, connection)) = &mut self.held else {
            return Err(Problem::Silent);
        };
        let prepared = connection.prepared(sql, types).await?;
        let result = connection
            .drive(async |client| client.execute_raw(&prepared, parameters).await)
            .await;
        connection.forget_stale(&result);
        result
    }

    async fn query(
        &mut self,
        sql: &str,
        types: &[Type],
        parameters: &[Parameter],
        rows: &mut dyn Rows,
    ) -> Result<Result<(), Failure>, Problem> {
        let Some((_, connection)) = &mut self.held else {
            return Err(Problem::Silent);
        };
        let described = connection.prepared(sql, types).await?;
        let columns: Vec<String> = described
            .columns()
            .iter()
            .map(|each| each.name().to_owned())
            .collect();
        let readable: Vec<bool> = described
            .columns()
            .iter()
            .map(|each| is_readable(each.type_()))
            .collect();
        let prepared = if readable.iter().all(|each| *each) {
            described
        } else {
            // Types without a value of the language are what they look like: their output as text.
            connection.prepared(&shown_as_text(sql, &readable), types).await?
        };
        let result = read(connection, &prepared, parameters, &columns, rows).await;
        connection.forget_stale(&result);
        let (result, is_complete) = result?;
        self.is_sound = is_complete;
        Ok(result)
    }
}

/// Fails for a text that Postgres cannot hold.
pub fn check_texts(values: &Values, refusal: &str) -> Result<(), Failure> {
    let has_nul = |value: &Column| matches!(value, Column::Text(text) if text.contains('\0'));
    match values.iter().find(|(_, value)| has_nul(value)) {
        None => Ok(()),
        Some((name, _)) => {
            let text = format!("the text for `:{name}` has a NUL character, which PostgreSQL cannot hold");
            Err(Failure::new(refusal, text))
        }
    }
}

/// Wraps a query so that some of its columns are given as the text that the server writes for them.
fn shown_as_text(sql: &str, readable: &[bool]) -> String {
    let names: Vec<String> = (0..readable.len()).map(|place| format!("c{place}")).collect();
    let shown = names.iter().zip(readable).map(|(name, is_readable)| {
        if *is_readable {
            return name.clone();
        }
        // A row of nulls is no null, which IS NULL does not tell apart.
        format!("CASE WHEN num_nulls({name}) = 0 THEN format('%s', {name}) END AS {name}")
    });
    let shown: Vec<String> = shown.collect();
    format!(
        "SELECT {} FROM (\n{sql}\n) AS vesper_texts({})",
        shown.join(", "),
        names.join(", ")
    )
}

/// Passes the rows of a query on as they arrive: a result that is too large is known before it is in memory.
///
/// Returns whether the answer was read to its end. After a refusal only a few rows are waited for.
async fn read(
    connection: &mut Connection,
    prepared: &Prepared,
    parameters: &[Parameter],
    columns: &[String],
    rows: &mut dyn Rows,
) -> Result<(Result<(), Failure>, bool), Problem> {
    connection
        .drive(async |client| {
            let mut stream = pin!(client.query_raw(prepared, parameters).await?);
            let (mut result, mut unread) = (Ok(()), 0);
            while let Some(row) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
                let row = row?;
                if result.is_ok() {
                    result = rows.take(columns, cells(&row)?);
                } else if unread < MAX_UNREAD_ROWS {
                    unread += 1;
                } else {
                    return Ok((result, false));
                }
            }
            Ok((result, true))
        })
        .await
}

fn cells(row: &Row) -> Result<Vec<crate::database::values::Cell>, tokio_postgres::Error> {
    let cells = row.columns().iter().enumerate().map(|(place, column)| {
        let Raw(raw) = row.try_get(place)?;
        Ok(cell_of(column.type_(), raw))
    });
    cells.collect()
}

impl Session for PostgresSession {
    fn kind(&self) -> Kind {
        Kind::Postgres
    }

    fn change<'a>(&'a mut self, statement: &'a Statement, values: &'a Values) -> Answer<'a, u64> {
        Box::pin(async move {
            let (types, parameters) = self.bound(statement, values)?;
            let result = self.change_rows(&statement.numbered, &types, &parameters).await;
            result.map_err(|problem| self.failure(problem, false))
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
            let (types, parameters) = self.bound(statement, values)?;
            // The server stops by itself. The order of the inner query stays: nothing here would change it.
            let sql = format!(
                "SELECT * FROM (\n{}\n) AS vesper_rows LIMIT {most}",
                statement.numbered
            );
            let result = self.query(&sql, &types, &parameters, rows).await;
            result.map_err(|problem| self.failure(problem, false))??;
            Ok(())
        })
    }

    fn create(&mut self, table: Table) -> Answer<'_, ()> {
        Box::pin(async move {
            let sql = format!("{LOCK_TABLES}; {}", table.postgres);
            let result = self.connection()?.batch(&sql).await;
            result.map_err(|problem| self.failure(problem, false))
        })
    }

    fn commit<'a>(mut self: Box<Self>) -> Answer<'a, ()> {
        Box::pin(async move {
            let purpose = self.purpose;
            if purpose.deadline.has_passed() {
                let doing = format!("the transaction on `{}`", self.database);
                self.roll_back().await;
                return Err(purpose.deadline.failure(&doing).into());
            }
            if purpose.writes
                && let Err(problem) = self.connection()?.batch("COMMIT").await
            {
                let error = self.failure(problem, true);
                // A refused commit has ended the transaction; a lost one has lost the connection.
                self.roll_back().await;
                return Err(error);
            }
            self.give_back();
            Ok(())
        })
    }

    fn rollback<'a>(
        mut self: Box<Self>,
        cause: SessionError,
    ) -> Pin<Box<dyn Future<Output = SessionError> + Send + 'a>> {
        Box::pin(async move {
            self.roll_back().await;
            cause
        })
    }
}

impl PostgresSession {
    async fn roll_back(&mut self) {
        let (writes, is_sound) = (self.purpose.writes, self.is_sound);
        let Ok(connection) = self.connection() else {
            return;
        };
        if !is_sound || connection.has_ended() {
            return;
        }
        connection.cut_at = Instant::now() + GRACE;
        if !writes || connection.batch("ROLLBACK").await.is_ok() {
            self.give_back();
        }
    }

    /// Gives the connection back for others where its settings are those of the beginning.
    fn give_back(&mut self) {
        if let Some((permit, connection)) = self.held.take()
            && connection.is_unchanged()
        {
            permit.give_back(connection);
        }
    }
}
