//! Orchestration: which stages of a pipeline run next, in which branch.
//!
//! A session begins as one branch. A route with several targets forks it: each target gets a branch with a clone of the
//! envelope, and the branch itself waits. When all of them have come to the join or have ended, their outputs are
//! merged in the written order of the targets, and the branch continues with the join.

mod messages;
mod routes;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::ids::{InterruptId, Pid, StepId};
use crate::machines::pipeline::Pipeline;
use crate::proto::v1::{AgentConfig, Envelope, TerminalReason};
use crate::refusal::Refusal;

/// What a branch does.
#[derive(Clone, Debug, PartialEq)]
pub enum BranchState {
    /// Its step can be given to a worker.
    Ready,
    Leased {
        worker: Arc<str>,
        until_us: i64,
    },
    /// Its step waits for a person.
    Asking,
    /// It has come to the join of its parent.
    Joined,
    /// It waits for its own branches; its stage is their join.
    Forked,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    parent: Option<u64>,
    pub envelope: Envelope,
    pub stage: String,
    pub step: u64,
    pub state: BranchState,
    /// When its step was first given to a worker.
    pub started_us: Option<i64>,
    /// The question of its step.
    pub interrupt: Option<InterruptId>,
}

/// Why a session ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    pub reason: TerminalReason,
    pub message: String,
}

/// What a result led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Edges that were taken from one stage to another.
    pub hops: i64,
    /// Steps that were made.
    pub steps: i64,
    pub ending: Option<Ending>,
}

/// The pipeline of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    pid: Pid,
    pub pipeline: Arc<Pipeline>,
    branches: BTreeMap<u64, Branch>,
    edges: BTreeMap<String, i64>,
    steps: u64,
    /// The number of the last branch that was made: the ids of envelopes have it.
    last_branch: u64,
    pub created_us: i64,
    pub last_activity_us: i64,
    /// The envelope of an ended session.
    final_envelope: Option<Envelope>,
}

const ROOT: u64 = 1;

impl Session {
    /// Starts a pipeline with its first stage.
    pub fn start(pid: Pid, pipeline: Arc<Pipeline>, envelope: Envelope, now_us: i64) -> Self {
        let stage = pipeline.entry().to_owned();
        let root = Branch {
            parent: None,
            envelope,
            stage,
            step: 1,
            state: BranchState::Ready,
            started_us: None,
            interrupt: None,
        };
        Self {
            pid,
            pipeline,
            branches: BTreeMap::from([(ROOT, root)]),
            edges: BTreeMap::new(),
            steps: 1,
            last_branch: ROOT,
            created_us: now_us,
            last_activity_us: now_us,
            final_envelope: None,
        }
    }

    pub fn is_ended(&self) -> bool {
        self.final_envelope.is_some()
    }

    pub fn branches(&self) -> impl Iterator<Item = (u64, &Branch)> {
        self.branches.iter().map(|(number, branch)| (*number, branch))
    }

    pub fn branch(&self, number: u64) -> Option<&Branch> {
        self.branches.get(&number)
    }

    pub fn branch_mut(&mut self, number: u64) -> Option<&mut Branch> {
        self.branches.get_mut(&number)
    }

    /// Returns the envelope of the whole session.
    pub fn envelope(&self) -> Option<&Envelope> {
        let root = || self.branches.get(&ROOT).map(|root| &root.envelope);
        self.final_envelope.as_ref().or_else(root)
    }

    /// Returns the branch whose step this is; None where the step has ended.
    pub fn branch_of(&self, step: u64) -> Result<Option<u64>, Refusal> {
        if step == 0 || step > self.steps {
            let id = StepId {
                pid: self.pid,
                number: step,
            };
            return Err(Refusal::not_found(format!("There is no step \"{id}\".")));
        }
        let is_it = |branch: &Branch| {
            let is_open = !matches!(branch.state, BranchState::Joined | BranchState::Forked);
            branch.step == step && is_open
        };
        Ok(self
            .branches()
            .find(|(_, branch)| is_it(branch))
            .map(|(number, _)| number))
    }

