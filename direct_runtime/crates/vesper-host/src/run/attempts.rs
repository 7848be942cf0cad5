//! The attempts at one request: under its timeout, its retries, and the limits that runs share.
//!
//! The machines of `policy` decide; here are the clock, the draws and the waits. Each decision beyond a first attempt is
//! a VALUE in the journal.

use std::time::Duration;

use vesper_interp::Request;
use vesper_ir::{EffectClass, Value};

use crate::effect::{AttemptError, Failure};
use crate::journal::{JournalError, Kind};
use crate::policy::breaker::Change;
use crate::policy::gate::{self, released_record};
use crate::policy::retry::{self, Retry};
use crate::policy::settings::PolicyError;
use crate::policy::state::Demand;
use crate::policy::{Limiter, Place, duration, held_back};
use crate::run::budgets::Charge;
use crate::run::metrics;
use crate::run::outcome::RunError;
use crate::run::running::{Pace, Running, micros};
use crate::run::settling::Admitted;
use crate::run::trace::OpenSpan;

/// Least time of an attempt.
const MIN_TIMEOUT_US: i64 = 1000;

/// One request with the rules of its attempts.
#[derive(Clone, Copy)]
struct Attempts<'a> {
    running: &'a Running,
    request: &'a Request,
    admitted: Admitted<'a>,
    deadline_us: Option<i64>,
    is_repeat: bool,
    span: Option<&'a OpenSpan>,
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
        span: Option<&OpenSpan>,
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
            span,
        };
        if plan.policy.is_empty() || self.services.pace == Pace::Once {
            return settled(attempts.attempt(1).await?);
        }
        let rule = gate::Rule::new(&plan.policy)?;
        let gate = self.services.limiter().filter(|_| !rule.is_open_to_all());
        let gate = gate.as_ref().map(|limiter| (limiter, &rule));
        if gate.is_none() && !plan.policy.contains_key("attempts") {
            return settled(attempts.attempt(1).await?);
        }
        attempts.repeat(gate).await
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
    async fn repeat(self, gate: Option<(&Limiter, &gate::Rule)>) -> Result<Result<Value, Failure>, RunError> {
        let plan = self.admitted.plan();
        let is_repeatable = self.request.class != EffectClass::Unsafe;
        let mut retry = Retry::new(retry::Rule::new(&plan.policy, is_repeatable)?, self.deadline_us);
        let mut number = 1;
        let mut may_have_happened = false;
        loop {
            let result = match gate {
                Some(gate) => self.attempt_within(gate, number).await?,
                None => self.attempt(number).await?,
            };
            let mut failure = match settled(result)? {
                Ok(value) => return Ok(Ok(value)),
                Err(failure) => failure,
            };
            may_have_happened |= failure.may_have_happened;
            failure.may_have_happened = may_have_happened;
            if self.running.control.is_stopped() || failure.code.name() == "budget_exceeded" {
                return Ok(Err(failure));
            }
            let decision = self.decide(&mut retry, &failure)?;
            self.note(&decision.to_record(), number)?;
            match decision {
                retry::Decision::GiveUp { .. } => return Ok(Err(failure)),
                retry::Decision::TryAgain {
                    attempt, delay_us, ..
                } => {
                    metrics::count_retry(self.node(), self.request);
                    if let Some(limiter) = self.running.services.limiter() {
                        limiter.wait(delay_us).await;
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

    /// Makes one attempt that its budgets admit.
    async fn attempt(self, number: i64) -> Result<Result<Value, AttemptError>, RunError> {
        let is_repeat = self.is_repeat || number > 1;
        let (running, request, admitted) = (self.running, self.request, self.admitted);
        let claimed = running.claim(request, admitted.plan(), self.time_left(), number);
        let mut claimed = match claimed.await? {
            Ok(claimed) => claimed,
            Err(refused) => return Ok(Err(refused.into())),
        };
        let times = (claimed.timeout, is_repeat, self.deadline_us);
        let result = running.attempt(request, admitted, times, number, self.span).await;
        let charge = Charge::of(&result);
        let used = running
            .settle_claim(&mut claimed, charge, request, number)
            .await?;
        if let (Some(span), Some(used)) = (self.span, used) {
            span.add_usage(&used);
        }
        Ok(result)
    }

    /// Makes one attempt that the limits which runs share admit.
    async fn attempt_within(
        self,
        gate: (&Limiter, &gate::Rule),
        number: i64,
    ) -> Result<Result<Value, AttemptError>, RunError> {
        let mut place = match self.admit(gate, number).await? {
            Ok(place) => place,
            Err(rejected) => return Ok(Err(rejected.into())),
        };
        let result = self.attempt(number).await?;
        let code = match &result {
            Err(AttemptError::Failed(failure)) => Some(failure.code.name()),
            _ => None,
        };
        let change = place.release(code, None).await;
        if gate.1.breaker.is_some() {
            metrics::breaker(self.node(), self.limits_name()).ended(change, code);
        }
        if change != Change::None {
            self.note(&released_record(change), number)?;
        }
        Ok(result)
    }

    /// Waits until the attempt may go out; returns a failure where it may not go out in time.
    async fn admit(
        self,
        (limiter, rule): (&Limiter, &gate::Rule),
        number: i64,
    ) -> Result<Result<Place, Failure>, RunError> {
        let note = |decision: gate::Decision, is_first: bool| -> Result<(), RunError> {
            if rule.breaker.is_some() {
                metrics::breaker(self.node(), self.limits_name()).decided(decision);
            }
            let is_noted = match decision {
                gate::Decision::Rejected { .. } => true,
                _ => is_first && decision.wait_us() > 0,
            };
            if is_noted {
                self.note(&decision.to_record(), number)?;
            }
            Ok(())
        };
        let name = &self.admitted.plan().limits_name;
        let demand = Demand::default();
        let admitted = limiter.admit(name, rule, demand, self.deadline_us, note).await?;
        Ok(admitted.map_err(|decision| held_back("unavailable", decision)))
    }

    fn node(&self) -> &str {
        &self.running.prepared.node
    }

    fn limits_name(&self) -> &str {
        &self.admitted.plan().limits_name
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
