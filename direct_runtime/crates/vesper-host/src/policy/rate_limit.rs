//! Rate limit: the generic cell rate algorithm, exact in whole numbers.
//!
//! `limit` requests in `per` are one every `per / limit`, and `burst` of them may come at once after a pause. The state
//! is one moment, the *theoretical arrival time*: when the next request would come if all came evenly. A request gets
//! its moment when it asks and keeps it, so that waiters go out one by one in the order in which they asked.
//!
//! A moment between two microseconds is rounded up, and the next one is counted from the exact moment.

use super::settings::{MAX_COUNT, MAX_US, Policy, PolicyError, number, numbers};
use crate::messages::grouped;

pub const DEFAULT_BURST: i64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub limit: i64,
    pub per_us: i64,
    pub burst: i64,
}

impl Rule {
    /// Reads the rule of a policy; None where it has none. The language has no field for `rate_burst` yet.
    pub fn new(policy: &Policy) -> Result<Option<Self>, PolicyError> {
        let found = numbers(policy, [("rate_limit", MAX_COUNT), ("rate_per_us", MAX_US)])?;
        let burst = number(policy, "rate_burst", MAX_COUNT)?;
        let Some([limit, per_us]) = found else {
            return match burst {
                None => Ok(None),
                Some(_) => Err(PolicyError::Invalid(
                    "policy: `rate_burst` is of no use without `rate_limit`, which is missing".to_owned(),
                )),
            };
        };
        let burst = burst.unwrap_or(DEFAULT_BURST);
        if burst > limit {
            return Err(PolicyError::Invalid(format!(
                "policy: `rate_burst` must be at most `rate_limit`, {}, not {}",
                grouped(limit),
                grouped(burst)
            )));
        }
        Ok(Some(Self { limit, per_us, burst }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    rule: Rule,
    /// Theoretical arrival time of the next request, in parts of a microsecond: `rule.limit` of them are one. In these
    /// parts the distance of two requests is `rule.per_us`, a whole number.
    arrival: i128,
}

/// A moment for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The request may begin at `at_us`, once the limit is set to `after`.
    Granted { at_us: i64, after: RateLimit },
    /// The moment, had the request been able to wait.
    Refused(i64),
}

impl RateLimit {
    pub fn new(rule: Rule) -> Self {
        Self { rule, arrival: 0 }
    }

    /// Returns the limit with the arrival time that a store kept.
    #[must_use]
    pub fn resumed(&self, arrival_us: i64) -> Self {
        let arrival = i128::from(arrival_us) * i128::from(self.rule.limit);
        Self { arrival, ..*self }
    }

    /// Returns the theoretical arrival time of the next request in microseconds, rounded up.
    pub fn arrival_us(&self) -> i64 {
        i64::try_from(ceiling(self.arrival, self.rule.limit)).unwrap_or(i64::MAX)
    }

    /// Continues under another rule: a node was deployed anew while its requests were counted.
    pub fn set_rule(&mut self, rule: Rule) {
        if rule != self.rule {
            self.arrival = ceiling(self.arrival, self.rule.limit) * i128::from(rule.limit);
            self.rule = rule;
        }
    }

    /// Returns the moment of a request that can wait, but not until `before_us`. Nothing changes.
    pub fn ask(&self, before_us: i64, now_us: i64) -> Moment {
        let rule = self.rule;
        let (limit, per_us) = (i128::from(rule.limit), i128::from(rule.per_us));
        let burst = i128::from(rule.burst - 1) * per_us;
        let earliest = (i128::from(now_us) * limit).max(self.arrival - burst);
        let at_us = i64::try_from(ceiling(earliest, rule.limit)).unwrap_or(i64::MAX);
        if at_us >= before_us {
            return Moment::Refused(at_us);
        }
        let arrival = self.arrival.max(earliest) + per_us;
        let after = Self { rule, arrival };
        Moment::Granted { at_us, after }
    }

    /// Returns true where a new state would decide alike from now on.
    pub fn is_idle(&self, now_us: i64) -> bool {
        self.arrival <= i128::from(now_us) * i128::from(self.rule.limit)
    }
}

/// Divides and rounds up.
fn ceiling(parts: i128, limit: i64) -> i128 {
    -(-parts).div_euclid(i128::from(limit))
}
