//! Frameless runs over many rows, which release the global lock.
//!
//! Reading the rows holds the lock. Then the run copies its texts and uses no object of the caller any more, because
//! the caller may change and release its objects while the lock is not held. JSON text is not copied: bytes are
//! immutable, and the caller holds them until the call returns.
//!
//! Such a run does not check signals and cannot be stopped. It may spend the fuel of any run, and if runs over so
//! many rows took noticeably long, the next ones run with a frame, where signals are checked. A run that gives up
//! had no effect; the run with a frame then reads the objects in their current state, as a later call would.

use std::time::Instant;

use pyo3::prelude::*;
use vesper_interp::json::Worded;
use vesper_interp::words::{Ended, Words};
use vesper_ir::limits::{FUEL, ITEMS};

use super::{FramelessForm, MAX_FUEL, RunResult, write_answer};

/// Maximum number of rows of a run that keeps the lock. Reacquiring it takes up to some milliseconds when other
/// threads are busy, and shorter runs end sooner.
const MAX_SHORT_ROWS: usize = 4_096;
/// Maximum length of JSON text that is read with the lock held.
pub(super) const MAX_SHORT_TEXT_BYTES: usize = 1 << 16;

#[inline]
pub(super) fn is_long(rows: usize) -> bool {
    rows > MAX_SHORT_ROWS
}

impl FramelessForm<'_> {
    /// Runs on these words without the lock, then passes them to `inspect` with it.
    #[inline(never)]
    pub(super) fn run_long<T>(
        &self,
        py: Python<'_>,
        words: Words<'_>,
        rows: usize,
        inspect: impl FnOnce(&Words<'_>) -> Option<T>,
    ) -> Option<T> {
        let mut copies = String::new();
        let mut own = words.with_own_texts(&mut copies);
        let ended = py.detach(|| self.run_timed(&mut own, rows));
        (ended == Ended::Done).then(|| inspect(&own)).flatten()
    }

    /// Reads and runs a long JSON text without the lock. Returns the number of rows, if it was read, and the result.
    #[inline(never)]
    pub(super) fn run_long_text<'a>(
        &self,
        py: Python<'_>,
        json: &'a Worded,
        text: &'a [u8],
        words: &mut Words<'a>,
        answer: &mut Vec<u8>,
    ) -> (Option<usize>, RunResult<()>) {
        py.detach(|| {
            let rows = json.read(text, words, ITEMS);
            let ended = match rows {
                None => Ended::GaveUp,
                Some(rows) if !is_long(rows) => self.express.run(words, MAX_FUEL),
                Some(rows) if self.pace.allows(rows) => self.run_timed(words, rows),
                Some(_) => return (rows, RunResult::TooLong),
            };
            (rows, write_answer(json, ended, words, answer))
        })
    }

    fn run_timed(&self, words: &mut Words<'_>, rows: usize) -> Ended {
        let begun = Instant::now();
        let ended = self.express.run(words, FUEL);
        self.pace.took(rows, begun.elapsed(), ended == Ended::Done);
        ended
    }
}
