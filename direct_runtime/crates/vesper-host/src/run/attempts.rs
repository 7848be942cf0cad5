//! The attempts at one request: under its timeout, its retries, and the limits that runs share.
//!
//! The machines of `policy` decide; here are the clock, the draws and the waits. Each decision beyond a first attempt is
//! a VALUE in the journal.

use std::sync::Arc;
use std::time::Duration;

use vesper_interp::Request;
use vesper_ir::{EffectClass, Value};

use crate::effect::{AttemptError, Failure};
use crate::journal::{JournalError, Kind};
use crate::policy::breaker::Change;
use crate::policy::gate::{self, released_record};
use crate::policy::retry::{self, Retry};
use crate::policy::settings::PolicyError;
use crate::policy::state::{PolicyState, Token};
use crate::run::metrics;
use crate::run::outcome::RunError;
use crate::run::running::{Pace, Running, Services, micros};
use crate::run::settling::Admitted;
use crate::runtime;

/// Least time of an attempt.
const MIN_TIMEOUT_US: i64 = 1000;
/// Waits below this time block: timers count in milliseconds, and limits in microseconds.
const MIN_TIMER: Duration = Duration::from_millis(1);

/// One request with the rules of its attempts.
#[derive(Clone, Copy)]
struct Attempts<'a> {
    running: &'a Running,
    request: &'a Request,
    admitted: Admitted<'a>,
    deadline_us: Option<i64>,
    is_repeat: bool,
}

impl From<PolicyError> for RunError {
    fn from(error: PolicyError) -> Self {
        Self::Fault(error.to_string())
    }
}

impl Running {
    /// Performs a request under its policies; returns the value, or the failure of the last attempt.
    pub(super) async fn perform(
        &self,
        request: &Request,
        admitted: Admitted<'_>,
        is_repeat: bool,
    ) -> Result<Result<Value, Failure>, RunError> {
        let plan = admitted.plan();
        let is_paced = self.services.pace == Pace::Policies;
        let attempts = Attempts {
            running: self,
            request,
            admitted,
            deadline_us: if is_paced && !plan.in_handler {
                self.deadline_us
            } else {
                None
            },
            is_repeat,
        };
        if plan.policy.is_empty() || self.services.pace == Pace::Once {
            return settled(attempts.attempt(1).await);
        }
        let rule = gate::Rule::new(&plan.policy)?;
        let gate = Some(rule).filter(|rule| is_paced && !rule.is_open_to_all());
        if gate.is_none() && !plan.policy.contains_key("attempts") {
            return settled(attempts.attempt(1).await);
        }
        attempts.repeat(gate.as_ref()).await
    }
}

fn settled(result: Result<Value, AttemptError>) -> Result<Result<Value, Failure>, RunError> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(AttemptError::Failed(failure)) => Ok(Err(failure)),
        Err(AttemptError::Broken(broken)) => Err(broken.into()),
    }
}

