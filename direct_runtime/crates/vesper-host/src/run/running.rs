//! One run: the engine is advanced, and each of its requests is looked up in the journal or performed.
//!
//! The order in which entries become durable keeps the promises of docs/spec/journal.md. Before a request that changes
//! something is performed, its INTENT is committed, with everything before it; its RESULT is committed with the next
//! INTENT or with the END, before the caller is answered. The RESULT of an `unsafe` request is committed at once. Reads
//! cost no commit: after a crash they are repeated.

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use vesper_interp::{Completion, Request};
use vesper_ir::{ErrorCode, FailureCode, Type, Value};

use crate::journal::{Entry, JournalError, Kind, Run, Status};
use crate::policy::Limiter;
use crate::policy::budget::BudgetState;
use crate::policy::state::PolicyState;
use crate::run::bodies::Body;
use crate::run::budgets::RunBudgets;
use crate::run::contract::{Ended, Execution, Halted, Performers, Plans, Step, Watcher};
use crate::run::grants::{Grants, Mint};
use crate::run::outcome::{Outcome, RunError};
use crate::run::recovered::{Recorded, by_path};
use crate::run::sizes::size_of;
use crate::run::trace::RunTrace;
use crate::sources::{Sources, kill_point};
use crate::typed_json::{digest_text, request_texts};

/// Time after which a run whose requests never wait lets others go on. Signals and forks wait for it.
const MAX_POLL: Duration = Duration::from_millis(20);

/// Application of retries and shared limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As the policies say.
    Policies,
    /// One attempt and no limits: for tests.
    Once,
    /// As many attempts as `retry` says, without waiting and without limits: for tests.
    Immediate,
}

/// Parts of a Host that all its runs use.
pub struct Services {
    pub mint: Mint,
    pub performers: Arc<dyn Performers>,
    pub sources: Arc<dyn Sources>,
    /// The limits that runs share.
    pub policies: Arc<PolicyState>,
    /// The count of budgets.
    pub budgets: Arc<BudgetState>,
    pub pace: Pace,
}

impl Services {
    /// Returns the limits that runs share; None where no limits hold.
    pub(super) fn limiter(&self) -> Option<Limiter> {
        let has_limits = self.pace == Pace::Policies;
        has_limits.then(|| Limiter::new(&self.policies, &self.sources))
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Services")
            .field("mint", &self.mint)
            .field("pace", &self.pace)
            .finish_non_exhaustive()
    }
}

/// A node as its runs need it.
#[derive(Debug, Default)]
pub struct Prepared {
    /// Id of the node, by which its effects are counted.
    pub node: Arc<str>,
    pub plans: Plans,
    pub grants: Grants,
    /// True where a run is part of a transaction of its caller, which performs one request after the other.
    pub is_joined: bool,
}

/// Control of a run by other threads.
pub struct Control {
    pub(super) run: Arc<dyn Run>,
    is_cancelled: AtomicBool,
    is_stopped: AtomicBool,
    ending: Notify,
    has_committed: AtomicBool,
}

impl fmt::Debug for Control {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Control({})", self.run.execution())
    }
}

impl Control {
    /// Ends the run unless it has changed something: a request that only reads is dropped, and no further one is
    /// performed.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.ending.notify_waiters();
    }

    /// Ends the run now, whatever it has changed: a request that only reads is dropped, one that changes something is
    /// awaited and settled, and no further one is performed.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.cancel();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Awaits `work`; drops it and returns None where `is_over` holds first, which a call of `cancel` or `stop` may
    /// bring about.
    pub(super) async fn unless<T>(
        &self,
        is_over: impl Fn() -> bool,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let mut ending = pin!(self.ending.notified());
            ending.as_mut().enable(); // before the flags are read: a call in between is not missed
            if is_over() {
                return None;
            }
            let ended = poll_fn(|context| {
                if ending.as_mut().poll(context).is_ready() {
                    return Poll::Ready(None);
                }
                work.as_mut().poll(context).map(Some)
            });
            if let Some(value) = ended.await {
                return Some(value);
            }
        }
    }

    /// Returns true where the journal has the run.
    pub fn has_committed(&self) -> bool {
        self.has_committed.load(Ordering::Relaxed)
    }

    /// Prolongs the lease of a run that the journal has.
    pub fn renew(&self) -> Result<(), JournalError> {
        if self.has_committed() {
            self.run.renew()
        } else {
            Ok(())
        }
    }

    /// Returns the advice for a caller whose run met a journal error; None where the journal has no such run.
    pub fn advice(&self, node_id: &str) -> Option<String> {
        let execution = self.run.execution();
        self.has_committed().then(|| {
            format!(
                "execution {execution} of {node_id} has begun, and is finished by recovery once its lease is over: do \
                 not begin it anew before `vesper journal show` says that it has ended"
            )
        })
    }
}

