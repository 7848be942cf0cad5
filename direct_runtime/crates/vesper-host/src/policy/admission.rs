//! Admission of an attempt: asks the limits that runs share, waits as they decide, and gives back what was taken.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::breaker::Change;
use super::gate::{Decision, Rule};
use super::settings::PolicyError;
use super::state::{Demand, PolicyState, Token};
use crate::effect::Failure;
use crate::runtime;
use crate::sources::Sources;

/// Waits below this time block: timers count in milliseconds, and limits in microseconds.
const MIN_TIMER: Duration = Duration::from_millis(1);

/// The limits that runs share, and the clock that they are asked by.
#[derive(Clone)]
pub struct Limiter {
    policies: Arc<PolicyState>,
    sources: Arc<dyn Sources>,
}

impl fmt::Debug for Limiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Limiter({:?})", self.policies)
    }
}

impl Limiter {
    pub fn new(policies: &Arc<PolicyState>, sources: &Arc<dyn Sources>) -> Self {
        Self {
            policies: Arc::clone(policies),
            sources: Arc::clone(sources),
        }
    }

    /// Waits until an attempt may go out; returns its place, or the decision that rejects it. `note` receives each
    /// decision before its wait, and whether it is the first.
    pub async fn admit<E: From<PolicyError>>(
        &self,
        name: &Arc<str>,
        rule: &Rule,
        demand: Demand,
        deadline_us: Option<i64>,
        note: impl Fn(Decision, bool) -> Result<(), E>,
    ) -> Result<Result<Place, Decision>, E> {
        let mut waiting: Option<Place> = None;
        loop {
            let now_us = self.sources.monotonic_us();
            let token = waiting.as_ref().and_then(|place| place.token.as_ref());
            let admission = self
                .policies
                .acquire(name, rule, demand, now_us, deadline_us, token)
                .await?;
            let decision = admission.decision;
            let is_first = waiting.is_none();
            if let Some(mut before) = waiting.take() {
                before.token = None; // the new token is of the same place
            }
            let place = Place {
                limiter: self.clone(),
                token: admission.token,
            };
            note(decision, is_first)?;
            match decision {
                Decision::Rejected { .. } => return Ok(Err(decision)),
                Decision::Admitted { wait_us, .. } => {
                    self.wait(wait_us).await;
                    return Ok(Ok(place));
                }
                Decision::Waiting { wait_us, .. } => self.wait(wait_us).await,
            }
            waiting = Some(place);
        }
    }

    /// Returns the time until a moment of the clock.
    pub(crate) fn time_until(&self, at_us: i64) -> Duration {
        duration(at_us - self.sources.monotonic_us())
    }

    /// Waits by the scale of the sources.
    pub async fn wait(&self, us: i64) {
        if us <= 0 {
            return;
        }
        let time = duration(us).mul_f64(self.sources.wait_scale());
        if time < MIN_TIMER {
            std::thread::sleep(time);
        } else {
            tokio::time::sleep(time).await;
        }
    }
}

/// A place within limits that runs share. Where its future is dropped, the place is given back: the attempt was not made,
/// or its caller has gone.
#[derive(Debug)]
pub struct Place {
    limiter: Limiter,
    token: Option<Token>,
}

impl Place {
    /// Reports the end of the attempt: with the code of its failure, and the tokens that it used where they are known.
    pub async fn release(&mut self, code: Option<&str>, tokens: Option<i64>) -> Change {
        let now_us = self.limiter.sources.monotonic_us();
        let Some(token) = &self.token else {
            return Change::None;
        };
        let policies = &self.limiter.policies;
        let change = policies.release(token, code, tokens, now_us).await;
        self.token = None;
        change
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(token) = self.token.take() else { return };
        let now_us = self.limiter.sources.monotonic_us();
        match &*self.limiter.policies {
            PolicyState::Memory(state) => state.abandon(&token, now_us),
            PolicyState::Redis(_) => {
                let policies = Arc::clone(&self.limiter.policies);
                // Without a runtime the place is free when its lease ends.
                let _ = runtime::spawn(async move { policies.abandon(&token, now_us).await });
            }
        }
    }
}

/// Returns the failure of an attempt that a decision rejects.
pub(crate) fn held_back(code: &str, decision: Decision) -> Failure {
    let by = match decision {
        Decision::Rejected { by, .. } | Decision::Waiting { by, .. } => by.name().replace('_', " "),
        Decision::Admitted { .. } => String::from("policies"),
    };
    let mut failure = Failure::new(code, format!("held back by its {by}: it was not sent"));
    let wait_us = decision.wait_us();
    failure.retry_after = (wait_us > 0).then(|| duration(wait_us));
    failure
}

pub(crate) fn duration(us: i64) -> Duration {
    Duration::from_micros(u64::try_from(us).unwrap_or_default())
}
