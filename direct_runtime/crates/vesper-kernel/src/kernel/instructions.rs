//! Orchestration of a process: sessions, instructions and results.

use std::sync::Arc;

use super::lifecycle::{lease_until, worker_of};
use super::{Kernel, Moment};
use crate::ids::{EnvelopeId, Pid, StepId};
use crate::machines::interrupts::Question;
use crate::machines::pipeline::Pipeline;
use crate::machines::processes::{State, state_name};
use crate::machines::quotas;
use crate::machines::sessions::{BranchState, Session, check_json, check_json_members};
use crate::proto::log::v1 as log;
use crate::proto::v1::{
    AgentConfig, AgentExecutionMetrics, AgentExecutionResult, Envelope, GetNextInstructionRequest,
    InitializeSessionRequest, Instruction, InstructionKind, ReportAgentResultRequest, SessionState,
    TerminalReason, Usage, agent_execution_result::Outcome,
};
use crate::refusal::Refusal;

/// A session that is to be started.
pub(super) struct NewSession {
    pipeline: Arc<Pipeline>,
    envelope: Envelope,
}

impl Kernel {
    /// Checks a session that is to be started.
    pub(super) fn prepare_session(
        request: &InitializeSessionRequest,
        moment: Moment,
    ) -> Result<NewSession, Refusal> {
        let none = || Refusal::invalid("The request has no pipeline.");
        let config = request.pipeline.clone().ok_or_else(none)?;
        let pipeline = Arc::new(Pipeline::new(config)?);
        check_json_members("inputs_json", &request.inputs_json)?;
        let envelope = Envelope {
            inputs_json: request.inputs_json.clone(),
            metadata: request.metadata.clone(),
            current_stage: pipeline.entry().to_owned(),
            created_us: moment.now_us,
            version: 1,
            ..Envelope::default()
        };
        Ok(NewSession { pipeline, envelope })
    }

    /// Starts the session of a live process.
    pub(super) fn start_session(&mut self, pid: Pid, new: NewSession, moment: Moment) -> Result<(), Refusal> {
        let process = self.processes.live(pid)?;
        let envelope = Envelope {
            envelope_id: EnvelopeId::OfBranch(pid, 1).to_string(),
            request_id: process.request_id.to_string(),
            user_id: process.user_id.to_string(),
            session_id: process.session_id.to_string(),
            ..new.envelope
        };
        let session = Session::start(pid, new.pipeline, envelope, moment.now_us);
        self.sessions.insert(pid, session);
        self.emit_pipeline_started(pid, moment);
        let first = Usage {
            iterations: 1,
            ..Usage::default()
        };
        self.charge(pid, &first, moment)?;
        self.index_steps(pid);
        Ok(())
    }

    /// Returns what a worker is to do next, and gives it a step where one is ready.
    pub(super) fn next_instruction(
        &mut self,
        request: &GetNextInstructionRequest,
        moment: Moment,
    ) -> Result<Instruction, Refusal> {
        let pid = Pid::read(&request.pid)?;
        let worker = worker_of(&request.worker)?;
        let until_us = lease_until(request.lease_us, moment.now_us)?;
        let session = self.session(pid)?;
        let process = self.processes.get(pid)?;
        if process.is_ended() {
            self.leave_unchanged();
            return self.terminal_instruction(pid);
        }
        let own = |branch: &BranchState| matches!(branch, BranchState::Leased { worker: holder, .. } if **holder == *worker);
        let held = session
            .branches()
            .find(|(_, branch)| own(&branch.state))
            .map(|(number, _)| number);
        let ready = held.or_else(|| session.first_ready());
        let is_asking = session
            .branches()
            .any(|(_, branch)| branch.state == BranchState::Asking);
        match process.state() {
            State::Ready { .. } | State::Running { .. } => {}
            State::Waiting if self.interrupts.has_pending(pid) => {
                self.leave_unchanged();
                return Ok(self.waiting_instruction(pid));
            }
            state => {
                return Err(Refusal::precondition(format!(
                    "The process {pid} is {}: its steps are given out while it is ready or running.",
                    state_name(state.kind())
                )));
            }
        }
        if let Some(number) = ready {
            self.take_step(pid, number, &worker, until_us, moment)?;
            return self.step_instruction(pid, number);
        }
        self.leave_unchanged();
        let has_leased = session_has_leased(self.session(pid)?);
        if is_asking && !has_leased {
            return Ok(self.waiting_instruction(pid));
        }
        Ok(instruction(InstructionKind::WaitSteps, pid))
    }

