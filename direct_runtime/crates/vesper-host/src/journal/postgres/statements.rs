//! Commits that are one statement: one journey to the server and back.

use std::sync::LazyLock;

use tokio_postgres::types::ToSql;

use crate::journal::Status;
use crate::journal::batch::{Batch, Birth, Row};
use crate::journal::postgres::cells::cells_of;
use crate::journal::schema::PLACES;
use crate::journal::store::Cell;
use crate::journal::writing::fenced;
use crate::postgres::session::{Problem, Session};

/// The clock of the server in microseconds since 1970.
pub(super) const NOW: &str = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint";

static LINES: LazyLock<String> = LazyLock::new(|| {
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
        )
        INSERT INTO vesper_commits (place, lines, hashes)
        SELECT ours.id * {PLACES} + $3::bigint, $4::bytea, $5::bytea FROM ours
        RETURNING 0::bigint"
    )
});

/// Where the definition was pruned since it was seen, or the execution or a run with its key exists, no row is written.
static BEGIN: LazyLock<String> = LazyLock::new(|| {
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
        )
        SELECT id FROM born"
    )
});

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
    if !batch.blobs.is_empty() || !batch.audit.is_empty() {
        return None;
    }
    match &batch.birth {
        None => Some(Statement {
            sql: &LINES,
            values: common(batch, row, batch.status),
            is_birth: false,
        }),
        Some(birth) if birth.key.is_none() && knows(&birth.definition.semantic_hash) => {
            let mut values = common(batch, row, Some(batch.status.unwrap_or(Status::Running)));
            values.extend(of_birth(batch, birth));
            Some(Statement {
                sql: &BEGIN,
                values,
                is_birth: true,
            })
        }
        Some(_) => None,
    }
}

impl Statement {
    /// Executes the statement; returns the key of the row that it wrote, where it wrote one.
    pub(super) fn run(&self, session: &mut Session) -> Result<Option<Cell>, Problem> {
        let values: Vec<_> = self
            .values
            .iter()
            .map(|cell| cell as &(dyn ToSql + Sync))
            .collect();
        let rows = session.rows(self.sql, &values)?;
        let first = rows.first().map(cells_of).transpose()?;
        Ok(first.and_then(|cells| cells.into_iter().next()))
    }

    /// Returns true where the batch was settled; a run that begins may need more statements.
    pub(super) fn is_done(&self, found: Option<&Cell>, batch: &mut Batch) -> bool {
        match found {
            Some(Cell::Integer(run)) if self.is_birth => batch.run = *run,
            Some(_) => {}
            None if self.is_birth => return false,
            None => batch.error = Some(fenced(&batch.execution)),
        }
        true
    }
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
