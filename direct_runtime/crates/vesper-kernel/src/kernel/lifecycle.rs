//! Changes of processes, with what they mean for interrupts, sessions and events.

use std::sync::Arc;

use super::{Due, Kernel, Moment};
use crate::ids::{InterruptId, Pid};
use crate::machines::interrupts::{InterruptConfig, Question};
use crate::machines::processes::{End, NewProcess, State};
use crate::machines::quotas;
use crate::machines::rate_limits::Verdict;
use crate::machines::sessions::{BranchState, Ending, Progress, Session};
use crate::proto::v1::{
    CreateProcessRequest, InterruptResponse, InterruptStatus, Priority, ProcessState, TerminalReason, Usage,
};
use crate::refusal::Refusal;
use crate::settings::{HOUR_US, SECOND_US};

const DEFAULT_LEASE_US: i64 = 30 * SECOND_US;
const MAX_NAME_BYTES: usize = 1_000;

/// Refuses a name that is too long to be kept for each process.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), Refusal> {
    if name.len() > MAX_NAME_BYTES {
        return Err(Refusal::invalid(format!(
            "{what} has more than {MAX_NAME_BYTES} bytes."
        )));
    }
    Ok(())
}

/// Returns when a lease that was requested ends.
pub(super) fn lease_until(lease_us: i64, now_us: i64) -> Result<i64, Refusal> {
    let length_us = if lease_us == 0 { DEFAULT_LEASE_US } else { lease_us };
    if !(SECOND_US..=HOUR_US).contains(&length_us) {
        return Err(Refusal::invalid("lease_us is not between a second and an hour."));
    }
    Ok(now_us.saturating_add(length_us))
}

/// Returns the worker of a request.
pub(crate) fn worker_of(name: &str) -> Result<Arc<str>, Refusal> {
    if name.is_empty() {
        return Err(Refusal::invalid("Name the worker."));
    }
    check_name("worker", name)?;
    Ok(name.into())
}

impl Kernel {
    /// Checks a request for a process that is to be created at this moment.
    pub(super) fn prepare(
        &self,
        request: &CreateProcessRequest,
        moment: Moment,
    ) -> Result<NewProcess, Refusal> {
        check_name("request_id", &request.request_id)?;
        check_name("user_id", &request.user_id)?;
        check_name("session_id", &request.session_id)?;
        let request_id: Arc<str> = match request.request_id.as_str() {
            "" => self.free_request_id(moment),
            name => name.into(),
        };
        if let Some(pid) = self.processes.by_request(&request_id) {
            return Err(Refusal::exists(format!(
                "The request \"{request_id}\" has the process {pid}."
            )));
        }
        let parent = match request.parent_pid.as_str() {
            "" => None,
            text => Some(Pid::read(text)?),
        };
        if let Some(parent) = parent {
            self.processes.live(parent)?;
        }
        let priority = match Priority::try_from(request.priority) {
            Ok(Priority::Unspecified) => Priority::Normal,
            Ok(priority) => priority,
            Err(_) => return Err(Refusal::invalid("priority is none of the enumeration Priority.")),
        };
        let quota = match &request.quota {
            None => Arc::clone(&self.default_quota),
            Some(quota) => {
                quotas::check_quota(quota)?;
                Arc::new(*quota)
            }
        };
        Ok(NewProcess {
            request_id,
            user_id: request.user_id.as_str().into(),
            session_id: request.session_id.as_str().into(),
            parent,
            priority,
            quota,
        })
    }

    /// Returns a name for a request without one. A client may have given the first to a request of its own.
    fn free_request_id(&self, moment: Moment) -> Arc<str> {
        let first = format!("r{}", moment.sequence);
        let more = (1_u64..).map(|number| format!("{first}.{number}"));
        let mut names = std::iter::once(first.clone()).chain(more);
        let is_free = |name: &String| self.processes.by_request(name).is_none();
        names.find(is_free).unwrap_or(first).into()
    }

    /// Refuses a request of a user who has made too many.
    pub(super) fn admit(&self, user: &str, now_us: i64) -> Result<(), Refusal> {
        match self.rates.ask(self.settings.rate_limit, user, now_us) {
            Verdict::Admitted => Ok(()),
            Verdict::Refused { window, retry_us } => Err(Refusal::exhausted(format!(
                "The rate limit of the user \"{user}\" ({window}) admits the next request in {} ms.",
                retry_us.saturating_sub(now_us).max(0) / 1_000
            ))),
        }
    }

