//! The commands: requests that change the state, and what each does.

use std::sync::Arc;

use super::instructions::NewSession;
use super::lifecycle::{check_name, lease_until, worker_of};
use super::{Kernel, Moment};
use crate::ids::{EnvelopeId, InterruptId, Pid};
use crate::machines::interrupts::Question;
use crate::machines::processes::{State, illegal, successors};
use crate::machines::rate_limits::Verdict;
use crate::machines::sessions::{Ending, check_json_members};
use crate::machines::{quotas, registry};
use crate::proto::log::v1::{self as log, change::Change};
use crate::proto::v1::{self, Envelope, InterruptStatus, Process, ProcessState, TerminalReason, Usage};
use crate::refusal::Refusal;

/// A request that changes the state. A refused one has changed nothing.
pub trait Command: Sized {
    type Answer: Send + 'static;

    fn perform(&self, kernel: &mut Kernel, moment: Moment) -> Result<Self::Answer, Refusal>;

    fn into_change(self) -> Change;
}

macro_rules! commands {
    ($($request:ty => $variant:ident -> $answer:ty = |$self:ident, $kernel:ident, $moment:ident| $body:expr;)*) => {
        $(impl Command for $request {
            type Answer = $answer;

            fn perform(&self, $kernel: &mut Kernel, $moment: Moment) -> Result<Self::Answer, Refusal> {
                let $self = self;
                $body
            }

            fn into_change(self) -> Change {
                Change::$variant(self)
            }
        })*

        /// Applies a change of the log again.
        pub fn replay(kernel: &mut Kernel, change: &Change, moment: Moment) -> Result<(), Refusal> {
            match change {
                $(Change::$variant(request) => request.perform(kernel, moment).map(drop),)*
            }
        }
    };
}