/// Reason why a run does not go on.
#[derive(Debug)]
pub(super) enum Interruption {
    /// The run loop gave the run this outcome; the engine is not asked.
    Stopped(Outcome),
    /// The engines of the execution parted; it has reported that itself.
    Parted(RunError),
    Error(RunError),
}

impl<E: Into<RunError>> From<E> for Interruption {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// Drives one execution to its end. One thread at a time drives it; others use its `control`.
pub struct Running {
    pub(super) services: Arc<Services>,
    pub(super) prepared: Arc<Prepared>,
    pub(super) watcher: Arc<dyn Watcher>,
    pub(super) control: Arc<Control>,
    pub(super) recorded: HashMap<String, Recorded>,
    pub(super) began_us: i64,
    /// The end of the run's time, by the monotonic clock.
    pub(super) deadline_us: Option<i64>,
    /// The limit that `deadline_us` is.
    deadline_name: &'static str,
    /// Bytes of values that may still enter the run.
    pub(super) room: Option<u64>,
    /// True where an INTENT is durable: the run is not given up any more.
    pub(super) has_changed: bool,
    /// References that `secret` steps of this execution gave, with the names of their secrets.
    pub(super) references: HashMap<Arc<str>, Arc<str>>,
    pub(super) budgets: RunBudgets,
    /// None where neither the caller nor this run has a trace.
    pub(super) trace: Option<RunTrace>,
    /// Code and message of the request that failed last.
    pub(super) last_failure: Option<(FailureCode, String)>,
}

impl fmt::Debug for Running {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Running({})", self.control.run.execution())
    }
}

impl Running {
    pub fn new(
        services: Arc<Services>,
        prepared: Arc<Prepared>,
        run: Arc<dyn Run>,
        watcher: Arc<dyn Watcher>,
    ) -> Self {
        let began_us = services.sources.monotonic_us();
        let recorded = run.recorded();
        Self {
            recorded: by_path(recorded),
            began_us,
            deadline_us: prepared
                .plans
                .total_timeout
                .map(|total| began_us.saturating_add(micros(total))),
            deadline_name: "timeout_seconds",
            room: prepared.plans.memory,
            has_changed: recorded.iter().any(|each| each.kind == Kind::Intent),
            references: HashMap::new(),
            budgets: RunBudgets::default(),
            trace: None,
            last_failure: None,
            control: Arc::new(Control {
                is_cancelled: AtomicBool::new(false),
                is_stopped: AtomicBool::new(false),
                ending: Notify::new(),
                has_committed: AtomicBool::new(!recorded.is_empty()),
                run,
            }),
            services,
            prepared,
            watcher,
        }
    }

    /// Gives the run a trace context, before it is driven.
    pub fn set_trace(&mut self, trace: RunTrace) {
        self.trace = Some(trace);
    }

    pub fn trace(&mut self) -> Option<&mut RunTrace> {
        self.trace.as_mut()
    }

    /// Ends the time of the run when that of its caller ends, `left` from now.
    pub fn limit(&mut self, left: Duration) {
        let deadline_us = self.services.sources.monotonic_us().saturating_add(micros(left));
        if self.deadline_us.is_none_or(|own| deadline_us < own) {
            self.deadline_us = Some(deadline_us);
            self.deadline_name = "deadline";
        }
    }

    /// Returns the part of the run that other threads may use.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Runs to the end. `input_size` is the size of the inputs, for the limit of memory.
    pub async fn go(&mut self, execution: &mut dyn Execution, input_size: u64) -> Result<Outcome, RunError> {
        execution.begin(self.control.run.execution());
        match self.drive(execution, input_size).await {
            Ok(ended) => Ok(self.judge(ended)),
            Err(Interruption::Stopped(outcome)) => {
                execution.stop(Some(&outcome));
                Ok(outcome)
            }
            // One that waits is not given up: it is executed anew when it is woken.
            Err(Interruption::Parted(error) | Interruption::Error(error @ RunError::Waiting(_))) => {
                Err(error)
            }
            Err(Interruption::Error(error)) => {
                execution.stop(None);
                Err(error)
            }
        }
    }

