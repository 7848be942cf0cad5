//! Pages of recorded runs, newest first. What needs the store is read here; the rest is decoded by other threads.

use std::collections::HashMap;

use crate::journal::begin::StoreJournal;
use crate::journal::cells::integer;
use crate::journal::reading::{COLUMNS, ExecutionRow, places};
use crate::journal::schema::PLACES;
use crate::journal::store::{Cell, Transaction, read};
use crate::journal::{ErrorKind, JournalError, Status, Stored};

/// Ids between the oldest and the newest run of a page, for each run of it, up to which their lines are read together.
const MAX_SPREAD: i64 = 4;
const BLOB_MARK: &[u8] = b",\"blob\",[";

/// Which runs are replayed.
#[derive(Clone, Debug)]
pub struct Query {
    pub nodes: Vec<String>,
    pub since_us: Option<i64>,
    pub until_us: Option<i64>,
    pub limit: Option<usize>,
}

impl Query {
    fn conditions(&self, node: &str, values: &mut Vec<Cell>) -> String {
        let mut sql = String::from("node_id = ?");
        values.push(Cell::Text(node.to_owned()));
        for (condition, time) in [
            ("started_us >= ?", self.since_us),
            ("started_us < ?", self.until_us),
        ] {
            if let Some(time) = time {
                sql.push_str(" AND ");
                sql.push_str(condition);
                values.push(Cell::Integer(time));
            }
        }
        sql
    }

    /// Returns how many runs are selected.
    pub fn count(&self, journal: &StoreJournal) -> Result<u64, JournalError> {
        let mut found = 0;
        for node in &self.nodes {
            let mut values = Vec::new();
            let conditions = self.conditions(node, &mut values);
            let sql = format!("SELECT COUNT(*) FROM vesper_executions WHERE {conditions}");
            let rows = read(&*journal.store, |transaction| transaction.rows(&sql, &values))?;
            let count = integer(rows.first().and_then(|row| row.first()))?;
            found += u64::try_from(count).unwrap_or_default();
        }
        Ok(self.limit.map_or(found, |limit| found.min(limit as u64)))
    }
}

/// Reason for which a run is not replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    NotEnded(&'static str),
    Unreadable,
    Erased,
    NoInputs,
}

/// A run as it was read.
#[derive(Debug)]
pub struct RawRun {
    row: ExecutionRow,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Rows of `vesper_commits` whose lines need neither a key nor a blob.
    Rows(Vec<Vec<Cell>>),
    Decoded(Result<Vec<Stored>, Why>),
}

impl RawRun {
    pub(super) fn execution(&self) -> &str {
        &self.row.summary.execution
    }

    pub(super) fn semantic_hash(&self) -> &str {
        &self.row.summary.semantic_hash
    }

    /// Returns the entries, whose chain holds.
    pub(super) fn entries(self, store: &str) -> Result<Vec<Stored>, Why> {
        match self.content {
            Content::Decoded(found) => found,
            Content::Rows(rows) => entries_of(&self.row, &mut NoStore, &rows, None, store),
        }
    }
}

fn entries_of(
    row: &ExecutionRow,
    transaction: &mut dyn Transaction,
    rows: &[Vec<Cell>],
    key: Option<&crate::journal::sealing::RunKey>,
    store: &str,
) -> Result<Vec<Stored>, Why> {
    let found = row.entries_in(transaction, rows, key, store);
    let (entries, _) = found.map_err(|_| Why::Unreadable)?;
    if entries.iter().any(|entry| entry.is_erased) {
        return Err(Why::Erased);
    }
    Ok(entries)
}

/// Position in the selected runs.
#[derive(Debug)]
pub(super) struct Cursor {
    before: i64,
    left: Option<usize>,
}

impl Cursor {
    pub(super) fn new(limit: Option<usize>) -> Self {
        Self {
            before: i64::MAX,
            left: limit,
        }
    }

    /// Reads the next runs; none at the end.
    pub(super) fn page(
        &mut self,
        journal: &StoreJournal,
        query: &Query,
        size: usize,
    ) -> Result<Vec<RawRun>, JournalError> {
        let size = self.left.map_or(size, |left| left.min(size));
        if size == 0 {
            return Ok(Vec::new());
        }
        let page = read(&*journal.store, |transaction| {
            let rows = rows_of(transaction, query, self.before, size)?;
            contents(transaction, journal, rows)
        })?;
        if let Some(last) = page.last() {
            self.before = last.row.id;
        }
        self.left = self.left.map(|left| left.saturating_sub(page.len()));
        Ok(page)
    }
}

