//! Queue of askers that wait for a place or for tokens, first come, first served.
//!
//! A waiter asks again at the moment that it is given. One that does not come back is dropped a second later.

use std::collections::VecDeque;
use std::sync::Arc;

/// Length of the queue.
pub(super) const MAX_WAITING: usize = 1_000;
/// Pause of the first in the queue; the second waits twice as long, and so on up to the longest pause.
pub(super) const ASK_AGAIN_US: i64 = 2_000;
pub(super) const LONGEST_PAUSE_US: i64 = 100_000;
/// Delay after which a waiter that did not ask again loses its place.
pub(super) const PATIENCE_US: i64 = 1_000_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiters {
    /// Waiters, and the ends of their patience; the first to come stands first.
    queue: VecDeque<(Arc<str>, i64)>,
}

impl Waiters {
    /// Drops those that did not come back; the asker has.
    pub(super) fn tidy(&mut self, asker: &Arc<str>, now_us: i64) {
        self.queue
            .retain(|(each, until_us)| *until_us > now_us || each == asker);
    }

    /// Returns the number of waiters before this one.
    pub(super) fn ahead(&self, asker: &Arc<str>) -> usize {
        let place = self.queue.iter().position(|(each, _)| each == asker);
        place.unwrap_or(self.queue.len())
    }

    /// Takes a waiter out that need not wait any more.
    pub(super) fn remove(&mut self, asker: &Arc<str>) {
        let place = self.queue.iter().position(|(each, _)| each == asker);
        place.map(|place| self.queue.remove(place));
    }

    /// Takes a waiter out, and those that did not come back.
    pub(super) fn leave(&mut self, asker: &Arc<str>, now_us: i64) {
        self.queue
            .retain(|(each, until_us)| *until_us > now_us && each != asker);
    }

    /// Keeps the place of an asker, or appends it; returns the moment at which it asks again. It does not go on before
    /// `wait_us` from now, where that is known. None where there is no time or no room to wait.
    pub(super) fn wait(
        &mut self,
        asker: &Arc<str>,
        wait_us: Option<i64>,
        before_us: i64,
        now_us: i64,
    ) -> Option<i64> {
        let ahead = self.ahead(asker);
        let pause_us =
            pause_us(ahead, wait_us, before_us.saturating_sub(now_us)).filter(|_| ahead < MAX_WAITING);
        let Some(pause_us) = pause_us else {
            self.remove(asker);
            return None;
        };
        let waiter = (Arc::clone(asker), now_us + pause_us + PATIENCE_US);
        match self.queue.get_mut(ahead) {
            Some(own) => *own = waiter,
            None => self.queue.push_back(waiter),
        }
        Some(now_us + pause_us)
    }

    /// Returns true where no waiter is left.
    pub(super) fn is_idle(&self, now_us: i64) -> bool {
        self.queue.iter().all(|(_, until_us)| *until_us <= now_us)
    }
}

/// Returns the time to wait before the next question; None where there is no time to.
fn pause_us(ahead: usize, wait_us: Option<i64>, left_us: i64) -> Option<i64> {
    let by_place = ASK_AGAIN_US.saturating_mul(1 + length(ahead));
    let pause_us = match wait_us {
        Some(wait_us) if ahead == 0 => wait_us,
        Some(wait_us) => by_place.max(wait_us),
        None => by_place,
    };
    let pause_us = pause_us
        .min(LONGEST_PAUSE_US)
        .min(ASK_AGAIN_US.max(left_us.div_euclid(2)));
    (pause_us < left_us).then_some(pause_us)
}

/// Returns a count as a number of the machines.
pub(super) fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