    /// Writes the outcome, with the lines of the audit; durable on return. An outcome that is too large for the journal
    /// becomes the limit `max_body`: a run that could not end would be taken over and repeated for ever.
    pub fn end(&mut self, outcome: Outcome) -> Result<Outcome, RunError> {
        let took_us = self.services.sources.monotonic_us() - self.began_us;
        let is_slow = self
            .prepared
            .plans
            .expected
            .is_some_and(|expected| took_us > micros(expected));
        let outcome = match self.append_end(&outcome, took_us, is_slow) {
            Ok(()) => outcome,
            Err(error) => {
                let execution = self.control.run.execution();
                self.watcher
                    .warn(&format!("{execution}: its outcome cannot be journalled: {error}"));
                let limit = Outcome::LimitHit("max_body");
                self.append_end(&limit, took_us, is_slow)?;
                limit
            }
        };
        kill_point("end.appended");
        self.watcher.ending(&outcome)?;
        self.control.run.commit(Status::Ended, Some(outcome.kind()))?;
        kill_point("end.committed");
        self.forget_budgets();
        Ok(outcome)
    }

    fn append_end(&self, outcome: &Outcome, took_us: i64, is_slow: bool) -> Result<(), JournalError> {
        if let Some(clause) = outcome.broken_clause() {
            self.append_plain(Kind::Contract, "", "", &clause)?;
        }
        self.append_plain(Kind::End, "", "", &outcome.record(took_us, is_slow))
    }

    async fn drive(&mut self, execution: &mut dyn Execution, input_size: u64) -> Result<Ended, Interruption> {
        let prepared = Arc::clone(&self.prepared);
        if !self.has_changed
            && let Some((capability, why)) = prepared.grants.refused.first()
        {
            // Before anything is done: half of a flow is worse than none of it. A run that was taken over after it has
            // changed something continues, and is denied at the first step without its grant, if it reaches one.
            let (capability, why) = (Arc::clone(capability), why.clone());
            return Err(Interruption::Stopped(Outcome::Denied { capability, why }));
        }
        self.take_room(|| input_size)?;
        let mut step = self.advance(execution, Vec::new())?;
        let mut polled_since = Instant::now();
        loop {
            self.note_handoff(execution)?;
            match step {
                Step::Done(ended) => return Ok(ended),
                Step::Blocked(wave) => {
                    let completions = self.complete_wave(&prepared, wave).await?;
                    step = self.advance(execution, completions)?;
                    if polled_since.elapsed() > MAX_POLL {
                        tokio::task::yield_now().await;
                        polled_since = Instant::now();
                    }
                }
            }
        }
    }

    fn advance(
        &mut self,
        execution: &mut dyn Execution,
        completions: Vec<(u64, Completion)>,
    ) -> Result<Step, Interruption> {
        match execution.advance(completions) {
            Ok(step) => Ok(step),
            Err(Halted::Broken(broken)) => Err(broken.into()),
            Err(Halted::Parted { performed, asked }) => {
                // The engine that continues after a person resolved it is the other one.
                self.note_handoff(execution)?;
                Err(Interruption::Parted(self.part(&performed, asked.as_deref())?))
            }
        }
    }

    /// Appends the HANDOFF to another engine: durable before anything is changed for the engine that continues.
    fn note_handoff(&self, execution: &mut dyn Execution) -> Result<(), JournalError> {
        match execution.handed_over() {
            Some(body) => self.append_plain(Kind::Handoff, "", "", &body),
            None => Ok(()),
        }
    }

    /// Records that one engine performed a request that the other one would not have made: a person must resolve it.
    fn part(&self, performed: &Request, asked: Option<&Request>) -> Result<RunError, JournalError> {
        let digest = asked.map_or_else(|| Ok(String::new()), |asked| self.digest(asked))?;
        self.append_divergence(performed, &digest, &self.digest(performed)?)?;
        let instead = asked.map_or_else(
            || String::from("ends without it"),
            |asked| format!("asks for `{}` in another form or before it", asked.path),
        );
        let why = format!("it was performed, and the engine that should go on {instead}");
        self.doubt(performed, why)
    }

