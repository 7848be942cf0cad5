//! The budgets around a request to a model: its worst case is set aside before each attempt, and settled after it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use vesper_interp::Request;
use vesper_ir::budget::{self as declared, Scope};
use vesper_ir::{Effect, Value};

use crate::effect::{AttemptError, Failure};
use crate::journal::Kind;
use crate::model::{Spent, spent};
use crate::policy::budget::{
    Amounts, Budget, BudgetState, Event, Limit, Notice, NoticeKind, Outcome, Refusal, Resource, StoreError,
};
use crate::policy::record::{Member, record};
use crate::policy::settings;
use crate::policy::state::new_asker;
use crate::run::contract::{BudgetNotice, Plan};
use crate::run::metrics;
use crate::run::outcome::RunError;
use crate::run::running::{Running, Services, micros};
use crate::runtime;
use crate::sources::kill_point;

/// Time by which a lease is longer than the attempt.
const GRACE: Duration = Duration::from_secs(5);
/// Lease of an attempt without any time limit.
const DEFAULT_LEASE: Duration = Duration::from_hours(1);
/// Time for which a count of a run is kept where its end does not delete it.
const KEPT_OF_RUN_US: i64 = 90 * DAY_US;
/// Time for which the count of a session without a request is kept.
const KEPT_OF_SESSION_US: i64 = 400 * DAY_US;
const DAY_US: i64 = 86_400_000_000;

/// Budget that a run gets from its caller or from the configuration.
#[derive(Clone, Debug)]
pub struct AmbientBudget {
    pub budget: Budget,
    /// True where the id of the session completes its key; without a session it does not count.
    pub is_of_session: bool,
}

/// Budgets of a run, and the data that names their counts.
#[derive(Debug, Default)]
pub(super) struct RunBudgets {
    ambient: Vec<AmbientBudget>,
    tenant: Option<Arc<str>>,
    /// Session of the last `session` step: `NAME/ID`.
    pub(super) session: Option<String>,
    /// Counts that end with the run.
    own: Mutex<HashSet<Arc<str>>>,
}

/// Worst case of an attempt that was set aside. Where its future is dropped while the request is under way, the worst
/// case is settled; before that, it is given back.
pub(super) struct Claim {
    services: Arc<Services>,
    budgets: Vec<Budget>,
    asker: Arc<str>,
    worst: Amounts,
    began: Instant,
    is_sent: bool,
    is_open: bool,
}

/// Charge of an attempt that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Charge {
    Known(Spent),
    /// The answer of a double does not tell.
    Untold,
    Nothing,
    /// The other side may have acted.
    Uncertain,
}

impl Charge {
    pub(super) fn of(result: &Result<Value, AttemptError>) -> Self {
        match result {
            Ok(value) => spent(value).map_or(Self::Untold, Self::Known),
            Err(AttemptError::Failed(failure)) if !failure.may_have_happened => Self::Nothing,
            Err(_) => Self::Uncertain,
        }
    }
}

/// Attempt that its budgets admit.
pub(super) struct Claimed {
    pub(super) claim: Option<Claim>,
    pub(super) timeout: Option<Duration>,
}

impl Running {
    /// Gives the run budgets, and the tenant that counts of tenants are named after.
    pub fn set_budgets(&mut self, ambient: Vec<AmbientBudget>, tenant: Option<Arc<str>>) {
        self.budgets.ambient = ambient;
        self.budgets.tenant = tenant;
    }

