//! A log in memory, for kernels that need not survive their process.

use super::{Entry, Log, LogError};
use crate::proto::log::v1::{Change, SnapshotPart};

/// Keeps nothing: the state of the machines is all there is.
#[derive(Debug, Default)]
pub struct MemoryLog;

impl Log for MemoryLog {
    fn read(&mut self, _reader: &mut dyn FnMut(Entry) -> Result<(), LogError>) -> Result<(), LogError> {
        Ok(())
    }

    fn append(&mut self, _first: u64, _changes: &[Change]) -> Result<(), LogError> {
        Ok(())
    }

    fn has_snapshots(&self) -> bool {
        false
    }

    fn compact(&mut self, _sequence: u64, _parts: &[SnapshotPart]) -> Result<(), LogError> {
        Ok(())
    }
}
