//! What one commit of one run wants written, in one transaction or not at all.

use std::sync::Arc;

use crate::journal::due::{DueChange, NextLine, Waited};
use crate::journal::lines::{Blob, HASH_BYTES, Hash};
use crate::journal::sealing::WrappedKey;
use crate::journal::{JournalError, Status};

const ROW_BYTES: usize = 256 << 10;
const ROW_LINES: usize = 1024;

/// The definition that a run is pinned to: enough to load the node again, whatever happens to its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub semantic_hash: String,
    pub node_id: String,
    pub path: String,
    pub source: String,
    pub ir: Vec<u8>,
    pub callees: Vec<Arc<Definition>>,
}

/// Needs of a run's first commit besides its entries.
#[derive(Clone, Debug)]
pub struct Birth {
    pub definition: Arc<Definition>,
    pub owner: String,
    pub engine: String,
    pub started_us: i64,
    pub is_joined: bool,
    pub is_sensitive: bool,
    pub is_synced: bool,
    pub key: Option<WrappedKey>,
    /// Digest of the caller's idempotency key.
    pub run_key: Option<String>,
}

/// A row of lines: the number of the first one, the lines separated by line feeds, their hashes one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub first: u64,
    pub lines: Vec<u8>,
    pub hashes: Vec<u8>,
}

/// One commit of one run. A store fills in `run` for a new one, and `error` where it refuses.
#[derive(Debug)]
pub struct Batch {
    pub execution: Arc<str>,
    /// Key of the run's row; 0 before the first commit.
    pub run: i64,
    pub fence: i64,
    pub rows: Vec<Row>,
    pub is_synced: bool,
    /// True where the row of the execution is written: its lease, its head.
    pub is_prolonged: bool,
    pub head_seq: u64,
    pub head_hash: Hash,
    pub lease_us: i64,
    /// None leaves the status unchanged.
    pub status: Option<Status>,
    pub outcome: Option<String>,
    pub birth: Option<Arc<Birth>>,
    pub blobs: Vec<Arc<Blob>>,
    /// Events in the form of `audit_text`.
    pub audit: Vec<String>,
    pub error: Option<JournalError>,
    /// The row in `vesper_due` that takes the place of the one that the run has.
    pub(crate) due: Option<Arc<DueChange>>,
    /// True where the run's row in `vesper_due` is deleted.
    pub removes_due: bool,
}

impl Batch {
    /// Creates a batch that writes only rows of lines.
    pub fn new(execution: Arc<str>, run: i64, fence: i64, rows: Vec<Row>, is_synced: bool) -> Self {
        Self {
            execution,
            run,
            fence,
            rows,
            is_synced,
            is_prolonged: false,
            head_seq: 0,
            head_hash: Hash::default(),
            lease_us: 0,
            status: None,
            outcome: None,
            birth: None,
            blobs: Vec::new(),
            audit: Vec::new(),
            error: None,
            due: None,
            removes_due: false,
        }
    }

    /// Creates a batch of audit lines that belong to no run.
    pub fn of_audit(events: Vec<String>) -> Self {
        Self {
            audit: events,
            ..Self::new("".into(), 0, 0, Vec::new(), true)
        }
    }

    /// Adds the RESULT of the wait that this batch would begin: the run goes on.
    pub(crate) fn go_on(&mut self, next: &NextLine) {
        self.rows.push(next.row.clone());
        self.blobs.extend(next.blob.clone().map(Arc::new));
        self.head_seq = next.row.first;
        self.head_hash = next.hash;
        self.status = None;
        if let Some(change) = &self.due {
            // Both are empty: a batch is written once.
            let _ = change.answer.set(Waited::Taken(next.body.clone()));
            let _ = change.last.set(next.hash);
        }
    }

    pub fn is_of_run(&self) -> bool {
        self.run != 0 || self.birth.is_some()
    }

    /// Returns the row of a batch that is nothing but one row of lines: one statement writes it.
    pub fn plain_row(&self) -> Option<&Row> {
        let is_more = self.is_prolonged || !self.blobs.is_empty() || !self.audit.is_empty();
        match self.rows.as_slice() {
            [row] if !is_more => Some(row),
            _ => None,
        }
    }
}

/// Lines that were appended and are not committed, in the form of their rows.
#[derive(Debug, Default)]
pub struct Lines {
    /// The lines one after the other, each with a line feed behind it.
    bytes: Vec<u8>,
    /// The end of each line in `bytes`, without its line feed.
    ends: Vec<usize>,
    hashes: Vec<u8>,
}

impl Lines {
    pub fn push(&mut self, line: &str, hash: &Hash) {
        self.bytes.extend_from_slice(line.as_bytes());
        self.ends.push(self.bytes.len());
        self.bytes.push(b'\n');
        self.hashes.extend_from_slice(hash);
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.hashes.clear();
    }

    /// Returns the number of lines up to the one with this hash; None where it has none of them.
    pub fn position_after(&self, hash: &[u8]) -> Option<usize> {
        let found = self.hashes.chunks(HASH_BYTES).position(|each| each == hash);
        found.map(|at| at + 1)
    }

    /// Removes the first lines.
    pub fn remove_first(&mut self, count: usize) {
        let start = self.start_of(count);
        self.bytes.drain(..start.min(self.bytes.len()));
        self.hashes.drain(..(count * HASH_BYTES).min(self.hashes.len()));
        self.ends.drain(..count.min(self.ends.len()));
        for end in &mut self.ends {
            *end -= start;
        }
    }

    /// Returns the lines as rows: one, unless they are too many to be read at once. `first` is the number of the first.
    pub fn rows(&self, first: u64) -> Vec<Row> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut rows = Vec::with_capacity(1);
        let (mut start, mut size) = (0, 0);
        for index in 0..self.len() {
            let length = self.start_of(index + 1) - self.start_of(index) - 1;
            if index > start && (size + length > ROW_BYTES || index - start >= ROW_LINES) {
                rows.push(self.row(first, start, index));
                (start, size) = (index, 0);
            }
            size += length;
        }
        rows.push(self.row(first, start, self.len()));
        rows
    }

    fn row(&self, first: u64, from: usize, to: usize) -> Row {
        let lines = self
            .bytes
            .get(self.start_of(from)..self.start_of(to).saturating_sub(1));
        let hashes = self.hashes.get(from * HASH_BYTES..to * HASH_BYTES);
        Row {
            first: first + from as u64,
            lines: lines.unwrap_or_default().to_vec(),
            hashes: hashes.unwrap_or_default().to_vec(),
        }
    }

    /// Returns the place at which a line starts; that of the line behind the last one is the end.
    fn start_of(&self, index: usize) -> usize {
        match index.checked_sub(1) {
            None => 0,
            Some(before) => self.ends.get(before).map_or(self.bytes.len(), |end| end + 1),
        }
    }
}
