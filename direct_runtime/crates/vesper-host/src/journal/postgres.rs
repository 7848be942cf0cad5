//! A journal in Postgres, for services of several machines.
//!
//! A commit of lines is one statement, which checks the fence, moves the head, prolongs the lease and inserts: one
//! journey to the server and back. The server itself syncs for all that commit at the same time. Leases are judged by
//! its clock. Runs that write nothing use sessions that do not wait for the disk, as `synchronous = NORMAL` does in a
//! file.

mod cells;
mod statements;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ring::hmac;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use crate::journal::audit::write_audit;
use crate::journal::batch::Batch;
use crate::journal::postgres::cells::cells_of;
use crate::journal::schema::{self, check_version, version_of};
use crate::journal::store::{Cell, Store, Transaction, Work};
use crate::journal::writing::write_batch;
use crate::journal::{ErrorKind, JournalError};
use crate::per_process::PerProcess;
use crate::postgres::dsn::{BadDsn, Dsn};
use crate::postgres::pool::{Lent, MAX_SESSIONS, NotLent, Pool};
use crate::postgres::session::{Problem, Session};
use crate::sources::kill_point;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const STATEMENT_SECONDS: u64 = 30;
/// Longer than the server's own limit, so that its report arrives.
const ANSWER_LIMIT: Duration = Duration::from_secs(STATEMENT_SECONDS + 5);
/// An arbitrary number that other programs are unlikely to lock.
const MIGRATION_LOCK: i64 = 0x7665_7370;
const MAX_REPORT: usize = 300;
/// Kept signals and limits of queues rely on it: a statement behind a lock sees what was committed before.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// The state of one process.
#[derive(Debug, Default)]
struct Here {
    pool: Pool,
    /// Hashes of definitions that were seen in the store; they may have been pruned since.
    definitions: Mutex<HashSet<String>>,
}

/// A journal in the database of a DSN.
pub struct PostgresStore {
    dsn: Dsn,
    name: String,
    audit_key: Option<hmac::Key>,
    processes: PerProcess<Here>,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PostgresStore({})", self.name)
    }
}

impl PostgresStore {
    /// Creates the store of a database, which is connected to at its first use.
    pub fn new(dsn: &str, audit_key: Option<hmac::Key>) -> Result<Self, JournalError> {
        let dsn = Dsn::parse(dsn).map_err(bad_dsn)?;
        Ok(Self {
            name: dsn.name(),
            dsn,
            audit_key,
            processes: PerProcess::default(),
        })
    }

    fn here(&self) -> &Here {
        self.processes.get()
    }