    /// Returns the budgets around a request, outermost first; one count appears once.
    pub(super) fn budgets_around(&self, request: &Request, plan: &Plan) -> Vec<Budget> {
        let RunBudgets {
            ambient,
            tenant,
            session,
            ..
        } = &self.budgets;
        let mut found: Vec<Budget> = Vec::new();
        for AmbientBudget {
            budget,
            is_of_session,
        } in ambient
        {
            let mut budget = budget.clone();
            if *is_of_session {
                let Some(session) = session else { continue };
                budget.key = Arc::from(format!("{}{session}", budget.key));
            }
            found.push(budget);
        }
        let run = self.control.run.execution();
        for declared in settings::budgets(&plan.policy) {
            let declared::Budget {
                scope, name, depth, ..
            } = declared;
            let prefix = || {
                let steps: Vec<&str> = request.path.split('/').take(*depth).collect();
                steps.join("/")
            };
            let of_run = Some(KEPT_OF_RUN_US);
            let (key, kept_us) = match (scope, tenant, session) {
                (Scope::Call, ..) => (format!("call/{run}/{}/{name}", request.path), of_run),
                (Scope::Run, ..) => (format!("run/{run}/{}/{name}", prefix()), of_run),
                (Scope::Agent, ..) => (format!("agent/{run}/{}/{name}", prefix()), of_run),
                (Scope::Tenant, Some(tenant), _) => (format!("tenant/{name}/{tenant}"), None),
                (Scope::Session, _, Some(session)) => {
                    (format!("session/{name}/{session}"), Some(KEPT_OF_SESSION_US))
                }
                (Scope::Named, ..) => (format!("named/{name}"), None),
                (Scope::Tenant | Scope::Session, ..) => continue,
            };
            found.push(Budget {
                name: Arc::clone(name),
                key: Arc::from(key),
                limit: Limit::declared(declared),
                kept_us,
            });
        }
        let mut seen = HashSet::new();
        found.retain(|each| seen.insert(Arc::clone(&each.key)));
        found
    }

    /// Sets the worst case of an attempt aside in all budgets around it; a failure means that it must not be sent.
    pub(super) async fn claim(
        &self,
        request: &Request,
        plan: &Plan,
        timeout: Option<Duration>,
        number: i64,
    ) -> Result<Result<Claimed, Failure>, RunError> {
        let none = Claimed { claim: None, timeout };
        if request.effect != Effect::ModelCall {
            return Ok(Ok(none));
        }
        let budgets = self.budgets_around(request, plan);
        if budgets.is_empty() {
            return Ok(Ok(none));
        }
        let own = budgets.iter().map(|each| &each.key);
        let own =
            own.filter(|key| matches!(key.split('/').nth(1), Some(id) if id == self.control.run.execution()));
        self.own_budgets().extend(own.cloned());
        let (worst, time) = self.worst_case(request, timeout);
        let lease_us = micros(time.map_or(DEFAULT_LEASE, |time| time + GRACE));
        let mut claim = Claim {
            asker: new_asker(&*self.services.sources),
            services: Arc::clone(&self.services),
            budgets,
            worst,
            began: Instant::now(),
            is_sent: false,
            is_open: true,
        };
        let event = Event::Reserve {
            worst,
            is_timed: time.is_some(),
            lease_us,
        };
        let outcome = match claim.apply(event).await {
            Ok(outcome) => outcome,
            Err(StoreError(why)) => {
                claim.is_open = false; // a claim that was made all the same ends with its lease
                let message = format!("nothing was sent: its budgets cannot be counted: {why}");
                return Ok(Err(Failure::new("unavailable", message)));
            }
        };
        self.report(&claim, &outcome.notices, request, number)?;
        if let Some(refusal) = outcome.refusal {
            claim.is_open = false;
            return Ok(Err(self.refused(&claim, refusal, request, number)?));
        }
        kill_point("budget.reserved");
        let granted = outcome.time_us.map(duration);
        claim.worst.time_us = outcome.time_us.unwrap_or_default();
        claim.is_sent = true;
        claim.began = Instant::now();
        Ok(Ok(Claimed {
            claim: Some(claim),
            timeout: match (timeout, granted) {
                (Some(timeout), Some(granted)) => Some(timeout.min(granted)),
                (timeout, granted) => timeout.or(granted),
            },
        }))
    }

