//! Reads a run: its row, its key, its entries, and checks the chain.

use std::sync::Arc;

use crate::journal::cells::{data, integer, quoted, text, truncate};
use crate::journal::lines::{HASH_BYTES, Hash, first_hash, next_hash};
use crate::journal::schema::PLACES;
use crate::journal::sealing::{KeyRing, RunKey};
use crate::journal::store::{Cell, Transaction};
use crate::journal::stored_line::{
    BlobName, BlobRow, Body, Line, blob_content, plain_body, read, sealed_body,
};
use crate::journal::{ErrorKind, JournalError, Status, Stored};
use crate::sources::Sources;

/// Columns of `ExecutionRow`.
pub(crate) const COLUMNS: &str = "id, execution, node_id, semantic_hash, status, outcome, started_us, updated_us, \
    owner, fence, engine, is_joined, is_sensitive, lease_until_us, is_synced, head_seq, head_hash, run_key";

/// A run in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub execution: String,
    pub node_id: String,
    pub semantic_hash: String,
    pub status: Status,
    /// Kind of the outcome, of a run that has ended.
    pub outcome: Option<String>,
    pub started_us: i64,
    pub updated_us: i64,
    pub owner: String,
    pub fence: i64,
    pub engine: String,
    pub is_joined: bool,
    pub is_sensitive: bool,
}

/// A row of `vesper_executions`.
#[derive(Clone, Debug)]
pub(crate) struct ExecutionRow {
    pub id: i64,
    pub summary: Summary,
    pub lease_until_us: i64,
    pub is_synced: bool,
    pub head_seq: i64,
    pub head_hash: Vec<u8>,
    /// Digest of the caller's idempotency key.
    pub run_key: Option<String>,
}

impl ExecutionRow {
    /// Reads a row of `COLUMNS`.
    pub(crate) fn read(row: &[Cell]) -> Result<Self, JournalError> {
        let execution = text(row.get(1))?;
        let name = text(row.get(4))?;
        let Some(status) = Status::from_name(name) else {
            return Err(JournalError::new(
                ErrorKind::Journal,
                format!(
                    "execution {} has the status {}, which nobody knows",
                    truncate(execution, 200),
                    quoted(&truncate(name, 40))
                ),
            ));
        };
        let id = integer(row.first())?;
        if !(0..i64::MAX / PLACES).contains(&id) {
            return Err(JournalError::new(
                ErrorKind::Journal,
                format!(
                    "an execution has the number {id}, which no journal gives: somebody changed the journal"
                ),
            ));
        }
        Ok(Self {
            id,
            summary: Summary {
                execution: execution.to_owned(),
                node_id: text(row.get(2))?.to_owned(),
                semantic_hash: text(row.get(3))?.to_owned(),
                status,
                outcome: optional_text(row.get(5))?,
                started_us: integer(row.get(6))?,
                updated_us: integer(row.get(7))?,
                owner: text(row.get(8))?.to_owned(),
                fence: integer(row.get(9))?,
                engine: text(row.get(10))?.to_owned(),
                is_joined: integer(row.get(11))? != 0,
                is_sensitive: integer(row.get(12))? != 0,
            },
            lease_until_us: integer(row.get(13))?,
            is_synced: integer(row.get(14))? != 0,
            head_seq: integer(row.get(15))?,
            head_hash: data(row.get(16))?.to_vec(),
            run_key: optional_text(row.get(17))?,
        })
    }

