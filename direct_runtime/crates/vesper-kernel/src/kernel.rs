//! The state of a kernel: the machines together. Every change has a number and a time, and is decided by them alone.

mod commands;
mod events;
mod instructions;
mod lifecycle;
mod queries;
mod snapshot;
mod tending;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ids::{InterruptId, Pid};
use crate::machines::interrupts::Interrupts;
use crate::machines::processes::Processes;
use crate::machines::rate_limits::RateLimits;
use crate::machines::registry::Registry;
use crate::machines::sessions::Session;
use crate::proto::log::v1 as log;
use crate::proto::v1::{Envelope, KernelEvent, PipelineEvent, Quota};
use crate::refusal::Refusal;
use crate::settings::Settings;

pub use commands::{Command, replay};
pub(crate) use lifecycle::worker_of;

/// Number and time of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub sequence: u64,
    pub now_us: i64,
}

/// What subscribers hear of a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Kernel(Box<KernelEvent>),
    Pipeline(Box<PipelineEvent>),
}

/// What has a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Interrupt(InterruptId),
    Process(Pid),
    Envelope(u64),
}

/// A step that a worker of the service can get: priority, process, branch.
type ReadyStep = (i32, Pid, u64);

#[derive(Debug)]
pub struct Kernel {
    settings: Settings,
    default_quota: Arc<Quota>,
    processes: Processes,
    rates: RateLimits,
    interrupts: Interrupts,
    registry: Registry,
    sessions: BTreeMap<Pid, Session>,
    /// Envelopes of no session.
    envelopes: BTreeMap<u64, Envelope>,

    // What follows is derived from the above.
    ready_steps: BTreeMap<String, BTreeSet<ReadyStep>>,
    indexed: BTreeMap<Pid, Vec<(String, ReadyStep)>>,
    /// The processes of which a worker has or had a step.
    held: BTreeMap<Arc<str>, BTreeSet<Pid>>,
    /// Deadlines; some were moved since.
    due: BTreeSet<(i64, Due)>,

    // The change that is being made.
    is_changed: bool,
    events: Vec<Event>,
}

impl Kernel {
    pub fn new(settings: Settings) -> Self {
        Self {
            default_quota: Arc::new(settings.default_quota),
            settings,
            processes: Processes::default(),
            rates: RateLimits::default(),
            interrupts: Interrupts::default(),
            registry: Registry::default(),
            sessions: BTreeMap::new(),
            envelopes: BTreeMap::new(),
            ready_steps: BTreeMap::new(),
            indexed: BTreeMap::new(),
            held: BTreeMap::new(),
            due: BTreeSet::new(),
            is_changed: false,
            events: Vec::new(),
        }
    }

    /// Performs a command, and returns its answer with the change for the log, if it changed anything.
    pub fn perform<C: Command>(
        &mut self,
        command: C,
        moment: Moment,
    ) -> Result<(C::Answer, Option<log::Change>), Refusal> {
        self.is_changed = true;
        let answer = command.perform(self, moment)?;
        let change = self.is_changed.then(|| log::Change {
            at_us: moment.now_us,
            change: Some(command.into_change()),
        });
        Ok((answer, change))
    }

    /// Returns the events of the changes since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Says that the command being performed changes nothing.
    fn leave_unchanged(&mut self) {
        self.is_changed = false;
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the services, whose load is of this process and not logged.
    pub fn registry_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }

    fn session(&self, pid: Pid) -> Result<&Session, Refusal> {
        self.processes.get(pid)?;
        let none = || {
            Refusal::precondition(format!(
                "The process {pid} has no session: call InitializeSession."
            ))
        };
        self.sessions.get(&pid).ok_or_else(none)
    }

    fn add_due(&mut self, at_us: Option<i64>, due: Due) {
        if let Some(at_us) = at_us {
            self.due.insert((at_us, due));
        }
    }
}
