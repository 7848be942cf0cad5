//! One request: admitted by its handles, performed, and settled with its entries.

use std::sync::Arc;
use std::time::{Duration, Instant};

use vesper_interp::{Completion, Request};
use vesper_ir::{Effect, EffectClass, Value};
use zeroize::Zeroizing;

use crate::effect::{Ask, AttemptError, Failure, Secrets, SharedLimits};
use crate::journal::{Entry, JournalError, Kind};
use crate::model::question_text;
use crate::run::bodies::{Body, body_of, quoted};
use crate::run::contract::{Copied, Plan};
use crate::run::grants::Grants;
use crate::run::metrics;
use crate::run::outcome::{Outcome, RunError};
use crate::run::running::{Interruption, Pace, Prepared, Running, Services};
use crate::run::trace::{EffectSpan, OpenSpan};
use crate::sources::kill_point;
use crate::typed_json::{digest_text, request_texts, write_value};

/// Characters of a message that are kept: an effect of the application may give any text.
const MAX_MESSAGE: usize = 2000;
/// Codes with which the other side has not answered.
const NOT_ANSWERED: [&str; 4] = ["unavailable", "timeout", "invalid_argument", "not_allowed"];

/// A plan whose capabilities were checked: each has a handle of this Host's mint. Only `admit` makes one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admitted<'a> {
    plan: &'a Plan,
    grants: &'a Grants,
}

impl<'a> Admitted<'a> {
    pub(super) fn plan(self) -> &'a Plan {
        self.plan
    }
}

/// Secrets for which the node has handles.
struct GrantedSecrets<'a> {
    services: &'a Services,
    grants: &'a Grants,
}

impl Secrets for GrantedSecrets<'_> {
    fn text(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        let capability = format!("secrets.read.{name}");
        let handle = self.grants.handles.get(&*capability);
        if !handle.is_some_and(|handle| self.services.mint.opens(handle, &capability)) {
            let message = format!("the node has no handle for `{capability}`");
            return Err(Failure::new("not_found", message));
        }
        self.services.performers.secrets().text(name)
    }
}

/// A request that neither the journal nor a trace answers.
#[derive(Debug)]
pub(super) struct Open<'a> {
    pub(super) request: Request,
    admitted: Admitted<'a>,
    digest: String,
    /// The time of the INTENT that an earlier process wrote.
    sent_us: Option<i64>,
}

/// A request before it is performed.
#[derive(Debug)]
pub(super) enum Asked<'a> {
    Settled(Completion),
    Open(Open<'a>),
}

/// A result that has its entries, and of which the run has not taken note.
#[derive(Debug)]
pub(super) struct Written {
    result: Result<Value, Failure>,
    /// The body of the entry and its time.
    entry: Option<(String, i64)>,
}

/// A request that was performed, and the span of that.
#[derive(Debug)]
pub(super) struct Performed {
    span: Option<EffectSpan>,
    written: Result<Written, Interruption>,
}

impl Open<'_> {
    /// Returns true where an INTENT must be durable before the request is performed.
    pub(super) fn is_intended(&self) -> bool {
        self.sent_us.is_none() && self.request.class != EffectClass::Read
    }
}

impl Running {
    /// Settles a request: from the journal, from a trace, or by performing it.
    pub(super) async fn complete(
        &mut self,
        prepared: &Prepared,
        request: Request,
    ) -> Result<Completion, Interruption> {
        let mut open = match self.prepare(prepared, request)? {
            Asked::Settled(completion) => return Ok(completion),
            Asked::Open(open) => open,
        };
        if self.suspends_at(&open) {
            return self.suspend(&open.request);
        }
        if let Some(completion) = self.find_out(&open).await? {
            return Ok(completion);
        }
        match self.append_intent(&mut open)? {
            Some(unsent) => return Ok(unsent),
            None if open.is_intended() => self.commit_intents()?,
            None => {}
        }
        let performed = self.perform_open(&open).await;
        self.adopt(&open, performed)
    }