commands! {
    v1::CreateProcessRequest => CreateProcess -> Process = |request, kernel, moment| {
        let new = kernel.prepare(request, moment)?;
        let pid = kernel.create(new, moment);
        kernel.process_message(pid)
    };

    v1::SubmitRequest => Submit -> v1::SubmitResponse = |request, kernel, moment| {
        let process = request.process.clone().unwrap_or_default();
        if let Some(pid) = kernel.processes.by_request(&process.request_id) {
            kernel.leave_unchanged();
            return Ok(v1::SubmitResponse { process: Some(kernel.process_message(pid)?), created: false });
        }
        let pid = kernel.submit(&process, None, moment)?;
        Ok(v1::SubmitResponse { process: Some(kernel.process_message(pid)?), created: true })
    };

    v1::ScheduleProcessRequest => ScheduleProcess -> Process = |request, kernel, moment| {
        let pid = Pid::read(&request.pid)?;
        let state = kernel.processes.get(pid)?.state().kind();
        if !matches!(state, ProcessState::New | ProcessState::Blocked) {
            return Err(illegal(pid, state, ProcessState::Ready));
        }
        kernel.check_ready(pid)?;
        kernel.shift(pid, State::Ready { turn: 0 }, moment)?;
        kernel.process_message(pid)
    };

    v1::GetNextRunnableRequest => TakeRunnable -> Option<Process> = |request, kernel, moment| {
        let worker = worker_of(&request.worker)?;
        let until_us = lease_until(request.lease_us, moment.now_us)?;
        let Some(pid) = kernel.processes.next_runnable() else {
            kernel.leave_unchanged();
            return Ok(None);
        };
        let state = State::Running { worker, lease_until_us: Some(until_us) };
        kernel.shift(pid, state, moment)?;
        kernel.process_message(pid).map(Some)
    };

    v1::TransitionStateRequest => TransitionState -> Process = |request, kernel, moment| {
        let pid = Pid::read(&request.pid)?;
        let state = kernel.processes.get(pid)?.state().clone();
        let to = match ProcessState::try_from(request.state) {
            Ok(ProcessState::Unspecified) | Err(_) => {
                return Err(Refusal::invalid("state is none of the enumeration ProcessState."));
            }
            Ok(to) => to,
        };
        let reason = reason_of("terminal_reason", request.terminal_reason)?;
        if !successors(state.kind()).contains(&to) {
            return Err(illegal(pid, state.kind(), to));
        }
        if to != ProcessState::Terminated && reason != TerminalReason::Unspecified {
            return Err(Refusal::invalid("terminal_reason is for the state TERMINATED."));
        }
        let new = match to {
            ProcessState::Ready => {
                kernel.check_ready(pid)?;
                State::Ready { turn: 0 }
            }
            ProcessState::Running => State::Running { worker: Arc::from(""), lease_until_us: None },
            ProcessState::Waiting => State::Waiting,
            ProcessState::Blocked => State::Blocked,
            ProcessState::Terminated => {
                if reason == TerminalReason::Unspecified {
                    return Err(Refusal::invalid("The state TERMINATED needs a terminal_reason."));
                }
                kernel.terminate(pid, Ending { reason, message: request.message.clone() }, moment)?;
                return kernel.process_message(pid);
            }
            ProcessState::Zombie | ProcessState::New | ProcessState::Unspecified => match state {
                State::Terminated(end) => State::Zombie(end),
                other => return Err(illegal(pid, other.kind(), to)),
            },
        };
        kernel.shift(pid, new, moment)?;
        kernel.process_message(pid)
    };

    v1::TerminateProcessRequest => TerminateProcess -> Process = |request, kernel, moment| {
        let pid = Pid::read(&request.pid)?;
        let ending = ending_of(request.reason, &request.message)?;
        kernel.terminate(pid, ending, moment)?;
        kernel.process_message(pid)
    };

    v1::RecordUsageRequest => RecordUsage -> v1::RecordUsageResponse = |request, kernel, moment| {
        let pid = Pid::read(&request.pid)?;
        let usage = request.usage.unwrap_or_default();
        quotas::check_usage(&usage)?;
        kernel.charge(pid, &usage, moment)?;
        Ok(v1::RecordUsageResponse {
            process: Some(kernel.process_message(pid)?),
            remaining: Some(kernel.remaining(pid, moment.now_us)?),
        })
    };

    v1::CheckRateLimitRequest => RecordRequest -> v1::CheckRateLimitResponse = |request, kernel, moment| {
        if request.user_id.is_empty() {
            return Err(Refusal::invalid("Name the user."));
        }
        check_name("user_id", &request.user_id)?;
        let verdict = kernel.rates.ask(kernel.settings.rate_limit, &request.user_id, moment.now_us);
        if verdict == Verdict::Admitted && request.record {
            kernel.rates.record(&request.user_id, moment.now_us);
        } else {
            kernel.leave_unchanged();
        }
        let (exceeded, retry_after_us) = match verdict {
            Verdict::Admitted => ("", 0),
            Verdict::Refused { window, retry_us } => (window, retry_us),
        };
        Ok(v1::CheckRateLimitResponse {
            allowed: verdict == Verdict::Admitted,
            exceeded: exceeded.to_owned(),
            retry_after_us,
            usage: Some(kernel.rates.usage(&request.user_id, moment.now_us)),
        })
    };

    v1::RenewLeaseRequest => RenewLease -> i64 = |request, kernel, moment| {
        let pid = Pid::read(&request.pid)?;
        let worker = worker_of(&request.worker)?;
        let until_us = lease_until(request.lease_us, moment.now_us)?;
        let state = kernel.processes.get(pid)?.state();
        let is_holder = matches!(state, State::Running { worker: holder, .. } if *holder == worker);
        let of_steps = kernel.sessions.get_mut(&pid).and_then(|session| session.renew(&worker, until_us));
        let of_process = if is_holder { kernel.processes.set_holder(pid, &worker, until_us) } else { None };
        kernel.plan(pid);
        of_steps.into_iter().chain(of_process).min().ok_or_else(|| {
            Refusal::precondition(format!("The worker \"{worker}\" does not have the process {pid}."))
        })
    };

    v1::CreateInterruptRequest => CreateInterrupt -> v1::FlowInterrupt = |request, kernel, moment| {
        let pid = Pid::read(&request.pid)?;
        let question = Question {
            kind: request.kind(),
            message: request.message.clone(),
            data_json: request.data_json.clone(),
            run_id: request.run_id.clone(),
            ttl_us: request.ttl_us,
        };
        question.check()?;
        let state = kernel.processes.get(pid)?.state().kind();
        if !matches!(state, ProcessState::Running | ProcessState::Waiting) {
            return Err(illegal(pid, state, ProcessState::Waiting));
        }
        let id = kernel.ask(pid, None, question, moment)?;
        kernel.interrupts.get(id).cloned()
    };

    v1::ResolveInterruptRequest => ResolveInterrupt -> v1::FlowInterrupt = |request, kernel, moment| {
        let id = InterruptId::read(&request.interrupt_id)?;
        kernel.interrupts.check_response(id, request.response.as_ref())?;
        kernel.end_interrupt(id, InterruptStatus::Resolved, request.response.clone(), moment)?;
        kernel.interrupts.get(id).cloned()
    };

    v1::CancelInterruptRequest => CancelInterrupt -> v1::FlowInterrupt = |request, kernel, moment| {
        let id = InterruptId::read(&request.interrupt_id)?;
        let by = v1::InterruptResponse { value_json: String::new(), by: request.by.clone() };
        let response = (!request.by.is_empty()).then_some(by);
        kernel.end_interrupt(id, InterruptStatus::Cancelled, response, moment)?;
        kernel.interrupts.get(id).cloned()
    };

    v1::RegisterServiceRequest => RegisterService -> v1::ServiceInfo = |request, kernel, moment| {
        let service = request.service.clone().unwrap_or_default();
        registry::check(&service)?;
        check_name("name", &service.name)?;
        Ok(kernel.registry.register(service, moment.now_us).clone())
    };

    v1::UnregisterServiceRequest => UnregisterService -> () = |request, kernel, _moment| {
        kernel.registry.unregister(&request.name)
    };

    v1::UpdateHealthRequest => UpdateHealth -> v1::ServiceInfo = |request, kernel, moment| {
        kernel.registry.set_health(&request.name, request.status(), moment.now_us).cloned()
    };

    v1::InitializeSessionRequest => InitializeSession -> v1::SessionState = |request, kernel, moment| {
        let pid = Pid::read(&request.pid)?;
        kernel.processes.live(pid)?;
        if kernel.sessions.contains_key(&pid) {
            return Err(Refusal::exists(format!("The process {pid} has a session.")));
        }
        let new = Kernel::prepare_session(request, moment)?;
        kernel.start_session(pid, new, moment)?;
        kernel.session_message(pid)
    };

    v1::ExecutePipelineRequest => ExecutePipeline -> Pid = |request, kernel, moment| {
        let process = request.process.clone().unwrap_or_default();
        if let Some(pid) = kernel.processes.by_request(&process.request_id) {
            kernel.leave_unchanged();
            return Ok(pid);
        }
        let new = Kernel::prepare_session(
            &v1::InitializeSessionRequest {
                pid: String::new(),
                pipeline: request.pipeline.clone(),
                inputs_json: request.inputs_json.clone(),
                metadata: request.metadata.clone(),
            },
            moment,
        )?;
        kernel.submit(&process, Some(new), moment)
    };

    v1::GetNextInstructionRequest => TakeStep -> v1::Instruction = |request, kernel, moment| {
        kernel.next_instruction(request, moment)
    };

    log::RoutedResult => ReportResult -> v1::ReportAgentResultResponse = |routed, kernel, moment| {
        let accepted = kernel.report(routed, moment)?;
        let pid = Pid::read(routed.request.as_ref().map_or("", |request| request.pid.as_str()))?;
        let session = Some(kernel.session_message(pid)?);
        Ok(v1::ReportAgentResultResponse { accepted, session })
    };

    v1::TerminateSessionRequest => TerminateSession -> v1::SessionState = |request, kernel, moment| {
        let pid = Pid::read(&request.pid)?;
        kernel.session(pid)?;
        let ending = ending_of(request.reason, &request.message)?;
        kernel.terminate(pid, ending, moment)?;
        kernel.session_message(pid)
    };

    v1::CleanupSessionRequest => CleanupSession -> () = |request, kernel, _moment| {
        kernel.remove_session(Pid::read(&request.pid)?)
    };

    v1::CreateEnvelopeRequest => CreateEnvelope -> Envelope = |request, kernel, moment| {
        check_name("request_id", &request.request_id)?;
        check_name("user_id", &request.user_id)?;
        check_name("session_id", &request.session_id)?;
        check_json_members("inputs_json", &request.inputs_json)?;
        quotas::check_quota(&request.bounds.unwrap_or_default())?;
        let id = kernel.add_envelope(
            Envelope {
                request_id: request.request_id.clone(),
                user_id: request.user_id.clone(),
                session_id: request.session_id.clone(),
                inputs_json: request.inputs_json.clone(),
                metadata: request.metadata.clone(),
                bounds: Some(request.bounds.unwrap_or_default()),
                usage: Some(Usage::default()),
                created_us: moment.now_us,
                version: 1,
                ..Envelope::default()
            },
            moment,
        );
        kernel.envelope(&id)
    };

    v1::UpdateEnvelopeRequest => UpdateEnvelope -> Envelope = |request, kernel, _moment| {
        kernel.update_envelope(request)
    };

    v1::CloneEnvelopeRequest => CloneEnvelope -> Envelope = |request, kernel, moment| {
        let original = kernel.envelope(&request.envelope_id)?;
        let copy = Envelope {
            parent_envelope_id: original.envelope_id.clone(),
            created_us: moment.now_us,
            version: 1,
            ..original
        };
        let id = kernel.add_envelope(copy, moment);
        kernel.envelope(&id)
    };

    v1::CleanupRequest => Cleanup -> v1::CleanupResponse = |_request, kernel, moment| {
        if !kernel.is_due(moment.now_us) {
            kernel.leave_unchanged();
            return Ok(v1::CleanupResponse::default());
        }
        kernel.clean_up(moment)
    };

    log::WorkerTakes => WorkerTakes -> Option<v1::Instruction> = |request, kernel, moment| {
        kernel.take_for_service(request, moment)
    };

    log::WorkerEnds => WorkerEnds -> () = |request, kernel, moment| {
        kernel.release_worker(&request.worker, moment)
    };

    log::WorkerRenews => WorkerRenews -> () = |request, kernel, moment| {
        kernel.renew_worker(request, moment)
    };
}

