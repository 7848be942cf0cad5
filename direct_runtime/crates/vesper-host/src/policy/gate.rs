//! The gate: circuit breaker, concurrency or tokens, and rate limit as one decision about one attempt.
//!
//! An attempt goes out where all let it, and only then does it take anything of any of them. Where several reject, the
//! answer is that of the first in this order: breaker, concurrency, tokens, rate.

use std::sync::Arc;

use super::breaker::{self, Breaker, Change, Way};
use super::concurrency::{self, Concurrency, Place};
use super::rate_limit::{self, Moment, RateLimit};
use super::record::{Member, record};
use super::settings::{MAX_US, Policy, PolicyError, number};
use super::tokens::{self, Tokens};

/// Time for which an attempt waits at the gate where its execution has no time limit.
pub const LONGEST_WAIT_US: i64 = 60_000_000;
/// Time by which a lease is longer than the attempt.
pub const GRACE_US: i64 = 5_000_000;
/// Lease of an attempt without a time limit.
pub const DEFAULT_LEASE_US: i64 = 300_000_000;

/// The policies of one gate; None for those that it has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub breaker: Option<breaker::Rule>,
    pub concurrency: Option<concurrency::Rule>,
    pub rate: Option<rate_limit::Rule>,
    /// Not beside `concurrency`: an attempt stands in one queue.
    pub tokens: Option<tokens::Rule>,
    /// Time of an attempt.
    pub attempt_us: Option<i64>,
}

impl Rule {
    /// Reads the rule of a policy.
    pub fn new(policy: &Policy) -> Result<Self, PolicyError> {
        let tokens = tokens::Rule::new(policy)?;
        if tokens.is_some() && policy.contains_key("concurrency") {
            return Err(PolicyError::Invalid(
                "policy: `concurrency` and `token_limit` are not counted under one name".to_owned(),
            ));
        }
        Ok(Self {
            tokens,
            breaker: breaker::Rule::new(policy)?,
            concurrency: concurrency::Rule::new(policy)?,
            rate: rate_limit::Rule::new(policy)?,
            attempt_us: number(policy, "timeout_us", MAX_US)?,
        })
    }

    /// Returns true where there is nothing to decide.
    pub fn is_open_to_all(&self) -> bool {
        self.breaker.is_none() && self.concurrency.is_none() && self.rate.is_none() && self.tokens.is_none()
    }

    /// Returns the longest time of an attempt that begins now, with this time left to its execution.
    pub fn lease_us(&self, left_us: Option<i64>) -> i64 {
        let times = [self.attempt_us, left_us];
        let shortest = times.into_iter().flatten().min();
        shortest.map_or(DEFAULT_LEASE_US, |shortest| shortest + GRACE_US)
    }
}

/// The policy that held an attempt back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    CircuitBreaker,
    Concurrency,
    TokenLimit,
    RateLimit,
    /// The store cannot be reached.
    Store,
}

impl By {
    pub fn name(self) -> &'static str {
        match self {
            Self::CircuitBreaker => "circuit_breaker",
            Self::Concurrency => "concurrency",
            Self::TokenLimit => "token_limit",
            Self::RateLimit => "rate_limit",
            Self::Store => "store",
        }
    }

    /// Returns the policy with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [
            Self::CircuitBreaker,
            Self::Concurrency,
            Self::TokenLimit,
            Self::RateLimit,
            Self::Store,
        ];
        all.into_iter().find(|each| each.name() == name)
    }
}

/// Decision about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The attempt may go out at `at_us`, `wait_us` from now. Everything that it needs is taken.
    Admitted { at_us: i64, wait_us: i64 },
    /// Nothing is taken but a place in the queue: to ask again at `until_us`.
    Waiting { by: By, until_us: i64, wait_us: i64 },
    /// The attempt may not go out in time, and nothing was taken. Before `retry_at_us` another one is of no use.
    Rejected { by: By, retry_at_us: i64, wait_us: i64 },
}

