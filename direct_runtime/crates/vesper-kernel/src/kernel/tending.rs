//! What time does: leases end, interrupts expire, processes run out of time and are removed.

use std::collections::BTreeSet;

use super::{Due, Kernel, Moment};
use crate::ids::{EnvelopeId, Pid};
use crate::machines::processes::State;
use crate::machines::quotas;
use crate::machines::sessions::{BranchState, Ending};
use crate::proto::v1::{
    AgentExecutionResult, AgentFailure, CleanupResponse, InterruptStatus, TerminalReason, Usage,
    agent_execution_result,
};
use crate::refusal::Refusal;

impl Kernel {
    /// Returns true where a cleanup at `now_us` would change something.
    pub fn is_due(&mut self, now_us: i64) -> bool {
        while let Some((at_us, due)) = self.due.first().copied() {
            if at_us > now_us {
                return false;
            }
            let deadline_us = self.deadline_us(due);
            if deadline_us.is_some_and(|deadline_us| deadline_us <= now_us) {
                return true;
            }
            self.due.pop_first();
            self.add_due(deadline_us, due);
        }
        false
    }

    /// Notes the next deadline of a process.
    pub(super) fn plan(&mut self, pid: Pid) {
        let deadline_us = self.deadline_us(Due::Process(pid));
        self.add_due(deadline_us, Due::Process(pid));
    }

    fn deadline_us(&self, due: Due) -> Option<i64> {
        match due {
            Due::Interrupt(id) => {
                let interrupt = self.interrupts.get(id).ok()?;
                interrupt
                    .expires_us
                    .filter(|_| interrupt.status() == InterruptStatus::Pending)
            }
            Due::Envelope(number) => {
                let envelope = self.envelopes.get(&number)?;
                Some(envelope.created_us.saturating_add(self.settings.retention_us))
            }
            Due::Process(pid) => {
                let process = self.processes.get(pid).ok()?;
                let lease_us = match process.state() {
                    State::Terminated(end) => {
                        return Some(end.at_us.saturating_add(self.settings.retention_us));
                    }
                    State::Zombie(_) => return Some(process.changed_us),
                    State::Running { lease_until_us, .. } => *lease_until_us,
                    _ => None,
                };
                let times = [lease_us, quotas::deadline_us(&process.quota, process.created_us)];
                times
                    .into_iter()
                    .flatten()
                    .chain(self.step_deadlines(pid).map(|(at_us, ..)| at_us))
                    .min()
            }
        }
    }

    /// Returns the times at which leased steps end: time, branch, and whether its stage is out of time.
    fn step_deadlines(&self, pid: Pid) -> impl Iterator<Item = (i64, u64, bool)> {
        let session = self.sessions.get(&pid);
        session.into_iter().flat_map(|session| {
            session.branches().flat_map(move |(number, branch)| {
                let BranchState::Leased { until_us, .. } = branch.state else {
                    return [None, None].into_iter().flatten();
                };
                let timeout_us = session.stage_of(branch).and_then(|stage| stage.timeout_us);
                let end_us = timeout_us
                    .zip(branch.started_us)
                    .map(|(timeout, from)| from.saturating_add(timeout));
                let rows = [
                    Some((until_us, number, false)),
                    end_us.map(|at_us| (at_us, number, true)),
                ];
                rows.into_iter().flatten()
            })
        })
    }

    /// Does what is due.
    pub(super) fn clean_up(&mut self, moment: Moment) -> Result<CleanupResponse, Refusal> {
        let mut done = CleanupResponse::default();
        let mut now_due = BTreeSet::new();
        while let Some((at_us, due)) = self.due.first().copied() {
            if at_us > moment.now_us {
                break;
            }
            self.due.pop_first();
            match self.deadline_us(due) {
                Some(deadline_us) if deadline_us <= moment.now_us => {
                    now_due.insert((deadline_us, due));
                }
                later => self.add_due(later, due),
            }
        }
        for (_, due) in now_due {
            match due {
                Due::Interrupt(id) => {
                    // The end of another one may have ended its process.
                    if self.interrupts.pending(id).is_ok() {
                        self.end_interrupt(id, InterruptStatus::Expired, None, moment)?;
                        done.expired_interrupts += 1;
                    }
                }
                Due::Process(pid) => self.tend(pid, moment, &mut done)?,
                Due::Envelope(number) => {
                    self.envelopes.remove(&number);
                }
            }
        }
        self.rates.forget(moment.now_us);
        Ok(done)
    }