    /// Gives the next step of a service to a worker with a stream.
    pub(super) fn take_for_service(
        &mut self,
        request: &log::WorkerTakes,
        moment: Moment,
    ) -> Result<Option<Instruction>, Refusal> {
        let worker = worker_of(&request.worker)?;
        let until_us = lease_until(request.lease_us, moment.now_us)?;
        let first = self
            .ready_steps
            .get(&request.service)
            .and_then(|rows| rows.first().copied());
        let Some((_, pid, number)) = first else {
            self.leave_unchanged();
            return Ok(None);
        };
        self.take_step(pid, number, &worker, until_us, moment)?;
        self.step_instruction(pid, number).map(Some)
    }

    /// Returns true where a step of this service can be given to a worker.
    pub fn has_ready_step(&self, service: &str) -> bool {
        self.ready_steps.contains_key(service)
    }

    fn terminal_instruction(&self, pid: Pid) -> Result<Instruction, Refusal> {
        let end = self.processes.get(pid)?.state().end().cloned();
        Ok(Instruction {
            envelope: self.session_envelope(pid),
            terminal_reason: end
                .as_ref()
                .map_or(TerminalReason::Unspecified, |end| end.reason)
                .into(),
            termination_message: end.map(|end| end.message.into()).unwrap_or_default(),
            ..instruction(InstructionKind::Terminate, pid)
        })
    }

    fn waiting_instruction(&self, pid: Pid) -> Instruction {
        let pending = self.interrupts.first_pending(pid);
        Instruction {
            interrupt: pending.and_then(|id| self.interrupts.get(id).ok().cloned()),
            interrupt_pending: true,
            ..instruction(InstructionKind::WaitInterrupt, pid)
        }
    }

    fn step_instruction(&self, pid: Pid, number: u64) -> Result<Instruction, Refusal> {
        let session = self.session(pid)?;
        let lost = || Refusal::precondition(format!("A branch of {pid} has ended."));
        let branch = session.branch(number).ok_or_else(lost)?;
        let lease_until_us = match branch.state {
            BranchState::Leased { until_us, .. } => until_us,
            _ => 0,
        };
        Ok(Instruction {
            step_id: StepId {
                pid,
                number: branch.step,
            }
            .to_string(),
            agent_name: branch.stage.clone(),
            agent_config: session.stage_of(branch).cloned(),
            envelope: Some(self.with_usage(pid, &branch.envelope)),
            interrupt: branch
                .interrupt
                .and_then(|id| self.interrupts.get(id).ok().cloned()),
            lease_until_us,
            ..instruction(InstructionKind::RunAgent, pid)
        })
    }

    /// Returns the envelope of a session with the bounds and the usage of its process.
    pub(super) fn with_usage(&self, pid: Pid, envelope: &Envelope) -> Envelope {
        let process = self.processes.get(pid).ok();
        Envelope {
            bounds: process.map(|process| *process.quota),
            usage: process.map(|process| process.usage),
            ..envelope.clone()
        }
    }

    pub(super) fn session_envelope(&self, pid: Pid) -> Option<Envelope> {
        let envelope = self.sessions.get(&pid)?.envelope()?;
        Some(self.with_usage(pid, envelope))
    }

    /// Returns the branch for which a worker may report; None where the step has a result already.
    pub fn reported_branch(&self, request: &ReportAgentResultRequest) -> Result<Option<(Pid, u64)>, Refusal> {
        let pid = Pid::read(&request.pid)?;
        let worker = worker_of(&request.worker)?;
        let none = || Refusal::invalid("The request has no result.");
        let result = request.result.as_ref().ok_or_else(none)?;
        let step = StepId::read(&result.step_id)?;
        let session = self.session(pid)?;
        if step.pid != pid {
            return Err(Refusal::invalid(format!("The step \"{step}\" is none of {pid}.")));
        }
        let Some(number) = session.branch_of(step.number)? else {
            return Ok(None);
        };
        let branch = session.branch(number);
        match branch.map(|branch| &branch.state) {
            Some(BranchState::Leased { worker: holder, .. }) if *holder == worker => {}
            _ => {
                return Err(Refusal::precondition(format!(
                    "The worker \"{worker}\" does not have the step {step}: its lease has ended. Take it again."
                )));
            }
        }
        check_result(result, branch.map_or("", |branch| branch.stage.as_str()))?;
        Ok(Some((pid, number)))
    }