impl Decision {
    /// Returns the time to wait before the next action.
    pub fn wait_us(self) -> i64 {
        match self {
            Self::Admitted { wait_us, .. }
            | Self::Waiting { wait_us, .. }
            | Self::Rejected { wait_us, .. } => wait_us,
        }
    }

    /// Returns the record of the decision for the journal.
    pub fn to_record(self) -> String {
        let wait = ("wait_us", Member::Number(self.wait_us()));
        match self {
            Self::Admitted { at_us, .. } => record("admitted", &[("at_us", Member::Number(at_us)), wait]),
            Self::Waiting { by, until_us, .. } => record(
                "waiting",
                &[
                    ("by", Member::Text(by.name())),
                    ("until_us", Member::Number(until_us)),
                    wait,
                ],
            ),
            Self::Rejected { by, retry_at_us, .. } => record(
                "rejected",
                &[
                    ("by", Member::Text(by.name())),
                    ("retry_at_us", Member::Number(retry_at_us)),
                    wait,
                ],
            ),
        }
    }
}

/// Returns the record of an attempt's end, with what it did to the breaker.
pub fn released_record(change: Change) -> String {
    record("released", &[("breaker", Member::Text(change.name()))])
}

/// End of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was let out at `admitted_us` and has ended.
    Ended {
        admitted_us: i64,
        is_failure: bool,
        /// Tokens that it used; None where that is not known.
        tokens: Option<i64>,
    },
    /// It was not made, or its caller waits no longer.
    Abandoned,
}

/// The state of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    breaker: Option<Breaker>,
    concurrency: Option<Concurrency>,
    rate: Option<RateLimit>,
    tokens: Option<Tokens>,
}

/// The parts of a gate that a rule is about.
struct Parts<'a> {
    breaker: Option<&'a mut Breaker>,
    concurrency: Option<&'a mut Concurrency>,
    rate: Option<&'a mut RateLimit>,
    tokens: Option<&'a mut Tokens>,
}