    pub(super) fn create(&mut self, new: NewProcess, moment: Moment) -> Pid {
        let pid = Pid(moment.sequence);
        self.processes.create(pid, new, moment.now_us);
        self.emit_created(pid, moment);
        self.plan(pid);
        pid
    }

    /// Changes the state, where that is legal.
    pub(super) fn shift(&mut self, pid: Pid, state: State, moment: Moment) -> Result<(), Refusal> {
        let old = self.processes.change(pid, state, moment.now_us)?;
        self.emit_state(pid, old, moment);
        self.index_steps(pid);
        self.plan(pid);
        Ok(())
    }

    /// Ends a process with its interrupts and its session.
    pub(super) fn terminate(&mut self, pid: Pid, ending: Ending, moment: Moment) -> Result<(), Refusal> {
        self.processes.live(pid)?;
        while let Some(id) = self.interrupts.first_pending(pid) {
            self.interrupts
                .end(id, InterruptStatus::Cancelled, None, moment.now_us)?;
            self.emit_interrupt(id, pid, false, moment);
        }
        let has_session = self
            .sessions
            .get_mut(&pid)
            .map(|session| session.end(moment.now_us))
            .is_some();
        let end = End {
            at_us: moment.now_us,
            reason: ending.reason,
            message: ending.message.into(),
        };
        self.shift(pid, State::Terminated(end), moment)?;
        if has_session {
            self.emit_pipeline_ended(pid, moment);
        }
        Ok(())
    }

    /// Adds usage, and ends the process where its quota is exceeded.
    pub(super) fn charge(&mut self, pid: Pid, usage: &Usage, moment: Moment) -> Result<(), Refusal> {
        let process = self.processes.live(pid)?;
        let quota = Arc::clone(&process.quota);
        self.processes.add_usage(pid, usage);
        let exceeded = quotas::exceeded(&quota, &self.processes.get(pid)?.usage);
        for resource in &exceeded {
            self.emit_exceeded(pid, resource, moment);
        }
        if exceeded.is_empty() {
            return Ok(());
        }
        let ending = Ending {
            reason: TerminalReason::QuotaExceeded,
            message: format!("The quota of {} is exceeded.", exceeded.join(", ")),
        };
        self.terminate(pid, ending, moment)
    }

    /// Asks a question that was checked, of a step or of the process itself.
    pub(super) fn ask(
        &mut self,
        pid: Pid,
        branch: Option<u64>,
        question: Question,
        moment: Moment,
    ) -> Result<InterruptId, Refusal> {
        let id = InterruptId(moment.sequence);
        let session = self.sessions.get_mut(&pid);
        let asked = session.zip(branch).and_then(|(session, number)| {
            session.ask(number, id, moment.now_us);
            let branch = session.branch_mut(number)?;
            branch.started_us = None;
            let step = crate::ids::StepId {
                pid,
                number: branch.step,
            };
            Some((step, branch.stage.clone()))
        });
        let step = asked.as_ref().map(|(step, stage)| (*step, stage.as_str()));
        let interrupt = self.interrupts.create(id, pid, step, question, moment.now_us);
        let expires_us = interrupt.expires_us;
        self.add_due(expires_us, Due::Interrupt(id));
        self.emit_interrupt(id, pid, true, moment);
        self.settle(pid, moment)?;
        Ok(id)
    }

    /// Ends a pending interrupt, and lets its process go on or end.
    pub(super) fn end_interrupt(
        &mut self,
        id: InterruptId,
        status: InterruptStatus,
        response: Option<InterruptResponse>,
        moment: Moment,
    ) -> Result<(), Refusal> {
        let (pid, interrupt) = self.interrupts.pending(id)?;
        let (is_of_step, kind) = (!interrupt.step_id.is_empty(), interrupt.kind());
        self.interrupts.end(id, status, response, moment.now_us)?;
        self.emit_interrupt(id, pid, false, moment);
        if let Some(session) = self.sessions.get_mut(&pid) {
            session.answer(id, moment.now_us);
        }
        let is_required = InterruptConfig::of(kind).is_some_and(|config| config.require_response);
        if status != InterruptStatus::Resolved && is_required && !is_of_step {
            let (reason, how) = match status {
                InterruptStatus::Expired => (TerminalReason::InterruptExpired, "expired"),
                _ => (TerminalReason::Cancelled, "was cancelled"),
            };
            let message = format!("The interrupt {id} {how} without a response.");
            return self.terminate(pid, Ending { reason, message }, moment);
        }
        let is_waiting = *self.processes.get(pid)?.state() == State::Waiting;
        if is_waiting && !self.has_to_wait(pid) {
            return self.shift(pid, State::Ready { turn: 0 }, moment);
        }
        self.settle(pid, moment)
    }

