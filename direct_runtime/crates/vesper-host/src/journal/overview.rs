//! What commands want of a journal: lists, runs, definitions, verification, pruning, the audit log.

use std::collections::HashMap;
use std::sync::Arc;

use crate::journal::audit::audit_text;
use crate::journal::batch::{Batch, Definition};
use crate::journal::begin::StoreJournal;
use crate::journal::cells::{data, integer, text, truncate};
use crate::journal::owner::is_dead;
use crate::journal::pruning::{Prunable, delete_signals, delete_unused, hashes};
use crate::journal::reading::{COLUMNS, ExecutionRow, Summary, prefix_range};
use crate::journal::store::{Cell, Transaction, read, write};
use crate::journal::verifying::{
    definition_problems, due_problems, row_problems, stray_problems, use_problems,
};
use crate::journal::{ErrorKind, JournalError, Status, Stored};

/// Rows that one query returns, so that any number of them fits.
const PAGE: i64 = 1000;
/// Calls in one another; the language allows half as many.
const MAX_CALLS: usize = 64;

/// A run with all its entries, in order; the first is START.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub summary: Summary,
    pub entries: Vec<Stored>,
}

/// Which runs `StoreJournal::find` returns.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pub status: Option<Status>,
    pub node: Option<String>,
    pub since_us: Option<i64>,
    /// Runs to leave out at the beginning.
    pub offset: i64,
}

/// A line of the audit log as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    pub seq: i64,
    pub line: Vec<u8>,
    pub hash: Vec<u8>,
}