    /// Returns the stage of a branch, and its envelope as it is with an output of the stage.
    pub fn with_output(&self, pid: Pid, number: u64, output_json: &str) -> Option<(&AgentConfig, Envelope)> {
        let session = self.sessions.get(&pid)?;
        let branch = session.branch(number)?;
        let mut envelope = branch.envelope.clone();
        envelope
            .outputs_json
            .insert(branch.stage.clone(), output_json.to_owned());
        Some((session.stage_of(branch)?, envelope))
    }

    /// Records a reported result.
    pub(super) fn report(&mut self, routed: &log::RoutedResult, moment: Moment) -> Result<bool, Refusal> {
        let request = routed.request.clone().unwrap_or_default();
        let Some((pid, number)) = self.reported_branch(&request)? else {
            self.leave_unchanged();
            return Ok(false);
        };
        let result = request.result.unwrap_or_default();
        let usage = usage_of(result.metrics.as_ref());
        if !routed.routing_error.is_empty() {
            self.record_unrouted(pid, number, result, moment);
            let ending = crate::machines::sessions::Ending {
                reason: TerminalReason::RoutingFailed,
                message: routed.routing_error.clone(),
            };
            self.charge(pid, &usage, moment)?;
            if !self.processes.get(pid)?.is_ended() {
                self.terminate(pid, ending, moment)?;
            }
            return Ok(true);
        }
        self.conclude(pid, number, result, routed.route, usage, moment)?;
        Ok(true)
    }

    /// Records a result that no route could be selected for.
    fn record_unrouted(&mut self, pid: Pid, number: u64, result: AgentExecutionResult, moment: Moment) {
        let Some(session) = self.sessions.get_mut(&pid) else {
            return;
        };
        let Some(step) = session.branch(number).map(|branch| branch.step) else {
            return;
        };
        let output = match &result.outcome {
            Some(Outcome::OutputJson(output)) => output.clone(),
            _ => return,
        };
        if let Some(stage) = session.record_output(number, output, moment.now_us) {
            self.emit_stage_ended(StepId { pid, number: step }, &stage, result, moment);
        }
    }

    /// Ends the step of a branch with its result.
    pub(super) fn conclude(
        &mut self,
        pid: Pid,
        number: u64,
        result: AgentExecutionResult,
        route: Option<i32>,
        usage: Usage,
        moment: Moment,
    ) -> Result<(), Refusal> {
        let branch = self.session(pid)?.branch(number);
        let Some((step, stage)) = branch.map(|branch| {
            (
                StepId {
                    pid,
                    number: branch.step,
                },
                branch.stage.clone(),
            )
        }) else {
            return Ok(());
        };
        let outcome = match result.outcome.clone() {
            Some(Outcome::Question(question)) => {
                self.charge(pid, &usage, moment)?;
                if !self.processes.get(pid)?.is_ended() {
                    self.ask(pid, Some(number), question_of(question), moment)?;
                }
                return Ok(());
            }
            other => other,
        };
        self.emit_stage_ended(step, &stage, result, moment);
        let Some(session) = self.sessions.get_mut(&pid) else {
            return Ok(());
        };
        let progress = match outcome {
            Some(Outcome::OutputJson(output)) => {
                let place = route.and_then(|place| usize::try_from(place).ok());
                session.succeed(number, output, place, moment.now_us)
            }
            Some(Outcome::Failure(failure)) => {
                let error = format!("{}: {}", failure.code, failure.message);
                session.fail(number, &error, moment.now_us)
            }
            _ => return Ok(()),
        };
        self.advance(pid, usage, progress, moment)
    }

