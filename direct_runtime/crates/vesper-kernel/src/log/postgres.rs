//! A log in Postgres that several kernels share: the one whose session holds the lock writes, the others stand by.
//!
//! The server releases the lock when the session ends, after the last statement of the session. A kernel that lost its
//! session can write nothing, and the next one that has the lock reads everything that was written.

use std::time::{Duration, Instant};

use prost::Message as _;
use tokio_postgres::Row;
use vesper_host::postgres::dsn::{BadDsn, Dsn};
use vesper_host::postgres::session::{Problem, Session};

use super::{Entry, Log, LogError, encoded, read_changes, read_part};
use crate::proto::log::v1::{Change, SnapshotPart};

/// Version of the tables.
const VERSION: i64 = 1;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a session that is not used counts as held.
const HELD: Duration = Duration::from_secs(5);
/// Rows of one answer.
const PAGE: i64 = 64;

/// The server notices within seconds that the machine of the writer is gone.
const SESSION: &str =
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = 10000; SET synchronous_commit = on; SET client_min_messages = warning";
/// Of the schema that the tables are in. The first number is that of kernels.
const LOCK: &str = "SELECT pg_try_advisory_lock(1985570675, hashtext(current_schema()))";
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS vesper_kernel_version (version BIGINT PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS vesper_kernel_log (
        first BIGINT PRIMARY KEY,
        last BIGINT NOT NULL,
        changes BYTEA NOT NULL
    );
    CREATE TABLE IF NOT EXISTS vesper_kernel_snapshot (
        sequence BIGINT NOT NULL,
        part BIGINT NOT NULL,
        body BYTEA NOT NULL,
        PRIMARY KEY (sequence, part)
    );
";

const PARTS: &str = "SELECT sequence, part, body FROM vesper_kernel_snapshot
    WHERE sequence = (SELECT max(sequence) FROM vesper_kernel_snapshot) AND part >= $1 ORDER BY part LIMIT $2";
const COMMITS: &str =
    "SELECT first, last, changes FROM vesper_kernel_log WHERE last > $1 ORDER BY first LIMIT $2";

#[derive(Debug)]
pub struct PostgresLog {
    dsn: Dsn,
    /// None until the log was read, and after a failure.
    session: Option<Session>,
    used: Instant,
}

impl PostgresLog {
    /// Returns the log of a database, which is connected to when it is read.
    pub fn new(dsn: Dsn) -> Self {
        Self {
            dsn,
            session: None,
            used: Instant::now(),
        }
    }

    fn error(&self, error: &str) -> LogError {
        LogError::Failed(format!("{}: {error}", self.dsn.name()))
    }

    /// Returns a session that holds the lock, with the tables.
    fn acquire(&self) -> Result<Session, LogError> {
        let fail = |problem: &Problem| self.error(&problem.report());
        let target = self.dsn.resolve(|name| std::env::var(name).ok());
        let target = target.map_err(|BadDsn { .. }| self.error("its parameters cannot be read"))?;
        let mut session =
            Session::open(&target, CONNECT_TIMEOUT, ANSWER_TIMEOUT).map_err(|problem| fail(&problem))?;
        session.batch(SESSION).map_err(|problem| fail(&problem))?;
        let rows = session.rows(LOCK, &[]).map_err(|problem| fail(&problem))?;
        if !rows
            .first()
            .is_some_and(|row| row.try_get::<_, bool>(0).unwrap_or(false))
        {
            let name = self.dsn.name();
            return Err(LogError::HeldByOther(format!(
                "another kernel writes the log in {name}."
            )));
        }
        session.batch(TABLES).map_err(|problem| fail(&problem))?;
        let insert = "INSERT INTO vesper_kernel_version
            SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM vesper_kernel_version)";
        session
            .execute(insert, &[&VERSION])
            .map_err(|problem| fail(&problem))?;
        let rows = session
            .rows("SELECT max(version) FROM vesper_kernel_version", &[])
            .map_err(|problem| fail(&problem))?;
        match rows.first().and_then(|row| row.try_get::<_, i64>(0).ok()) {
            Some(VERSION) => Ok(session),
            version => Err(self.error(&format!(
                "its tables have version {}; this kernel knows {VERSION}. Use a newer kernel.",
                version.unwrap_or_default()
            ))),
        }
    }

    /// Runs statements on the session that holds the lock; after a failure it is not used again.
    fn with_session<T>(
        &mut self,
        run: impl FnOnce(&mut Session) -> Result<T, Problem>,
    ) -> Result<T, LogError> {
        let Some(session) = &mut self.session else {
            return Err(self.error("the session has ended"));
        };
        let done = run(session);
        self.used = Instant::now();
        done.map_err(|problem| {
            self.session = None;
            self.error(&problem.report())
        })
    }

    /// Returns rows of two numbers and a body, from a number on.
    fn page(&mut self, sql: &str, from: i64) -> Result<Vec<(i64, i64, Vec<u8>)>, LogError> {
        self.with_session(|session| {
            let rows = session.rows(sql, &[&from, &PAGE])?;
            let read = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
            rows.iter().map(read).collect()
        })
    }

    /// Returns the number of the change that the snapshot covers.
    fn read_snapshot(
        &mut self,
        reader: &mut dyn FnMut(Entry) -> Result<(), LogError>,
    ) -> Result<i64, LogError> {
        let (mut covered, mut next) = (0, 0);
        loop {
            let rows = self.page(PARTS, next)?;
            if rows.is_empty() {
                return Ok(covered);
            }
            for (sequence, part, body) in rows {
                read_part(sequence, &body, reader).map_err(|error| self.error(&error.to_string()))?;
                (covered, next) = (sequence, part + 1);
            }
        }
    }
}