impl Gate {
    /// Returns the parts that a rule is about, under its numbers; a part that was never used is new.
    fn parts(&mut self, rule: &Rule) -> Parts<'_> {
        let breaker = rule.breaker.map(|rule| {
            let part = self.breaker.get_or_insert_with(|| Breaker::new(rule));
            part.set_rule(rule);
            part
        });
        let concurrency = rule.concurrency.map(|rule| {
            let part = self.concurrency.get_or_insert_with(|| Concurrency::new(rule));
            part.set_rule(rule);
            part
        });
        let rate = rule.rate.map(|rule| {
            let part = self.rate.get_or_insert_with(|| RateLimit::new(rule));
            part.set_rule(rule);
            part
        });
        let tokens = rule.tokens.map(|rule| {
            let part = self.tokens.get_or_insert_with(|| Tokens::new(rule));
            part.set_rule(rule);
            part
        });
        Parts {
            breaker,
            concurrency,
            rate,
            tokens,
        }
    }

    /// Decides about an attempt that uses at most `most_tokens`, takes at most `lease_us` and begins before `before_us`.
    /// A waiter asks again under the same name.
    pub fn ask(
        &mut self,
        rule: &Rule,
        asker: &Arc<str>,
        most_tokens: i64,
        lease_us: i64,
        before_us: i64,
        now_us: i64,
    ) -> Decision {
        let Parts {
            breaker,
            mut concurrency,
            rate,
            mut tokens,
        } = self.parts(rule);
        // The rate comes first, because a lease begins when the request does.
        let moment = rate.as_ref().map(|rate| rate.ask(before_us, now_us));
        let at_us = match moment {
            Some(Moment::Granted { at_us, .. }) => at_us,
            _ => now_us,
        };
        let lease_us = at_us - now_us + lease_us;
        let way = breaker
            .as_ref()
            .map_or(Way::Through, |breaker| breaker.ask(asker, now_us));
        let mut held_back = None;
        if let Way::Stopped(retry_at_us) = way {
            held_back = Some((By::CircuitBreaker, retry_at_us));
        } else if let Some(concurrency) = &mut concurrency {
            match concurrency.ask(asker, lease_us, before_us, now_us) {
                Place::Entered => {}
                Place::Queued(until_us) => {
                    return Decision::Waiting {
                        by: By::Concurrency,
                        until_us,
                        wait_us: until_us - now_us,
                    };
                }
                Place::Full => held_back = Some((By::Concurrency, now_us)),
            }
        } else if let Some(tokens) = &mut tokens {
            match tokens.ask(asker, most_tokens, lease_us, before_us, now_us) {
                tokens::Place::Entered => {}
                tokens::Place::Queued(until_us) => {
                    return Decision::Waiting {
                        by: By::TokenLimit,
                        until_us,
                        wait_us: until_us - now_us,
                    };
                }
                tokens::Place::Refused(retry_at_us) => held_back = Some((By::TokenLimit, retry_at_us)),
            }
        }
        if let (None, Some(Moment::Refused(retry_at_us))) = (held_back, moment) {
            held_back = Some((By::RateLimit, retry_at_us));
        }
        if let Some((by, retry_at_us)) = held_back {
            // A rejected asker holds nothing, not even its place in the queue.
            if let Some(concurrency) = concurrency {
                concurrency.leave(asker, now_us);
            }
            if let Some(tokens) = tokens {
                tokens.leave(asker, Some(0), now_us);
            }
            return Decision::Rejected {
                by,
                retry_at_us,
                wait_us: retry_at_us - now_us,
            };
        }
        if let (Some(breaker), Way::AsProbe) = (breaker, way) {
            breaker.begin_probe(asker, now_us + lease_us);
        }
        if let (Some(rate), Some(Moment::Granted { after, .. })) = (rate, moment) {
            *rate = after;
        }
        Decision::Admitted {
            at_us,
            wait_us: at_us - now_us,
        }
    }

    /// Frees what an attempt has taken; returns what its end did to the breaker.
    pub fn leave(&mut self, rule: &Rule, asker: &Arc<str>, ending: Ending, now_us: i64) -> Change {
        let parts = self.parts(rule);
        if let Some(concurrency) = parts.concurrency {
            concurrency.leave(asker, now_us);
        }
        if let Some(held) = parts.tokens {
            // An attempt whose caller has gone may have been sent.
            let used = match ending {
                Ending::Ended { tokens, .. } => tokens,
                Ending::Abandoned => None,
            };
            held.leave(asker, used, now_us);
        }
        match (parts.breaker, ending) {
            (None, _) => Change::None,
            (
                Some(breaker),
                Ending::Ended {
                    admitted_us,
                    is_failure,
                    ..
                },
            ) => breaker.end(asker, admitted_us, is_failure, now_us),
            (Some(breaker), Ending::Abandoned) => {
                breaker.abandon(asker);
                Change::None
            }
        }
    }

    /// Returns true where a new state would decide alike from now on.
    pub fn is_idle(&self, now_us: i64) -> bool {
        self.breaker.as_ref().is_none_or(|part| part.is_idle(now_us))
            && self.concurrency.as_ref().is_none_or(|part| part.is_idle(now_us))
            && self.rate.as_ref().is_none_or(|part| part.is_idle(now_us))
            && self.tokens.as_ref().is_none_or(|part| part.is_idle(now_us))
    }

    /// Returns the time that a request for one token would wait for rate and tokens. Nothing changes.
    pub fn pressure_us(&mut self, rule: &Rule, now_us: i64) -> i64 {
        let parts = self.parts(rule);
        let rate_us = match parts.rate.map(|rate| rate.ask(i64::MAX, now_us)) {
            Some(Moment::Granted { at_us, .. } | Moment::Refused(at_us)) => at_us - now_us,
            None => 0,
        };
        rate_us.max(parts.tokens.map_or(0, |tokens| tokens.wait_us(now_us)))
    }
}
