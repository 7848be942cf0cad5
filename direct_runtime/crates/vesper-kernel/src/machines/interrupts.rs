//! Questions to people: pending, then resolved, expired or cancelled.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{InterruptId, Pid, StepId};
use crate::proto::v1::{FlowInterrupt, InterruptKind, InterruptResponse, InterruptStatus};
use crate::refusal::Refusal;
use crate::settings::{HOUR_US, MINUTE_US};

/// Longest time to live of an interrupt: ten years.
const MAX_TTL_US: i64 = 10 * 366 * 24 * HOUR_US;

/// What a kind of interrupt promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptConfig {
    pub default_ttl_us: Option<i64>,
    pub auto_expire: bool,
    pub require_response: bool,
}

impl InterruptConfig {
    /// Returns the configuration of a kind; None for none.
    pub fn of(kind: InterruptKind) -> Option<Self> {
        let (ttl_us, require_response) = match kind {
            InterruptKind::Unspecified => return None,
            InterruptKind::Clarification => (Some(24 * HOUR_US), true),
            InterruptKind::Confirmation => (Some(HOUR_US), true),
            InterruptKind::AgentReview => (Some(30 * MINUTE_US), true),
            InterruptKind::Checkpoint => (None, false),
            InterruptKind::ResourceExhausted | InterruptKind::Timeout => (Some(5 * MINUTE_US), false),
            InterruptKind::SystemError => (Some(HOUR_US), false),
        };
        Some(Self {
            default_ttl_us: ttl_us,
            auto_expire: ttl_us.is_some(),
            require_response,
        })
    }
}

/// A question that is to be asked.
#[derive(Clone, Debug)]
pub struct Question {
    pub kind: InterruptKind,
    pub message: String,
    pub data_json: String,
    pub run_id: String,
    pub ttl_us: Option<i64>,
}

impl Question {
    /// Returns the configuration of its kind, or why the question is not one.
    pub fn check(&self) -> Result<InterruptConfig, Refusal> {
        let config = InterruptConfig::of(self.kind).ok_or_else(|| {
            Refusal::invalid("Give the interrupt a kind, such as INTERRUPT_KIND_CONFIRMATION.")
        })?;
        if self.ttl_us.is_some() && !config.auto_expire {
            return Err(Refusal::invalid(format!(
                "An interrupt of kind {} never expires: leave ttl_us out.",
                self.kind.as_str_name()
            )));
        }
        if self
            .ttl_us
            .is_some_and(|ttl_us| !(1..=MAX_TTL_US).contains(&ttl_us))
        {
            return Err(Refusal::invalid("ttl_us is not between 1 and ten years."));
        }
        super::sessions::check_json("data_json", &self.data_json, true)?;
        Ok(config)
    }
}

/// All interrupts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interrupts {
    all: BTreeMap<InterruptId, FlowInterrupt>,
    by_process: BTreeSet<(Pid, InterruptId)>,
    pending: BTreeSet<(Pid, InterruptId)>,
}

impl Interrupts {
    /// Asks a question that was checked.
    pub fn create(
        &mut self,
        id: InterruptId,
        pid: Pid,
        step: Option<(StepId, &str)>,
        question: Question,
        now_us: i64,
    ) -> &FlowInterrupt {
        let config = InterruptConfig::of(question.kind);
        let ttl_us = question.ttl_us.or_else(|| config?.default_ttl_us);
        let interrupt = FlowInterrupt {
            interrupt_id: id.to_string(),
            pid: pid.to_string(),
            kind: question.kind.into(),
            status: InterruptStatus::Pending.into(),
            message: question.message,
            data_json: question.data_json,
            run_id: question.run_id,
            created_us: now_us,
            expires_us: ttl_us.map(|ttl_us| now_us.saturating_add(ttl_us)),
            ended_us: None,
            response: None,
            stage: step.map(|(_, stage)| stage.to_owned()).unwrap_or_default(),
            step_id: step.map(|(step, _)| step.to_string()).unwrap_or_default(),
        };
        self.insert(id, pid, interrupt)
    }

