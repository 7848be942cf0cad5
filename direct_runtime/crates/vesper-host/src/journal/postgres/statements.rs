//! Commits that are one statement: one journey to the server and back.

use std::sync::LazyLock;

use tokio_postgres::types::ToSql;

use crate::journal::Status;
use crate::journal::batch::{Batch, Birth, Row};
use crate::journal::due::{DueChange, Moment, Waited};
use crate::journal::postgres::cells::cells_of;
use crate::journal::schema::PLACES;
use crate::journal::store::Cell;
use crate::journal::writing::fenced;
use crate::postgres::session::{Problem, Session};

/// The clock of the server in microseconds since 1970.
pub(super) const NOW: &str = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint";

/// Moves the row of a run that is ours.
static OURS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH ours AS (
            UPDATE vesper_executions
            SET lease_until_us =
                    CASE WHEN COALESCE($9::text, 'running') = 'running' THEN {NOW} + $8::bigint ELSE 0 END,
                updated_us = {NOW},
                head_seq = $6::bigint,
                head_hash = $7::bytea,
                status = COALESCE($9::text, status),
                outcome = COALESCE($10::text, outcome)
            WHERE id = $1::bigint AND fence = $2::bigint
            RETURNING id
        )"
    )
});

static LINES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}
        INSERT INTO vesper_commits (place, lines, hashes)
        SELECT ours.id * {PLACES} + $3::bigint, $4::bytea, $5::bytea FROM ours
        RETURNING 0::bigint",
        *OURS
    )
});

/// The same for a run whose row of due work goes.
static LAST_LINES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}, gone AS (DELETE FROM vesper_due WHERE run IN (SELECT id FROM ours))
        INSERT INTO vesper_commits (place, lines, hashes)
        SELECT ours.id * {PLACES} + $3::bigint, $4::bytea, $5::bytea FROM ours
        RETURNING 0::bigint",
        *OURS
    )
});

/// The same for a run that begins to wait.
static WAIT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}, written AS (
            INSERT INTO vesper_commits (place, lines, hashes)
            SELECT ours.id * {PLACES} + $3::bigint, $4::bytea, $5::bytea FROM ours
        ), {}
        SELECT 0::bigint, due_us FROM placed",
        *OURS,
        placed("ours", 11)
    )
});

/// Where the definition was pruned since it was seen, or the execution or a run with its key exists, no row is written.
static BORN: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH born AS (
            INSERT INTO vesper_executions (
                execution, node_id, semantic_hash, status, outcome, owner, fence, lease_until_us, started_us,
                updated_us, engine, is_joined, is_sensitive, is_synced, head_seq, head_hash, run_key
            )
            SELECT
                $11::text, $12::text, $13::text, $9::text, $10::text, $14::text, $2::bigint,
                CASE WHEN $9::text = 'running' THEN {NOW} + $8::bigint ELSE 0 END,
                $15::bigint, {NOW}, $16::text, $17::bigint, $18::bigint, $19::bigint, $6::bigint, $7::bytea,
                $20::text
            WHERE EXISTS (SELECT 1 FROM vesper_definitions WHERE semantic_hash = $13::text) AND $1::bigint = 0
            ON CONFLICT DO NOTHING
            RETURNING id
        ), written AS (
            INSERT INTO vesper_commits (place, lines, hashes)
            SELECT born.id * {PLACES} + $3::bigint, $4::bytea, $5::bytea FROM born
        )"
    )
});

static BEGIN: LazyLock<String> = LazyLock::new(|| format!("{} SELECT id FROM born", *BORN));

/// The same for a run that is queued, or that waits at its first commit.
static BEGIN_DUE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}, {} SELECT born.id, placed.due_us FROM born, placed",
        *BORN,
        placed("born", 21)
    )
});

/// Returns the part of a statement that puts the row of due work of a run; its parameters are from `first` on.
fn placed(run: &str, first: usize) -> String {
    let [at, after, kind, path, name, queue, lane, priority, attempts, body] =
        std::array::from_fn(|index| format!("${}", first + index));
    format!(
        "placed AS (
            INSERT INTO vesper_due (
                due_us, kind, run, path, name, queue, lane, priority, attempts, owner, fence, lease_until_us, body
            )
            SELECT COALESCE({at}::bigint, {NOW} + {after}::bigint), {kind}::text, {run}.id, {path}::text, {name}::text,
                {queue}::text, {lane}::text, {priority}::bigint, {attempts}::bigint, '', 0, 0, {body}::bytea
            FROM {run}
            RETURNING due_us
        )"
    )
}

/// A statement with its parameters.
pub(super) struct Statement {
    sql: &'static str,
    values: Vec<Cell>,
    is_birth: bool,
}

