//! Token limit: a bucket that fills evenly, with a hold for each request under way.
//!
//! A request holds the most that it can use, and is charged with its usage when it ends. It enters where the bucket has
//! what it wants to hold beyond the holds of others; one that wants more than the bucket can have needs a full one that
//! nobody holds anything of. Askers enter in their order. So the requests that begin in a window of `per` use at most
//! `limit + burst` tokens, or `limit` and the largest of them.
//!
//! Amounts are times: the time in which the bucket gains the tokens, in whole microseconds, rounded up. A hold has a
//! lease; a request whose process died is charged with its hold when the lease ends.

use std::sync::Arc;

use super::settings::{MAX_COUNT, MAX_US, Policy, PolicyError, number, numbers};
use super::waiters::Waiters;
use crate::messages::grouped;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub limit: i64,
    pub per_us: i64,
    pub burst: i64,
}

impl Rule {
    /// Reads the rule of a policy; None where it has none. No node has one: it comes from the settings of a model.
    pub fn new(policy: &Policy) -> Result<Option<Self>, PolicyError> {
        let found = numbers(policy, [("token_limit", MAX_COUNT), ("token_per_us", MAX_US)])?;
        let burst = number(policy, "token_burst", MAX_COUNT)?;
        let Some([limit, per_us]) = found else {
            return match burst {
                None => Ok(None),
                Some(_) => Err(PolicyError::Invalid(
                    "policy: `token_burst` is of no use without `token_limit`, which is missing".to_owned(),
                )),
            };
        };
        let burst = burst.unwrap_or(limit);
        if burst > limit {
            return Err(PolicyError::Invalid(format!(
                "policy: `token_burst` must be at most `token_limit`, {}, not {}",
                grouped(limit),
                grouped(burst)
            )));
        }
        Ok(Some(Self { limit, per_us, burst }))
    }

    /// Returns the time in which the bucket gains so many tokens.
    pub fn time_us(&self, tokens: i64) -> i64 {
        let parts = i128::from(tokens.max(0)) * i128::from(self.per_us);
        let whole = -(-parts).div_euclid(i128::from(self.limit));
        i64::try_from(whole).unwrap_or(MAX_US).min(MAX_US)
    }

    /// Returns the time in which an empty bucket becomes full.
    pub fn burst_us(&self) -> i64 {
        let parts = i128::from(self.burst) * i128::from(self.per_us);
        let whole = parts / i128::from(self.limit);
        i64::try_from(whole).unwrap_or(MAX_US).clamp(1, MAX_US)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Hold {
    until_us: i64,
    asker: Arc<str>,
    amount_us: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    rule: Rule,
    /// The moment at which the bucket is full, were nothing charged before.
    full_us: i64,
    holds: Vec<Hold>,
    waiters: Waiters,
}

/// Answer to an asker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Entered,
    /// Stands in the queue; to ask again at this moment.
    Queued(i64),
    /// No tokens, and no time or no room to wait for them. Before this moment another question is of no use.
    Refused(i64),
}

impl Tokens {
    pub fn new(rule: Rule) -> Self {
        Self {
            rule,
            full_us: 0,
            holds: Vec::new(),
            waiters: Waiters::default(),
        }
    }

    /// Continues under another rule. Charges and holds keep their times.
    pub fn set_rule(&mut self, rule: Rule) {
        self.rule = rule;
    }

    /// Enters with a hold of so many tokens for at most `lease_us`, or waits, but not until `before_us`.
    pub fn ask(
        &mut self,
        asker: &Arc<str>,
        tokens: i64,
        lease_us: i64,
        before_us: i64,
        now_us: i64,
    ) -> Place {
        self.charge_ended(now_us);
        self.waiters.tidy(asker, now_us);
        let amount_us = self.rule.time_us(tokens);
        let was_inside = self.remove(asker).is_some();
        let lack = self.lack_us(amount_us, now_us);
        if was_inside || (self.waiters.ahead(asker) == 0 && lack == Lack::Us(0)) {
            self.waiters.remove(asker);
            self.holds.push(Hold {
                until_us: now_us + lease_us,
                asker: Arc::clone(asker),
                amount_us,
            });
            return Place::Entered;
        }
        let wait_us = match lack {
            Lack::Us(us) => Some(us.max(1)),
            Lack::OfHolds => None,
        };
        match self.waiters.wait(asker, wait_us, before_us, now_us) {
            Some(until_us) => Place::Queued(until_us),
            None => Place::Refused(now_us + wait_us.unwrap_or(amount_us)),
        }
    }

    /// Ends a hold with the tokens that were used, or with all of it where they are not known; leaves the queue.
    pub fn leave(&mut self, asker: &Arc<str>, tokens: Option<i64>, now_us: i64) {
        self.charge_ended(now_us);
        if let Some(hold) = self.remove(asker) {
            let used_us = tokens.map_or(hold.amount_us, |tokens| self.rule.time_us(tokens));
            self.charge(used_us, now_us);
        }
        self.waiters.leave(asker, now_us);
    }

    /// Returns the time that a request for one token would wait; zero where it would enter.
    pub fn wait_us(&self, now_us: i64) -> i64 {
        let mut settled = self.clone();
        settled.charge_ended(now_us);
        match settled.lack_us(1, now_us) {
            Lack::Us(0) if settled.waiters.is_idle(now_us) => 0,
            Lack::Us(us) => us.max(1),
            Lack::OfHolds => 1,
        }
    }

    /// Returns true where a new state would decide alike from now on.
    pub fn is_idle(&self, now_us: i64) -> bool {
        let mut settled = self.clone();
        settled.charge_ended(now_us);
        settled.holds.is_empty() && settled.full_us <= now_us && self.waiters.is_idle(now_us)
    }

    /// Returns the time in which the bucket gains what an asker lacks.
    fn lack_us(&self, amount_us: i64, now_us: i64) -> Lack {
        let burst_us = self.rule.burst_us();
        let held_us = self
            .holds
            .iter()
            .fold(0_i64, |sum, hold| sum.saturating_add(hold.amount_us));
        let needed_us = amount_us.min(burst_us).saturating_add(held_us);
        if needed_us > burst_us {
            return Lack::OfHolds;
        }
        Lack::Us(((self.full_us - now_us).max(0) - (burst_us - needed_us)).max(0))
    }

    fn charge(&mut self, used_us: i64, at_us: i64) {
        if used_us == 0 {
            return;
        }
        self.full_us = self
            .full_us
            .max(at_us)
            .saturating_add(used_us)
            .min(at_us + MAX_US);
    }

    /// Charges the holds whose leases have ended, each at its end.
    fn charge_ended(&mut self, now_us: i64) {
        let mut ended = Vec::new();
        self.holds.retain(|hold| {
            let is_ended = hold.until_us <= now_us;
            if is_ended {
                ended.push((hold.until_us, hold.amount_us));
            }
            !is_ended
        });
        ended.sort_unstable();
        for (until_us, amount_us) in ended {
            self.charge(amount_us, until_us);
        }
    }

    fn remove(&mut self, asker: &Arc<str>) -> Option<Hold> {
        let place = self.holds.iter().position(|hold| hold.asker == *asker)?;
        Some(self.holds.remove(place))
    }
}

/// Time without which an asker does not enter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lack {
    Us(i64),
    /// Another request must end before.
    OfHolds,
}
