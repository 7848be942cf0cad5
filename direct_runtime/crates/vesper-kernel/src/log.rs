//! The durable log: changes in the order of their numbers, and the last snapshot.

mod memory;
mod postgres;
mod sqlite;

use std::fmt;

use prost::Message as _;

use crate::proto::log::v1::{Change, SnapshotPart};

pub use memory::MemoryLog;
pub use postgres::PostgresLog;
pub use sqlite::SqliteLog;

/// Why the log cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// Another kernel writes the log. This one can read it when that one has ended.
    HeldByOther(String),
    Failed(String),
}

impl fmt::Display for LogError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::HeldByOther(text) | Self::Failed(text)) = self;
        formatter.write_str(text)
    }
}

impl std::error::Error for LogError {}

/// What a log holds, given to its reader in this order.
#[derive(Debug)]
pub enum Entry {
    /// A part of the snapshot after the change with this number.
    Part(u64, Box<SnapshotPart>),
    Change(u64, Box<Change>),
}

/// A log of which this process is the only writer.
pub trait Log: Send {
    /// Reads everything, oldest first.
    fn read(&mut self, reader: &mut dyn FnMut(Entry) -> Result<(), LogError>) -> Result<(), LogError>;

    /// Appends changes durably, all or none. The first has the number `first`.
    fn append(&mut self, first: u64, changes: &[Change]) -> Result<(), LogError>;

    /// Returns true where a snapshot shortens what a restart reads.
    fn has_snapshots(&self) -> bool {
        true
    }

    /// Replaces the snapshot, and removes what it covers.
    fn compact(&mut self, sequence: u64, parts: &[SnapshotPart]) -> Result<(), LogError>;

    /// Fails where this process is no longer the writer.
    fn confirm(&mut self) -> Result<(), LogError> {
        Ok(())
    }
}

/// Returns the number of the last change, and the row of a commit: its changes, each with its length before it.
fn encoded(first: u64, changes: &[Change]) -> (i64, Vec<u8>) {
    let last = first + u64::try_from(changes.len()).unwrap_or(0).saturating_sub(1);
    let body = changes.iter().flat_map(Change::encode_length_delimited_to_vec);
    (last.cast_signed(), body.collect())
}

/// Gives a reader the changes of a row.
fn read_changes(
    first: i64,
    mut row: &[u8],
    reader: &mut dyn FnMut(Entry) -> Result<(), LogError>,
) -> Result<(), LogError> {
    let mut sequence = first.cast_unsigned();
    while !row.is_empty() {
        let change = Change::decode_length_delimited(&mut row)
            .map_err(|error| LogError::Failed(format!("the change {sequence} is damaged: {error}")))?;
        reader(Entry::Change(sequence, Box::new(change)))?;
        sequence += 1;
    }
    Ok(())
}

/// Gives a reader a part of the snapshot.
fn read_part(
    sequence: i64,
    row: &[u8],
    reader: &mut dyn FnMut(Entry) -> Result<(), LogError>,
) -> Result<(), LogError> {
    let part = SnapshotPart::decode(row)
        .map_err(|error| LogError::Failed(format!("the snapshot {sequence} is damaged: {error}")))?;
    reader(Entry::Part(sequence.cast_unsigned(), Box::new(part)))
}