impl Attempts<'_> {
    /// Makes attempts until one succeeds or the retries are over.
    async fn repeat(self, gate: Option<&gate::Rule>) -> Result<Result<Value, Failure>, RunError> {
        let plan = self.admitted.plan();
        let is_repeatable = self.request.class != EffectClass::Unsafe;
        let mut retry = Retry::new(retry::Rule::new(&plan.policy, is_repeatable)?, self.deadline_us);
        let mut number = 1;
        let mut may_have_happened = false;
        loop {
            let result = match gate {
                Some(rule) => self.attempt_within(rule, number).await?,
                None => self.attempt(number).await,
            };
            let mut failure = match settled(result)? {
                Ok(value) => return Ok(Ok(value)),
                Err(failure) => failure,
            };
            may_have_happened |= failure.may_have_happened;
            failure.may_have_happened = may_have_happened;
            let decision = self.decide(&mut retry, &failure)?;
            self.note(&decision.to_record(), number)?;
            match decision {
                retry::Decision::GiveUp { .. } => return Ok(Err(failure)),
                retry::Decision::TryAgain {
                    attempt, delay_us, ..
                } => {
                    metrics::count_retry(self.node(), self.request);
                    if self.running.services.pace == Pace::Policies {
                        self.wait(delay_us).await;
                    }
                    number = attempt;
                }
            }
        }
    }

    fn decide(self, retry: &mut Retry, failure: &Failure) -> Result<retry::Decision, RunError> {
        let code = failure.code.name();
        let sources = &self.running.services.sources;
        if self.running.services.pace != Pace::Policies {
            return Ok(retry.failed(code, 0, None, 0));
        }
        let mut draw = [0; 4];
        let no_draw = |_| RunError::Fault(String::from("the operating system gives no random bytes"));
        sources.fill(&mut draw).map_err(no_draw)?;
        let retry_after_us = failure.retry_after.map(micros);
        Ok(retry.failed(
            code,
            u32::from_be_bytes(draw),
            retry_after_us,
            sources.monotonic_us(),
        ))
    }

    /// Makes one attempt.
    async fn attempt(self, number: i64) -> Result<Value, AttemptError> {
        let timeout = self.time_left();
        let is_repeat = self.is_repeat || number > 1;
        self.running
            .attempt(self.request, self.admitted, timeout, is_repeat)
            .await
    }

    /// Makes one attempt that the limits which runs share admit.
    async fn attempt_within(
        self,
        rule: &gate::Rule,
        number: i64,
    ) -> Result<Result<Value, AttemptError>, RunError> {
        let mut place = match self.admit(rule, number).await? {
            Ok(place) => place,
            Err(rejected) => return Ok(Err(rejected.into())),
        };
        let result = self.attempt(number).await;
        let code = match &result {
            Err(AttemptError::Failed(failure)) => Some(failure.code.name()),
            _ => None,
        };
        let change = place.release(code).await;
        if rule.breaker.is_some() {
            metrics::breaker(self.node(), self.limits_name()).ended(change, code);
        }
        if change != Change::None {
            self.note(&released_record(change), number)?;
        }
        Ok(result)
    }

    /// Waits until the attempt may go out; returns a failure where it may not go out in time.
    async fn admit(self, rule: &gate::Rule, number: i64) -> Result<Result<Place, Failure>, RunError> {
        let services = &self.running.services;
        let name = &self.admitted.plan().limits_name;
        let mut waiting: Option<Place> = None;
        loop {
            let now_us = services.sources.monotonic_us();
            let token = waiting.as_ref().and_then(|place| place.token.as_ref());
            let policies = &services.policies;
            let admission = policies
                .acquire(name, rule, now_us, self.deadline_us, token)
                .await?;
            let decision = admission.decision;
            let is_first = waiting.is_none();
            if let Some(mut before) = waiting.take() {
                before.token = None; // the new token is of the same place
            }
            let place = Place {
                services: Arc::clone(services),
                token: admission.token,
            };
            if rule.breaker.is_some() {
                metrics::breaker(self.node(), self.limits_name()).decided(decision);
            }
            let wait_us = decision.wait_us();
            if let gate::Decision::Rejected { by, .. } = decision {
                self.note(&decision.to_record(), number)?;
                let by = by.name().replace('_', " ");
                let mut failure =
                    Failure::new("unavailable", format!("held back by its {by}: it was not sent"));
                failure.retry_after = (wait_us > 0).then(|| duration(wait_us));
                return Ok(Err(failure));
            }
            if wait_us > 0 {
                if is_first {
                    self.note(&decision.to_record(), number)?;
                }
                self.wait(wait_us).await;
            }
            if let gate::Decision::Admitted { .. } = decision {
                return Ok(Ok(place));
            }
            waiting = Some(place);
        }
    }

    fn node(&self) -> &str {
        &self.running.prepared.node
    }

    fn limits_name(&self) -> &str {
        &self.admitted.plan().limits_name
    }

    /// Waits between two attempts, by the scale of the sources.
    async fn wait(self, us: i64) {
        let time = duration(us).mul_f64(self.running.services.sources.wait_scale());
        if time < MIN_TIMER {
            std::thread::sleep(time);
        } else {
            tokio::time::sleep(time).await;
        }
    }

    /// Appends a decision about an attempt.
    fn note(self, record: &str, number: i64) -> Result<(), JournalError> {
        let path = format!("{}#{number}", self.request.path);
        self.running
            .append_plain(Kind::Value, &path, self.request.effect.name(), record)
    }

    /// Returns the time of an attempt: its own, and at most what the execution has left.
    fn time_left(self) -> Option<Duration> {
        let scale = self.running.services.sources.timeout_scale();
        let own = self.admitted.plan().timeout.map(|own| own.mul_f64(scale));
        let Some(deadline_us) = self.deadline_us else {
            return own;
        };
        let left_us = (deadline_us - self.running.services.sources.monotonic_us()).max(MIN_TIMEOUT_US);
        Some(own.map_or(duration(left_us), |own| own.min(duration(left_us))))
    }
}

/// A place within limits that runs share. Where its future is dropped, the place is given back: the attempt was not made,
/// or its caller has gone.
struct Place {
    services: Arc<Services>,
    token: Option<Token>,
}

impl Place {
    async fn release(&mut self, code: Option<&str>) -> Change {
        let now_us = self.services.sources.monotonic_us();
        let Some(token) = &self.token else {
            return Change::None;
        };
        let change = self.services.policies.release(token, code, now_us).await;
        self.token = None;
        change
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(token) = self.token.take() else { return };
        let now_us = self.services.sources.monotonic_us();
        match &*self.services.policies {
            PolicyState::Memory(state) => state.abandon(&token, now_us),
            PolicyState::Redis(_) => {
                let services = Arc::clone(&self.services);
                // Without a runtime the place is free when its lease ends.
                let _ = runtime::spawn(async move { services.policies.abandon(&token, now_us).await });
            }
        }
    }
}

fn duration(us: i64) -> Duration {
    Duration::from_micros(u64::try_from(us).unwrap_or_default())
}