    /// Works with a session of this thread.
    fn using<T>(
        &self,
        is_synced: bool,
        work: impl FnOnce(&mut Session) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let here = self.here();
        let patience = Duration::from_secs(STATEMENT_SECONDS);
        let lent = here.pool.lend(is_synced, patience, || self.open(is_synced));
        let mut lent: Lent<'_> = lent.map_err(|problem| match problem {
            NotLent::Failed(problem) => self.error(&problem),
            NotLent::Crowded => self.failed(format!(
                "all {MAX_SESSIONS} connections have been in use for {STATEMENT_SECONDS} s"
            )),
        })?;
        let session = lent.session().map_err(|problem| self.error(&problem))?;
        if !here.pool.is_ready() {
            self.make_tables(session)?;
            here.pool.set_ready();
        }
        work(session)
    }

    fn open(&self, is_synced: bool) -> Result<Session, Problem> {
        let target = self.dsn.resolve(|name| std::env::var(name).ok());
        let target = target
            .map_err(|_| Problem::Lost("an environment variable of libpq cannot be read".to_owned()))?;
        let mut session = Session::open(&target, CONNECT_LIMIT, ANSWER_LIMIT)?;
        // Repeated statements find rows by key: planning them again takes longer. A stricter level than `on`, set by
        // the administrator, stays.
        let level = if is_synced {
            "SELECT set_config('synchronous_commit', 'on', false) \
             WHERE current_setting('synchronous_commit') IN ('off', 'local')"
        } else {
            "SET synchronous_commit = off"
        };
        session.batch(&format!(
            "SET statement_timeout = {}; SET plan_cache_mode = force_generic_plan; {level}",
            STATEMENT_SECONDS * 1000
        ))?;
        Ok(session)
    }

    /// Works in a transaction that `begin` begins; commits it, or rolls it back where the work fails.
    fn within<T>(
        &self,
        session: &mut Session,
        begin: &str,
        locking: &'static str,
        work: impl FnOnce(&mut PostgresTransaction<'_>) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let ready = session.begin(begin).map_err(|problem| self.error(&problem));
        let worked = ready.and_then(|()| {
            work(&mut PostgresTransaction {
                store: self,
                session,
                locking,
            })
        });
        let done = worked.and_then(|found| {
            kill_point("commit.written");
            session.commit().map_err(|problem| self.error(&problem))?;
            Ok(found)
        });
        if done.is_err() {
            session.roll_back();
        }
        done
    }

    fn make_tables(&self, session: &mut Session) -> Result<(), JournalError> {
        let mut looking = PostgresTransaction {
            store: self,
            session,
            locking: "",
        };
        let known = looking.rows("SELECT 1 WHERE to_regclass('vesper_migrations') IS NOT NULL", &[])?;
        if !known.is_empty() {
            let version = version_of(&mut looking)?;
            check_version(version, &self.name)?;
            if version == schema::VERSION {
                return Ok(());
            }
        }
        self.within(session, "BEGIN", "", |transaction| {
            // One process at a time makes tables.
            transaction.rows(
                "SELECT pg_advisory_xact_lock(?)",
                &[Cell::Integer(MIGRATION_LOCK)],
            )?;
            schema::migrate(transaction, &self.name, schema::POSTGRES)
        })
    }

    fn failed(&self, text: impl std::fmt::Display) -> JournalError {
        JournalError::new(ErrorKind::Journal, format!("{}: {text}", self.name))
    }

    /// Returns the report of the server as an error with a remedy.
    fn error(&self, problem: &Problem) -> JournalError {
        let text = match problem {
            Problem::Refused(code, _) if *code == SqlState::DISK_FULL => {
                "the disk of the server is full; nothing was written. Make room".to_owned()
            }
            Problem::Refused(code, _) if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
                "the server only reads: it is a standby, or the database is read-only; nothing was written"
                    .to_owned()
            }
            Problem::Refused(code, _) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                "this user may not use the tables of the journal".to_owned()
            }
            Problem::Refused(code, _)
                if [SqlState::QUERY_CANCELED, SqlState::LOCK_NOT_AVAILABLE].contains(code) =>
            {
                format!("the server did not answer within {STATEMENT_SECONDS} s; somebody may hold a lock")
            }
            Problem::Refused(code, _) if !is_operational(code) => "the journal cannot be used".to_owned(),
            Problem::Driver(_) => "the journal cannot be used".to_owned(),
            Problem::Refused(..) | Problem::Lost(_) => {
                "the server of the journal cannot be reached, or ended the connection".to_owned()
            }
        };
        let report: String = problem.report().chars().take(MAX_REPORT).collect();
        self.failed(format!("{text} (PostgreSQL: {report})"))
    }

    fn knows(&self, definition: &str) -> bool {
        let known = self
            .here()
            .definitions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.contains(definition)
    }

    fn learn(&self, definition: &str) {
        let mut known = self
            .here()
            .definitions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.insert(definition.to_owned());
    }

    /// Writes a batch in a transaction of several statements.
    fn submit_parts(&self, batch: &mut Batch) -> Result<(), JournalError> {
        // Without the lock of an UPDATE another process could take the run over meanwhile.
        batch.is_prolonged = true;
        self.using(batch.is_synced, |session| {
            self.within(session, BEGIN, " FOR UPDATE", |transaction| {
                write_batch(transaction, batch)?;
                write_audit(transaction, [&*batch], self.audit_key.as_ref())
            })
        })?;
        if let (Some(birth), None) = (&batch.birth, &batch.error) {
            self.learn(&birth.definition.semantic_hash);
        }
        Ok(())
    }
}

