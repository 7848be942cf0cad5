//! Runs without a frame over many rows: they let other threads of Python run.
//!
//! Reading the rows holds the global lock, as every way of reading them does. Then the run gets texts of its own: from there
//! on it has nothing of the caller's, who may change and let go of what was given while the lock is not held. The text of
//! a call with JSON is different: bytes never change, and who calls holds them until the call comes back.
//!
//! Such a run notices no signals, and nobody can stop it. So it may spend what any run may and no more, and where runs
//! over so many rows took longer than a person notices, the next go the ordinary way, which looks out for signals. Giving
//! up means here too that nothing has happened; the ordinary way then finds what the caller has by then, as it would in a
//! call that was made a moment later.

use std::time::Instant;

use pyo3::prelude::*;
use vesper_interp::json::Worded;
use vesper_interp::words::{Ended, Words};
use vesper_ir::limits::{FUEL, ITEMS};

use super::{FramelessForm, MAX_FUEL, RunResult, write_answer};

/// Runs over more rows let go of the lock. To get it back may take as long as Python lets a thread have it, some
/// milliseconds where others are busy: shorter ones are better over by then.
const MAX_SHORT_ROWS: usize = 4_096;
/// Longer texts of JSON are read without it.
pub(super) const MAX_SHORT_TEXT_BYTES: usize = 1 << 16;

#[inline]
pub(super) fn is_long(rows: usize) -> bool {
    rows > MAX_SHORT_ROWS
}

impl FramelessForm<'_> {
    /// Runs on words that were just read, without the lock, and shows them to `look` with it.
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

    /// All of a call with a long text, without the lock; how many rows it has, if it was read, and what came of it.
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
