//! The statements of a commit, the same on every store.

use vesper_ir::json::quote;

use crate::journal::batch::{Batch, Birth, Definition, Row};
use crate::journal::due::{take_kept, write_due};
use crate::journal::lines::Blob;
use crate::journal::schema::PLACES;
use crate::journal::store::{Cell, Transaction};
use crate::journal::{ErrorKind, JournalError, Status};

const BEGIN: &str = "INSERT INTO vesper_executions (execution, node_id, semantic_hash, status, outcome, owner, fence, \
     lease_until_us, started_us, updated_us, engine, is_joined, is_sensitive, is_synced, head_seq, head_hash, run_key) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id";
const IS_OURS: &str = "SELECT 1 FROM vesper_executions WHERE id = ? AND fence = ?";
const PROLONG: &str =
    "UPDATE vesper_executions SET lease_until_us = ?, updated_us = ? WHERE id = ? AND fence = ?";
const ADVANCE: &str = "UPDATE vesper_executions SET lease_until_us = ?, updated_us = ?, head_seq = ?, head_hash = ? \
     WHERE id = ? AND fence = ?";
const CHANGE: &str = "UPDATE vesper_executions SET lease_until_us = ?, updated_us = ?, head_seq = ?, head_hash = ?, \
     status = ?, outcome = ? WHERE id = ? AND fence = ?";
const LINES: &str = "INSERT INTO vesper_commits (place, lines, hashes) VALUES (?, ?, ?)";
const BLOB: &str = "INSERT INTO vesper_blobs (name, size, is_compressed, data) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING";
const BLOB_USE: &str =
    "INSERT INTO vesper_blob_uses (run, name) VALUES (?, ?) ON CONFLICT (run, name) DO NOTHING";
const DEFINITION: &str = "INSERT INTO vesper_definitions (semantic_hash, node_id, path, source, ir, callees) \
     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (semantic_hash) DO NOTHING";

/// Writes a batch but for its lines of the audit log.
///
/// One that is refused gets its `error`, and nothing of it is written: the refusal comes with the first statement.
pub fn write_batch(transaction: &mut dyn Transaction, batch: &mut Batch) -> Result<(), JournalError> {
    if !batch.is_of_run() {
        return Ok(());
    }
    let kept = match batch.due.clone() {
        Some(change) => take_kept(transaction, batch, &change)?,
        None => None,
    };
    if let Some(kept) = &kept {
        batch.go_on(&kept.next);
    }
    let now = transaction.now_us()?;
    let is_accepted = match batch.birth.clone() {
        Some(birth) => begin(transaction, batch, &birth, now)?,
        None => update(transaction, batch, now)?,
    };
    if is_accepted {
        write_rows(
            transaction,
            batch.run,
            &batch.rows,
            batch.blobs.iter().map(AsRef::as_ref),
        )?;
        if let Some(kept) = kept {
            kept.remove(transaction)?;
        }
        write_due(transaction, batch, now)?;
    }
    Ok(())
}

/// Writes rows of lines and their blobs.
pub fn write_rows<'a>(
    transaction: &mut dyn Transaction,
    run: i64,
    rows: &[Row],
    blobs: impl IntoIterator<Item = &'a Blob>,
) -> Result<(), JournalError> {
    for row in rows {
        let place = Cell::Integer(place_of(run, row.first));
        let values = [
            place,
            Cell::Bytes(row.lines.clone()),
            Cell::Bytes(row.hashes.clone()),
        ];
        transaction.run(LINES, &values)?;
    }
    for blob in blobs {
        let values = [
            Cell::Text(blob.name.clone()),
            Cell::Integer(blob.size.try_into().unwrap_or(i64::MAX)),
            Cell::Integer(blob.is_compressed.into()),
            Cell::Bytes(blob.data.clone()),
        ];
        transaction.run(BLOB, &values)?;
        transaction.run(BLOB_USE, &[Cell::Integer(run), Cell::Text(blob.name.clone())])?;
    }
    Ok(())
}

/// Returns the place of a row of lines whose first line has this number.
pub fn place_of(run: i64, first: u64) -> i64 {
    run * PLACES + number(first)
}

/// Returns the error of a run that belongs to another process.
pub fn fenced(execution: &str) -> JournalError {
    JournalError::new(
        ErrorKind::Fenced,
        format!(
            "execution {execution} is no longer this process's: another one has taken it over, or it was resolved or \
             pruned; nothing was written"
        ),
    )
}

