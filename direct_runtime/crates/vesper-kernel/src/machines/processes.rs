//! Life cycle of processes: states, legal transitions and the queue of those that are ready.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::ids::{InterruptId, Pid};
use crate::proto::v1::{self, Priority, ProcessState, Quota, TerminalReason, Usage};
use crate::refusal::Refusal;

/// The state of a process with what belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    New,
    /// Its place in the queue.
    Ready {
        turn: u64,
    },
    /// Without a lease it runs until a client says otherwise.
    Running {
        worker: Arc<str>,
        lease_until_us: Option<i64>,
    },
    Waiting,
    Blocked,
    Terminated(End),
    Zombie(End),
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    pub at_us: i64,
    pub reason: TerminalReason,
    pub message: Box<str>,
}

impl State {
    pub fn kind(&self) -> ProcessState {
        match self {
            Self::New => ProcessState::New,
            Self::Ready { .. } => ProcessState::Ready,
            Self::Running { .. } => ProcessState::Running,
            Self::Waiting => ProcessState::Waiting,
            Self::Blocked => ProcessState::Blocked,
            Self::Terminated(_) => ProcessState::Terminated,
            Self::Zombie(_) => ProcessState::Zombie,
        }
    }

    pub fn end(&self) -> Option<&End> {
        match self {
            Self::Terminated(end) | Self::Zombie(end) => Some(end),
            _ => None,
        }
    }
}

/// Returns the states that may follow.
pub fn successors(state: ProcessState) -> &'static [ProcessState] {
    use ProcessState::{Blocked, New, Ready, Running, Terminated, Unspecified, Waiting, Zombie};
    match state {
        Ready => &[Running, Terminated],
        Running => &[Ready, Waiting, Blocked, Terminated],
        New | Waiting | Blocked => &[Ready, Terminated],
        Terminated => &[Zombie],
        Zombie | Unspecified => &[],
    }
}

/// Returns the name of a state as users read it.
pub fn state_name(state: ProcessState) -> &'static str {
    match state {
        ProcessState::Unspecified => "unspecified",
        ProcessState::New => "new",
        ProcessState::Ready => "ready",
        ProcessState::Running => "running",
        ProcessState::Waiting => "waiting",
        ProcessState::Blocked => "blocked",
        ProcessState::Terminated => "terminated",
        ProcessState::Zombie => "zombie",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub request_id: Arc<str>,
    pub user_id: Box<str>,
    pub session_id: Box<str>,
    pub parent: Option<Pid>,
    pub priority: Priority,
    pub quota: Arc<Quota>,
    pub usage: Usage,
    pub created_us: i64,
    pub started_us: Option<i64>,
    pub changed_us: i64,
    state: State,
}

impl Process {
    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn is_ended(&self) -> bool {
        self.state.end().is_some()
    }

    /// Returns the control block. `pending` is the first question that it waits for.
    pub fn message(&self, pid: Pid, pending: Option<InterruptId>) -> v1::Process {
        let (worker, lease_until_us) = match &self.state {
            State::Running {
                worker,
                lease_until_us,
            } => (worker.to_string(), *lease_until_us),
            _ => (String::new(), None),
        };
        let end = self.state.end();
        v1::Process {
            pid: pid.to_string(),
            request_id: self.request_id.to_string(),
            user_id: self.user_id.to_string(),
            session_id: self.session_id.to_string(),
            parent_pid: self.parent.map(|parent| parent.to_string()).unwrap_or_default(),
            state: self.state.kind().into(),
            priority: self.priority.into(),
            quota: Some(*self.quota),
            usage: Some(self.usage),
            created_us: self.created_us,
            started_us: self.started_us,
            changed_us: self.changed_us,
            ended_us: end.map(|end| end.at_us),
            terminal_reason: end.map_or(TerminalReason::Unspecified, |end| end.reason).into(),
            terminal_message: end.map(|end| end.message.to_string()).unwrap_or_default(),
            worker,
            lease_until_us,
            pending_interrupt_id: pending.map(|id| id.to_string()).unwrap_or_default(),
        }
    }
}

