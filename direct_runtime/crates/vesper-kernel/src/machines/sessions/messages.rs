//! Sessions as messages: for clients, and in snapshots of the log.

use std::sync::Arc;

use super::{Branch, BranchState, ROOT, Session};
use crate::ids::{InterruptId, Pid, StepId};
use crate::machines::pipeline::Pipeline;
use crate::proto::log::v1 as log;
use crate::proto::v1::{SessionState, StepState};

impl Session {
    /// Returns the state for clients, without envelope, reason and message.
    pub fn message(&self) -> SessionState {
        let is_open = |branch: &&Branch| !matches!(branch.state, BranchState::Joined | BranchState::Forked);
        let step = |branch: &Branch| {
            let (worker, lease_until_us) = match &branch.state {
                BranchState::Leased { worker, until_us } => (worker.to_string(), Some(*until_us)),
                _ => (String::new(), None),
            };
            let asks = branch.interrupt.filter(|_| branch.state == BranchState::Asking);
            StepState {
                step_id: StepId {
                    pid: self.pid,
                    number: branch.step,
                }
                .to_string(),
                stage: branch.stage.clone(),
                worker,
                lease_until_us,
                interrupt_id: asks.map(|id| id.to_string()).unwrap_or_default(),
            }
        };
        SessionState {
            pid: self.pid.to_string(),
            pipeline_name: self.pipeline.config().name.clone(),
            edge_traversals: self.edges.clone(),
            terminated: self.is_ended(),
            steps: self.branches.values().filter(is_open).map(step).collect(),
            created_us: self.created_us,
            last_activity_us: self.last_activity_us,
            ..SessionState::default()
        }
    }

    /// Returns everything of the session, for a snapshot.
    pub fn snapshot(&self) -> log::SessionSnapshot {
        log::SessionSnapshot {
            pid: self.pid.to_string(),
            pipeline: Some(self.pipeline.config().clone()),
            branches: self
                .branches()
                .map(|(number, branch)| branch.snapshot(number))
                .collect(),
            edge_traversals: self.edges.clone(),
            created_us: self.created_us,
            last_activity_us: self.last_activity_us,
            steps: i64::try_from(self.steps).unwrap_or(i64::MAX),
            final_envelope: self.final_envelope.clone(),
            last_branch: self.last_branch.cast_signed(),
        }
    }

    /// Reads a snapshot. Pipelines that many sessions share are the caller's.
    pub fn restored(pid: Pid, snapshot: log::SessionSnapshot, pipeline: Arc<Pipeline>) -> Option<Self> {
        let branches = snapshot.branches.into_iter().map(Branch::restored);
        Some(Self {
            pid,
            pipeline,
            branches: branches.collect::<Option<_>>()?,
            edges: snapshot.edge_traversals,
            steps: u64::try_from(snapshot.steps).ok()?,
            last_branch: u64::try_from(snapshot.last_branch)
                .ok()
                .filter(|last| *last >= ROOT)?,
            created_us: snapshot.created_us,
            last_activity_us: snapshot.last_activity_us,
            final_envelope: snapshot.final_envelope,
        })
    }
}

impl Branch {
    fn snapshot(&self, number: u64) -> log::Branch {
        let (state, worker, lease_until_us) = match &self.state {
            BranchState::Ready => (log::BranchState::Ready, "", 0),
            BranchState::Leased { worker, until_us } => (log::BranchState::Leased, &**worker, *until_us),
            BranchState::Asking => (log::BranchState::Asking, "", 0),
            BranchState::Joined => (log::BranchState::Joined, "", 0),
            BranchState::Forked => (log::BranchState::Forked, "", 0),
        };
        log::Branch {
            branch: number.cast_signed(),
            parent: self.parent.unwrap_or(0).cast_signed(),
            envelope: Some(self.envelope.clone()),
            state: state.into(),
            stage: self.stage.clone(),
            step: self.step.cast_signed(),
            worker: worker.to_owned(),
            lease_until_us,
            started_us: self.started_us.unwrap_or(0),
            interrupt_id: self.interrupt.map(|id| id.to_string()).unwrap_or_default(),
        }
    }

    fn restored(row: log::Branch) -> Option<(u64, Self)> {
        let state = match row.state() {
            log::BranchState::Unspecified => return None,
            log::BranchState::Ready => BranchState::Ready,
            log::BranchState::Leased => BranchState::Leased {
                worker: row.worker.into(),
                until_us: row.lease_until_us,
            },
            log::BranchState::Asking => BranchState::Asking,
            log::BranchState::Joined => BranchState::Joined,
            log::BranchState::Forked => BranchState::Forked,
        };
        let interrupt = match row.interrupt_id.as_str() {
            "" => None,
            text => Some(InterruptId::read(text).ok()?),
        };
        let branch = Self {
            parent: Some(row.parent.cast_unsigned()).filter(|parent| *parent > 0),
            envelope: row.envelope?,
            stage: row.stage,
            step: row.step.cast_unsigned(),
            state,
            started_us: Some(row.started_us).filter(|at_us| *at_us != 0),
            interrupt,
        };
        Some((row.branch.cast_unsigned(), branch))
    }
}