impl Store for PostgresStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn submit(&self, mut batch: Batch) -> Result<i64, JournalError> {
        let is_done = match statements::of(&batch, |definition| self.knows(definition)) {
            None => false,
            Some(statement) => {
                let found = self.using(batch.is_synced, |session| {
                    kill_point("commit.written");
                    statement.run(session).map_err(|problem| self.error(&problem))
                })?;
                statement.is_done(found.as_deref(), &mut batch)
            }
        };
        if !is_done {
            self.submit_parts(&mut batch)?;
        }
        match batch.error.take() {
            Some(error) => Err(error),
            None => Ok(batch.run),
        }
    }

    fn reading(&self, work: &mut Work<'_>) -> Result<(), JournalError> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
        self.using(true, |session| {
            self.within(session, begin, "", |transaction| work(transaction))
        })
    }

    fn writing(&self, work: &mut Work<'_>) -> Result<(), JournalError> {
        self.using(true, |session| {
            self.within(session, BEGIN, " FOR UPDATE", |transaction| work(transaction))
        })
    }

    /// Vacuums the table of keys: deleted rows are gone from it then. The server's log is its administrator's.
    fn scrub(&self) -> Result<(), JournalError> {
        self.using(true, |session| {
            session
                .batch("VACUUM vesper_keys")
                .map_err(|problem| self.error(&problem))
        })
    }

    fn lock_for_prune(&self, transaction: &mut dyn Transaction) -> Result<(), JournalError> {
        // Also runs that begin wait: they rely on a definition that they find.
        let lock = "LOCK TABLE vesper_executions, vesper_blobs, vesper_blob_uses, vesper_definitions \
                    IN SHARE ROW EXCLUSIVE MODE";
        transaction.run(lock, &[]).map(drop)
    }

    fn close(&self) {
        self.here().pool.close();
    }
}

/// A transaction of a session.
struct PostgresTransaction<'a> {
    store: &'a PostgresStore,
    session: &'a mut Session,
    locking: &'static str,
}

impl Transaction for PostgresTransaction<'_> {
    fn rows(&mut self, sql: &str, parameters: &[Cell]) -> Result<Vec<Vec<Cell>>, JournalError> {
        let rows = self.session.rows(&numbered(sql), &values(parameters));
        let rows = rows.map_err(|problem| self.store.error(&problem))?;
        rows.iter()
            .map(|row| cells_of(row).map_err(|error| self.store.error(&error.into())))
            .collect()
    }

    fn run(&mut self, sql: &str, parameters: &[Cell]) -> Result<u64, JournalError> {
        let changed = self.session.execute(&numbered(sql), &values(parameters));
        changed.map_err(|problem| self.store.error(&problem))
    }

    fn now_us(&mut self) -> Result<i64, JournalError> {
        let rows = self.rows(&format!("SELECT {}", statements::NOW), &[])?;
        rows.first()
            .and_then(|row| row.first())
            .unwrap_or(&Cell::Null)
            .integer()
    }

    fn locking(&self) -> &'static str {
        self.locking
    }

    fn exclude(&mut self, name: &str) -> Result<(), JournalError> {
        let sql = "SELECT pg_advisory_xact_lock(hashtextextended(?::text, 0))";
        self.rows(sql, &[Cell::Text(name.to_owned())]).map(drop)
    }

    fn listed(&self) -> &'static str {
        "(SELECT value::bigint FROM json_array_elements_text((?::text)::json))"
    }
}

fn values(parameters: &[Cell]) -> Vec<&(dyn ToSql + Sync)> {
    parameters
        .iter()
        .map(|cell| cell as &(dyn ToSql + Sync))
        .collect()
}

/// Returns our SQL, written with `?`, with numbered parameters; no literal in it has a `?`.
fn numbered(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len() + 16);
    for (index, part) in sql.split('?').enumerate() {
        if index > 0 {
            let _ = write!(text, "${index}"); // Writing to a string cannot fail.
        }
        text.push_str(part);
    }
    text
}

/// Returns true for codes of the server's operation: its resources, its administrator, its accounts.
fn is_operational(code: &SqlState) -> bool {
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "28" | "3D" | "53" | "55" | "57" | "58")
}

fn bad_dsn(bad: BadDsn) -> JournalError {
    let message = match bad.unsupported {
        None => "the DSN of the journal cannot be read: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE` is expected, \
            with special signs escaped as in a URL"
            .to_owned(),
        Some(name) => format!("the DSN of the journal has the parameter `{name}`, which is not supported: leave it out"),
    };
    JournalError::new(ErrorKind::Journal, message)
}