/// Returns the statement that writes all of a batch; None where one is not enough.
pub(super) fn of(batch: &Batch, knows: impl FnOnce(&str) -> bool) -> Option<Statement> {
    let [row] = batch.rows.as_slice() else {
        return None;
    };
    let is_more = !batch.blobs.is_empty() || !batch.audit.is_empty();
    // A wait may find a signal, and one row of due work may replace another.
    let is_complex = |change: &DueChange| change.make_result.is_some() || batch.removes_due;
    if is_more || batch.due.as_ref().is_some_and(|change| is_complex(change)) {
        return None;
    }
    let is_birth = batch.birth.is_some();
    let sql = match (is_birth, &batch.due) {
        (false, None) if batch.removes_due => &LAST_LINES,
        (false, None) => &LINES,
        (false, Some(_)) => &WAIT,
        (true, None) => &BEGIN,
        (true, Some(_)) => &BEGIN_DUE,
    };
    let mut values = match &batch.birth {
        None => common(batch, row, batch.status),
        Some(birth) if birth.key.is_none() && knows(&birth.definition.semantic_hash) => {
            let mut values = common(batch, row, Some(batch.status.unwrap_or(Status::Running)));
            values.extend(of_birth(batch, birth));
            values
        }
        Some(_) => return None,
    };
    values.extend(batch.due.iter().flat_map(|change| of_due(change)));
    Some(Statement {
        sql,
        values,
        is_birth,
    })
}

impl Statement {
    /// Executes the statement; returns the row that it returns, where it wrote one.
    pub(super) fn run(&self, session: &mut Session) -> Result<Option<Vec<Cell>>, Problem> {
        let values: Vec<_> = self
            .values
            .iter()
            .map(|cell| cell as &(dyn ToSql + Sync))
            .collect();
        let rows = session.rows(self.sql, &values)?;
        Ok(rows.first().map(cells_of).transpose()?)
    }

    /// Returns true where the batch was settled; a run that begins may need more statements.
    pub(super) fn is_done(&self, found: Option<&[Cell]>, batch: &mut Batch) -> bool {
        match found.and_then(<[Cell]>::first) {
            Some(Cell::Integer(run)) if self.is_birth => batch.run = *run,
            Some(_) => {}
            None if self.is_birth => return false,
            None => batch.error = Some(fenced(&batch.execution)),
        }
        if let (Some(change), Some([_, due_us])) = (&batch.due, found) {
            let _ = change.answer.set(Waited::Until(due_us.integer().ok())); // It was empty.
        }
        true
    }
}

/// Returns the parameters of `placed`.
fn of_due(change: &DueChange) -> [Cell; 10] {
    let due = &change.due;
    let (at, after) = match due.moment {
        Moment::At(at) => (Cell::Integer(at), Cell::Null),
        Moment::After(after) => (Cell::Null, Cell::Integer(after)),
        Moment::Never => (Cell::Null, Cell::Null),
    };
    [
        at,
        after,
        Cell::Text(due.kind.clone()),
        Cell::Text(due.path.clone()),
        Cell::Text(due.name.clone()),
        Cell::Text(due.queue.clone()),
        Cell::Text(change.lane.clone()),
        Cell::Integer(due.priority),
        Cell::Integer(due.attempts),
        Cell::Bytes(change.body.clone()),
    ]
}

fn common(batch: &Batch, row: &Row, status: Option<Status>) -> Vec<Cell> {
    vec![
        Cell::Integer(batch.run),
        Cell::Integer(batch.fence),
        number(row.first),
        Cell::Bytes(row.lines.clone()),
        Cell::Bytes(row.hashes.clone()),
        number(batch.head_seq),
        Cell::Bytes(batch.head_hash.to_vec()),
        Cell::Integer(batch.lease_us),
        status.map_or(Cell::Null, |status| Cell::Text(status.name().to_owned())),
        batch.outcome.clone().map_or(Cell::Null, Cell::Text),
    ]
}

fn of_birth(batch: &Batch, birth: &Birth) -> [Cell; 10] {
    [
        Cell::Text(batch.execution.as_ref().to_owned()),
        Cell::Text(birth.definition.node_id.clone()),
        Cell::Text(birth.definition.semantic_hash.clone()),
        Cell::Text(birth.owner.clone()),
        Cell::Integer(birth.started_us),
        Cell::Text(birth.engine.clone()),
        Cell::Integer(birth.is_joined.into()),
        Cell::Integer(birth.is_sensitive.into()),
        Cell::Integer(birth.is_synced.into()),
        birth.run_key.clone().map_or(Cell::Null, Cell::Text),
    ]
}

fn number(number: u64) -> Cell {
    Cell::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}
