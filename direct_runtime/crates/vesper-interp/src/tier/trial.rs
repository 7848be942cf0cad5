//! A run on the interpreter that is there to be timed beside machine code.

use std::time::Duration;

use super::Tiering;
use crate::bytecode::Code;
use crate::observe::marks::Marks;
use crate::run::frame::Frame;
use crate::run::meter::Meter;
use crate::run::{Fault, Outcome, Stop, execute};

/// What came of one.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) stop: Stop,
    pub(super) frame: Frame,
    pub(super) meter: Meter,
    /// Nanoseconds, of a run that returned, or that was left because it took so long.
    pub(super) took: Option<u64>,
}

/// A trial may take so much longer than machine code took: its caller waits for it. By then it is known who is faster.
const MAX_SLOWDOWN: u32 = 2;
const MIN_TRIAL_TIME: Duration = Duration::from_millis(1);

impl Trial {
    /// Runs a copy of what took machine code so many nanoseconds.
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
        // The forms that become machine code mark nothing.
        let stop = execute(code, &mut frame, &mut Marks::default(), &mut meter)?;
        let took = (tiering.clock)().saturating_sub(begun);
        let took = match &stop {
            Stop::Ended(Outcome::Returned(_)) => Some(took),
            // It may have been something else that has stopped it: then this is too short to say anything.
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