impl Log for PostgresLog {
    fn read(&mut self, reader: &mut dyn FnMut(Entry) -> Result<(), LogError>) -> Result<(), LogError> {
        self.session = None;
        self.session = Some(self.acquire()?);
        let mut covered = self.read_snapshot(reader)?;
        loop {
            let rows = self.page(COMMITS, covered)?;
            if rows.is_empty() {
                return Ok(());
            }
            for (first, last, changes) in rows {
                read_changes(first, &changes, reader).map_err(|error| self.error(&error.to_string()))?;
                covered = last;
            }
        }
    }

    fn append(&mut self, first: u64, changes: &[Change]) -> Result<(), LogError> {
        let (last, body) = encoded(first, changes);
        self.with_session(|session| {
            session.execute(
                "INSERT INTO vesper_kernel_log (first, last, changes) VALUES ($1, $2, $3)",
                &[&first.cast_signed(), &last, &body],
            )
        })
        .map(drop)
    }

    fn compact(&mut self, sequence: u64, parts: &[SnapshotPart]) -> Result<(), LogError> {
        let sequence = sequence.cast_signed();
        self.with_session(|session| {
            session.begin("BEGIN; DELETE FROM vesper_kernel_snapshot")?;
            for (number, part) in (0_i64..).zip(parts) {
                session.execute(
                    "INSERT INTO vesper_kernel_snapshot (sequence, part, body) VALUES ($1, $2, $3)",
                    &[&sequence, &number, &part.encode_to_vec()],
                )?;
            }
            session.execute("DELETE FROM vesper_kernel_log WHERE last <= $1", &[&sequence])?;
            session.commit()
        })
    }

    fn confirm(&mut self) -> Result<(), LogError> {
        let is_recent = self.used.elapsed() < HELD;
        self.with_session(|session| {
            if !session.is_alive() {
                return Err(Problem::Lost("the server has ended the session".to_owned()));
            }
            if is_recent {
                Ok(())
            } else {
                session.batch("SELECT 1")
            }
        })
    }
}
