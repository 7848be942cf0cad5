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

use super::{MOST_FUEL, Ran, Run, written};

/// Runs over more rows let go of the lock. To get it back may take as long as Python lets a thread have it, some
/// milliseconds where others are busy: shorter ones are better over by then.
const FEW_ROWS: usize = 4_096;
/// Longer texts of JSON are read without it.
pub(super) const TEXT: usize = 1 << 16;

#[inline]
pub(super) fn is_long(rows: usize) -> bool {
    rows > FEW_ROWS
}

impl Run<'_> {
    /// Runs on words that were just read, without the lock, and shows them to `look` with it.
    #[inline(never)]
    pub(super) fn long<T>(
        &self,
        py: Python<'_>,
        words: Words<'_>,
        rows: usize,
        look: impl FnOnce(&Words<'_>) -> Option<T>,
    ) -> Option<T> {
        let mut copies = String::new();
        let mut own = words.with_own_texts(&mut copies);
        let ended = py.detach(|| self.timed(&mut own, rows));
        (ended == Ended::Done).then(|| look(&own)).flatten()
    }

    /// All of a call with a long text, without the lock; how many rows it has, if it was read, and what came of it.
    #[inline(never)]
    pub(super) fn long_text<'a>(
        &self,
        py: Python<'_>,
        json: &'a Worded,
        text: &'a [u8],
        words: &mut Words<'a>,
        answer: &mut Vec<u8>,
    ) -> (Option<usize>, Ran<()>) {
        py.detach(|| {
            let rows = json.read(text, words, ITEMS);
            let ended = match rows {
                None => Ended::GaveUp,
                Some(rows) if !is_long(rows) => self.express.run(words, MOST_FUEL),
                Some(rows) if self.pace.allows(rows) => self.timed(words, rows),
                Some(_) => return (rows, Ran::TooLong),
            };
            (rows, written(json, ended, words, answer))
        })
    }

    fn timed(&self, words: &mut Words<'_>, rows: usize) -> Ended {
        let begun = Instant::now();
        let ended = self.express.run(words, FUEL);
        self.pace.took(rows, begun.elapsed(), ended == Ended::Done);
        ended
    }
}
