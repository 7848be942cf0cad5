//! Counts of journal writes.

use std::sync::OnceLock;
use std::time::Instant;

use vesper_metrics::{Histogram, JOURNAL_ERRORS, JOURNAL_LAG, count, histogram};

use crate::journal::{ErrorKind, JournalError};

static LAG: OnceLock<Histogram> = OnceLock::new();

/// Writes, and counts how long it took or that it failed. A write of a process that lost its run is no failure.
pub(super) fn timed<T>(write: impl FnOnce() -> Result<T, JournalError>) -> Result<T, JournalError> {
    let began = Instant::now();
    let result = write();
    match &result {
        Ok(_) => LAG
            .get_or_init(|| histogram(JOURNAL_LAG, &[]))
            .observe(began.elapsed()),
        Err(error) if error.kind == ErrorKind::Fenced => {}
        Err(_) => count(JOURNAL_ERRORS, &[], 1),
    }
    result
}
