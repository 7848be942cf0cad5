//! Where results lead the branches of a session: edges, forks, joins, ends.

use std::collections::BTreeMap;

use super::{Branch, BranchState, Ending, Progress, Session};
use crate::ids::{EnvelopeId, StepId};
use crate::proto::v1::{Envelope, HistoryEntry, RoutingRule, TerminalReason};

impl Session {
    /// Records an output and follows the route at this place.
    pub fn succeed(
        &mut self,
        number: u64,
        output_json: String,
        route: Option<usize>,
        now_us: i64,
    ) -> Progress {
        let Some(stage) = self.record_output(number, output_json, now_us) else {
            return Progress::default();
        };
        let rule = route.and_then(|place| self.pipeline.stage(&stage)?.routes.get(place).cloned());
        let mut progress = Progress::default();
        self.follow(number, &stage, &rule.unwrap_or_default(), &mut progress);
        progress
    }

    /// Records an output, and returns its stage.
    pub fn record_output(&mut self, number: u64, output_json: String, now_us: i64) -> Option<String> {
        let stage = self.close_step(number, "", now_us)?;
        let branch = self.branches.get_mut(&number)?;
        branch.envelope.outputs_json.insert(stage.clone(), output_json);
        Some(stage)
    }

    /// Records a failure and goes to the stage for it, if there is one.
    pub fn fail(&mut self, number: u64, error: &str, now_us: i64) -> Progress {
        let mut progress = Progress::default();
        let Some(stage) = self.close_step(number, error, now_us) else {
            return progress;
        };
        let on_error = self
            .pipeline
            .stage(&stage)
            .map(|config| config.on_error.clone())
            .unwrap_or_default();
        if on_error.is_empty() {
            progress.ending = Some(Ending {
                reason: TerminalReason::AgentFailed,
                message: format!("The stage \"{stage}\" failed: {error}"),
            });
        } else {
            self.go(number, &stage, &on_error, &mut progress);
        }
        progress
    }

    fn close_step(&mut self, number: u64, error: &str, now_us: i64) -> Option<String> {
        self.last_activity_us = now_us;
        let branch = self.branches.get_mut(&number)?;
        let step = StepId {
            pid: self.pid,
            number: branch.step,
        };
        branch.envelope.version += 1;
        branch.envelope.history.push(HistoryEntry {
            stage: branch.stage.clone(),
            step_id: step.to_string(),
            started_us: branch.started_us.take().unwrap_or(now_us),
            ended_us: now_us,
            error: error.to_owned(),
        });
        branch.interrupt = None;
        Some(branch.stage.clone())
    }

    fn follow(&mut self, number: u64, from: &str, rule: &RoutingRule, progress: &mut Progress) {
        match rule.targets.as_slice() {
            [] => self.finish(number, progress),
            [target] => self.go(number, from, target, progress),
            targets => self.fork(number, from, targets, &rule.join, progress),
        }
    }

    fn fork(&mut self, number: u64, from: &str, targets: &[String], join: &str, progress: &mut Progress) {
        let first = self.last_branch + 1;
        let Some(parent) = self.branches.get_mut(&number) else {
            return;
        };
        parent.state = BranchState::Forked;
        join.clone_into(&mut parent.stage);
        let envelope = parent.envelope.clone();
        let children = first..=self.last_branch + u64::try_from(targets.len()).unwrap_or(0);
        self.last_branch = *children.end();
        for child in children.clone() {
            let own = Envelope {
                envelope_id: EnvelopeId::OfBranch(self.pid, child).to_string(),
                parent_envelope_id: envelope.envelope_id.clone(),
                version: 1,
                ..envelope.clone()
            };
            let branch = Branch {
                parent: Some(number),
                envelope: own,
                stage: from.to_owned(),
                step: 0,
                state: BranchState::Joined,
                started_us: None,
                interrupt: None,
            };
            self.branches.insert(child, branch);
        }
        for (child, target) in children.zip(targets) {
            self.take_edge(child, from, target, progress);
        }
        self.merge(number, progress);
    }