    /// Settles an attempt: at what it took, at its worst case where that is uncertain, or at nothing. Returns its tokens
    /// and its cost.
    pub(super) async fn settle_claim(
        &self,
        claimed: &mut Claimed,
        charge: Charge,
        request: &Request,
        number: i64,
    ) -> Result<Option<Spent>, RunError> {
        if let Some(claim) = &mut claimed.claim {
            let event = match charge {
                Charge::Known(used) => Event::Settle(claim.actual(Some(used))),
                Charge::Nothing => Event::Release,
                Charge::Uncertain | Charge::Untold => Event::Settle(claim.actual(None)),
            };
            kill_point("budget.answered");
            let settled = claim.apply(event).await;
            claim.is_open = false;
            match settled {
                Ok(Outcome { notices, .. }) => self.report(claim, &notices, request, number)?,
                Err(StoreError(why)) => self.watcher.warn(&format!(
                    "`{}` is counted at its worst case when its lease ends: {why}",
                    request.path
                )),
            }
        }
        self.count_usage(request, charge, number)
    }

    /// Deletes the counts of budgets of this run, which has ended.
    pub(super) fn forget_budgets(&self) {
        let keys: Vec<Arc<str>> = self.own_budgets().drain().collect();
        if keys.is_empty() {
            return;
        }
        if let BudgetState::Memory(state) = &*self.services.budgets {
            state.forget(&keys);
            return;
        }
        let state = Arc::clone(&self.services.budgets);
        // Without a runtime, or with a store that is away, they are deleted when their time is over.
        let _ = runtime::spawn(async move { drop(state.forget(&keys).await) });
    }

    fn own_budgets(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        self.budgets.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the worst case of an attempt, and the bound of its time.
    fn worst_case(&self, request: &Request, timeout: Option<Duration>) -> (Amounts, Option<Duration>) {
        let models = self.services.performers.models();
        let bound = models.and_then(|models| models.bound(request).ok());
        let Some(bound) = bound else {
            // The request is refused before it is sent, or a double of a test answers it.
            let worst = Amounts::each(|resource| match resource {
                Resource::Calls => 1,
                Resource::Time => timeout.map_or(0, |time| time.as_micros()),
                _ => 0,
            });
            return (worst, timeout);
        };
        let time = match (timeout, bound.time) {
            (Some(timeout), Some(bound)) => Some(timeout.min(bound)),
            (timeout, bound) => timeout.or(bound),
        };
        let worst = Amounts::each(|resource| match resource {
            Resource::Usd => bound.cost.0,
            Resource::Tokens => u128::from(bound.input_tokens) + u128::from(bound.output_tokens),
            Resource::Calls => u128::from(bound.calls),
            Resource::Time => time.map_or(0, |time| time.as_micros()),
        });
        (worst, time)
    }

    /// Passes notices on to the journal, the metrics and the watcher.
    fn report(
        &self,
        claim: &Claim,
        notices: &[Notice],
        request: &Request,
        number: i64,
    ) -> Result<(), RunError> {
        for notice in notices {
            let Some(budget) = claim.budgets.get(notice.place) else {
                continue;
            };
            let decision = match notice.kind {
                NoticeKind::Warned => "budget_warning",
                NoticeKind::Alerted => "budget_alert",
            };
            self.note(decision, budget, notice.resource, request, number)?;
            metrics::count_budget(&budget.name, notice.kind.name());
            let limit = budget.limit.of(notice.resource).unwrap_or_default();
            self.watcher.budget(&BudgetNotice {
                kind: notice.kind.name(),
                path: &request.path,
                budget: &budget.name,
                text: match notice.kind {
                    NoticeKind::Warned => format!(
                        "a request did not fit the {} of the budget `{}` and was sent",
                        notice.resource.shown(limit),
                        budget.name
                    ),
                    NoticeKind::Alerted => format!(
                        "{} % of the {} of the budget `{}` are used",
                        budget.limit.alert_percent.unwrap_or_default(),
                        notice.resource.shown(limit),
                        budget.name
                    ),
                },
            });
        }
        Ok(())
    }

    fn refused(
        &self,
        claim: &Claim,
        refusal: Refusal,
        request: &Request,
        number: i64,
    ) -> Result<Failure, RunError> {
        let Refusal {
            place,
            resource,
            left,
        } = refusal;
        let Some(budget) = claim.budgets.get(place) else {
            return Ok(Failure::new("budget_exceeded", "a budget does not admit it"));
        };
        self.note("budget_exceeded", budget, resource, request, number)?;
        metrics::count_budget(&budget.name, "blocked");
        let left = resource.shown(left);
        let of = resource.shown(budget.limit.of(resource).unwrap_or_default());
        let need = match resource {
            Resource::Time => String::new(),
            _ => format!(
                ", and the request may take {}",
                resource.shown(claim.worst.of(resource))
            ),
        };
        let message = format!(
            "nothing was sent: the budget `{}` has {left} left of {of}{need}",
            budget.name
        );
        Ok(Failure::new("budget_exceeded", message))
    }

    /// Appends a decision of a budget.
    fn note(
        &self,
        decision: &str,
        budget: &Budget,
        resource: Resource,
        request: &Request,
        number: i64,
    ) -> Result<(), RunError> {
        let members = [
            ("budget", Member::Text(&budget.name)),
            ("by", Member::Text(resource.name())),
        ];
        self.append_decision(&record(decision, &members), request, number)
    }

    fn append_decision(&self, record: &str, request: &Request, number: i64) -> Result<(), RunError> {
        let path = format!("{}#{number}", request.path);
        self.append_plain(Kind::Value, &path, request.effect.name(), record)?;
        Ok(())
    }

    /// Counts the tokens and the money of an attempt; those of an uncertain one at its worst case, which the journal
    /// keeps: no answer tells it.
    fn count_usage(&self, request: &Request, charge: Charge, number: i64) -> Result<Option<Spent>, RunError> {
        if request.effect != Effect::ModelCall {
            return Ok(None);
        }
        let used = match charge {
            Charge::Known(used) => Some(used),
            Charge::Nothing | Charge::Untold => None,
            Charge::Uncertain => {
                let models = self.services.performers.models();
                let bound = models.and_then(|models| models.bound(request).ok());
                bound.map(|bound| Spent {
                    input_tokens: bound.input_tokens,
                    output_tokens: bound.output_tokens,
                    cost: bound.cost,
                    calls: bound.calls,
                })
            }
        };
        let Some(used) = used else { return Ok(None) };
        metrics::count_usage(&self.prepared.node, request, &used);
        if matches!(charge, Charge::Uncertain) {
            let number_of = |count: u64| Member::Number(i64::try_from(count).unwrap_or(i64::MAX));
            let members = [
                ("cost_usd", Member::Text(&used.cost.to_string())),
                ("input_tokens", number_of(used.input_tokens)),
                ("output_tokens", number_of(used.output_tokens)),
            ];
            self.append_decision(&record("charged_at_worst", &members), request, number)?;
        }
        Ok(Some(used))
    }
}

impl Claim {
    async fn apply(&self, event: Event) -> Result<Outcome, StoreError> {
        let now_us = self.services.sources.monotonic_us();
        let state = &self.services.budgets;
        state.apply(&self.budgets, &self.asker, event, now_us).await
    }