    /// Returns true where a client's interrupt is pending, or where each step waits for one.
    fn has_to_wait(&self, pid: Pid) -> bool {
        let is_active = self.sessions.get(&pid).is_some_and(Session::is_active);
        self.interrupts
            .list(Some(pid), None)
            .filter(|each| each.status() == InterruptStatus::Pending)
            .any(|each| each.step_id.is_empty() || !is_active)
    }

    /// Refuses to make a process ready that has to wait.
    pub(super) fn check_ready(&self, pid: Pid) -> Result<(), Refusal> {
        if self.has_to_wait(pid) {
            return Err(Refusal::precondition(format!(
                "The process {pid} waits for an interrupt: resolve or cancel it."
            )));
        }
        Ok(())
    }

    /// Lets a running process wait where it has to.
    pub(super) fn settle(&mut self, pid: Pid, moment: Moment) -> Result<(), Refusal> {
        match self.processes.get(pid)?.state().kind() {
            ProcessState::Running if self.has_to_wait(pid) => self.shift(pid, State::Waiting, moment),
            _ => {
                self.index_steps(pid);
                self.plan(pid);
                Ok(())
            }
        }
    }

    /// Gives the step of a branch to a worker.
    pub(super) fn take_step(
        &mut self,
        pid: Pid,
        number: u64,
        worker: &Arc<str>,
        until_us: i64,
        moment: Moment,
    ) -> Result<(), Refusal> {
        if matches!(self.processes.get(pid)?.state(), State::Ready { .. }) {
            let state = State::Running {
                worker: Arc::clone(worker),
                lease_until_us: Some(until_us),
            };
            self.shift(pid, state, moment)?;
        } else {
            self.processes.set_holder(pid, worker, until_us);
        }
        let started = self.sessions.get_mut(&pid).and_then(|session| {
            session.lease(number, worker, until_us, moment.now_us);
            let branch = session.branch(number)?;
            Some((
                crate::ids::StepId {
                    pid,
                    number: branch.step,
                },
                branch.stage.clone(),
            ))
        });
        if let Some((step, stage)) = started {
            self.emit_stage_started(step, &stage, moment);
        }
        self.held.entry(Arc::clone(worker)).or_default().insert(pid);
        self.index_steps(pid);
        self.plan(pid);
        Ok(())
    }

    /// Charges what a result led to, and ends the session where it is over.
    pub(super) fn advance(
        &mut self,
        pid: Pid,
        usage: Usage,
        progress: Progress,
        moment: Moment,
    ) -> Result<(), Refusal> {
        let used = Usage {
            agent_hops: progress.hops,
            iterations: progress.steps,
            ..usage
        };
        self.charge(pid, &used, moment)?;
        if self.processes.get(pid)?.is_ended() {
            return Ok(());
        }
        match progress.ending {
            Some(ending) => self.terminate(pid, ending, moment),
            None => self.settle(pid, moment),
        }
    }

    /// Makes the steps of a process that can run known to workers of their services.
    pub(super) fn index_steps(&mut self, pid: Pid) {
        for (service, row) in self.indexed.remove(&pid).unwrap_or_default() {
            if let Some(rows) = self.ready_steps.get_mut(&service) {
                rows.remove(&row);
                if rows.is_empty() {
                    self.ready_steps.remove(&service);
                }
            }
        }
        let (Some(session), Ok(process)) = (self.sessions.get(&pid), self.processes.get(pid)) else {
            return;
        };
        if !matches!(process.state(), State::Ready { .. } | State::Running { .. }) {
            return;
        }
        let priority: i32 = process.priority.into();
        let ready = session
            .branches()
            .filter(|(_, branch)| branch.state == BranchState::Ready);
        let rows: Vec<(String, super::ReadyStep)> = ready
            .filter_map(|(number, branch)| {
                Some((session.stage_of(branch)?.service.clone(), (priority, pid, number)))
            })
            .collect();
        for (service, row) in &rows {
            self.ready_steps.entry(service.clone()).or_default().insert(*row);
        }
        if !rows.is_empty() {
            self.indexed.insert(pid, rows);
        }
    }
}