    /// Returns the outcome of a run whose execution ended.
    fn judge(&mut self, ended: Ended) -> Outcome {
        let Some((code, _)) = &ended.failed else {
            return Outcome::Ended { ended, why: None };
        };
        if *code == FailureCode::Known(ErrorCode::Timeout) && self.is_late() {
            return Outcome::LimitHit(self.deadline_name);
        }
        // The node may fail on its own, with another code, after it handled a failed request.
        let last = self.last_failure.take().filter(|(last, _)| last == code);
        let why = last.map(|(_, message)| message);
        Outcome::Ended { ended, why }
    }

    // -- small parts ------------------------------------------------------------------------------

    /// Returns true where no further request may be performed: a stopped run, or a cancelled one without changes.
    pub(super) fn is_cancelled(&self) -> bool {
        let is_cancelled = self.control.is_cancelled.load(Ordering::Acquire);
        is_cancelled && (!self.has_changed || self.control.is_stopped())
    }

    pub(super) fn is_late(&self) -> bool {
        self.deadline_us
            .is_some_and(|deadline| self.services.sources.monotonic_us() >= deadline)
    }

    pub(super) fn commit(&self) -> Result<(), JournalError> {
        self.control.run.commit(Status::Running, None)?;
        self.control.has_committed.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Notes that an INTENT is durable.
    pub(super) fn committed(&mut self) {
        self.control.has_committed.store(true, Ordering::Relaxed);
        self.has_changed = true;
    }

    pub(super) fn digest(&self, request: &Request) -> Result<String, JournalError> {
        let (fixed, arguments) = request_texts(request)?;
        Ok(self.control.run.digest(&digest_text(request, &fixed, &arguments)))
    }

    /// Counts a value that enters the execution against `memory_limit_mb`.
    pub(super) fn take_value(&mut self, value: Option<(&Type, &Value)>) -> Result<(), Interruption> {
        self.take_room(|| {
            value.map_or_else(
                || size_of(&Type::Json, &Value::Null),
                |(ty, value)| size_of(ty, value),
            )
        })
    }

    fn take_room(&mut self, size: impl FnOnce() -> u64) -> Result<(), Interruption> {
        let Some(room) = &mut self.room else { return Ok(()) };
        match room.checked_sub(size()) {
            Some(left) => {
                *room = left;
                Ok(())
            }
            None => Err(Interruption::Stopped(Outcome::LimitHit("memory_limit_mb"))),
        }
    }

    /// Appends an entry without class, key and digest.
    pub(super) fn append_plain(
        &self,
        kind: Kind,
        path: &str,
        effect: &str,
        body: &str,
    ) -> Result<(), JournalError> {
        self.control.run.append(&Entry {
            kind,
            path,
            effect,
            class: "",
            key: None,
            digest: "",
            at_us: self.services.sources.now_us(),
            body,
        })
    }

    pub(super) fn append_divergence(
        &self,
        request: &Request,
        asked: &str,
        recorded: &str,
    ) -> Result<(), JournalError> {
        let effect = request.effect.name();
        let body = Body::new()
            .text("asked", asked)
            .text("effect", effect)
            .text("recorded", recorded);
        self.append_plain(Kind::Divergence, &request.path, effect, &body.finish())
    }

    /// Records that it is unknown what became of a request, durably; returns the error that ends the run.
    pub(super) fn doubt(&self, request: &Request, why: String) -> Result<RunError, JournalError> {
        let run = &self.control.run;
        run.append(&Entry {
            kind: Kind::InDoubt,
            path: &request.path,
            effect: request.effect.name(),
            class: request.class.name(),
            key: None,
            digest: "",
            at_us: self.services.sources.now_us(),
            body: &Body::new().text("why", &why).finish(),
        })?;
        run.commit(Status::InDoubt, None)?;
        Ok(self.in_doubt(request, why))
    }

    pub(super) fn in_doubt(&self, request: &Request, why: String) -> RunError {
        RunError::InDoubt {
            path: request.path.clone(),
            why,
            execution: self.control.run.execution().to_owned(),
        }
    }
}

/// Returns a time in microseconds.
pub(super) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
