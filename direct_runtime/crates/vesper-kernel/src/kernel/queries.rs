//! Questions about the state, which change nothing.

use std::collections::BTreeMap;

use super::Kernel;
use crate::ids::{EnvelopeId, InterruptId, Pid};
use crate::machines::quotas;
use crate::machines::registry::type_name;
use crate::machines::sessions::Session;
use crate::proto::v1::{
    self, Envelope, InterruptKind, InterruptStatus, ProcessState, RemainingBudget, ServiceType,
};
use crate::refusal::Refusal;

const DEFAULT_PAGE: usize = 100;
const MAX_PAGE: usize = 1_000;
const MAX_USERS: usize = 1_000;

impl Kernel {
    pub fn process_message(&self, pid: Pid) -> Result<v1::Process, Refusal> {
        Ok(self
            .processes
            .get(pid)?
            .message(pid, self.interrupts.first_pending(pid)))
    }

    pub fn get_process(&self, request: &v1::GetProcessRequest) -> Result<v1::Process, Refusal> {
        self.process_message(Pid::read(&request.pid)?)
    }

    pub fn remaining(&self, pid: Pid, now_us: i64) -> Result<RemainingBudget, Refusal> {
        let process = self.processes.get(pid)?;
        Ok(quotas::remaining(
            &process.quota,
            &process.usage,
            process.created_us,
            now_us,
        ))
    }

    pub fn check_quota(&self, pid: &str, now_us: i64) -> Result<v1::CheckQuotaResponse, Refusal> {
        let pid = Pid::read(pid)?;
        let process = self.processes.get(pid)?;
        let exceeded = exceeded_of(&process.quota, &process.usage, process.created_us, now_us);
        Ok(v1::CheckQuotaResponse {
            within_quota: exceeded.is_empty(),
            exceeded,
            usage: Some(process.usage),
            remaining: Some(self.remaining(pid, now_us)?),
        })
    }

    pub fn list_processes(
        &self,
        request: &v1::ListProcessesRequest,
    ) -> Result<v1::ListProcessesResponse, Refusal> {
        let size = page_size(request.page_size)?;
        let after = token(&request.page_token, Pid::read)?;
        let state = ProcessState::try_from(request.state)
            .map_err(|_| Refusal::invalid("state is none of the enumeration ProcessState."))?;
        let mut found = self.processes.after(after).filter(|(_, process)| {
            (state == ProcessState::Unspecified || process.state().kind() == state)
                && (request.user_id.is_empty() || *process.user_id == *request.user_id)
                && (request.session_id.is_empty() || *process.session_id == *request.session_id)
        });
        let page: Vec<Pid> = found.by_ref().take(size).map(|(pid, _)| pid).collect();
        let next = found.next().and(page.last());
        Ok(v1::ListProcessesResponse {
            next_page_token: next.map(ToString::to_string).unwrap_or_default(),
            processes: page
                .into_iter()
                .map(|pid| self.process_message(pid))
                .collect::<Result<_, _>>()?,
        })
    }

    pub fn process_counts(&self) -> v1::GetProcessCountsResponse {
        let by_state: BTreeMap<String, i64> = self
            .processes
            .counts()
            .map(|(name, count)| (name.to_owned(), count))
            .collect();
        v1::GetProcessCountsResponse {
            total: by_state.values().sum(),
            by_state,
        }
    }

    pub fn get_interrupt(&self, id: &str) -> Result<v1::FlowInterrupt, Refusal> {
        self.interrupts.get(InterruptId::read(id)?).cloned()
    }

    pub fn list_interrupts(
        &self,
        request: &v1::ListInterruptsRequest,
    ) -> Result<v1::ListInterruptsResponse, Refusal> {
        let size = page_size(request.page_size)?;
        let after = token(&request.page_token, InterruptId::read)?;
        let pid = token(&request.pid, Pid::read)?;
        if let Some(pid) = pid {
            self.processes.get(pid)?;
        }
        let status = InterruptStatus::try_from(request.status)
            .map_err(|_| Refusal::invalid("status is none of the enumeration InterruptStatus."))?;
        let kind = InterruptKind::try_from(request.kind)
            .map_err(|_| Refusal::invalid("kind is none of the enumeration InterruptKind."))?;
        let mut found = self.interrupts.list(pid, after).filter(|interrupt| {
            (status == InterruptStatus::Unspecified || interrupt.status() == status)
                && (kind == InterruptKind::Unspecified || interrupt.kind() == kind)
        });
        let interrupts: Vec<v1::FlowInterrupt> = found.by_ref().take(size).cloned().collect();
        let next = found.next().and(interrupts.last());
        Ok(v1::ListInterruptsResponse {
            next_page_token: next.map(|last| last.interrupt_id.clone()).unwrap_or_default(),
            interrupts,
        })
    }

