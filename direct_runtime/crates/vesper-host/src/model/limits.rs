//! The limits of a model: requests and tokens in a period, over all nodes that ask it (docs/spec/models.md#limits).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::answer::Answer;
use super::catalog::{Catalog, Model};
use super::conversation::Conversation;
use crate::effect::{Ask, Failure, SharedLimits};
use crate::policy::gate::Rule;
use crate::policy::settings::PolicyError;
use crate::policy::state::Demand;
use crate::policy::{Limiter, Place, held_back};

/// What a request does that its limits hold back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// It waits.
    Queue,
    /// It fails with `rate_limit`.
    Reject,
    /// It waits, and calls that would begin a run are refused meanwhile.
    Backpressure,
}

/// Limits of one model.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The name that they are counted under.
    pub name: Arc<str>,
    pub rule: Rule,
    pub strategy: Strategy,
}

/// The part of the limits that one request has taken.
#[derive(Debug, Default)]
pub(super) struct Held {
    place: Option<Place>,
    pub(super) waited: Duration,
}

enum NotAdmitted {
    Rejected(Failure),
    Policy(PolicyError),
}

impl From<PolicyError> for NotAdmitted {
    fn from(error: PolicyError) -> Self {
        Self::Policy(error)
    }
}

/// Waits until a model may be asked; fails with `rate_limit` where it may not be in time.
pub(super) async fn admit(
    model: &Model,
    ask: &Ask<'_>,
    conversation: &Conversation<'_>,
) -> Result<Held, Failure> {
    let (Some(limits), Some(SharedLimits { limiter, deadline_us })) = (&model.limits, ask.limits) else {
        return Ok(Held::default());
    };
    let (most_tokens, _) = Catalog::worst(model, super::json_of(ask.request)?, conversation);
    let demand = Demand {
        most_tokens: i64::try_from(most_tokens).unwrap_or(i64::MAX),
        patience_us: (limits.strategy == Strategy::Reject).then_some(0),
    };
    let asked_at = Instant::now();
    match enter(limiter, limits, demand, deadline_us).await {
        Ok(place) => Ok(Held {
            place: Some(place),
            waited: asked_at.elapsed(),
        }),
        Err(NotAdmitted::Rejected(mut failure)) => {
            failure.message = format!("`{}` is {}", model.name, failure.message);
            Err(failure)
        }
        Err(NotAdmitted::Policy(error)) => Err(Failure::new("unavailable", error.to_string())),
    }
}

async fn enter(
    limiter: &Limiter,
    limits: &Limits,
    demand: Demand,
    deadline_us: Option<i64>,
) -> Result<Place, NotAdmitted> {
    let (name, rule) = (&limits.name, &limits.rule);
    let admitted = limiter.admit(name, rule, demand, deadline_us, |_, _| Ok::<_, NotAdmitted>(()));
    admitted
        .await?
        .map_err(|decision| NotAdmitted::Rejected(held_back("rate_limit", decision)))
}

impl Held {
    /// Corrects the tokens that the request held to those that it used: all of them where it may have been charged.
    pub(super) async fn release(mut self, result: &Result<Answer, Failure>) {
        let Some(place) = &mut self.place else { return };
        match result {
            Ok(answer) => {
                let used = answer.usage.input.saturating_add(answer.usage.output);
                place.release(None, i64::try_from(used).ok()).await;
            }
            Err(failure) => {
                let used = (!failure.may_have_happened).then_some(0);
                place.release(Some(failure.code.name()), used).await;
            }
        }
    }
}