    /// Returns the first branch whose step can be given to a worker.
    pub fn first_ready(&self) -> Option<u64> {
        self.branches()
            .find(|(_, branch)| branch.state == BranchState::Ready)
            .map(|(number, _)| number)
    }

    /// Returns true where a step is ready or with a worker.
    pub fn is_active(&self) -> bool {
        self.branches
            .values()
            .any(|branch| matches!(branch.state, BranchState::Ready | BranchState::Leased { .. }))
    }

    pub fn stage_of(&self, branch: &Branch) -> Option<&AgentConfig> {
        self.pipeline.stage(&branch.stage)
    }

    /// Gives the step of a branch to a worker.
    pub fn lease(&mut self, number: u64, worker: &Arc<str>, until_us: i64, now_us: i64) {
        self.last_activity_us = now_us;
        if let Some(branch) = self.branches.get_mut(&number) {
            branch.started_us = branch.started_us.or(Some(now_us));
            branch.state = BranchState::Leased {
                worker: Arc::clone(worker),
                until_us,
            };
        }
    }

    /// Prolongs what a worker has, and returns when the first of its leases ends.
    pub fn renew(&mut self, holder: &str, to_us: i64) -> Option<i64> {
        let mut first_us: Option<i64> = None;
        for branch in self.branches.values_mut() {
            if let BranchState::Leased { worker, until_us } = &mut branch.state
                && **worker == *holder
            {
                *until_us = to_us.max(*until_us);
                first_us = Some(first_us.map_or(*until_us, |before| before.min(*until_us)));
            }
        }
        first_us
    }

    /// Takes steps away from workers whose leases `is_over` selects, and returns their branches.
    pub fn release(&mut self, is_over: impl Fn(&str, i64) -> bool) -> Vec<u64> {
        let mut released = Vec::new();
        for (number, branch) in &mut self.branches {
            if let BranchState::Leased { worker, until_us } = &branch.state
                && is_over(worker, *until_us)
            {
                branch.state = BranchState::Ready;
                released.push(*number);
            }
        }
        released
    }

    /// Lets the step of a branch wait for a person.
    pub fn ask(&mut self, number: u64, interrupt: InterruptId, now_us: i64) {
        self.last_activity_us = now_us;
        if let Some(branch) = self.branches.get_mut(&number) {
            branch.state = BranchState::Asking;
            branch.interrupt = Some(interrupt);
        }
    }

    /// Makes the step that asked ready again, and returns its branch.
    pub fn answer(&mut self, interrupt: InterruptId, now_us: i64) -> Option<u64> {
        let is_it =
            |branch: &Branch| branch.state == BranchState::Asking && branch.interrupt == Some(interrupt);
        let (number, branch) = self.branches.iter_mut().find(|(_, branch)| is_it(branch))?;
        branch.state = BranchState::Ready;
        self.last_activity_us = now_us;
        Some(*number)
    }

    /// Ends the session, and keeps the envelope of the whole.
    pub fn end(&mut self, now_us: i64) {
        self.last_activity_us = now_us;
        let root = std::mem::take(&mut self.branches).remove(&ROOT);
        self.final_envelope = self
            .final_envelope
            .take()
            .or_else(|| root.map(|root| root.envelope));
    }
}

/// Refuses a text that is no JSON.
pub fn check_json(name: &str, text: &str, is_optional: bool) -> Result<(), Refusal> {
    if text.is_empty() && is_optional {
        return Ok(());
    }
    match serde_json::from_str::<&RawValue>(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(Refusal::invalid(format!("{name} is no JSON: {error}."))),
    }
}

/// Refuses a map with a value that is no JSON.
pub fn check_json_members(name: &str, members: &BTreeMap<String, String>) -> Result<(), Refusal> {
    members
        .iter()
        .try_for_each(|(key, text)| check_json(&format!("{name}[\"{key}\"]"), text, false))
}