    /// Makes the steps of a worker ready again.
    pub(super) fn release_worker(&mut self, worker: &str, moment: Moment) -> Result<(), Refusal> {
        let pids = self.held.remove(worker).unwrap_or_default();
        let mut has_released = false;
        for pid in pids {
            let released = self
                .sessions
                .get_mut(&pid)
                .map(|session| session.release(|holder, _| holder == worker));
            if released.is_none_or(|released| released.is_empty()) {
                continue;
            }
            has_released = true;
            let has_leased = self.sessions.get(&pid).is_some_and(session_has_leased);
            let is_holder = matches!(
                self.processes.get(pid)?.state(),
                State::Running { worker: holder, .. } if **holder == *worker
            );
            if is_holder && !has_leased {
                self.shift(pid, State::Ready { turn: 0 }, moment)?;
            } else {
                self.settle(pid, moment)?;
            }
        }
        if !has_released {
            self.leave_unchanged();
        }
        Ok(())
    }

    /// Prolongs all leases of a worker.
    pub(super) fn renew_worker(
        &mut self,
        request: &log::WorkerRenews,
        moment: Moment,
    ) -> Result<(), Refusal> {
        let worker = worker_of(&request.worker)?;
        let until_us = lease_until(request.lease_us, moment.now_us)?;
        let pids: Vec<Pid> = self.held.get(&worker).into_iter().flatten().copied().collect();
        let mut kept = std::collections::BTreeSet::new();
        for pid in pids {
            let is_holder = self
                .sessions
                .get_mut(&pid)
                .is_some_and(|session| session.renew(&worker, until_us).is_some());
            if is_holder {
                self.processes.set_holder(pid, &worker, until_us);
                self.plan(pid);
                kept.insert(pid);
            }
        }
        if kept.is_empty() {
            self.leave_unchanged();
        }
        self.held.insert(worker, kept);
        Ok(())
    }

    /// Returns the state of a session for clients.
    pub(super) fn session_message(&self, pid: Pid) -> Result<SessionState, Refusal> {
        let session = self.session(pid)?;
        let end = self.processes.get(pid)?.state().end();
        Ok(SessionState {
            envelope: self.session_envelope(pid),
            terminal_reason: end.map_or(TerminalReason::Unspecified, |end| end.reason).into(),
            terminal_message: end.map(|end| end.message.to_string()).unwrap_or_default(),
            ..session.message()
        })
    }
}

fn session_has_leased(session: &Session) -> bool {
    session
        .branches()
        .any(|(_, branch)| matches!(branch.state, BranchState::Leased { .. }))
}

fn instruction(kind: InstructionKind, pid: Pid) -> Instruction {
    Instruction {
        kind: kind.into(),
        pid: pid.to_string(),
        ..Instruction::default()
    }
}

fn question_of(question: crate::proto::v1::AgentQuestion) -> Question {
    Question {
        kind: question.kind(),
        message: question.message,
        data_json: question.data_json,
        run_id: question.run_id,
        ttl_us: question.ttl_us,
    }
}

fn usage_of(metrics: Option<&AgentExecutionMetrics>) -> Usage {
    metrics.map_or_else(Usage::default, |metrics| Usage {
        llm_calls: metrics.llm_calls,
        tool_calls: metrics.tool_calls,
        tokens_in: metrics.tokens_in,
        tokens_out: metrics.tokens_out,
        ..Usage::default()
    })
}

fn check_result(result: &AgentExecutionResult, stage: &str) -> Result<(), Refusal> {
    if !result.agent_name.is_empty() && result.agent_name != stage {
        return Err(Refusal::invalid(format!(
            "The step {} is of the stage \"{stage}\", not of \"{}\".",
            result.step_id, result.agent_name
        )));
    }
    quotas::check_usage(&usage_of(result.metrics.as_ref()))?;
    match &result.outcome {
        None => Err(Refusal::invalid(
            "The result has no output_json, failure or question.",
        )),
        Some(Outcome::OutputJson(output)) => check_json("output_json", output, false),
        Some(Outcome::Failure(failure)) if failure.code.is_empty() => {
            Err(Refusal::invalid("The failure has no code."))
        }
        Some(Outcome::Failure(_)) => Ok(()),
        Some(Outcome::Question(question)) => question_of(question.clone()).check().map(drop),
    }
}
