//! What attempts share: circuit breakers, rate and concurrency limits, asked before every attempt and told after it.
//!
//! The run loop calls `acquire` with the name that the limits are counted under, and follows the decision: it goes at
//! once or sleeps until `at_us` (`Admitted`), sleeps and asks again with the token (`Waiting`), or lets the effect fail
//! with `unavailable` (`Rejected`). It gives the token back in any case: with `release` where the attempt was made,
//! with `abandon` where it was not. All times are of one clock of the caller that does not go back.

use std::fmt::Write as _;
use std::sync::Arc;

use super::breaker::Change;
use super::gate::{self, Decision, Rule};
use super::memory_state::MemoryState;
use super::redis_state::RedisState;
use super::settings::{MAX_US, PolicyError};
use crate::sources::Sources;

/// A clock that goes back by more has been set, or is another one: the name starts anew. A smaller step comes from
/// threads that read the clock in one order and arrive in another, and is ignored.
pub const CLOCK_STEP_US: i64 = 10_000_000;

/// Holder of what a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Nothing was taken.
    None,
    Memory,
    Redis,
}

/// The claim of an attempt, which it gives back.
#[derive(Clone, Debug)]
pub struct Token {
    pub(crate) name: Arc<str>,
    pub(crate) asker: Arc<str>,
    pub(crate) rule: Rule,
    /// By the clock of the store.
    pub(crate) admitted_us: i64,
    pub(crate) store: Store,
    /// Moment of the first question, by the clock of the caller.
    pub(crate) asked_us: i64,
}

impl Token {
    /// Returns the moment at which the store let the attempt out, by its own clock.
    pub fn admitted_us(&self) -> i64 {
        self.admitted_us
    }
}

/// Part of a question that is not the same for all attempts under a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The most tokens that the attempt uses.
    pub most_tokens: i64,
    /// Time for which it waits; by default as long as its execution may, and at most a minute without a limit.
    pub patience_us: Option<i64>,
}

/// Answer to an `acquire`.
#[derive(Clone, Debug)]
pub struct Admission {
    pub decision: Decision,
    /// None for a rejected asker.
    pub token: Option<Token>,
}

/// The state that runs share.
#[derive(Debug)]
pub enum PolicyState {
    Memory(MemoryState),
    Redis(Box<RedisState>),
}

impl PolicyState {
    /// Decides whether an attempt may go out. Without a deadline it waits at most a minute. `waiting` is the token of a
    /// `Waiting` that is over.
    pub async fn acquire(
        &self,
        name: &Arc<str>,
        rule: &Rule,
        demand: Demand,
        now_us: i64,
        deadline_us: Option<i64>,
        waiting: Option<&Token>,
    ) -> Result<Admission, PolicyError> {
        match self {
            Self::Memory(state) => state.acquire(name, rule, demand, now_us, deadline_us, waiting),
            Self::Redis(state) => {
                state
                    .acquire(name, rule, demand, now_us, deadline_us, waiting)
                    .await
            }
        }
    }

    /// Reports the end of an attempt: with a code, or without where it succeeded, and with the tokens that it used where
    /// they are known. A second or late report does no harm.
    pub async fn release(
        &self,
        token: &Token,
        failure_code: Option<&str>,
        tokens: Option<i64>,
        now_us: i64,
    ) -> Change {
        match self {
            Self::Memory(state) => state.release(token, failure_code, tokens, now_us),
            Self::Redis(state) => state.release(token, failure_code, tokens, now_us).await,
        }
    }

    /// Returns the time that another attempt would wait for rate and tokens now; zero where it would not. Nothing is
    /// taken, and a store that cannot be reached reports none.
    pub async fn pressure_us(&self, name: &Arc<str>, rule: &Rule, now_us: i64) -> i64 {
        match self {
            Self::Memory(state) => state.pressure_us(name, rule, now_us),
            Self::Redis(state) => state.pressure_us(name, rule, now_us).await,
        }
    }

    /// Gives back the token of an attempt that was not made. The breaker learns nothing of it; a moment of the rate
    /// limit stays taken.
    pub async fn abandon(&self, token: &Token, now_us: i64) {
        match self {
            Self::Memory(state) => state.abandon(token, now_us),
            Self::Redis(state) => state.abandon(token, now_us).await,
        }
    }

    /// Closes connections. The state stays usable.
    pub fn close(&self) {
        match self {
            Self::Memory(_) => {}
            Self::Redis(state) => state.close(),
        }
    }
}

/// An `acquire` in the terms of a gate.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) asker: Arc<str>,
    pub(super) asked_us: i64,
    pub(super) most_tokens: i64,
    /// Time for which the attempt may wait before it begins.
    pub(super) left_us: i64,
    pub(super) lease_us: i64,
}

impl Question {
    pub(super) fn new(
        sources: &dyn Sources,
        rule: &Rule,
        demand: Demand,
        now_us: i64,
        deadline_us: Option<i64>,
        waiting: Option<&Token>,
    ) -> Self {
        let asked_us = waiting.map_or(now_us, |token| token.asked_us);
        let left_us = deadline_us.map(|deadline_us| deadline_us.saturating_sub(now_us).clamp(0, MAX_US));
        // Who does not wait begins in this very microsecond.
        let patience_us = demand
            .patience_us
            .map_or(MAX_US, |patience_us| patience_us.max(1));
        let most_us = left_us.unwrap_or((asked_us + gate::LONGEST_WAIT_US - now_us).max(0));
        Self {
            asker: waiting.map_or_else(|| new_asker(sources), |token| Arc::clone(&token.asker)),
            asked_us,
            most_tokens: demand.most_tokens,
            left_us: most_us.min((asked_us + patience_us - now_us).max(0)),
            lease_us: rule.lease_us(left_us),
        }
    }
}

/// Returns a name that no other attempt has, in any process.
pub(crate) fn new_asker(sources: &dyn Sources) -> Arc<str> {
    let mut bytes = [0_u8; 12];
    // Without random bytes the clock still distinguishes attempts.
    if sources.fill(&mut bytes).is_err() {
        let now = sources.now_ns().to_be_bytes();
        bytes.iter_mut().zip(now).for_each(|(to, from)| *to = from);
    }
    Arc::from(hex(&bytes))
}

/// Formats bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns the answer where there is nothing to decide, and nothing to give back.
pub(super) fn open_to_all(now_us: i64) -> Admission {
    Admission {
        decision: Decision::Admitted {
            at_us: now_us,
            wait_us: 0,
        },
        token: Some(Token {
            name: Arc::from(""),
            asker: Arc::from(""),
            rule: Rule::default(),
            admitted_us: 0,
            store: Store::None,
            asked_us: 0,
        }),
    }
}
