//! Deletes runs that have ended, with their keys, and what only they used.

use std::collections::{HashMap, HashSet};

use crate::journal::cells::{integer, text};
use crate::journal::reading::places;
use crate::journal::store::{Cell, Transaction};
use crate::journal::{ErrorKind, JournalError};

/// Runs that one transaction deletes, so that no writer waits long.
const PART: usize = 200;

/// Which runs are pruned: those that ended before a time and are in no queue, of one node or of all.
#[derive(Clone, Debug)]
pub(crate) struct Prunable {
    condition: String,
    values: Vec<Cell>,
}

impl Prunable {
    pub(crate) fn new(before_us: i64, node: Option<&str>) -> Self {
        let mut values = vec![Cell::Integer(before_us), Cell::Integer(before_us)];
        // A row is that of a dead letter, or of a run whose end a worker has not seen.
        let mut condition = "status = 'ended' AND updated_us < ? AND started_us < ? \
            AND NOT EXISTS (SELECT 1 FROM vesper_due WHERE vesper_due.run = vesper_executions.id)"
            .to_owned();
        if let Some(node) = node {
            condition.push_str(" AND node_id = ?");
            values.push(Cell::Text(node.to_owned()));
        }
        Self { condition, values }
    }

    /// Counts the runs.
    pub(crate) fn count(&self, transaction: &mut dyn Transaction) -> Result<u64, JournalError> {
        let sql = format!("SELECT COUNT(*) FROM vesper_executions WHERE {}", self.condition);
        let rows = transaction.rows(&sql, &self.values)?;
        let count = integer(rows.first().and_then(|row| row.first()))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Deletes some of the runs; returns their number, which is 0 when none is left.
    pub(crate) fn delete_part(&self, transaction: &mut dyn Transaction) -> Result<u64, JournalError> {
        let sql = format!(
            "SELECT id FROM vesper_executions WHERE {} ORDER BY id LIMIT {PART}",
            self.condition
        );
        let runs = transaction.rows(&sql, &self.values)?;
        for row in &runs {
            let id = integer(row.first())?;
            let run = [Cell::Integer(id)];
            transaction.run(
                "DELETE FROM vesper_commits WHERE place >= ? AND place < ?",
                &places(id),
            )?;
            transaction.run("DELETE FROM vesper_blob_uses WHERE run = ?", &run)?;
            transaction.run("DELETE FROM vesper_keys WHERE run = ?", &run)?;
            transaction.run("DELETE FROM vesper_due WHERE run = ?", &run)?;
            transaction.run("DELETE FROM vesper_signals WHERE run = ?", &run)?;
            transaction.run("DELETE FROM vesper_executions WHERE id = ?", &run)?;
        }
        Ok(u64::try_from(runs.len()).unwrap_or(u64::MAX))
    }
}

/// Deletes signals to no single run that came before a time.
pub(crate) fn delete_signals(transaction: &mut dyn Transaction, before_us: i64) -> Result<u64, JournalError> {
    let sql = "DELETE FROM vesper_signals WHERE run IS NULL AND at_us < ?";
    transaction.run(sql, &[Cell::Integer(before_us)])
}

/// Deletes blobs that no run uses, and definitions that no run is pinned to, not even by a call.
pub(crate) fn delete_unused(transaction: &mut dyn Transaction) -> Result<(), JournalError> {
    transaction.run(
        "DELETE FROM vesper_blobs WHERE NOT EXISTS \
         (SELECT 1 FROM vesper_blob_uses WHERE vesper_blob_uses.name = vesper_blobs.name)",
        &[],
    )?;
    let mut callees = HashMap::new();
    for row in transaction.rows("SELECT semantic_hash, callees FROM vesper_definitions", &[])? {
        callees.insert(text(row.first())?.to_owned(), hashes(text(row.get(1))?)?);
    }
    let mut waiting = Vec::new();
    for row in transaction.rows("SELECT DISTINCT semantic_hash FROM vesper_executions", &[])? {
        waiting.push(text(row.first())?.to_owned());
    }
    let mut needed = HashSet::new();
    while let Some(name) = waiting.pop() {
        if let Some(called) = callees.get(&name).filter(|_| !needed.contains(&name)) {
            waiting.extend(called.iter().cloned());
        }
        needed.insert(name);
    }
    for name in callees.into_keys().filter(|name| !needed.contains(name)) {
        transaction.run(
            "DELETE FROM vesper_definitions WHERE semantic_hash = ?",
            &[Cell::Text(name)],
        )?;
    }
    Ok(())
}

/// Reads the semantic hashes of called nodes.
pub(crate) fn hashes(text: &str) -> Result<Vec<String>, JournalError> {
    serde_json::from_str(text).map_err(|_| {
        let message = "the called nodes of a definition cannot be read: somebody changed the journal";
        JournalError::new(ErrorKind::Journal, message)
    })
}
