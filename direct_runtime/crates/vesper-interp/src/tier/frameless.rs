//! Frameless runs of a tier: when they are offered, when they rest, and how they are timed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::monitor::{self, Monitor, Verdict};
use super::{NEVER, Tier, Tiering, count};
use crate::bytecode::Code;
use crate::tier::native::Native;
use crate::tier::words::{Block, Ended, Express, Scales, Shape, Words};

/// Misses that a run adds when it gives up. At this weight one run in three may give up before the tier rests.
const MISS_PENALTY: u32 = 2;
const MAX_MISSES: u32 = 64;
/// Calls that frameless runs rest after too many misses.
pub(super) const RETRY_CALLS: u32 = 10_000;
/// Rows that a batch runs before it checks again for a frameless function.
pub(super) const RETRY_ROWS: u32 = 64;
/// Rows of a batch that count as one call for sampling. They take about as long.
const ROWS_PER_CALL: u32 = 16;

/// A frameless function that times one run, offered for a sampled call.
#[derive(Debug)]
pub(super) struct Probe {
    native: Arc<dyn Native>,
    shape: Arc<Shape>,
    clock: fn() -> u64,
    /// Nanoseconds of a run that is not compared yet; zero for none.
    took: AtomicU64,
}

impl Probe {
    /// Creates the probe, or returns `None` if the code has no frameless function.
    pub(super) fn of(native: &Arc<dyn Native>, tiering: &Tiering) -> Option<Self> {
        let shape = Arc::clone(native.express()?.shape());
        Some(Self {
            native: Arc::clone(native),
            shape,
            clock: tiering.clock,
            took: AtomicU64::new(0),
        })
    }

    /// Takes the time of the last run, to compare with the framed run that follows.
    pub(super) fn take(&self) -> Option<u64> {
        Some(self.took.swap(0, Ordering::Relaxed)).filter(|took| *took > 0)
    }

    fn is_open(&self) -> bool {
        self.took.load(Ordering::Relaxed) > 0
    }
}

impl Express for Probe {
    fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// Runs, records the time and always gives up. The caller then runs the same inputs with a frame, which compares
    /// the times; other inputs may take ten times as long.
    fn run(&self, words: &mut Words<'_>, fuel: u64) -> Ended {
        let Some(express) = self.native.express() else {
            return Ended::GaveUp;
        };
        let begun = (self.clock)();
        match express.run(words, fuel) {
            Ended::Done => {
                let took = (self.clock)().saturating_sub(begun);
                self.took.store(took.max(1), Ordering::Relaxed);
                Ended::GaveUp
            }
            ended => ended,
        }
    }

    /// Runs all rows and records the mean time. Rows are not run twice: a later row is compared with the mean.
    fn run_rows(&self, block: &mut Block<'_>, fuel: u64) {
        let Some(express) = self.native.express() else {
            return;
        };
        let rows = block.len() as u64;
        let begun = (self.clock)();
        express.run_rows(block, fuel);
        let took = (self.clock)().saturating_sub(begun);
        if let Some(took) = took.checked_div(rows) {
            self.took.store(took.max(1), Ordering::Relaxed);
        }
    }
}

impl Tier {
    /// Returns the frameless function if there is one and it does not rest.
    #[inline]
    pub(crate) fn express(&self) -> Option<&dyn Express> {
        let express = self.made.get()?.native.express()?;
        let (left, misses) = (
            self.left.load(Ordering::Relaxed),
            self.misses.load(Ordering::Relaxed),
        );
        if misses > MAX_MISSES {
            let rest = misses - 1;
            let rest = if rest == MAX_MISSES { 0 } else { rest };
            self.misses.store(rest, Ordering::Relaxed);
            return None;
        }
        let Some(left) = left.checked_sub(1) else {
            return self.probe();
        };
        // `NEVER` is no count; sampling sets the next one.
        if left != NEVER - 1 {
            self.left.store(left, Ordering::Relaxed);
        }
        Some(express)
    }

