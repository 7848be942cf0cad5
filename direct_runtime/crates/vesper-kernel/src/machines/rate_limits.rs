//! Rate limits of users: exact sliding windows of a second, a minute and an hour.

use std::collections::{BTreeMap, VecDeque};

use crate::proto::v1::RateLimitUsage;
use crate::settings::{HOUR_US, MINUTE_US, RateLimit, SECOND_US};

/// The answer to a request of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Admitted,
    /// The name of the window, and when it admits the next request.
    Refused {
        window: &'static str,
        retry_us: i64,
    },
}

/// The admitted requests of the last hour, by user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateLimits {
    users: BTreeMap<Box<str>, VecDeque<i64>>,
}

impl RateLimits {
    /// Returns whether a request is admitted at `now_us`. Nothing changes.
    pub fn ask(&self, limit: RateLimit, user: &str, now_us: i64) -> Verdict {
        let none = VecDeque::new();
        let requests = self.users.get(user).unwrap_or(&none);
        let windows = [
            ("burst", limit.burst, SECOND_US),
            ("minute", limit.per_minute, MINUTE_US),
            ("hour", limit.per_hour, HOUR_US),
        ];
        let mut refused = Verdict::Admitted;
        for (window, most, length_us) in windows {
            let Some(most) = most.map(|most| usize::try_from(most).unwrap_or(usize::MAX)) else {
                continue;
            };
            if most == 0 {
                // It admits no request at any time.
                let retry_us = i64::MAX;
                return Verdict::Refused { window, retry_us };
            }
            // With as many requests in the window, the oldest of them has to leave it first.
            let Some(oldest_us) = requests
                .len()
                .checked_sub(most)
                .and_then(|place| requests.get(place))
            else {
                continue;
            };
            let free_us = oldest_us.saturating_add(length_us);
            let is_later = match refused {
                Verdict::Admitted => true,
                Verdict::Refused { retry_us, .. } => free_us > retry_us,
            };
            if free_us > now_us && is_later {
                refused = Verdict::Refused {
                    window,
                    retry_us: free_us,
                };
            }
        }
        refused
    }

    /// Counts an admitted request.
    pub fn record(&mut self, user: &str, now_us: i64) {
        let requests = self.users.entry(user.into()).or_default();
        // A clock that goes back would make the windows unordered.
        let at_us = requests.back().map_or(now_us, |last_us| now_us.max(*last_us));
        requests.push_back(at_us);
        while requests
            .front()
            .is_some_and(|first_us| first_us.saturating_add(HOUR_US) <= at_us)
        {
            requests.pop_front();
        }
    }

    pub fn usage(&self, user: &str, now_us: i64) -> RateLimitUsage {
        self.users
            .get(user)
            .map_or_else(RateLimitUsage::default, |requests| counts(requests, now_us))
    }

    /// Returns the users with a request within the last hour, by name.
    pub fn usages(&self, now_us: i64) -> impl Iterator<Item = (&str, RateLimitUsage)> {
        let users = self
            .users
            .iter()
            .map(move |(user, requests)| (&**user, counts(requests, now_us)));
        users.filter(|(_, usage)| usage.last_hour > 0)
    }

    /// Forgets users without a request within the last hour.
    pub fn forget(&mut self, now_us: i64) {
        self.users.retain(|_, requests| {
            requests
                .back()
                .is_some_and(|last_us| last_us.saturating_add(HOUR_US) > now_us)
        });
    }

    /// Returns the admitted requests of each user, oldest first.
    pub fn rows(&self) -> impl Iterator<Item = (&str, Vec<i64>)> {
        self.users
            .iter()
            .map(|(user, requests)| (&**user, requests.iter().copied().collect()))
    }

    pub fn restore(&mut self, user: &str, requests: &[i64]) {
        self.users.insert(user.into(), requests.iter().copied().collect());
    }
}

fn counts(requests: &VecDeque<i64>, now_us: i64) -> RateLimitUsage {
    let within = |length_us: i64| {
        let begin = requests.partition_point(|at_us| at_us.saturating_add(length_us) <= now_us);
        i64::try_from(requests.len() - begin).unwrap_or(i64::MAX)
    };
    RateLimitUsage {
        last_second: within(SECOND_US),
        last_minute: within(MINUTE_US),
        last_hour: within(HOUR_US),
    }
}
