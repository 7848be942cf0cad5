//! The meter of an execution: fuel, equal on every engine, and computing time (docs/spec/limits.md).

use std::sync::Arc;
use std::time::{Duration, Instant};

use vesper_ir::limits::{FUEL, MEMORY};
use vesper_ir::prices::Charge;

use crate::run::Outcome;

/// The limits of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Units of fuel: one per item of a loop, per round of a loop without items, and per called node.
    pub fuel: u64,
    /// Bytes that the values of a run may take at one time.
    pub memory: u64,
    /// The computing time. Time spent suspended does not count.
    pub time: Option<Duration>,
    /// A callback that can stop a long run.
    pub watch: Option<Watch>,
}

/// A callback, polled in runs that are not short. It returns true to stop the run; its owner interprets the outcome.
#[derive(Clone, Copy, Debug)]
pub struct Watch(pub fn() -> bool);

impl PartialEq for Watch {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for Watch {}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: FUEL,
            memory: MEMORY,
            time: None,
            watch: None,
        }
    }
}

/// A limit that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exhausted {
    Fuel,
    Memory,
    Time,
    Stopped,
}

impl From<Exhausted> for Outcome {
    fn from(limit: Exhausted) -> Self {
        Self::LimitHit(Arc::from(match limit {
            Exhausted::Fuel => "fuel",
            Exhausted::Memory => "memory",
            Exhausted::Time => "time",
            Exhausted::Stopped => "stopped",
        }))
    }
}

/// Units of fuel between two polls of the clock.
const UNITS_PER_POLL: u64 = 1_024;
/// Runs up to this many units of fuel do not poll the watch.
const SHORT_RUN_UNITS: u64 = 1_024;

/// The remaining fuel and time.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Units that can be spent before the next poll; all of them if there is nothing to poll.
    at_hand: u64,
    rest: u64,
    clock: Option<Clock>,
    watch: Option<Watch>,
    /// Units taken from the rest so far.
    taken: u64,
    /// Bytes in use by the strand that runs.
    memory: u64,
    /// Bytes in use by the other strands.
    others: u64,
    /// The limit without the bytes of the others.
    max_memory: u64,
}