    fn go(&mut self, number: u64, from: &str, target: &str, progress: &mut Progress) {
        self.take_edge(number, from, target, progress);
        self.merge_parent(number, progress);
    }

    fn merge_parent(&mut self, number: u64, progress: &mut Progress) {
        let parent = self
            .branches
            .get(&number)
            .filter(|branch| branch.state == BranchState::Joined);
        if let Some(parent) = parent.and_then(|branch| branch.parent) {
            self.merge(parent, progress);
        }
    }

    fn take_edge(&mut self, number: u64, from: &str, target: &str, progress: &mut Progress) {
        let edge = format!("{from}->{target}");
        let taken = self.edges.get(&edge).copied().unwrap_or(0);
        if let Some(limit) = self.pipeline.limit(from, target).filter(|limit| taken >= *limit) {
            progress.ending.get_or_insert(Ending {
                reason: TerminalReason::EdgeLimitExceeded,
                message: format!("The edge {from}->{target} was taken {limit} times, its limit."),
            });
            return;
        }
        self.edges.insert(edge, taken + 1);
        progress.hops += 1;
        self.come_to(number, target, progress);
    }

    /// Begins a stage, or ends a branch where the stage is the join of its parent.
    fn come_to(&mut self, number: u64, stage: &str, progress: &mut Progress) {
        let parent = self.branches.get(&number).and_then(|branch| branch.parent);
        let join = parent
            .and_then(|parent| self.branches.get(&parent))
            .map(|parent| parent.stage.as_str());
        if join == Some(stage) {
            if let Some(branch) = self.branches.get_mut(&number) {
                branch.state = BranchState::Joined;
            }
        } else {
            self.enter(number, stage, progress);
        }
    }

    /// Ends a branch that has no route: the session, or what its parent waits for.
    fn finish(&mut self, number: u64, progress: &mut Progress) {
        let Some(branch) = self.branches.get_mut(&number) else {
            return;
        };
        if let Some(parent) = branch.parent {
            branch.state = BranchState::Joined;
            self.merge(parent, progress);
        } else {
            progress.ending = Some(Ending {
                reason: TerminalReason::Completed,
                message: String::new(),
            });
        }
    }

    /// Continues a branch whose own branches have all come to the join.
    fn merge(&mut self, number: u64, progress: &mut Progress) {
        let of_parent = |branch: &Branch| branch.parent == Some(number);
        let is_open = |branch: &Branch| of_parent(branch) && branch.state != BranchState::Joined;
        if progress.ending.is_some() || self.branches.values().any(is_open) {
            return;
        }
        let (children, others) = std::mem::take(&mut self.branches)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, branch)| of_parent(branch));
        self.branches = others;
        let Some(parent) = self.branches.get_mut(&number) else {
            return;
        };
        let before = parent.envelope.history.len();
        for child in children.into_values() {
            parent.envelope.outputs_json.extend(child.envelope.outputs_json);
            parent.envelope.metadata.extend(child.envelope.metadata);
            parent
                .envelope
                .history
                .extend(child.envelope.history.into_iter().skip(before));
        }
        parent.envelope.history.sort_by_key(|entry| entry.ended_us);
        parent.envelope.version += 1;
        let join = parent.stage.clone();
        self.come_to(number, &join, progress);
        self.merge_parent(number, progress);
    }

    fn enter(&mut self, number: u64, stage: &str, progress: &mut Progress) {
        self.steps += 1;
        progress.steps += 1;
        if let Some(branch) = self.branches.get_mut(&number) {
            stage.clone_into(&mut branch.stage);
            stage.clone_into(&mut branch.envelope.current_stage);
            branch.step = self.steps;
            branch.state = BranchState::Ready;
        }
    }
}
