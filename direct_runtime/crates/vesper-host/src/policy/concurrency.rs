//! Concurrency: at most so many attempts at once.
//!
//! An attempt inside has a lease, which frees the place of a dead process. An asker without a place stands in a queue
//! and asks again at the moment that it is given; places that become free go to the first in the queue. A waiter that
//! does not come back is dropped a second after it should have. An asker inside that asks once more stays inside with a
//! new lease: a question that was sent twice takes one place.

use std::collections::VecDeque;
use std::sync::Arc;

use super::settings::{Policy, PolicyError, number};

/// Largest number of places.
pub const MAX_LIMIT: i64 = 10_000;
/// Length of the queue.
pub const MAX_WAITING: usize = 1_000;
/// Pause of the first in the queue; the second waits twice as long, and so on up to the longest pause.
pub const ASK_AGAIN_US: i64 = 2_000;
pub const LONGEST_PAUSE_US: i64 = 100_000;
/// Delay after which a waiter that did not ask again loses its place.
pub const PATIENCE_US: i64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub limit: i64,
}

impl Rule {
    /// Reads the rule of a policy; None where it has none.
    pub fn new(policy: &Policy) -> Result<Option<Self>, PolicyError> {
        let limit = number(policy, "concurrency", MAX_LIMIT)?;
        Ok(limit.map(|limit| Self { limit }))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concurrency {
    rule: Rule,
    /// Ends of leases, and their askers; the first to end stands first.
    inside: VecDeque<(i64, Arc<str>)>,
    /// Waiters, and the ends of their patience; the first to come stands first.
    queue: VecDeque<(Arc<str>, i64)>,
}

/// Answer to an asker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Entered,
    /// Stands in the queue; to ask again at this moment.
    Queued(i64),
    /// No place, and no time or no room to wait for one.
    Full,
}

impl Concurrency {
    pub fn new(rule: Rule) -> Self {
        Self {
            rule,
            inside: VecDeque::new(),
            queue: VecDeque::new(),
        }
    }

    /// Continues under another rule. Attempts inside stay there, though they may be more than the new limit.
    pub fn set_rule(&mut self, rule: Rule) {
        self.rule = rule;
    }

    /// Enters for at most `lease_us`, or waits, but not until `before_us`.
    pub fn ask(&mut self, asker: &Arc<str>, lease_us: i64, before_us: i64, now_us: i64) -> Place {
        self.drop_ended(now_us);
        self.queue
            .retain(|(each, until_us)| *until_us > now_us || each == asker);
        let place = self.queue.iter().position(|(each, _)| each == asker);
        let ahead = place.unwrap_or(self.queue.len());
        let was_inside = self.remove_inside(asker);
        let free = self.rule.limit - length(self.inside.len());
        if was_inside || length(ahead) < free {
            let lease = (now_us + lease_us, Arc::clone(asker));
            let at = self.inside.partition_point(|each| *each <= lease);
            self.inside.insert(at, lease);
            place.map(|place| self.queue.remove(place));
            return Place::Entered;
        }
        match pause_us(ahead, before_us - now_us).filter(|_| ahead < MAX_WAITING) {
            None => {
                place.map(|place| self.queue.remove(place));
                Place::Full
            }
            Some(pause_us) => {
                let waiter = (Arc::clone(asker), now_us + pause_us + PATIENCE_US);
                match self.queue.get_mut(ahead) {
                    Some(own) => *own = waiter,
                    None => self.queue.push_back(waiter),
                }
                Place::Queued(now_us + pause_us)
            }
        }
    }

    /// Leaves the place, or the queue.
    pub fn leave(&mut self, asker: &Arc<str>, now_us: i64) {
        self.drop_ended(now_us);
        self.remove_inside(asker);
        self.queue
            .retain(|(each, until_us)| *until_us > now_us && each != asker);
    }

    /// Returns true where a new state would decide alike from now on.
    pub fn is_idle(&self, now_us: i64) -> bool {
        self.inside.back().is_none_or(|(until_us, _)| *until_us <= now_us)
            && self.queue.iter().all(|(_, until_us)| *until_us <= now_us)
    }

    fn drop_ended(&mut self, now_us: i64) {
        while self
            .inside
            .front()
            .is_some_and(|(until_us, _)| *until_us <= now_us)
        {
            self.inside.pop_front();
        }
    }

    /// Takes an asker out; returns true where it was inside.
    fn remove_inside(&mut self, asker: &Arc<str>) -> bool {
        let place = self.inside.iter().position(|(_, each)| each == asker);
        place.and_then(|place| self.inside.remove(place)).is_some()
    }
}

fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns the time to wait before the next question; None where there is no time to.
fn pause_us(ahead: usize, left_us: i64) -> Option<i64> {
    let pause_us = ASK_AGAIN_US
        .saturating_mul(1 + length(ahead))
        .min(LONGEST_PAUSE_US);
    let pause_us = pause_us.min(ASK_AGAIN_US.max(left_us.div_euclid(2)));
    (pause_us < left_us).then_some(pause_us)
}