#[derive(Clone, Debug)]
struct Clock {
    left: Duration,
    /// The start of the current computing period, or `None` while suspended.
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
        let (at_hand, clock) = match (limits.time, limits.watch) {
            (None, None) => (limits.fuel, None),
            (None, Some(_)) => (limits.fuel.min(SHORT_RUN_UNITS), None),
            (Some(left), _) => (0, Some(Clock { left, since: None })),
        };
        Self {
            at_hand,
            rest: limits.fuel - at_hand,
            clock,
            watch: limits.watch,
            taken: at_hand,
            memory: 0,
            others: 0,
            max_memory: limits.memory,
        }
    }

    /// Returns the units spent so far.
    #[inline]
    pub(crate) fn spent(&self) -> u64 {
        self.taken - self.at_hand
    }

    /// Returns the units that can be spent before the next poll.
    #[inline]
    pub fn at_hand(&self) -> u64 {
        self.at_hand
    }

    /// Returns all unspent units.
    pub(crate) fn left(&self) -> u64 {
        self.at_hand.saturating_add(self.rest)
    }

    /// Spends units until `left` remain before the next poll.
    #[inline]
    pub fn set_at_hand(&mut self, left: u64) {
        debug_assert!(left <= self.at_hand, "fuel is never returned");
        self.at_hand = left;
    }

    /// Spends one unit.
    #[inline]
    pub(crate) fn spend(&mut self) -> Result<(), Exhausted> {
        match self.at_hand.checked_sub(1) {
            Some(left) => {
                self.at_hand = left;
                Ok(())
            }
            None => self.poll(),
        }
    }

    /// Spends the units of a large call.
    #[cold]
    pub(crate) fn spend_units(&mut self, mut units: u64) -> Result<(), Exhausted> {
        while units > 0 {
            self.spend()?;
            let more = self.at_hand.min(units - 1);
            self.at_hand -= more;
            units -= 1 + more;
        }
        Ok(())
    }

    /// Spends the units and takes the memory of a large call.
    #[cold]
    pub(crate) fn charge(&mut self, charge: Charge) -> Result<(), Exhausted> {
        self.spend_units(charge.units)?;
        self.take_memory(charge.bytes)
    }

    /// Counts for another strand, which has taken this many bytes. Returns those of the strand so far.
    pub(crate) fn swap_count(&mut self, bytes: u64) -> u64 {
        let (limit, all) = (self.max_memory + self.others, self.memory + self.others);
        self.others = all.saturating_sub(bytes);
        self.max_memory = limit.saturating_sub(self.others);
        std::mem::replace(&mut self.memory, bytes)
    }

    /// Counts bytes of another strand as those of the strand that runs.
    pub(crate) fn absorb(&mut self, bytes: u64) {
        self.memory += bytes;
        self.max_memory += bytes;
        self.others = self.others.saturating_sub(bytes);
    }

    /// Returns the bytes in use.
    #[inline]
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// Takes bytes. Takes none if they are not available.
    #[inline]
    pub(crate) fn take_memory(&mut self, bytes: u64) -> Result<(), Exhausted> {
        let taken = self.memory.saturating_add(bytes);
        if taken > self.max_memory {
            return Err(Exhausted::Memory);
        }
        self.memory = taken;
        Ok(())
    }

    /// Gives bytes back, until this many are in use.
    #[inline]
    pub(crate) fn restore_memory(&mut self, bytes: u64) {
        self.memory = bytes;
    }

    /// Polls for more units if none are at hand, without spending any. Returns false if the limit is hit.
    #[cold]
    pub fn refill(&mut self) -> bool {
        if self.at_hand == 0 && self.poll().is_ok() {
            self.at_hand += 1;
        }
        self.at_hand > 0
    }

    /// Polls the limits and spends one unit.
    #[cold]
    fn poll(&mut self) -> Result<(), Exhausted> {
        // SEMANTICS: fuel is checked first, so that its outcome does not depend on the clock.
        if self.rest == 0 {
            return Err(Exhausted::Fuel);
        }
        if self.clock.as_ref().is_some_and(Clock::is_overdue) {
            return Err(Exhausted::Time);
        }
        if self.taken >= SHORT_RUN_UNITS && self.watch.is_some_and(|Watch(should_stop)| should_stop()) {
            return Err(Exhausted::Stopped);
        }
        let taken = self.rest.min(UNITS_PER_POLL);
        self.rest -= taken;
        self.taken += taken;
        self.at_hand = taken - 1;
        Ok(())
    }

    /// Returns a meter with the same fuel for a trial of at most this time.
    pub(crate) fn limited_to(&self, time: Duration) -> Self {
        let at_hand = self.at_hand.min(UNITS_PER_POLL);
        let back = self.at_hand - at_hand;
        let own = self.clock.as_ref().map(|clock| {
            let spent = clock.since.map_or(Duration::ZERO, |since| since.elapsed());
            clock.left.saturating_sub(spent)
        });
        Self {
            at_hand,
            rest: self.rest.saturating_add(back),
            clock: Some(Clock {
                left: own.map_or(time, |own| own.min(time)),
                since: Some(Instant::now()),
            }),
            watch: self.watch,
            taken: self.taken - back,
            memory: self.memory,
            others: self.others,
            max_memory: self.max_memory,
        }
    }

    /// Starts counting computing time.
    #[inline]
    pub(crate) fn start_clock(&mut self) {
        if let Some(clock) = &mut self.clock {
            clock.since = Some(Instant::now());
        }
    }

    /// Stops counting computing time, on suspension or at the end.
    #[inline]
    pub(crate) fn stop_clock(&mut self) {
        if let Some(clock) = &mut self.clock {
            let spent = clock.since.take().map_or(Duration::ZERO, |since| since.elapsed());
            clock.left = clock.left.saturating_sub(spent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_beside_another_has_its_fuel_and_less_time() {
        let fuel = 10 * UNITS_PER_POLL;
        let mut meter = Meter::new(Limits {
            fuel,
            ..Limits::default()
        });
        assert!(meter.spend().is_ok());
        let mut beside = meter.limited_to(Duration::ZERO);
        assert_eq!((beside.spent(), beside.left()), (meter.spent(), meter.left()));
        let units = (0..=fuel).take_while(|_| beside.spend().is_ok()).count() as u64;
        assert_eq!(units, UNITS_PER_POLL, "then the clock is polled");
        assert_eq!(beside.spend(), Err(Exhausted::Time));
        let mut beside = meter.limited_to(Duration::MAX);
        let units = (0..=fuel).take_while(|_| beside.spend().is_ok()).count() as u64;
        assert_eq!((units, beside.spend()), (fuel - 1, Err(Exhausted::Fuel)));
        assert_eq!(meter.spent(), 1, "nothing is taken from the other");
    }

    #[test]
    fn a_run_beside_another_has_no_more_time_than_that() {
        let mut meter = Meter::new(Limits {
            time: Some(Duration::ZERO),
            ..Limits::default()
        });
        meter.start_clock();
        assert_eq!(meter.limited_to(Duration::MAX).spend(), Err(Exhausted::Time));
    }

    fn spent(limits: Limits) -> (u64, Exhausted) {
        let mut meter = Meter::new(limits);
        meter.start_clock();
        let mut units = 0;
        loop {
            match meter.spend() {
                Ok(()) => units += 1,
                Err(limit) => return (units, limit),
            }
        }
    }

    #[test]
    fn exactly_the_fuel_is_spent_with_and_without_a_clock() {
        for fuel in [0, 1, 1_023, 1_024, 1_025, 5_000] {
            let hour = Some(Duration::from_hours(1));
            for time in [None, hour] {
                assert_eq!(
                    spent(Limits {
                        fuel,
                        time,
                        ..Limits::default()
                    }),
                    (fuel, Exhausted::Fuel)
                );
            }
        }
    }

    #[test]
    fn a_watch_changes_no_fuel_and_stops_what_is_not_short() {
        for fuel in [
            0,
            1,
            SHORT_RUN_UNITS - 1,
            SHORT_RUN_UNITS,
            SHORT_RUN_UNITS + 1,
            3 * SHORT_RUN_UNITS,
        ] {
            let watch = Some(Watch(|| false));
            assert_eq!(
                spent(Limits {
                    fuel,
                    watch,
                    ..Limits::default()
                }),
                (fuel, Exhausted::Fuel)
            );
        }
        let watch = Some(Watch(|| true));
        let limits = Limits {
            fuel: SHORT_RUN_UNITS,
            watch,
            ..Limits::default()
        };
        assert_eq!(spent(limits), (SHORT_RUN_UNITS, Exhausted::Fuel));
        let limits = Limits {
            fuel: SHORT_RUN_UNITS + 1,
            watch,
            ..Limits::default()
        };
        assert_eq!(spent(limits), (SHORT_RUN_UNITS, Exhausted::Stopped));
    }

    #[test]
    fn the_clock_is_polled_before_the_first_unit() {
        let time = Some(Duration::ZERO);
        assert_eq!(
            spent(Limits {
                fuel: 10,
                time,
                ..Limits::default()
            }),
            (0, Exhausted::Time)
        );
    }

    #[test]
    fn time_in_which_nothing_is_computed_does_not_count() {
        let time = Some(Duration::from_millis(200));
        let mut meter = Meter::new(Limits {
            fuel: 10,
            time,
            ..Limits::default()
        });
        meter.start_clock();
        meter.stop_clock();
        std::thread::sleep(Duration::from_millis(300));
        meter.start_clock();
        assert_eq!(meter.spend(), Ok(()));
    }
}