fn rows_of(
    transaction: &mut dyn Transaction,
    query: &Query,
    before: i64,
    size: usize,
) -> Result<Vec<ExecutionRow>, JournalError> {
    let mut found = Vec::new();
    for node in &query.nodes {
        let mut values = Vec::new();
        let conditions = query.conditions(node, &mut values);
        let sql = format!(
            "SELECT {COLUMNS} FROM vesper_executions WHERE {conditions} AND id < ? ORDER BY id DESC LIMIT ?"
        );
        values.push(Cell::Integer(before));
        values.push(Cell::Integer(i64::try_from(size).unwrap_or(i64::MAX)));
        for row in transaction.rows(&sql, &values)? {
            found.push(ExecutionRow::read(&row)?);
        }
    }
    found.sort_unstable_by_key(|row| std::cmp::Reverse(row.id));
    found.truncate(size);
    Ok(found)
}

fn contents(
    transaction: &mut dyn Transaction,
    journal: &StoreJournal,
    rows: Vec<ExecutionRow>,
) -> Result<Vec<RawRun>, JournalError> {
    let mut commits = commits_of(transaction, &rows)?;
    let mut page = Vec::with_capacity(rows.len());
    for row in rows {
        let rows = commits.remove(&row.id).unwrap_or_default();
        let content = if row.summary.status != Status::Ended {
            Content::Decoded(Err(Why::NotEnded(row.summary.status.name())))
        } else if row.summary.is_sensitive || rows.iter().any(|row| has_blob(row)) {
            let key = row.key(transaction, &journal.keys, &journal.sources);
            Content::Decoded(match key {
                Ok(key) => entries_of(&row, transaction, &rows, key.as_ref(), journal.store.name()),
                Err(_) => Err(Why::Unreadable),
            })
        } else {
            Content::Rows(rows)
        };
        page.push(RawRun { row, content });
    }
    Ok(page)
}

/// Returns the rows of lines of runs, by the id of the run.
fn commits_of(
    transaction: &mut dyn Transaction,
    rows: &[ExecutionRow],
) -> Result<HashMap<i64, Vec<Vec<Cell>>>, JournalError> {
    const SQL: &str =
        "SELECT place, lines, hashes FROM vesper_commits WHERE place >= ? AND place < ? ORDER BY place";
    let mut found: HashMap<i64, Vec<Vec<Cell>>> = HashMap::with_capacity(rows.len());
    let (Some(newest), Some(oldest)) = (rows.first(), rows.last()) else {
        return Ok(found);
    };
    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    if newest.id - oldest.id < count.saturating_mul(MAX_SPREAD) {
        let [from, _] = places(oldest.id);
        let [_, end] = places(newest.id);
        for row in transaction.rows(SQL, &[from, end])? {
            let run = integer(row.first())? / PLACES;
            found.entry(run).or_default().push(row);
        }
        return Ok(found);
    }
    for row in rows {
        found.insert(row.id, transaction.rows(SQL, &places(row.id))?);
    }
    Ok(found)
}

fn has_blob(row: &[Cell]) -> bool {
    let lines = row.get(1).and_then(|cell| cell.bytes().ok()).unwrap_or_default();
    // A value can hold these bytes too; then the lines are decoded here, which only takes longer.
    lines.windows(BLOB_MARK.len()).any(|each| each == BLOB_MARK)
}

/// The store of a thread that has none: lines in rows need no other table.
struct NoStore;

fn no_store<T>() -> Result<T, JournalError> {
    Err(JournalError::new(
        ErrorKind::Journal,
        "the lines of a run need a table that was not read",
    ))
}

impl Transaction for NoStore {
    fn rows(&mut self, _sql: &str, _parameters: &[Cell]) -> Result<Vec<Vec<Cell>>, JournalError> {
        no_store()
    }

    fn run(&mut self, _sql: &str, _parameters: &[Cell]) -> Result<u64, JournalError> {
        no_store()
    }

    fn now_us(&mut self) -> Result<i64, JournalError> {
        no_store()
    }

    fn locking(&self) -> &'static str {
        ""
    }

    fn exclude(&mut self, _name: &str) -> Result<(), JournalError> {
        no_store()
    }

    fn listed(&self) -> &'static str {
        ""
    }
}