impl StoreJournal {
    /// Returns runs that a process should take over: running, not joined, their lease over. Oldest first.
    ///
    /// Those in a queue belong to its workers.
    /// `is_released` selects those that no process had last: woken ones, and resolved ones.
    pub fn unfinished(&self, limit: usize, is_released: bool) -> Result<Vec<Summary>, JournalError> {
        // SQLite uses the index of open runs only where its condition stands in the statement.
        let sql = format!(
            "SELECT {COLUMNS} FROM vesper_executions WHERE status <> 'ended' AND status = 'running' \
             AND is_joined = 0 AND id > ?{} \
             AND NOT EXISTS (SELECT 1 FROM vesper_due WHERE run = vesper_executions.id AND due_us IS NOT NULL) \
             ORDER BY id LIMIT ?",
            if is_released { " AND owner = ''" } else { "" }
        );
        let mut dead: HashMap<String, bool> = HashMap::new();
        let mut found = Vec::new();
        let mut last = 0;
        while found.len() < limit {
            let (now, rows) = read(&*self.store, |transaction| {
                let now = transaction.now_us()?;
                Ok((
                    now,
                    transaction.rows(&sql, &[Cell::Integer(last), Cell::Integer(PAGE)])?,
                ))
            })?;
            for cells in &rows {
                let row = ExecutionRow::read(cells)?;
                last = row.id;
                let owner = &row.summary.owner;
                if row.lease_until_us <= now || *dead.entry(owner.clone()).or_insert_with(|| is_dead(owner)) {
                    found.push(row.summary);
                }
            }
            if is_last_page(&rows) {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Returns runs, newest first.
    pub fn find(&self, query: &Query, limit: i64) -> Result<Vec<Summary>, JournalError> {
        let of_status = match query.status {
            Some(Status::Ended) | None => "status = ?",
            Some(_) => "status <> 'ended' AND status = ?", // for the index of open runs
        };
        let conditions = [
            (
                of_status,
                query.status.map(|status| Cell::Text(status.name().to_owned())),
            ),
            ("node_id = ?", query.node.clone().map(Cell::Text)),
            ("started_us >= ?", query.since_us.map(Cell::Integer)),
        ];
        let mut sql = format!("SELECT {COLUMNS} FROM vesper_executions WHERE 1 = 1");
        let mut values = Vec::new();
        for (condition, value) in conditions {
            if let Some(value) = value {
                sql.push_str(" AND ");
                sql.push_str(condition);
                values.push(value);
            }
        }
        sql.push_str(" ORDER BY started_us DESC, id DESC LIMIT ? OFFSET ?");
        values.extend([Cell::Integer(limit), Cell::Integer(query.offset)]);
        let rows = read(&*self.store, |transaction| transaction.rows(&sql, &values))?;
        rows.iter()
            .map(|cells| Ok(ExecutionRow::read(cells)?.summary))
            .collect()
    }

    /// Returns the row of a run, without its entries. A prefix of the id is enough where it is unique.
    pub fn summary(&self, execution: &str) -> Result<Summary, JournalError> {
        read(&*self.store, |transaction| {
            Ok(ExecutionRow::find(transaction, execution, self.store.name())?.summary)
        })
    }

    /// Returns a run. A prefix of the id is enough where it is unique.
    pub fn read(&self, execution: &str) -> Result<Recorded, JournalError> {
        read(&*self.store, |transaction| {
            let (row, entries) = self.read_run(transaction, execution)?;
            let summary = row.summary;
            Ok(Recorded { summary, entries })
        })
    }

    /// Reads a run as `read` does; returns where its row and its uses of blobs contradict its entries.
    pub fn verify(&self, execution: &str) -> Result<(Recorded, Vec<String>), JournalError> {
        read(&*self.store, |transaction| {
            let (row, entries) = self.read_run(transaction, execution)?;
            let mut problems = row_problems(&row, &entries);
            problems.extend(use_problems(transaction, &row)?);
            problems.extend(due_problems(transaction, &row, &entries)?);
            let summary = row.summary;
            Ok((Recorded { summary, entries }, self.with_name(problems)))
        })
    }

    /// Returns definitions that are not those of their hash, and rows that belong to no run.
    pub fn verify_shared(&self) -> Result<Vec<String>, JournalError> {
        read(&*self.store, |transaction| {
            let mut problems = definition_problems(transaction)?;
            problems.extend(stray_problems(transaction)?);
            Ok(self.with_name(problems))
        })
    }

    fn read_run(
        &self,
        transaction: &mut dyn Transaction,
        execution: &str,
    ) -> Result<(ExecutionRow, Vec<Stored>), JournalError> {
        let row = ExecutionRow::find(transaction, execution, self.store.name())?;
        let key = row.key(transaction, &self.keys, &self.sources)?;
        let (entries, _) = row.entries(transaction, key.as_ref(), self.store.name())?;
        Ok((row, entries))
    }

    fn with_name(&self, problems: Vec<String>) -> Vec<String> {
        problems
            .into_iter()
            .map(|problem| format!("{}: {problem}", self.store.name()))
            .collect()
    }

    /// Returns ids of runs that start with a prefix and come after `after`, in their order: one page, empty at the end.
    pub fn executions(&self, prefix: &str, after: Option<&str>) -> Result<Vec<String>, JournalError> {
        let [first, end] = prefix_range(prefix);
        let (comparison, first) = match after {
            None => (">=", first),
            Some(after) => (">", Cell::Text(after.to_owned())),
        };
        let sql = format!(
            "SELECT execution FROM vesper_executions WHERE execution {comparison} ? AND execution < ? \
             ORDER BY execution LIMIT ?"
        );
        let rows = read(&*self.store, |transaction| {
            transaction.rows(&sql, &[first.clone(), end.clone(), Cell::Integer(PAGE)])
        })?;
        rows.iter()
            .map(|cells| Ok(text(cells.first())?.to_owned()))
            .collect()
    }

    /// Returns the nodes that a run is pinned to, those that are only called among them.
    pub fn node_ids(&self) -> Result<Vec<String>, JournalError> {
        let sql = "SELECT DISTINCT node_id FROM vesper_definitions ORDER BY node_id";
        let rows = read(&*self.store, |transaction| transaction.rows(sql, &[]))?;
        rows.iter()
            .map(|cells| Ok(text(cells.first())?.to_owned()))
            .collect()
    }

    /// Returns a definition with all that it calls.
    pub fn definition(&self, semantic_hash: &str) -> Result<Arc<Definition>, JournalError> {
        read(&*self.store, |transaction| {
            self.read_definition(transaction, semantic_hash, &mut HashMap::new(), &mut Vec::new())
        })
    }

    fn read_definition(
        &self,
        transaction: &mut dyn Transaction,
        hash: &str,
        known: &mut HashMap<String, Arc<Definition>>,
        callers: &mut Vec<String>,
    ) -> Result<Arc<Definition>, JournalError> {
        if let Some(definition) = known.get(hash) {
            return Ok(Arc::clone(definition));
        }
        let (store, short) = (self.store.name(), truncate(hash, 80));
        let error = |message: String| JournalError::new(ErrorKind::Journal, message);
        let rows = transaction.rows(
            "SELECT node_id, path, source, ir, callees FROM vesper_definitions WHERE semantic_hash = ?",
            &[Cell::Text(hash.to_owned())],
        )?;
        let Some(row) = rows.first() else {
            return Err(error(format!("{store}: the journal has no definition {short}")));
        };
        if callers.len() > MAX_CALLS || callers.iter().any(|caller| caller == hash) {
            return Err(error(format!(
                "{store}: the definition {short} calls itself: it was changed"
            )));
        }
        callers.push(hash.to_owned());
        let mut called = Vec::new();
        for each in hashes(text(row.get(4))?)? {
            called.push(self.read_definition(transaction, &each, known, callers)?);
        }
        callers.pop();
        let definition = Arc::new(Definition {
            semantic_hash: hash.to_owned(),
            node_id: text(row.first())?.to_owned(),
            path: text(row.get(1))?.to_owned(),
            source: text(row.get(2))?.to_owned(),
            ir: data(row.get(3))?.to_vec(),
            callees: called,
        });
        known.insert(hash.to_owned(), Arc::clone(&definition));
        Ok(definition)
    }

    /// Deletes the key of a run's bodies; returns whether there was one.
    pub fn erase(&self, execution: &str) -> Result<bool, JournalError> {
        let deleted = write(&*self.store, |transaction| {
            let row = ExecutionRow::find(transaction, execution, self.store.name())?;
            transaction.run("DELETE FROM vesper_keys WHERE run = ?", &[Cell::Integer(row.id)])
        })?;
        // Also where the key was gone before: the last attempt may have ended here.
        self.store.scrub()?;
        Ok(deleted > 0)
    }

    /// Deletes runs that ended before, and blobs and definitions that no other run needs; returns how many runs.
    pub fn prune(&self, before_us: i64, node: Option<&str>) -> Result<u64, JournalError> {
        let prunable = Prunable::new(before_us, node);
        let mut pruned = 0;
        loop {
            let part = write(&*self.store, |transaction| prunable.delete_part(transaction))?;
            if part == 0 {
                break;
            }
            pruned += part;
        }
        if node.is_none() {
            write(&*self.store, |transaction| delete_signals(transaction, before_us))?;
        }
        if pruned > 0 {
            write(&*self.store, |transaction| {
                self.store.lock_for_prune(transaction)?;
                delete_unused(transaction)
            })?;
            self.store.shrink()?;
        }
        Ok(pruned)
    }

    /// Fails where the journal cannot be written: begins and commits a write that changes no row.
    pub fn check_writable(&self) -> Result<(), JournalError> {
        let sql = "UPDATE vesper_audit_head SET count = count WHERE one = 0";
        write(&*self.store, |transaction| transaction.run(sql, &[])).map(drop)
    }

    /// Returns how many runs `prune` would delete.
    pub fn prunable(&self, before_us: i64, node: Option<&str>) -> Result<u64, JournalError> {
        let prunable = Prunable::new(before_us, node);
        read(&*self.store, |transaction| prunable.count(transaction))
    }

    /// Writes lines of the audit log that belong to no run: each the typed JSON of an event. Durable when this returns.
    pub fn audit(&self, events: &[String]) -> Result<(), JournalError> {
        if events.is_empty() {
            return Ok(());
        }
        let texts = events.iter().map(|event| audit_text(event, self.limits.max_body));
        self.store
            .submit(Batch::of_audit(texts.collect::<Result<_, _>>()?))
            .map(drop)
    }

    /// Returns how many lines the audit log has had, and the hash of the last one.
    pub fn audit_head(&self) -> Result<(i64, Vec<u8>), JournalError> {
        let sql = "SELECT count, hash FROM vesper_audit_head WHERE one = 1";
        let rows = read(&*self.store, |transaction| transaction.rows(sql, &[]))?;
        let Some(row) = rows.first() else {
            let message = format!(
                "{}: the audit log has lost its head: somebody changed the journal",
                self.store.name()
            );
            return Err(JournalError::new(ErrorKind::Journal, message));
        };
        Ok((integer(row.first())?, data(row.get(1))?.to_vec()))
    }

    /// Returns lines of the audit log that come after the line `after`: one page, empty at the end.
    pub fn audit_rows(&self, after: Option<i64>) -> Result<Vec<AuditRow>, JournalError> {
        let condition = if after.is_some() { "WHERE seq > ? " } else { "" };
        let sql = format!("SELECT seq, line, hash FROM vesper_audit {condition}ORDER BY seq LIMIT ?");
        let values: Vec<Cell> = after.into_iter().chain([PAGE]).map(Cell::Integer).collect();
        let rows = read(&*self.store, |transaction| transaction.rows(&sql, &values))?;
        rows.iter()
            .map(|row| {
                Ok(AuditRow {
                    seq: integer(row.first())?,
                    line: data(row.get(1))?.to_vec(),
                    hash: data(row.get(2))?.to_vec(),
                })
            })
            .collect()
    }
}

fn is_last_page(rows: &[Vec<Cell>]) -> bool {
    i64::try_from(rows.len()).is_ok_and(|count| count < PAGE)
}
