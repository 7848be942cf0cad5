//! The way without a frame: when it is handed out, when it rests, and how it is timed beside the interpreter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::monitor::{self, Monitor, Verdict};
use super::{NEVER, Tier, Tiering, count};
use crate::bytecode::Code;
use crate::tier::native::Native;
use crate::tier::words::{Block, Ended, Express, Scales, Shape, Words};

/// A run without a frame that gives up costs about what one that does not saves: it may be one in three.
const MISS_PENALTY: u32 = 2;
const MAX_MISSES: u32 = 64;
/// For so many calls nobody tries after that.
pub(super) const RETRY_CALLS: u32 = 10_000;
/// Who has many rows to run asks again after so many whether there is such a way by now.
pub(super) const RETRY_ROWS: u32 = 64;
/// So many rows of a batch take about as long as a call: they are looked at as seldom as calls are.
const ROWS_PER_CALL: u32 = 16;

/// Handed out in place of the way without a frame when somebody is to look at the form: it takes the time.
#[derive(Debug)]
pub(super) struct Probe {
    native: Arc<dyn Native>,
    shape: Arc<Shape>,
    clock: fn() -> u64,
    /// Nanoseconds of a run that nobody has compared yet; zero where there is none.
    took: AtomicU64,
}

impl Probe {
    /// Nothing where there is no such way.
    pub(super) fn of(native: &Arc<dyn Native>, tiering: &Tiering) -> Option<Self> {
        let shape = Arc::clone(native.express()?.shape());
        Some(Self {
            native: Arc::clone(native),
            shape,
            clock: tiering.clock,
            took: AtomicU64::new(0),
        })
    }

    /// What the run took that comes next in the ordinary way.
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

    /// Gives up in any case: the caller then runs the same inputs in the ordinary way, which compares the times. Other
    /// inputs may take ten times as long, and calls often take turns.
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

    /// Rows are many, and are not run twice: one that comes later is compared with all of these.
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
    /// The way without a frame, where there is one and it is of use now.
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
        // Somebody looks where it is never, and says then for how long.
        if left != NEVER - 1 {
            self.left.store(left, Ordering::Relaxed);
        }
        Some(express)
    }

    /// Somebody is to look at this form: a run without a frame is timed, where none waits to be compared. The ordinary way
    /// comes after it, and looks.
    #[cold]
    fn probe(&self) -> Option<&dyn Express> {
        let probe = self.made.get()?.probe.as_ref()?;
        (!probe.is_open()).then_some(probe)
    }

    fn is_probe(&self, express: &dyn Express) -> bool {
        let probe = self.made.get().and_then(|made| made.probe.as_ref());
        probe.is_some_and(|probe| std::ptr::addr_eq(probe, express))
    }

    /// Told how long either side took, machine code without a frame. Where it is slower only that way rests.
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

    /// Told how a run without a frame ended.
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

    /// Above a bound nobody tries for a while, or for as long as was said before.
    fn set_misses(&self, misses: u32) {
        let misses = if misses > MAX_MISSES {
            misses.max(MAX_MISSES + RETRY_CALLS)
        } else {
            misses
        };
        self.misses.store(misses, Ordering::Relaxed);
    }

    /// The way without a frame for runs one after the other, and for how many of so many. Where there is none, or it is of
    /// no use now: so many runs are made in the ordinary way before somebody asks again.
    ///
    /// Threads that run rows side by side write these counters: once for many rows, or they would wait for each other.
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

    /// A faster way for so many runs whose inputs have these scales, where there is one beside the general way; it is made
    /// here once there were enough such runs.
    pub(crate) fn express_scaled(
        &self,
        general: &dyn Express,
        code: &Code,
        scales: &Scales,
        rows: u32,
    ) -> Option<&dyn Express> {
        let tiering = self.tiering.as_ref()?;
        // What is to be timed is run.
        if self.is_probe(general) {
            return None;
        }
        self.variants.of(tiering, general, code, scales, rows)
    }

    /// Told how many of such runs gave outputs, and how many gave up.
    pub(crate) fn record_frameless_rows(&self, outputs: u32, gave_up: u32) {
        let count = self.expressed.load(Ordering::Relaxed);
        self.expressed
            .store(count.wrapping_add(outputs.into()), Ordering::Relaxed);
        let misses = self.misses.load(Ordering::Relaxed);
        let misses = misses.saturating_add(gave_up.saturating_mul(MISS_PENALTY));
        self.set_misses(misses.saturating_sub(outputs));
    }
}
