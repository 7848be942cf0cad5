//! Snapshots: the state in parts, and the state that parts give.

use std::sync::Arc;

use super::{Due, Kernel};
use crate::ids::{EnvelopeId, InterruptId, Pid};
use crate::machines::pipeline::Pipeline;
use crate::machines::processes::Processes;
use crate::machines::sessions::{BranchState, Session};
use crate::proto::log::v1 as log;
use crate::proto::v1::InterruptStatus;

/// Entities in one part.
const PART_ENTITIES: usize = 1_000;

impl Kernel {
    /// Returns the whole state.
    pub fn snapshot(&self) -> Vec<log::SnapshotPart> {
        let mut parts = Vec::new();
        let part = log::SnapshotPart::default;
        let processes: Vec<_> = self
            .processes
            .after(None)
            .map(|(pid, process)| process.message(pid, None))
            .collect();
        for processes in processes.chunks(PART_ENTITIES) {
            parts.push(log::SnapshotPart {
                processes: processes.to_vec(),
                ..part()
            });
        }
        let ready: Vec<String> = self
            .processes
            .ready_by_turn()
            .iter()
            .map(ToString::to_string)
            .collect();
        parts.push(log::SnapshotPart {
            ready_pids: ready,
            ..part()
        });
        let interrupts: Vec<_> = self.interrupts.list(None, None).cloned().collect();
        for interrupts in interrupts.chunks(PART_ENTITIES) {
            parts.push(log::SnapshotPart {
                interrupts: interrupts.to_vec(),
                ..part()
            });
        }
        for session in self.sessions.values() {
            parts.push(log::SnapshotPart {
                sessions: vec![session.snapshot()],
                ..part()
            });
        }
        for envelope in self.envelopes.values() {
            parts.push(log::SnapshotPart {
                envelopes: vec![envelope.clone()],
                ..part()
            });
        }
        let rate_limits = self.rates.rows().map(|(user, at_us)| log::UserRequests {
            user_id: user.to_owned(),
            at_us,
        });
        parts.push(log::SnapshotPart {
            services: self.registry.list().cloned().collect(),
            rate_limits: rate_limits.collect(),
            ..part()
        });
        parts
    }

    /// Adds a part of a snapshot; None where it is damaged.
    pub fn restore(&mut self, part: log::SnapshotPart) -> Option<()> {
        for block in &part.processes {
            let (pid, mut process) = Processes::restored(block)?;
            if process.quota == self.default_quota {
                process.quota = Arc::clone(&self.default_quota);
            }
            self.processes.insert(pid, process);
            self.plan(pid);
        }
        for pid in &part.ready_pids {
            self.processes.enqueue(Pid::read(pid).ok()?).ok()?;
        }
        for interrupt in part.interrupts {
            let (id, pid) = (
                InterruptId::read(&interrupt.interrupt_id).ok()?,
                Pid::read(&interrupt.pid).ok()?,
            );
            if interrupt.status() == InterruptStatus::Pending {
                self.add_due(interrupt.expires_us, Due::Interrupt(id));
            }
            self.interrupts.insert(id, pid, interrupt);
        }
        for service in part.services {
            self.registry.restore(service);
        }
        for mut session in part.sessions {
            let pid = Pid::read(&session.pid).ok()?;
            let pipeline = Arc::new(Pipeline::new(session.pipeline.take()?).ok()?);
            let session = Session::restored(pid, session, pipeline)?;
            for (_, branch) in session.branches() {
                if let BranchState::Leased { worker, .. } = &branch.state {
                    self.held.entry(Arc::clone(worker)).or_default().insert(pid);
                }
            }
            self.sessions.insert(pid, session);
            self.index_steps(pid);
            self.plan(pid);
        }
        for envelope in part.envelopes {
            let EnvelopeId::Free(number) = EnvelopeId::read(&envelope.envelope_id).ok()? else {
                return None;
            };
            self.envelopes.insert(number, envelope);
            self.add_due(self.deadline_of_envelope(number), Due::Envelope(number));
        }
        for row in part.rate_limits {
            self.rates.restore(&row.user_id, &row.at_us);
        }
        Some(())
    }

    fn deadline_of_envelope(&self, number: u64) -> Option<i64> {
        let envelope = self.envelopes.get(&number)?;
        Some(envelope.created_us.saturating_add(self.settings.retention_us))
    }
}
