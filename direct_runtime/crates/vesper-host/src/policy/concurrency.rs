//! Concurrency: at most so many attempts at once.
//!
//! An attempt inside has a lease, which frees the place of a dead process. An asker without a place stands in a queue;
//! places that become free go to the first in the queue. An asker inside that asks once more stays inside with a new
//! lease: a question that was sent twice takes one place.

use std::collections::VecDeque;
use std::sync::Arc;

use super::settings::{Policy, PolicyError, number};
use super::waiters::{Waiters, length};

/// Largest number of places.
pub const MAX_LIMIT: i64 = 10_000;

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
    waiters: Waiters,
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
            waiters: Waiters::default(),
        }
    }

    /// Continues under another rule. Attempts inside stay there, though they may be more than the new limit.
    pub fn set_rule(&mut self, rule: Rule) {
        self.rule = rule;
    }

    /// Enters for at most `lease_us`, or waits, but not until `before_us`.
    pub fn ask(&mut self, asker: &Arc<str>, lease_us: i64, before_us: i64, now_us: i64) -> Place {
        self.drop_ended(now_us);
        self.waiters.tidy(asker, now_us);
        let free = self.rule.limit - length(self.inside.len());
        if self.remove_inside(asker) || length(self.waiters.ahead(asker)) < free {
            let lease = (now_us + lease_us, Arc::clone(asker));
            let at = self.inside.partition_point(|each| *each <= lease);
            self.inside.insert(at, lease);
            self.waiters.remove(asker);
            return Place::Entered;
        }
        match self.waiters.wait(asker, None, before_us, now_us) {
            Some(until_us) => Place::Queued(until_us),
            None => Place::Full,
        }
    }

    /// Leaves the place, or the queue.
    pub fn leave(&mut self, asker: &Arc<str>, now_us: i64) {
        self.drop_ended(now_us);
        self.remove_inside(asker);
        self.waiters.leave(asker, now_us);
    }

    /// Returns true where a new state would decide alike from now on.
    pub fn is_idle(&self, now_us: i64) -> bool {
        self.inside.back().is_none_or(|(until_us, _)| *until_us <= now_us) && self.waiters.is_idle(now_us)
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