    /// Finds the execution of this id, or the only one whose id starts so.
    pub(crate) fn find(
        transaction: &mut dyn Transaction,
        execution: &str,
        store: &str,
    ) -> Result<Self, JournalError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM vesper_executions WHERE execution >= ? AND execution < ? ORDER BY execution \
             LIMIT 2{}",
            transaction.locking()
        );
        let rows = transaction.rows(&sql, &prefix_range(execution))?;
        let asked = truncate(execution, 80);
        let unknown = |message: String| JournalError::new(ErrorKind::UnknownExecution, message);
        let Some(first) = rows.first().filter(|_| !execution.is_empty()) else {
            return Err(unknown(format!(
                "{store}: the journal has no execution `{asked}`"
            )));
        };
        let row = Self::read(first)?;
        if let Some(second) = rows.get(1).filter(|_| row.summary.execution != execution) {
            return Err(unknown(format!(
                "{store}: several executions start with `{asked}`, {} and {} among them; give more of the id",
                row.summary.execution,
                Self::read(second)?.summary.execution
            )));
        }
        Ok(row)
    }

    /// Returns the key of a sensitive run; None where there is none, or none any more.
    pub(crate) fn key(
        &self,
        transaction: &mut dyn Transaction,
        keys: &KeyRing,
        sources: &Arc<dyn Sources>,
    ) -> Result<Option<RunKey>, JournalError> {
        if !self.summary.is_sensitive {
            return Ok(None);
        }
        key_of(transaction, self.id, &self.summary.execution, keys, sources)
    }

    /// Returns the key of the run; None where it is not sensitive, or cannot be read by this process.
    pub(crate) fn usable_key(
        &self,
        transaction: &mut dyn Transaction,
        keys: &KeyRing,
        sources: &Arc<dyn Sources>,
    ) -> Result<Option<RunKey>, JournalError> {
        if !self.summary.is_sensitive {
            return Ok(None);
        }
        usable_key_of(transaction, self.id, &self.summary.execution, keys, sources)
    }

    /// Returns the entries of the run and the hash of the last one. Fails where the chain is broken.
    pub(crate) fn entries(
        &self,
        transaction: &mut dyn Transaction,
        key: Option<&RunKey>,
        store: &str,
    ) -> Result<(Vec<Stored>, Hash), JournalError> {
        let rows = transaction.rows(
            "SELECT place, lines, hashes FROM vesper_commits WHERE place >= ? AND place < ? ORDER BY place",
            &places(self.id),
        )?;
        self.entries_in(transaction, &rows, key, store)
    }

    /// Returns the entries in these rows of the run, which are all of them, and the hash of the last one.
    pub(crate) fn entries_in(
        &self,
        transaction: &mut dyn Transaction,
        rows: &[Vec<Cell>],
        key: Option<&RunKey>,
        store: &str,
    ) -> Result<(Vec<Stored>, Hash), JournalError> {
        let mut chain = Chain {
            row: self,
            store,
            key,
            entries: Vec::new(),
            last: first_hash(&self.summary.execution),
        };
        for row in rows {
            let first = integer(row.first())? - self.id * PLACES;
            chain.commit(transaction, first, data(row.get(1))?, data(row.get(2))?)?;
        }
        chain.check_length()?;
        Ok((chain.entries, chain.last))
    }
}

pub(crate) fn optional_text(cell: Option<&Cell>) -> Result<Option<String>, JournalError> {
    match cell {
        Some(Cell::Null) => Ok(None),
        cell => Ok(Some(text(cell)?.to_owned())),
    }
}

/// Returns the key of a sensitive run; None where there is none any more.
pub(crate) fn key_of(
    transaction: &mut dyn Transaction,
    run: i64,
    execution: &str,
    keys: &KeyRing,
    sources: &Arc<dyn Sources>,
) -> Result<Option<RunKey>, JournalError> {
    let Some((master, wrapped)) = wrapped_key(transaction, run)? else {
        return Ok(None);
    };
    keys.unwrap(&master, &wrapped, execution, sources.clone())
        .map(Some)
}

/// Returns the key of a run; None where it was deleted, or where this process has no master key that opens it.
pub(crate) fn usable_key_of(
    transaction: &mut dyn Transaction,
    run: i64,
    execution: &str,
    keys: &KeyRing,
    sources: &Arc<dyn Sources>,
) -> Result<Option<RunKey>, JournalError> {
    let wrapped = wrapped_key(transaction, run)?;
    Ok(wrapped.and_then(|(master, wrapped)| keys.unwrap(&master, &wrapped, execution, sources.clone()).ok()))
}

fn wrapped_key(
    transaction: &mut dyn Transaction,
    run: i64,
) -> Result<Option<(String, Vec<u8>)>, JournalError> {
    let rows = transaction.rows(
        "SELECT master, wrapped FROM vesper_keys WHERE run = ?",
        &[Cell::Integer(run)],
    )?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    Ok(Some((text(row.first())?.to_owned(), data(row.get(1))?.to_vec())))
}

/// The entries that were read so far.
struct Chain<'a> {
    row: &'a ExecutionRow,
    store: &'a str,
    key: Option<&'a RunKey>,
    entries: Vec<Stored>,
    last: Hash,
}