/// A process that is to be created.
#[derive(Debug)]
pub struct NewProcess {
    pub request_id: Arc<str>,
    pub user_id: Box<str>,
    pub session_id: Box<str>,
    pub parent: Option<Pid>,
    pub priority: Priority,
    pub quota: Arc<Quota>,
}

/// All processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Processes {
    /// In boxes: the nodes of a tree that grows at its end are half empty.
    all: BTreeMap<Pid, Box<Process>>,
    requests: HashMap<Arc<str>, Pid>,
    /// Priority, turn and process of those that are ready.
    ready: BTreeSet<(i32, u64, Pid)>,
    zombies: BTreeSet<Pid>,
    turns: u64,
    counts: BTreeMap<&'static str, i64>,
}

impl Processes {
    pub fn get(&self, pid: Pid) -> Result<&Process, Refusal> {
        let found = self.all.get(&pid).map(|process| &**process);
        found.ok_or_else(|| Pid::unknown(pid))
    }

    /// Returns a process that has not ended.
    pub fn live(&self, pid: Pid) -> Result<&Process, Refusal> {
        let process = self.get(pid)?;
        if process.is_ended() {
            return Err(Refusal::precondition(format!("The process {pid} has ended.")));
        }
        Ok(process)
    }

    pub fn by_request(&self, request_id: &str) -> Option<Pid> {
        self.requests.get(request_id).copied()
    }

    /// Returns the processes after `after`, oldest first.
    pub fn after(&self, after: Option<Pid>) -> impl Iterator<Item = (Pid, &Process)> {
        let from = after.map_or(0, |pid| pid.0.saturating_add(1));
        self.all
            .range(Pid(from)..)
            .map(|(pid, process)| (*pid, &**process))
    }

    /// Returns the number of processes by state.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, i64)> {
        self.counts
            .iter()
            .map(|(name, count)| (*name, *count))
            .filter(|(_, count)| *count > 0)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the next process to run.
    pub fn next_runnable(&self) -> Option<Pid> {
        self.ready.first().map(|(_, _, pid)| *pid)
    }

    /// Returns the ready processes in the order of their turns.
    pub fn ready_by_turn(&self) -> Vec<Pid> {
        let mut rows: Vec<(u64, Pid)> = self.ready.iter().map(|(_, turn, pid)| (*turn, *pid)).collect();
        rows.sort_unstable();
        rows.into_iter().map(|(_, pid)| pid).collect()
    }

    pub fn zombies(&self) -> Vec<Pid> {
        self.zombies.iter().copied().collect()
    }

    /// Adds a process in state New. The name of its request is free.
    pub fn create(&mut self, pid: Pid, new: NewProcess, now_us: i64) {
        let process = Process {
            request_id: Arc::clone(&new.request_id),
            user_id: new.user_id,
            session_id: new.session_id,
            parent: new.parent,
            priority: new.priority,
            quota: new.quota,
            usage: Usage::default(),
            created_us: now_us,
            started_us: None,
            changed_us: now_us,
            state: State::New,
        };
        self.insert(pid, process);
    }

    /// Adds a process as it was.
    pub fn insert(&mut self, pid: Pid, process: Process) {
        self.requests.insert(Arc::clone(&process.request_id), pid);
        self.count(process.state.kind(), 1);
        if matches!(process.state, State::Zombie(_)) {
            self.zombies.insert(pid);
        }
        self.all.insert(pid, Box::new(process));
    }

