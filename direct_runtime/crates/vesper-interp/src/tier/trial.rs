//! Trial runs: interpreted runs that are timed against machine code.

use std::time::Duration;

use super::Tiering;
use crate::bytecode::Code;
use crate::observe::marks::Marks;
use crate::run::frame::Frame;
use crate::run::meter::Meter;
use crate::run::{Fault, Outcome, Stop, execute};

/// The result of a trial run.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) stop: Stop,
    pub(super) frame: Frame,
    pub(super) meter: Meter,
    /// Nanoseconds of a run that returned or was aborted as too slow; `None` if not comparable.
    pub(super) took: Option<u64>,
}

/// The maximum time of a trial as a multiple of that of machine code. The caller waits for it, and the verdict is
/// clear by then.
const MAX_SLOWDOWN: u32 = 2;
const MIN_TRIAL_TIME: Duration = Duration::from_millis(1);

impl Trial {
    /// Runs a copy of a frame that machine code ran in this many nanoseconds.
    pub(super) fn of(
        tiering: &Tiering,
        machine: u64,
        code: &Code,
        mut frame: Frame,
        meter: &Meter,
    ) -> Result<Self, Fault> {
        let max = Duration::from_nanos(machine).saturating_mul(MAX_SLOWDOWN) + MIN_TRIAL_TIME;
        let mut meter = meter.limited_to(max);
        let begun = (tiering.clock)();
        // Forms that become machine code record no marks.
        let stop = execute(code, &mut frame, &mut Marks::default(), &mut meter)?;
        let took = (tiering.clock)().saturating_sub(begun);
        let took = match &stop {
            Stop::Ended(Outcome::Returned(_)) => Some(took),
            // Another limit may have stopped the run; then the time proves nothing.
            Stop::Ended(Outcome::LimitHit(_)) => Some(took).filter(|took| *took > machine),
            _ => None,
        };
        Ok(Self {
            stop,
            frame,
            meter,
            took,
        })
    }
}