impl Chain<'_> {
    /// Adds the lines of one commit.
    fn commit(
        &mut self,
        transaction: &mut dyn Transaction,
        first: i64,
        lines: &[u8],
        hashes: &[u8],
    ) -> Result<(), JournalError> {
        let next = self.length() + 1;
        if first != next {
            return Err(self.broken(
                next,
                if first > next {
                    "it is missing"
                } else {
                    "it is there twice"
                },
            ));
        }
        let count = lines.split(|byte| *byte == b'\n').count();
        let (hashes, rest) = hashes.as_chunks::<HASH_BYTES>();
        if hashes.len() != count || !rest.is_empty() {
            let size = hashes.len() * HASH_BYTES + rest.len();
            return Err(self.broken(first, &format!("{count} lines have {size} bytes of hashes")));
        }
        for (line, hash) in lines.split(|byte| *byte == b'\n').zip(hashes) {
            self.line(transaction, line, hash)?;
        }
        Ok(())
    }

    fn line(
        &mut self,
        transaction: &mut dyn Transaction,
        bytes: &[u8],
        hash: &Hash,
    ) -> Result<(), JournalError> {
        let seq = self.length() + 1;
        self.last = next_hash(&self.last, bytes);
        if self.last != *hash {
            let why = "what it says is not what was written: its hash does not follow from the one before";
            return Err(self.broken(seq, why));
        }
        let line = read(bytes).map_err(|error| self.broken(seq, &error.message))?;
        if i64::try_from(line.seq) != Ok(seq) {
            return Err(self.broken(seq, &format!("it says that it is entry {}", line.seq)));
        }
        let stored = stored(transaction, line, self.key, self.last)
            .map_err(|error| self.broken(seq, &error.message))?;
        self.entries.push(stored);
        if seq == self.row.head_seq && self.last != *self.row.head_hash {
            return Err(self.broken(seq, "the row of the execution has another hash for it"));
        }
        Ok(())
    }

    fn check_length(&self) -> Result<(), JournalError> {
        let (found, expected) = (self.length(), self.row.head_seq);
        if found < expected || found > expected && self.row.summary.status != Status::Running {
            let why =
                format!("the row of the execution says that there are {expected}, and there are {found}");
            return Err(self.broken(found + 1, &why));
        }
        Ok(())
    }

    fn length(&self) -> i64 {
        i64::try_from(self.entries.len()).unwrap_or(i64::MAX)
    }

    fn broken(&self, seq: i64, why: &str) -> JournalError {
        broken(self.store, &self.row.summary.execution, seq, why)
    }
}

/// Returns the error of a chain that does not hold.
pub fn broken(store: &str, execution: &str, seq: i64, why: &str) -> JournalError {
    let message = format!("{store}: the journal of execution {execution} is broken at entry {seq}: {why}");
    JournalError::new(ErrorKind::Journal, message)
}

fn stored(
    transaction: &mut dyn Transaction,
    line: Line<'_>,
    key: Option<&RunKey>,
    hash: Hash,
) -> Result<Stored, JournalError> {
    let sealed = match (&line.body, key) {
        (Body::Plain(body), _) => Some((line.key, (*body).to_owned())),
        (Body::Sealed(_) | Body::Blob(BlobName { is_sealed: true, .. }), None) => None,
        (Body::Sealed(data), Some(key)) => Some(sealed_body(&key.open(data, line.seq)?)?),
        (Body::Blob(name), _) => {
            let content = blob(transaction, name, key, line.seq)?;
            Some(if name.is_sealed {
                sealed_body(&content)?
            } else {
                (line.key, plain_body(content)?)
            })
        }
    };
    let is_erased = sealed.is_none();
    let (key, body) = sealed.unwrap_or_else(|| (None, "{}".to_owned()));
    Ok(Stored {
        kind: line.kind,
        path: line.path,
        effect: line.effect,
        class: line.class,
        key,
        digest: line.digest,
        at_us: line.at_us,
        body,
        seq: line.seq,
        branch: line.branch,
        hash,
        is_erased,
    })
}

fn blob(
    transaction: &mut dyn Transaction,
    name: &BlobName,
    key: Option<&RunKey>,
    seq: u64,
) -> Result<Vec<u8>, JournalError> {
    let rows = transaction.rows(
        "SELECT is_compressed, data FROM vesper_blobs WHERE name = ?",
        &[Cell::Text(name.name.clone())],
    )?;
    let row = match rows.first() {
        None => None,
        Some(row) => Some(BlobRow {
            is_compressed: integer(row.first())? != 0,
            data: data(row.get(1))?,
        }),
    };
    blob_content(name, row.as_ref(), key, seq)
}

/// Returns the places of the rows of a run: from, and up to but without.
pub(crate) fn places(run: i64) -> [Cell; 2] {
    [Cell::Integer(run * PLACES), Cell::Integer((run + 1) * PLACES)]
}

/// Returns the texts between which all texts with a prefix are.
pub(crate) fn prefix_range(prefix: &str) -> [Cell; 2] {
    [
        Cell::Text(prefix.to_owned()),
        Cell::Text(format!("{prefix}\u{10ffff}")),
    ]
}