    /// Reads a control block. Ready processes are new, until `enqueue` gives them their turns again.
    pub fn restored(block: &v1::Process) -> Option<(Pid, Process)> {
        let end = || {
            Some(End {
                at_us: block.ended_us?,
                reason: block.terminal_reason(),
                message: block.terminal_message.as_str().into(),
            })
        };
        let state = match block.state() {
            ProcessState::Unspecified => return None,
            ProcessState::New | ProcessState::Ready => State::New,
            ProcessState::Running => State::Running {
                worker: block.worker.as_str().into(),
                lease_until_us: block.lease_until_us,
            },
            ProcessState::Waiting => State::Waiting,
            ProcessState::Blocked => State::Blocked,
            ProcessState::Terminated => State::Terminated(end()?),
            ProcessState::Zombie => State::Zombie(end()?),
        };
        let parent = match block.parent_pid.as_str() {
            "" => None,
            text => Some(Pid::read(text).ok()?),
        };
        let process = Process {
            request_id: block.request_id.as_str().into(),
            user_id: block.user_id.as_str().into(),
            session_id: block.session_id.as_str().into(),
            parent,
            priority: block.priority(),
            quota: Arc::new(block.quota?),
            usage: block.usage?,
            created_us: block.created_us,
            started_us: block.started_us,
            changed_us: block.changed_us,
            state,
        };
        Some((Pid::read(&block.pid).ok()?, process))
    }

    /// Gives a restored process its turn.
    pub fn enqueue(&mut self, pid: Pid) -> Result<(), Refusal> {
        let changed_us = self.get(pid)?.changed_us;
        self.change(pid, State::Ready { turn: 0 }, changed_us).map(drop)
    }

    /// Changes the state where the transition is legal, and returns the state before it.
    pub fn change(&mut self, pid: Pid, state: State, now_us: i64) -> Result<ProcessState, Refusal> {
        let process = self.all.get_mut(&pid).ok_or_else(|| Pid::unknown(pid))?;
        let (old, new) = (process.state.kind(), state.kind());
        if !successors(old).contains(&new) {
            return Err(illegal(pid, old, new));
        }
        if let State::Ready { turn } = process.state {
            self.ready.remove(&(process.priority.into(), turn, pid));
        }
        process.changed_us = now_us;
        process.state = match state {
            State::Ready { .. } => {
                self.turns += 1;
                self.ready.insert((process.priority.into(), self.turns, pid));
                State::Ready { turn: self.turns }
            }
            State::Running { .. } => {
                process.started_us = process.started_us.or(Some(now_us));
                state
            }
            State::Zombie(_) => {
                self.zombies.insert(pid);
                state
            }
            _ => state,
        };
        self.count(old, -1);
        self.count(new, 1);
        Ok(old)
    }

    /// Gives a running process to another worker, or prolongs its lease.
    /// Returns when the lease ends.
    pub fn set_holder(&mut self, pid: Pid, holder: &Arc<str>, until_us: i64) -> Option<i64> {
        let running = self.all.get_mut(&pid).map(|process| &mut process.state);
        let Some(State::Running {
            worker,
            lease_until_us,
        }) = running
        else {
            return None;
        };
        *worker = Arc::clone(holder);
        *lease_until_us = Some(lease_until_us.map_or(until_us, |before| before.max(until_us)));
        *lease_until_us
    }

    pub fn add_usage(&mut self, pid: Pid, more: &Usage) {
        if let Some(process) = self.all.get_mut(&pid) {
            super::quotas::add(&mut process.usage, more);
        }
    }

    pub fn remove(&mut self, pid: Pid) {
        let Some(process) = self.all.remove(&pid) else {
            return;
        };
        self.requests.remove(&process.request_id);
        self.zombies.remove(&pid);
        self.count(process.state.kind(), -1);
        if let State::Ready { turn } = process.state {
            self.ready.remove(&(process.priority.into(), turn, pid));
        }
    }

    fn count(&mut self, state: ProcessState, by: i64) {
        *self.counts.entry(state_name(state)).or_default() += by;
    }
}

pub fn illegal(pid: Pid, old: ProcessState, new: ProcessState) -> Refusal {
    let legal: Vec<&str> = successors(old).iter().map(|each| state_name(*each)).collect();
    let legal = if legal.is_empty() {
        "no state".to_owned()
    } else {
        legal.join(", ")
    };
    Refusal::precondition(format!(
        "The process {pid} is {}, which {} may not follow; {legal} may.",
        state_name(old),
        state_name(new),
    ))
}