    /// Adds an interrupt as it was.
    pub fn insert(&mut self, id: InterruptId, pid: Pid, interrupt: FlowInterrupt) -> &FlowInterrupt {
        self.by_process.insert((pid, id));
        if interrupt.status() == InterruptStatus::Pending {
            self.pending.insert((pid, id));
        }
        self.all.entry(id).or_insert(interrupt)
    }

    pub fn get(&self, id: InterruptId) -> Result<&FlowInterrupt, Refusal> {
        self.all.get(&id).ok_or_else(|| InterruptId::unknown(id))
    }

    /// Returns an interrupt that can be answered and its process.
    pub fn pending(&self, id: InterruptId) -> Result<(Pid, &FlowInterrupt), Refusal> {
        let interrupt = self.get(id)?;
        let status = match interrupt.status() {
            InterruptStatus::Pending | InterruptStatus::Unspecified => {
                return Ok((Pid::read(&interrupt.pid)?, interrupt));
            }
            InterruptStatus::Resolved => "resolved",
            InterruptStatus::Expired => "expired",
            InterruptStatus::Cancelled => "cancelled",
        };
        Err(Refusal::precondition(format!(
            "The interrupt {id} is {status} already."
        )))
    }

    /// Refuses an answer that does not fit the kind.
    pub fn check_response(
        &self,
        id: InterruptId,
        response: Option<&InterruptResponse>,
    ) -> Result<(), Refusal> {
        let (_, interrupt) = self.pending(id)?;
        let is_required = InterruptConfig::of(interrupt.kind()).is_some_and(|config| config.require_response);
        match response {
            None if is_required => Err(Refusal::invalid(format!(
                "The interrupt {id} requires a response: set response.value_json."
            ))),
            None => Ok(()),
            Some(response) => {
                super::sessions::check_json("response.value_json", &response.value_json, !is_required)
            }
        }
    }

    /// Ends a pending interrupt.
    pub fn end(
        &mut self,
        id: InterruptId,
        status: InterruptStatus,
        response: Option<InterruptResponse>,
        now_us: i64,
    ) -> Result<&FlowInterrupt, Refusal> {
        let (pid, _) = self.pending(id)?;
        self.pending.remove(&(pid, id));
        let interrupt = self.all.get_mut(&id).ok_or_else(|| InterruptId::unknown(id))?;
        interrupt.set_status(status);
        interrupt.response = response;
        interrupt.ended_us = Some(now_us);
        Ok(interrupt)
    }

    /// Returns the first pending interrupt of a process.
    pub fn first_pending(&self, pid: Pid) -> Option<InterruptId> {
        let mut found = self
            .pending
            .range((pid, InterruptId(0))..=(pid, InterruptId(u64::MAX)));
        found.next().map(|(_, id)| *id)
    }

    pub fn has_pending(&self, pid: Pid) -> bool {
        self.first_pending(pid).is_some()
    }

    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Returns the interrupts of a process, or of all, after `after`, oldest first.
    pub fn list(
        &self,
        pid: Option<Pid>,
        after: Option<InterruptId>,
    ) -> Box<dyn Iterator<Item = &FlowInterrupt> + '_> {
        let from = InterruptId(after.map_or(0, |id| id.0.saturating_add(1)));
        match pid {
            None => Box::new(self.all.range(from..).map(|(_, interrupt)| interrupt)),
            Some(pid) => {
                let ids = self.by_process.range((pid, from)..=(pid, InterruptId(u64::MAX)));
                Box::new(ids.filter_map(|(_, id)| self.all.get(id)))
            }
        }
    }

    /// Removes all interrupts of a process.
    pub fn remove_process(&mut self, pid: Pid) {
        let ids: Vec<_> = self
            .by_process
            .range((pid, InterruptId(0))..=(pid, InterruptId(u64::MAX)))
            .copied()
            .collect();
        for row in ids {
            self.all.remove(&row.1);
            self.by_process.remove(&row);
            self.pending.remove(&row);
        }
    }
}