    pub fn list_services(
        &self,
        request: &v1::ListServicesRequest,
    ) -> Result<v1::ListServicesResponse, Refusal> {
        let of = ServiceType::try_from(request.r#type)
            .map_err(|_| Refusal::invalid("type is none of the enumeration ServiceType."))?;
        let is_of = |service: &&v1::ServiceInfo| of == ServiceType::Unspecified || service.r#type() == of;
        let services = self.registry.list().filter(is_of).cloned().collect();
        Ok(v1::ListServicesResponse { services })
    }

    pub fn session_state(&self, pid: &str) -> Result<v1::SessionState, Refusal> {
        self.session_message(Pid::read(pid)?)
    }

    /// Returns an envelope of its own, or that of a session or one of its branches.
    pub fn envelope(&self, id: &str) -> Result<Envelope, Refusal> {
        let read = EnvelopeId::read(id)?;
        let found = match read {
            EnvelopeId::Free(number) => self.envelopes.get(&number).cloned(),
            EnvelopeId::OfBranch(pid, branch) => {
                let session = self.sessions.get(&pid);
                let of_branch = session
                    .and_then(|session| session.branch(branch))
                    .map(|branch| &branch.envelope);
                let of_ended = || {
                    session
                        .and_then(Session::envelope)
                        .filter(|each| each.envelope_id == id)
                };
                of_branch
                    .or_else(of_ended)
                    .map(|envelope| self.with_usage(pid, envelope))
            }
        };
        found.ok_or_else(|| EnvelopeId::unknown(id))
    }

    pub fn check_bounds(&self, id: &str, now_us: i64) -> Result<v1::BoundsCheckResult, Refusal> {
        let envelope = self.envelope(id)?;
        let (bounds, usage) = (
            envelope.bounds.unwrap_or_default(),
            envelope.usage.unwrap_or_default(),
        );
        let exceeded = exceeded_of(&bounds, &usage, envelope.created_us, now_us);
        Ok(v1::BoundsCheckResult {
            within_bounds: exceeded.is_empty(),
            exceeded,
            remaining: Some(quotas::remaining(&bounds, &usage, envelope.created_us, now_us)),
        })
    }

    pub fn request_status(&self, pid: &str, now_us: i64) -> Result<v1::GetRequestStatusResponse, Refusal> {
        let pid = Pid::read(pid)?;
        let pending = self.interrupts.first_pending(pid);
        Ok(v1::GetRequestStatusResponse {
            process: Some(self.process_message(pid)?),
            envelope: self.session_envelope(pid),
            pending_interrupt: pending.and_then(|id| self.interrupts.get(id).ok().cloned()),
            remaining: Some(self.remaining(pid, now_us)?),
        })
    }

    pub fn pending_interrupts(&self) -> usize {
        self.interrupts.pending_count()
    }

    /// Returns the status of the machines. Uptime, sequence, bus and draining are the caller's.
    pub fn system_status(&self, now_us: i64) -> v1::GetSystemStatusResponse {
        let counts = self.process_counts();
        let mut service_counts = BTreeMap::new();
        for service in self.registry.list() {
            *service_counts
                .entry(type_name(service.r#type()).to_owned())
                .or_default() += 1;
        }
        let live = self
            .sessions
            .values()
            .filter(|session| !session.is_ended())
            .count();
        let users = self.rates.usages(now_us).take(MAX_USERS);
        v1::GetSystemStatusResponse {
            process_counts: counts.by_state,
            total_processes: counts.total,
            service_counts,
            pending_interrupts: i64::try_from(self.pending_interrupts()).unwrap_or(i64::MAX),
            live_sessions: i64::try_from(live).unwrap_or(i64::MAX),
            rate_limit_usage: users.map(|(user, usage)| (user.to_owned(), usage)).collect(),
            ..v1::GetSystemStatusResponse::default()
        }
    }
}

/// Returns the names of the counters above their limit, and of the time.
fn exceeded_of(quota: &v1::Quota, usage: &v1::Usage, created_us: i64, now_us: i64) -> Vec<String> {
    let is_late = quotas::deadline_us(quota, created_us).is_some_and(|deadline_us| deadline_us <= now_us);
    let counters = quotas::exceeded(quota, usage).into_iter();
    counters
        .chain(is_late.then_some("time"))
        .map(str::to_owned)
        .collect()
}

fn page_size(size: i32) -> Result<usize, Refusal> {
    match usize::try_from(size) {
        Ok(0) => Ok(DEFAULT_PAGE),
        Ok(size) if size <= MAX_PAGE => Ok(size),
        _ => Err(Refusal::invalid(format!(
            "page_size is not between 0 and {MAX_PAGE}."
        ))),
    }
}

/// Reads an identifier that may be left out.
fn token<T>(text: &str, read: impl Fn(&str) -> Result<T, Refusal>) -> Result<Option<T>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    read(text).map(Some)
}
