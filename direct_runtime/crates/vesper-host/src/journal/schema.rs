//! The tables of a journal, the same on every store, and the numbered steps that make them.
//!
//! A step that was released is never changed: a later one changes its tables. A store with a higher number than the
//! last one here was made by a newer Vesper, and is refused.
//!
//! A row of `vesper_commits` holds one commit, or a part of a very large one: lines of canonical bytes separated by
//! line feeds, and their hashes one after the other. Its `place` is the id of the run and the number of its first line
//! in one integer, by which SQLite keeps the table: no index has to be written besides, and rows of a run are
//! neighbours (docs/adr/0012-a-journal-commit-is-one-row-and-one-statement.md has the measurements).

use crate::journal::store::{Cell, Transaction};
use crate::journal::{ErrorKind, JournalError};

/// More lines than a run can have: `place` is `id * PLACES + seq`.
pub const PLACES: i64 = 1 << 31;

/// Version of the tables that the last step makes.
pub const VERSION: i64 = 4;

const MIGRATIONS: &[&[&str]] = &[FIRST_TABLES, RUN_KEYS, DUE, BUDGETS];

const FIRST_TABLES: &[&str] = &[
    "CREATE TABLE vesper_executions (
            id {identity},
            execution {text} NOT NULL UNIQUE,
            node_id {text} NOT NULL,
            semantic_hash {text} NOT NULL,
            status {text} NOT NULL,
            outcome {text},
            owner {text} NOT NULL,
            fence {integer} NOT NULL,
            lease_until_us {integer} NOT NULL,
            started_us {integer} NOT NULL,
            updated_us {integer} NOT NULL,
            engine {text} NOT NULL,
            is_joined {integer} NOT NULL,
            is_sensitive {integer} NOT NULL,
            is_synced {integer} NOT NULL,
            head_seq {integer} NOT NULL,
            head_hash {bytes} NOT NULL
        ){updated}",
    "CREATE INDEX vesper_executions_open ON vesper_executions (status, id) WHERE status <> 'ended'",
    "CREATE INDEX vesper_executions_node ON vesper_executions (node_id, id)",
    "CREATE INDEX vesper_executions_started ON vesper_executions (started_us)",
    "CREATE TABLE vesper_commits (
            place {integer} PRIMARY KEY,
            lines {bytes} NOT NULL,
            hashes {bytes} NOT NULL
        )",
    "CREATE TABLE vesper_definitions (
            semantic_hash {text} PRIMARY KEY,
            node_id {text} NOT NULL,
            path {text} NOT NULL,
            source {text} NOT NULL,
            ir {bytes} NOT NULL,
            callees {text} NOT NULL
        )",
    "CREATE TABLE vesper_blobs (
            name {text} PRIMARY KEY,
            size {integer} NOT NULL,
            is_compressed {integer} NOT NULL,
            data {bytes} NOT NULL
        )",
    "CREATE TABLE vesper_blob_uses (
            run {integer} NOT NULL,
            name {text} NOT NULL,
            PRIMARY KEY (run, name)
        ){clustered}",
    "CREATE INDEX vesper_blob_uses_name ON vesper_blob_uses (name)",
    "CREATE TABLE vesper_keys (
            run {integer} PRIMARY KEY,
            master {text} NOT NULL,
            wrapped {bytes} NOT NULL
        )",
    "CREATE TABLE vesper_audit (
            seq {integer} PRIMARY KEY,
            line {bytes} NOT NULL,
            hash {bytes} NOT NULL
        )",
    "CREATE TABLE vesper_audit_head (
            one {integer} PRIMARY KEY CHECK (one = 1),
            count {integer} NOT NULL,
            hash {bytes} NOT NULL
        )",
    "INSERT INTO vesper_audit_head (one, count, hash) VALUES (1, 0, {no_hash})",
];

/// One run for each idempotency key of a caller; the digest of a key is that of `keyed::key_digest`.
const RUN_KEYS: &[&str] = &[
    "ALTER TABLE vesper_executions ADD COLUMN run_key {text}",
    "CREATE UNIQUE INDEX vesper_executions_run_key ON vesper_executions (run_key) WHERE run_key IS NOT NULL",
];