    /// Returns what an attempt took; the worst case where no answer tells it.
    fn actual(&self, used: Option<Spent>) -> Amounts {
        let time_us = self.began.elapsed().as_micros();
        Amounts::each(|resource| match (used, resource) {
            (_, Resource::Time) => time_us,
            (None, _) => self.worst.of(resource),
            (Some(used), Resource::Usd) => used.cost.0,
            (Some(used), Resource::Tokens) => u128::from(used.input_tokens) + u128::from(used.output_tokens),
            (Some(used), Resource::Calls) => u128::from(used.calls),
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let event = if self.is_sent {
            Event::Settle(self.actual(None))
        } else {
            Event::Release
        };
        let now_us = self.services.sources.monotonic_us();
        if let BudgetState::Memory(state) = &*self.services.budgets {
            state.apply(&self.budgets, &self.asker, event, now_us);
            return;
        }
        let (services, asker) = (Arc::clone(&self.services), Arc::clone(&self.asker));
        let budgets = std::mem::take(&mut self.budgets);
        // Without a runtime it is settled when its lease ends.
        let _ = runtime::spawn(async move {
            drop(services.budgets.apply(&budgets, &asker, event, now_us).await);
        });
    }
}

fn duration(us: u128) -> Duration {
    Duration::from_micros(u64::try_from(us).unwrap_or(u64::MAX))
}