    /// Returns the probe for a sampled call unless a recorded time is still open. The framed run that follows does
    /// the comparison.
    #[cold]
    fn probe(&self) -> Option<&dyn Express> {
        let probe = self.made.get()?.probe.as_ref()?;
        (!probe.is_open()).then_some(probe)
    }

    fn is_probe(&self, express: &dyn Express) -> bool {
        let probe = self.made.get().and_then(|made| made.probe.as_ref());
        probe.is_some_and(|probe| std::ptr::addr_eq(probe, express))
    }

    /// Compares the times of a frameless run and the interpreter. If it is slower, only frameless runs rest.
    pub(super) fn judge_frameless(&self, machine: u64, interpreter: u64) {
        let Some(mut state) = self.state() else {
            return;
        };
        if state.frameless.record(machine, interpreter) == Verdict::Slower {
            let rest = MAX_MISSES + monitor::rest_calls(state.rests);
            self.misses.store(rest, Ordering::Relaxed);
            state.frameless = Monitor::new();
            state.rests = state.rests.saturating_add(1);
        }
    }

    /// Records whether a frameless run produced outputs.
    #[inline]
    pub(crate) fn record_frameless(&self, has_outputs: bool) {
        let misses = self.misses.load(Ordering::Relaxed);
        if has_outputs {
            count(&self.expressed);
            if misses > 0 {
                self.misses.store(misses - 1, Ordering::Relaxed);
            }
            return;
        }
        self.set_misses(misses.saturating_add(MISS_PENALTY));
    }

    /// Sets the misses. Above the bound, frameless runs rest for `RETRY_CALLS` or for the longer rest already set.
    fn set_misses(&self, misses: u32) {
        let misses = if misses > MAX_MISSES {
            misses.max(MAX_MISSES + RETRY_CALLS)
        } else {
            misses
        };
        self.misses.store(misses, Ordering::Relaxed);
    }

    /// Returns the frameless function and for how many of these rows it is valid. Otherwise returns the number of
    /// rows to run with a frame before the next check.
    ///
    /// Threads of a batch write these counters once per many rows, to avoid contention.
    pub(crate) fn express_rows(&self, rows: u32) -> Result<(&dyn Express, u32), u32> {
        let made = self.made.get().ok_or(RETRY_ROWS)?;
        let express = made.native.express().ok_or(RETRY_ROWS)?;
        let misses = self.misses.load(Ordering::Relaxed);
        if misses > MAX_MISSES {
            let rest = misses.saturating_sub(rows.max(1));
            let rest = if rest <= MAX_MISSES { 0 } else { rest };
            self.misses.store(rest, Ordering::Relaxed);
            return Err(rows);
        }
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Ok((self.probe().ok_or(1_u32)?, 1));
        }
        let rows = rows.min(left.saturating_mul(ROWS_PER_CALL));
        if left != NEVER {
            let calls = rows.div_ceil(ROWS_PER_CALL);
            self.left.store(left.saturating_sub(calls), Ordering::Relaxed);
        }
        Ok((express, rows))
    }

    /// Returns the function for these scales, if there is one. Compiles it once enough such rows have run.
    pub(crate) fn express_scaled(
        &self,
        general: &dyn Express,
        code: &Code,
        scales: &Scales,
        rows: u32,
    ) -> Option<&dyn Express> {
        let tiering = self.tiering.as_ref()?;
        // A probed block must run the probe.
        if self.is_probe(general) {
            return None;
        }
        self.variants.of(tiering, general, code, scales, rows)
    }

    /// Records how many frameless rows produced outputs and how many gave up.
    pub(crate) fn record_frameless_rows(&self, outputs: u32, gave_up: u32) {
        let count = self.expressed.load(Ordering::Relaxed);
        self.expressed
            .store(count.wrapping_add(outputs.into()), Ordering::Relaxed);
        let misses = self.misses.load(Ordering::Relaxed);
        let misses = misses.saturating_add(gave_up.saturating_mul(MISS_PENALTY));
        self.set_misses(misses.saturating_sub(outputs));
    }
}