fn reason_of(name: &str, reason: i32) -> Result<TerminalReason, Refusal> {
    TerminalReason::try_from(reason)
        .map_err(|_| Refusal::invalid(format!("{name} is none of the enumeration TerminalReason.")))
}

fn ending_of(reason: i32, message: &str) -> Result<Ending, Refusal> {
    let reason = match reason_of("reason", reason)? {
        TerminalReason::Unspecified => TerminalReason::Cancelled,
        reason => reason,
    };
    Ok(Ending {
        reason,
        message: message.to_owned(),
    })
}

impl Kernel {
    /// Creates and queues a process of a user whose rate limit admits it, with its session.
    fn submit(
        &mut self,
        request: &v1::CreateProcessRequest,
        session: Option<NewSession>,
        moment: Moment,
    ) -> Result<Pid, Refusal> {
        let new = self.prepare(request, moment)?;
        let user = request.user_id.as_str();
        if !user.is_empty() {
            self.admit(user, moment.now_us)?;
            self.rates.record(user, moment.now_us);
        }
        let pid = self.create(new, moment);
        self.shift(pid, State::Ready { turn: 0 }, moment)?;
        if let Some(session) = session {
            self.start_session(pid, session, moment)?;
        }
        Ok(pid)
    }

    fn update_envelope(&mut self, request: &v1::UpdateEnvelopeRequest) -> Result<Envelope, Refusal> {
        check_json_members("outputs_json", &request.outputs_json)?;
        let usage = request.usage.unwrap_or_default();
        quotas::check_usage(&usage)?;
        let id = EnvelopeId::read(&request.envelope_id)?;
        let unknown = || EnvelopeId::unknown(id);
        if let EnvelopeId::OfBranch(pid, _) = id {
            self.processes.live(pid)?;
            if usage != Usage::default() {
                return Err(Refusal::invalid(format!(
                    "The usage of {id} is that of its process: call RecordUsage."
                )));
            }
        }
        let envelope = match id {
            EnvelopeId::Free(number) => self.envelopes.get_mut(&number),
            EnvelopeId::OfBranch(pid, branch) => {
                let session = self.sessions.get_mut(&pid);
                session
                    .and_then(|session| session.branch_mut(branch))
                    .map(|branch| &mut branch.envelope)
            }
        };
        let envelope = envelope.ok_or_else(unknown)?;
        if envelope.version != request.version {
            return Err(Refusal::aborted(format!(
                "The envelope {id} has version {}, not {}: read it and try again.",
                envelope.version, request.version
            )));
        }
        envelope.version += 1;
        envelope.outputs_json.extend(request.outputs_json.clone());
        envelope.metadata.extend(request.metadata.clone());
        if !request.current_stage.is_empty() && matches!(id, EnvelopeId::Free(_)) {
            envelope.current_stage.clone_from(&request.current_stage);
        }
        if usage != Usage::default() {
            quotas::add(envelope.usage.get_or_insert_default(), &usage);
        }
        self.envelope(&request.envelope_id)
    }
}