/// Work that is due at a time, at most one row for each run, and signals that came before a run waits for them.
const DUE: &[&str] = &[
    "CREATE TABLE vesper_due (
            id {identity},
            due_us {integer},
            kind {text} NOT NULL,
            run {integer},
            path {text} NOT NULL,
            name {text} NOT NULL,
            queue {text} NOT NULL,
            lane {text} NOT NULL,
            priority {integer} NOT NULL,
            attempts {integer} NOT NULL,
            owner {text} NOT NULL,
            fence {integer} NOT NULL,
            lease_until_us {integer} NOT NULL,
            body {bytes} NOT NULL
        ){updated}",
    "CREATE UNIQUE INDEX vesper_due_run ON vesper_due (run) WHERE run IS NOT NULL",
    "CREATE UNIQUE INDEX vesper_due_single ON vesper_due (kind, name) WHERE run IS NULL",
    "CREATE INDEX vesper_due_time ON vesper_due (due_us, id) WHERE kind <> 'queued'",
    "CREATE INDEX vesper_due_name ON vesper_due (name, lane) WHERE kind <> 'queued'",
    "CREATE INDEX vesper_due_queue ON vesper_due (queue, lane, priority DESC, due_us, id) WHERE kind = 'queued'",
    "CREATE INDEX vesper_due_owner ON vesper_due (owner) WHERE owner <> ''",
    "CREATE TABLE vesper_signals (
            id {identity},
            run {integer},
            name {text} NOT NULL,
            lane {text} NOT NULL,
            key {text} UNIQUE,
            body {bytes} NOT NULL,
            at_us {integer} NOT NULL,
            actor {text},
            is_taken {integer} NOT NULL
        )",
    "CREATE INDEX vesper_signals_run ON vesper_signals (run) WHERE run IS NOT NULL",
    "CREATE INDEX vesper_signals_lane ON vesper_signals (name, lane) WHERE is_taken = 0",
];

/// Counts of budgets, in the form of `policy::budget`.
const BUDGETS: &[&str] = &["CREATE TABLE vesper_budgets (
            name {text} PRIMARY KEY,
            state {text} NOT NULL,
            kept_until_us {integer}
        ){updated}"];

const MIGRATIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS vesper_migrations (version {integer} PRIMARY KEY, applied_us {integer} NOT NULL)";

/// Words of a store's SQL, by their names in the steps.
pub type Words = [(&'static str, &'static str)];

pub const SQLITE: &Words = &[
    ("{identity}", "INTEGER PRIMARY KEY AUTOINCREMENT"),
    ("{text}", "TEXT"),
    ("{integer}", "INTEGER"),
    ("{bytes}", "BLOB"),
    ("{clustered}", " WITHOUT ROWID"),
    ("{updated}", ""),
    (
        "{no_hash}",
        "x'0000000000000000000000000000000000000000000000000000000000000000'",
    ),
];

pub const POSTGRES: &Words = &[
    ("{identity}", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    ("{text}", "TEXT COLLATE \"C\""),
    ("{integer}", "BIGINT"),
    ("{bytes}", "BYTEA"),
    ("{clustered}", ""),
    // Room in the page for the new version of a row that every commit writes.
    ("{updated}", " WITH (fillfactor = 70)"),
    (
        "{no_hash}",
        "'\\x0000000000000000000000000000000000000000000000000000000000000000'",
    ),
];

/// Brings the tables of a store up to date; refuses those of a newer Vesper. `name` is the store's, for messages.
pub fn migrate(transaction: &mut dyn Transaction, name: &str, words: &Words) -> Result<(), JournalError> {
    transaction.run(&in_words(MIGRATIONS_TABLE, words), &[])?;
    let version = version_of(transaction)?;
    check_version(version, name)?;
    for (number, step) in (1..).zip(MIGRATIONS).filter(|(number, _)| *number > version) {
        for statement in *step {
            transaction.run(&in_words(statement, words), &[])?;
        }
        let now = transaction.now_us()?;
        transaction.run(
            "INSERT INTO vesper_migrations (version, applied_us) VALUES (?, ?)",
            &[Cell::Integer(number), Cell::Integer(now)],
        )?;
    }
    Ok(())
}

/// Returns the version of the tables.
pub fn version_of(transaction: &mut dyn Transaction) -> Result<i64, JournalError> {
    let rows = transaction.rows("SELECT COALESCE(MAX(version), 0) FROM vesper_migrations", &[])?;
    rows.first()
        .and_then(|row| row.first())
        .map_or(Ok(0), Cell::integer)
}

/// Refuses tables of a newer Vesper.
pub fn check_version(version: i64, name: &str) -> Result<(), JournalError> {
    if version <= VERSION {
        return Ok(());
    }
    Err(JournalError::new(
        ErrorKind::Journal,
        format!(
            "{name}: the journal has the format {version}, and this Vesper knows {VERSION}: a newer one made it; use \
             that one, or another journal"
        ),
    ))
}

fn in_words(statement: &str, words: &Words) -> String {
    let mut text = statement.to_owned();
    for (name, word) in words {
        text = text.replace(name, word);
    }
    text
}
