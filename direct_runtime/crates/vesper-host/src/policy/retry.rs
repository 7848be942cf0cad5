//! Retry: after an attempt that failed, give up, or wait and try again.
//!
//! The wait before attempt `n + 1` is `base × factor ** (n - 1)`, at most `max`; with full jitter it is drawn between
//! zero and that. A `Retry-After` of the other side is a lower bound that neither jitter nor `max` shortens. An attempt
//! that could not begin before the end of the execution's time is given up at once.

use std::sync::Arc;

use super::matches_code;
use super::record::{Member, record};
use super::settings::{MAX_US, Policy, PolicyError, number, word, words};

pub const DEFAULT_CODES: [&str; 2] = ["timeout", "unavailable"];
pub const DEFAULT_FACTOR: i64 = 2;
pub const MAX_ATTEMPTS: i64 = 100;
/// An hour. Without `max` no wait grows beyond it, except that of a longer `base`; a longer `Retry-After` of an
/// execution without a time limit is given up.
pub const LONGEST_DELAY_US: i64 = 3_600_000_000;

/// The `retry` of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub attempts: i64,
    pub codes: Vec<Arc<str>>,
    pub base_us: i64,
    pub factor: i64,
    pub max_us: i64,
    pub is_jittered: bool,
    /// False for class `unsafe`, which is never repeated. The `retry` of a node may meet an `unsafe` effect among
    /// others.
    pub is_repeatable: bool,
}

impl Rule {
    /// Reads the rule of a policy.
    pub fn new(policy: &Policy, is_repeatable: bool) -> Result<Self, PolicyError> {
        let base_us = number(policy, "backoff_us", MAX_US)?.unwrap_or(0);
        let codes = match words(policy, "retry_on")? {
            Some(codes) => codes.to_vec(),
            None => DEFAULT_CODES.map(Arc::from).to_vec(),
        };
        Ok(Self {
            attempts: number(policy, "attempts", MAX_ATTEMPTS)?.unwrap_or(1),
            codes,
            base_us,
            factor: number(policy, "backoff_factor", 100)?.unwrap_or(DEFAULT_FACTOR),
            max_us: number(policy, "backoff_max_us", MAX_US)?.unwrap_or(base_us.max(LONGEST_DELAY_US)),
            is_jittered: word(policy, "jitter", &["none", "full"])? == Some("full"),
            is_repeatable,
        })
    }

    /// Returns the wait after this number of failed attempts, before jitter.
    fn backoff_us(&self, failed: i64) -> i64 {
        let exponent = u32::try_from(failed - 1).unwrap_or(u32::MAX);
        let grown = self.base_us.saturating_mul(self.factor.saturating_pow(exponent));
        grown.min(self.max_us)
    }

    fn reason_against(&self, failed: i64, code: &str) -> Option<&'static str> {
        if !self.is_repeatable {
            return Some("unsafe");
        }
        if !matches_code(&self.codes, code) {
            return Some("code");
        }
        (failed >= self.attempts).then_some("attempts")
    }
}

/// The attempts at one effect.
#[derive(Clone, Debug)]
pub struct Retry {
    rule: Rule,
    /// End of the execution's time; None where it has no limit.
    deadline_us: Option<i64>,
    failed: i64,
}

/// Decision after a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    TryAgain {
        /// Number of the next attempt; the first one was 1.
        attempt: i64,
        delay_us: i64,
        code: Arc<str>,
        /// The draw that made the delay, with full jitter.
        jitter: Option<u32>,
    },
    /// The effect fails with the code of its last attempt.
    GiveUp {
        attempts: i64,
        code: Arc<str>,
        /// `attempts`, `code`, `unsafe`, `deadline` or `retry_after` (docs/spec/policies.md).
        reason: &'static str,
    },
}

impl Retry {
    pub fn new(rule: Rule, deadline_us: Option<i64>) -> Self {
        Self {
            rule,
            deadline_us,
            failed: 0,
        }
    }

    /// Decides after a failed attempt. `draw` is a random number, new for every call.
    pub fn failed(&mut self, code: &str, draw: u32, retry_after_us: Option<i64>, now_us: i64) -> Decision {
        self.failed += 1;
        let (rule, failed) = (&self.rule, self.failed);
        let give_up = |reason| Decision::GiveUp {
            attempts: failed,
            code: Arc::from(code),
            reason,
        };
        if let Some(reason) = rule.reason_against(failed, code) {
            return give_up(reason);
        }
        let mut delay_us = rule.backoff_us(failed);
        if rule.is_jittered {
            let drawn = ((i128::from(delay_us) + 1) * i128::from(draw)) >> 32;
            delay_us = i64::try_from(drawn).unwrap_or(delay_us);
        }
        let asked_us = retry_after_us.unwrap_or(0);
        let left_us = self.deadline_us.map(|deadline_us| deadline_us - now_us);
        let fits = |delay_us: i64| left_us.is_none_or(|left_us| delay_us < left_us);
        if !fits(asked_us) || (left_us.is_none() && asked_us > LONGEST_DELAY_US) {
            return give_up(if asked_us > 0 { "retry_after" } else { "deadline" });
        }
        delay_us = delay_us.max(asked_us);
        if !fits(delay_us) {
            return give_up("deadline");
        }
        Decision::TryAgain {
            attempt: failed + 1,
            delay_us,
            code: Arc::from(code),
            jitter: rule.is_jittered.then_some(draw),
        }
    }
}

impl Decision {
    /// Returns the record of the decision for the journal.
    pub fn to_record(&self) -> String {
        match self {
            Self::TryAgain {
                attempt,
                delay_us,
                code,
                jitter,
            } => {
                let mut members = vec![
                    ("attempt", Member::Number(*attempt)),
                    ("delay_us", Member::Number(*delay_us)),
                    ("code", Member::Text(code)),
                ];
                members.extend(jitter.map(|draw| ("jitter", Member::Number(i64::from(draw)))));
                record("retry", &members)
            }
            Self::GiveUp {
                attempts,
                code,
                reason,
            } => record(
                "give_up",
                &[
                    ("attempts", Member::Number(*attempts)),
                    ("code", Member::Text(code)),
                    ("reason", Member::Text(reason)),
                ],
            ),
        }
    }
}