    /// Looks a request up in the journal and in the trace of a replay, and checks that it may be performed now.
    pub(super) fn prepare<'a>(
        &mut self,
        prepared: &'a Prepared,
        mut request: Request,
    ) -> Result<Asked<'a>, Interruption> {
        if let Some(copied) = self.watcher.answer(&request)? {
            return Ok(Asked::Settled(self.copy(&request, copied)?));
        }
        if let Some(key) = self.watcher.rename(&request)? {
            request.key = Some(key);
        }
        let Some(plan) = prepared.plans.of(&request.path) else {
            return Err(RunError::Fault(format!("the node has no request `{}`", request.path)).into());
        };
        let is_read = request.class == EffectClass::Read;
        let recorded = self.recorded.get(&request.path).copied();
        // The entry of a read has the request itself; a digest would only cost. A new INTENT computes its own.
        let mut digest = String::new();
        let mut sent_us = None;
        if let Some(recorded) = recorded {
            if !is_read {
                digest = self.digest(&request)?;
            }
            if let Some(known) = self.look_up(&request, &digest, recorded)? {
                return Ok(Asked::Settled(known));
            }
            let entries = self.control.run.recorded();
            let intent = recorded.intent.and_then(|index| entries.get(index));
            sent_us = intent.map(|intent| intent.at_us);
        }
        let admitted = self.admit(&request, plan, &prepared.grants, sent_us.is_some())?;
        if self.is_cancelled() {
            return Err(Interruption::Stopped(Outcome::LimitHit("cancelled")));
        }
        if sent_us.is_none() && !plan.in_handler && self.is_late() {
            let message = "the execution's time was up before this was tried";
            if !is_read {
                digest = self.digest(&request)?;
            }
            let failure = Failure::new("timeout", message);
            return Ok(Asked::Settled(self.settle(
                &request,
                &digest,
                Err(failure),
                true,
            )?));
        }
        Ok(Asked::Open(Open {
            request,
            admitted,
            digest,
            sent_us,
        }))
    }

    /// Returns true where the request takes the run out of memory.
    pub(super) fn suspends_at(&self, open: &Open<'_>) -> bool {
        open.request.class == EffectClass::Wait && self.services.pace == Pace::Policies
    }

    /// Finds out what became of a request that an earlier process may have sent; None where it is to be performed.
    pub(super) async fn find_out(&mut self, open: &Open<'_>) -> Result<Option<Completion>, Interruption> {
        let Some(sent_us) = open.sent_us else {
            return Ok(None);
        };
        match self.recover(&open.request, open.admitted, sent_us).await? {
            Some(value) => self
                .settle(&open.request, &open.digest, Ok(value), false)
                .map(Some),
            None => Ok(None),
        }
    }

    /// Appends the INTENT of a request that needs one. Returns the completion of a request that cannot be journalled.
    pub(super) fn append_intent(&mut self, open: &mut Open<'_>) -> Result<Option<Completion>, Interruption> {
        if !open.is_intended() {
            return Ok(None);
        }
        match self.intend(&open.request) {
            Ok((digest, _)) => {
                open.digest = digest;
                Ok(None)
            }
            Err(error) => self.unjournalled(&open.request, &error).map(Some),
        }
    }

    /// Makes the INTENTs appended so far durable.
    pub(super) fn commit_intents(&mut self) -> Result<(), JournalError> {
        self.commit()?;
        self.committed();
        kill_point("intent.committed");
        Ok(())
    }

    /// Performs a request and appends its entries. It changes nothing of the run, so those of a wave go on side by side.
    pub(super) async fn perform_open(&self, open: &Open<'_>) -> Performed {
        let request = &open.request;
        let is_repeat = open.sent_us.is_some();
        let began = Instant::now();
        let span = self
            .trace
            .as_ref()
            .and_then(|trace| trace.begin(&*self.services.sources));
        let work = self.perform(request, open.admitted, is_repeat, span.as_ref());
        let performed = if request.class == EffectClass::Read {
            self.control.unless(|| self.is_cancelled(), work).await
        } else {
            Some(work.await)
        };
        let span = span.map(|span| {
            let failure = match &performed {
                Some(Ok(Ok(_))) => None,
                Some(Ok(Err(failure))) => Some(failure.code.name()),
                Some(Err(_)) | None => Some("aborted"),
            };
            span.end(request, &*self.services.sources, failure)
        });
        let cancelled = || Err(Interruption::Stopped(Outcome::LimitHit("cancelled")));
        let performed = performed.map_or_else(cancelled, |performed| Ok(performed?));
        let written = performed.and_then(|mut result| {
            metrics::count_effect(&self.prepared.node, request, &result, began.elapsed());
            kill_point("effect.performed");
            if let Err(failure) = &mut result
                && is_repeat
                && NOT_ANSWERED.contains(&failure.code.name())
            {
                // The failure of a repeat does not tell what became of the request that was sent before.
                failure.may_have_happened = true;
            }
            Ok(self.record(request, &open.digest, result, false)?)
        });
        Performed { span, written }
    }

    /// Takes note of a request that was performed; returns its completion.
    pub(super) fn adopt(
        &mut self,
        open: &Open<'_>,
        performed: Performed,
    ) -> Result<Completion, Interruption> {
        if let (Some(trace), Some(span)) = (&mut self.trace, performed.span) {
            trace.add(span);
        }
        self.take_note(&open.request, &open.digest, performed.written?)
    }

    /// Fails a request that cannot be journalled: it is not sent, and nothing was written yet.
    pub(super) fn unjournalled(
        &mut self,
        request: &Request,
        error: &JournalError,
    ) -> Result<Completion, Interruption> {
        let code = code_of(request, "invalid_argument");
        let failure = Failure::new(code, format!("nothing was sent: {error}"));
        self.settle(request, &self.digest(request)?, Err(failure), false)
    }

    /// Checks the handles of the capabilities that a request needs; without one it is not performed.
    fn admit<'a>(
        &self,
        request: &Request,
        plan: &'a Plan,
        grants: &'a Grants,
        may_be_performed: bool,
    ) -> Result<Admitted<'a>, Interruption> {
        let effect = plan.effect.name();
        if plan.capabilities.is_empty() {
            return Err(RunError::NoHandle(format!("`{effect}` was asked for without handles")).into());
        }
        for capability in &plan.capabilities {
            let refusal = grants.refusal(capability);
            // A called node may be denied a capability that its caller has.
            let Some(handle) = grants.handles.get(capability).filter(|_| refusal.is_none()) else {
                let why = refusal.unwrap_or_default();
                if may_be_performed {
                    let why =
                        format!("it may have been performed, and `{capability}` was taken away since: {why}");
                    return Err(self.doubt(request, why)?.into());
                }
                let (capability, why) = (Arc::clone(capability), why.to_owned());
                return Err(Interruption::Stopped(Outcome::Denied { capability, why }));
            };
            if !self.services.mint.opens(handle, capability) {
                let text =
                    format!("`{effect}` was asked for with something that is no handle for `{capability}`");
                return Err(RunError::NoHandle(text).into());
            }
        }
        Ok(Admitted { plan, grants })
    }

    /// Makes one attempt. The message of a failure holds no secret.
    pub(super) async fn attempt(
        &self,
        request: &Request,
        admitted: Admitted<'_>,
        (timeout, is_repeat, deadline_us): (Option<Duration>, bool, Option<i64>),
        number: i64,
        span: Option<&OpenSpan>,
    ) -> Result<Value, AttemptError> {
        let secrets = self.secrets(admitted);
        let performer = self.services.performers.performer(admitted.plan)?;
        let is_followed = request.effect == Effect::ModelCall;
        if is_followed {
            self.refuse_secrets(request)?;
        }
        let sink = is_followed.then(|| self.services.performers.sink(self.control.run.execution()));
        let limiter = is_followed.then(|| self.services.limiter()).flatten();
        let budgets = match request.effect {
            Effect::BudgetRead => self.budgets_around(request, admitted.plan),
            _ => Vec::new(),
        };
        let ask = Ask {
            limits: limiter
                .as_ref()
                .map(|limiter| SharedLimits { limiter, deadline_us }),
            attempt: number,
            budgets: &budgets,
            sink: sink.as_ref().and_then(Option::as_deref),
            trace: self.trace.as_ref().map(|trace| trace.headers(span)),
            ..self.ask(request, admitted, &secrets, timeout, is_repeat)
        };
        performer.perform(ask).await.map_err(|error| self.redact(error))
    }

    /// Finds out what became of a request that may have been performed before.
    pub(super) async fn probe(
        &self,
        request: &Request,
        admitted: Admitted<'_>,
    ) -> Result<Option<Value>, AttemptError> {
        let secrets = self.secrets(admitted);
        let performer = self.services.performers.performer(admitted.plan)?;
        let ask = self.ask(request, admitted, &secrets, None, true);
        performer.probe(ask).await.map_err(|error| self.redact(error))
    }

    fn secrets<'a>(&'a self, admitted: Admitted<'a>) -> GrantedSecrets<'a> {
        GrantedSecrets {
            services: &self.services,
            grants: admitted.grants,
        }
    }

    fn ask<'a>(
        &'a self,
        request: &'a Request,
        admitted: Admitted<'_>,
        secrets: &'a GrantedSecrets<'a>,
        timeout: Option<Duration>,
        is_repeat: bool,
    ) -> Ask<'a> {
        Ask {
            execution: self.control.run.execution(),
            request,
            timeout,
            is_repeat,
            attempt: 1,
            is_sensitive: admitted.plan.is_sensitive,
            secrets,
            references: &self.references,
            trace: self.trace.as_ref().map(|trace| trace.headers(None)),
            sink: None,
            limits: None,
            budgets: &[],
        }
    }

    /// Fails a question that holds the text of a secret, so that no model sees one.
    fn refuse_secrets(&self, request: &Request) -> Result<(), Failure> {
        let asked = question_text(request)?;
        let shown = self.services.performers.redact(asked.clone());
        if shown == asked {
            return Ok(());
        }
        let problem = "nothing was sent: the request holds the text of a secret, which no model may see";
        Err(Failure::new("invalid_request", problem))
    }

    fn redact(&self, error: AttemptError) -> AttemptError {
        match error {
            AttemptError::Failed(mut failure) => {
                failure.message = self.services.performers.redact(failure.message);
                AttemptError::Failed(failure)
            }
            broken @ AttemptError::Broken(_) => broken,
        }
    }

    /// Appends the INTENT of a request; returns its digest and body.
    pub(super) fn intend(&self, request: &Request) -> Result<(String, String), JournalError> {
        let (fixed, arguments) = request_texts(request)?;
        let digest = self.control.run.digest(&digest_text(request, &fixed, &arguments));
        let body = Body::new()
            .raw("arguments", &arguments)
            .raw("fixed", &fixed)
            .finish();
        self.append(&self.entry(Kind::Intent, request, &digest, &body))?;
        kill_point("intent.appended");
        Ok((digest, body))
    }

    /// Writes the result of a request and returns its completion.
    pub(super) fn settle(
        &mut self,
        request: &Request,
        digest: &str,
        result: Result<Value, Failure>,
        is_unsent: bool,
    ) -> Result<Completion, Interruption> {
        let written = self.record(request, digest, result, is_unsent)?;
        self.take_note(request, digest, written)
    }

    /// Appends the entries of a result. Where no INTENT has the request, this entry does.
    fn record(
        &self,
        request: &Request,
        digest: &str,
        mut result: Result<Value, Failure>,
        is_unsent: bool,
    ) -> Result<Written, JournalError> {
        let is_read = request.class == EffectClass::Read;
        let asked = if is_unsent || is_read {
            Some(request_texts(request)?)
        } else {
            None
        };
        let mut written = None;
        if let Ok(value) = &result {
            match result_body(request, asked.as_ref(), value).and_then(|body| {
                let at_us = self.append(&self.entry(Kind::Result, request, digest, &body))?;
                Ok((body, at_us))
            }) {
                Ok(found) => written = Some(found),
                Err(error) => {
                    // It happened, and the journal does not take the answer, now or after any crash.
                    let mut failure = Failure::new(code_of(request, "bad_response"), error.message);
                    failure.may_have_happened = !is_read;
                    result = Err(failure);
                }
            }
        }
        if let Err(failure) = &mut result {
            truncate(&mut failure.message);
            written = Some(self.append_failed(request, digest, asked.as_ref(), failure)?);
        }
        kill_point("result.appended");
        if let Ok(value) = &result
            && request.effect == Effect::StateTransition
        {
            self.append(&self.entry(Kind::State, request, "", &moved(request, value)?))?;
        }
        if request.class == EffectClass::Unsafe && self.has_changed {
            self.commit()?;
            kill_point("result.committed");
        }
        Ok(Written {
            result,
            entry: written,
        })
    }

    /// Lets the run know of a result that has its entries; returns its completion.
    fn take_note(
        &mut self,
        request: &Request,
        digest: &str,
        Written { result, entry }: Written,
    ) -> Result<Completion, Interruption> {
        match &result {
            Ok(value) => self.remember(request, value),
            Err(failure) => self.last_failure = Some((failure.code.clone(), failure.message.clone())),
        }
        if request.class != EffectClass::Read
            && let Some((body, at_us)) = &entry
        {
            let kind = if result.is_ok() {
                Kind::Result
            } else {
                Kind::Failed
            };
            let mut entry = self.entry(kind, request, digest, body);
            entry.at_us = *at_us;
            self.watcher.settled(request, &entry);
        }
        match result {
            Ok(value) => {
                // After it was written: the journal has what happened, whatever becomes of the run.
                self.take_value(Some((&request.result, &value)))?;
                Ok(Completion::Value(value))
            }
            Err(failure) => Ok(Completion::Failed(failure.code)),
        }
    }

    /// Appends the FAILED of a request; returns its body and time.
    fn append_failed(
        &self,
        request: &Request,
        digest: &str,
        asked: Option<&(String, String)>,
        failure: &Failure,
    ) -> Result<(String, i64), JournalError> {
        let body = failed_body(asked, failure);
        if let Ok(at_us) = self.append(&self.entry(Kind::Failed, request, digest, &body)) {
            return Ok((body, at_us));
        }
        // The request is too large: its digest stands for it.
        let body = failed_body(None, failure);
        let computed = if digest.is_empty() {
            self.digest(request)?
        } else {
            digest.to_owned()
        };
        let at_us = self.append(&self.entry(Kind::Failed, request, &computed, &body))?;
        Ok((body, at_us))
    }

    /// Writes a completion that is copied from a trace. Transitions and audit record performed requests only.
    fn copy(&mut self, request: &Request, copied: Copied) -> Result<Completion, JournalError> {
        let (fixed, arguments) = request_texts(request)?;
        let mut members = vec![
            ("arguments", arguments),
            ("fixed", fixed),
            ("replayed", quoted(&copied.replayed)),
        ];
        match copied.result {
            Ok(value) => {
                members.push(("value", value_text(request, &value)?));
                self.append(&self.entry(Kind::Result, request, "", &body_of(members)))?;
                self.remember(request, &value);
                Ok(Completion::Value(value))
            }
            Err(failure) => {
                members.push(("code", quoted(failure.code.name())));
                members.push(("may_have_happened", String::from("false")));
                members.push(("message", quoted(&failure.message)));
                self.append(&self.entry(Kind::Failed, request, "", &body_of(members)))?;
                Ok(Completion::Failed(failure.code))
            }
        }
    }

    /// Remembers the reference that a `secret` step gave, and the session that the run has read.
    pub(super) fn remember(&mut self, request: &Request, value: &Value) {
        if request.effect == Effect::SecretRead
            && let Value::Text(reference) = value
            && let Some((_, name)) = request.fixed.iter().find(|(each, _)| &**each == "name")
        {
            self.references.insert(Arc::clone(reference), Arc::clone(name));
        }
        if request.effect == Effect::SessionRead
            && let Some((_, name)) = request.fixed.iter().find(|(each, _)| &**each == "session")
            && let Some(Value::Text(id)) = request
                .arguments
                .iter()
                .find(|each| &*each.name == "id")
                .map(|each| &each.value)
        {
            self.budgets.session = Some(format!("{name}/{id}"));
        }
    }

    pub(super) fn entry<'a>(
        &self,
        kind: Kind,
        request: &'a Request,
        digest: &'a str,
        body: &'a str,
    ) -> Entry<'a> {
        Entry {
            kind,
            path: &request.path,
            effect: request.effect.name(),
            class: request.class.name(),
            key: request.key.as_deref(),
            digest,
            at_us: self.services.sources.now_us(),
            body,
        }
    }

    /// Appends an entry; returns its time.
    fn append(&self, entry: &Entry<'_>) -> Result<i64, JournalError> {
        self.control.run.append(entry)?;
        Ok(entry.at_us)
    }
}