    fn tend(&mut self, pid: Pid, moment: Moment, done: &mut CleanupResponse) -> Result<(), Refusal> {
        let Ok(process) = self.processes.get(pid) else {
            return Ok(());
        };
        match process.state() {
            State::Zombie(_) => {
                self.remove(pid);
                done.removed_processes += 1;
                return Ok(());
            }
            State::Terminated(end) => {
                // One that this cleanup ended can be read until its own retention is over.
                if end.at_us.saturating_add(self.settings.retention_us) > moment.now_us {
                    return Ok(());
                }
                let end = end.clone();
                return self.shift(pid, State::Zombie(end), moment);
            }
            _ => {}
        }
        let deadline_us = quotas::deadline_us(&process.quota, process.created_us);
        if deadline_us.is_some_and(|deadline_us| deadline_us <= moment.now_us) {
            self.emit_exceeded(pid, "time", moment);
            done.timed_out_processes += 1;
            let ending = Ending {
                reason: TerminalReason::TimedOut,
                message: "The time of the quota is over.".to_owned(),
            };
            return self.terminate(pid, ending, moment);
        }
        let late = |(at_us, number, is_timeout): (i64, u64, bool)| {
            (is_timeout && at_us <= moment.now_us).then_some(number)
        };
        let overdue: Vec<u64> = self.step_deadlines(pid).filter_map(late).collect();
        for number in overdue {
            self.time_out(pid, number, moment)?;
        }
        if self.processes.get(pid)?.is_ended() {
            return Ok(());
        }
        if let Some(session) = self.sessions.get_mut(&pid) {
            session.release(|_, until_us| until_us <= moment.now_us);
        }
        let lease = match self.processes.get(pid)?.state() {
            State::Running { lease_until_us, .. } => *lease_until_us,
            _ => None,
        };
        if lease.is_some_and(|until_us| until_us <= moment.now_us) {
            done.returned_processes += 1;
            return self.shift(pid, State::Ready { turn: 0 }, moment);
        }
        self.settle(pid, moment)
    }

    fn time_out(&mut self, pid: Pid, number: u64, moment: Moment) -> Result<(), Refusal> {
        let message = "The stage is out of time.".to_owned();
        let failure = AgentFailure {
            code: "timeout".to_owned(),
            message,
        };
        let outcome = agent_execution_result::Outcome::Failure(failure);
        let result = AgentExecutionResult {
            outcome: Some(outcome),
            ..AgentExecutionResult::default()
        };
        // An earlier one may have ended the session.
        if self
            .sessions
            .get(&pid)
            .is_some_and(|session| session.branch(number).is_some())
        {
            self.conclude(pid, number, result, None, Usage::default(), moment)?;
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, pid: Pid) {
        self.sessions.remove(&pid);
        self.index_steps(pid);
        self.interrupts.remove_process(pid);
        self.processes.remove(pid);
    }

    /// Removes the envelopes of an ended session.
    pub(super) fn remove_session(&mut self, pid: Pid) -> Result<(), Refusal> {
        if !self.session(pid)?.is_ended() {
            return Err(Refusal::precondition(format!(
                "The session of {pid} has not ended: call TerminateSession first."
            )));
        }
        self.sessions.remove(&pid);
        Ok(())
    }

    /// Adds an envelope of no session.
    pub(super) fn add_envelope(&mut self, envelope: crate::proto::v1::Envelope, moment: Moment) -> String {
        let number = moment.sequence;
        let id = EnvelopeId::Free(number).to_string();
        self.envelopes.insert(
            number,
            crate::proto::v1::Envelope {
                envelope_id: id.clone(),
                ..envelope
            },
        );
        self.add_due(self.deadline_us(Due::Envelope(number)), Due::Envelope(number));
        id
    }
}
