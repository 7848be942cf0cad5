//! What an execution may spend: fuel, which is counted alike on every engine, and time, which is not
//! (docs/spec/limits.md).

use std::sync::Arc;
use std::time::{Duration, Instant};

use vesper_ir::limits::FUEL;

use crate::run::Outcome;

/// What an execution may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Units: one for each item that a loop takes, each round of a loop without items, each called node.
    pub fuel: u64,
    /// How long it may compute; the time in which it waits is not counted.
    pub time: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: FUEL,
            time: None,
        }
    }
}

/// A limit that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exhausted {
    Fuel,
    Time,
}

impl From<Exhausted> for Outcome {
    fn from(limit: Exhausted) -> Self {
        Self::LimitHit(Arc::from(match limit {
            Exhausted::Fuel => "fuel",
            Exhausted::Time => "time",
        }))
    }
}

/// So many units are spent between two looks at the clock.
const UNITS_A_LOOK: u64 = 1_024;

/// What is left.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Until the clock is looked at: that is all there is where no clock counts.
    at_hand: u64,
    rest: u64,
    clock: Option<Clock>,
}

#[derive(Debug)]
struct Clock {
    left: Duration,
    /// Since when the execution computes; nothing while it waits.
    since: Option<Instant>,
}

impl Clock {
    fn is_overdue(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= self.left)
    }
}

impl Meter {
    #[inline]
    pub(crate) fn new(limits: Limits) -> Self {
        match limits.time {
            None => Self {
                at_hand: limits.fuel,
                rest: 0,
                clock: None,
            },
            Some(left) => Self {
                at_hand: 0,
                rest: limits.fuel,
                clock: Some(Clock { left, since: None }),
            },
        }
    }

    /// Takes one unit.
    #[inline]
    pub(crate) fn spend(&mut self) -> Result<(), Exhausted> {
        match self.at_hand.checked_sub(1) {
            Some(left) => {
                self.at_hand = left;
                Ok(())
            }
            None => self.look(),
        }
    }

    /// Takes one unit where none is at hand.
    #[cold]
    fn look(&mut self) -> Result<(), Exhausted> {
        // SEMANTICS: fuel first, so that an execution that is out of it says so whatever the clock says.
        if self.rest == 0 {
            return Err(Exhausted::Fuel);
        }
        if self.clock.as_ref().is_some_and(Clock::is_overdue) {
            return Err(Exhausted::Time);
        }
        let taken = self.rest.min(UNITS_A_LOOK);
        self.rest -= taken;
        self.at_hand = taken - 1;
        Ok(())
    }

    /// The execution computes from now on.
    #[inline]
    pub(crate) fn go(&mut self) {
        if let Some(clock) = &mut self.clock {
            clock.since = Some(Instant::now());
        }
    }

    /// The execution waits from now on, or has ended.
    #[inline]
    pub(crate) fn wait(&mut self) {
        if let Some(clock) = &mut self.clock {
            let spent = clock.since.take().map_or(Duration::ZERO, |since| since.elapsed());
            clock.left = clock.left.saturating_sub(spent);
        }
    }
}