/// Returns the code where the effect has it; `unavailable` every effect has.
fn code_of(request: &Request, wanted: &'static str) -> &'static str {
    let fails = request.effect.declaration().fails;
    if fails.contains(&wanted) {
        wanted
    } else {
        "unavailable"
    }
}

fn truncate(message: &mut String) {
    if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE) {
        message.truncate(end);
    }
}

fn value_text(request: &Request, value: &Value) -> Result<String, JournalError> {
    let mut text = String::new();
    write_value(&mut text, &request.result, value)?;
    Ok(text)
}

fn result_body(
    request: &Request,
    asked: Option<&(String, String)>,
    value: &Value,
) -> Result<String, JournalError> {
    Ok(with_asked(asked)
        .raw("value", &value_text(request, value)?)
        .finish())
}

/// Begins a body with the request, where it has one.
fn with_asked(asked: Option<&(String, String)>) -> Body {
    match asked {
        Some((fixed, arguments)) => Body::new().raw("arguments", arguments).raw("fixed", fixed),
        None => Body::new(),
    }
}

fn failed_body(asked: Option<&(String, String)>, failure: &Failure) -> String {
    let body = match asked {
        Some((fixed, arguments)) => Body::new()
            .raw("arguments", arguments)
            .text("code", failure.code.name())
            .raw("fixed", fixed),
        None => Body::new().text("code", failure.code.name()),
    };
    body.boolean("may_have_happened", failure.may_have_happened)
        .text("message", &failure.message)
        .finish()
}

/// Returns the body of the STATE of an entity that moved.
fn moved(request: &Request, before: &Value) -> Result<String, JournalError> {
    let mut members: Vec<(&str, String)> = Vec::with_capacity(request.fixed.len() + 2);
    for (name, text) in &request.fixed {
        members.push((name, quoted(text)));
    }
    if let Some(entity) = request.arguments.iter().find(|each| &*each.name == "entity") {
        let mut text = String::new();
        write_value(&mut text, &entity.ty, &entity.value)?;
        members.push(("entity", text));
    }
    members.push(("before", value_text(request, before)?));
    Ok(body_of(members))
}