fn number(number: u64) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn update(transaction: &mut dyn Transaction, batch: &mut Batch, now: i64) -> Result<bool, JournalError> {
    let lease = now + batch.lease_us;
    let ours = [Cell::Integer(batch.run), Cell::Integer(batch.fence)];
    let head = [
        Cell::Integer(number(batch.head_seq)),
        Cell::Bytes(batch.head_hash.to_vec()),
    ];
    let is_ours = if !batch.is_prolonged {
        !transaction.rows(IS_OURS, &ours)?.is_empty()
    } else if batch.rows.is_empty() && batch.status.is_none() {
        let values = [&[Cell::Integer(lease), Cell::Integer(now)], &ours[..]].concat();
        transaction.run(PROLONG, &values)? > 0
    } else if let Some(status) = batch.status {
        let change = [
            Cell::Text(status.name().to_owned()),
            batch.outcome.clone().map_or(Cell::Null, Cell::Text),
        ];
        let lease = Cell::Integer(lease_of(status, lease));
        let values = [&[lease, Cell::Integer(now)], &head[..], &change[..], &ours[..]].concat();
        transaction.run(CHANGE, &values)? > 0
    } else {
        let values = [&[Cell::Integer(lease), Cell::Integer(now)], &head[..], &ours[..]].concat();
        transaction.run(ADVANCE, &values)? > 0
    };
    if !is_ours {
        batch.error = Some(fenced(&batch.execution));
    }
    Ok(is_ours)
}

/// Returns the end of a lease: a run that has ended, or that is in doubt, belongs to no process.
fn lease_of(status: Status, lease: i64) -> i64 {
    if status == Status::Running { lease } else { 0 }
}

fn begin(
    transaction: &mut dyn Transaction,
    batch: &mut Batch,
    birth: &Birth,
    now: i64,
) -> Result<bool, JournalError> {
    let status = batch.status.unwrap_or(Status::Running);
    let definition = &birth.definition;
    let values = [
        Cell::Text(batch.execution.as_ref().to_owned()),
        Cell::Text(definition.node_id.clone()),
        Cell::Text(definition.semantic_hash.clone()),
        Cell::Text(status.name().to_owned()),
        batch.outcome.clone().map_or(Cell::Null, Cell::Text),
        Cell::Text(birth.owner.clone()),
        Cell::Integer(batch.fence),
        Cell::Integer(lease_of(status, now + batch.lease_us)),
        Cell::Integer(birth.started_us),
        Cell::Integer(now),
        Cell::Text(birth.engine.clone()),
        Cell::Integer(birth.is_joined.into()),
        Cell::Integer(birth.is_sensitive.into()),
        Cell::Integer(birth.is_synced.into()),
        Cell::Integer(number(batch.head_seq)),
        Cell::Bytes(batch.head_hash.to_vec()),
        birth.run_key.clone().map_or(Cell::Null, Cell::Text),
    ];
    let found = transaction.rows(BEGIN, &values)?;
    let Some(id) = found.first().and_then(|row| row.first()) else {
        let holder = match &birth.run_key {
            Some(key) => holder_of(transaction, key)?.filter(|holder| **holder != *batch.execution),
            None => None,
        };
        batch.error = Some(match holder {
            Some(holder) => JournalError::new(ErrorKind::KeyTaken, holder),
            None => JournalError::new(
                ErrorKind::Journal,
                format!(
                    "the journal has an execution {} already: its id must be new",
                    batch.execution
                ),
            ),
        });
        return Ok(false);
    };
    batch.run = id.integer()?;
    write_definition(transaction, definition)?;
    if let Some(key) = &birth.key {
        let values = [
            Cell::Integer(batch.run),
            Cell::Text(key.master.clone()),
            Cell::Bytes(key.data.clone()),
        ];
        transaction.run(
            "INSERT INTO vesper_keys (run, master, wrapped) VALUES (?, ?, ?)",
            &values,
        )?;
    }
    Ok(true)
}

/// Returns the execution that has a key.
fn holder_of(transaction: &mut dyn Transaction, key: &str) -> Result<Option<String>, JournalError> {
    let sql = "SELECT execution FROM vesper_executions WHERE run_key = ?";
    let rows = transaction.rows(sql, &[Cell::Text(key.to_owned())])?;
    let found = rows.first().and_then(|row| row.first());
    found.map(|cell| Ok(cell.text()?.to_owned())).transpose()
}

/// Stores a definition and those that it calls, unless they are there: the first one stored stays.
fn write_definition(transaction: &mut dyn Transaction, definition: &Definition) -> Result<(), JournalError> {
    let known = "SELECT 1 FROM vesper_definitions WHERE semantic_hash = ?";
    let name = [Cell::Text(definition.semantic_hash.clone())];
    if !transaction.rows(known, &name)?.is_empty() {
        return Ok(());
    }
    let mut waiting = vec![definition];
    let mut seen: Vec<&str> = Vec::new();
    while let Some(each) = waiting.pop() {
        if seen.contains(&each.semantic_hash.as_str()) {
            continue;
        }
        seen.push(&each.semantic_hash);
        let values = [
            Cell::Text(each.semantic_hash.clone()),
            Cell::Text(each.node_id.clone()),
            Cell::Text(each.path.clone()),
            Cell::Text(each.source.clone()),
            Cell::Bytes(each.ir.clone()),
            Cell::Text(callees_of(each)),
        ];
        transaction.run(DEFINITION, &values)?;
        waiting.extend(each.callees.iter().map(AsRef::as_ref));
    }
    Ok(())
}

/// Returns the hashes of called nodes as JSON, with a blank behind each comma.
fn callees_of(definition: &Definition) -> String {
    let mut text = String::from("[");
    for (index, callee) in definition.callees.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        quote(&callee.semantic_hash, &mut text);
    }
    text.push(']');
    text
}
