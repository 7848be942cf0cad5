//! The one thread that owns the state. Requests come by a channel; what came together is committed together.

mod figures;
mod reply;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{oneshot, watch};

use crate::counts::Counts;
use crate::hub::Hub;
use crate::kernel::{Command, Event, Kernel, Moment, replay};
use crate::log::{Entry, Log, LogError};
use crate::proto::log::v1 as log;
use crate::proto::v1::{
    AgentExecutionResult, CleanupRequest, ReportAgentResultRequest, ReportAgentResultResponse,
    agent_execution_result,
};
use crate::refusal::Refusal;
use crate::routing::Conditions;
use crate::settings::Settings;

pub use reply::Reply;

/// How late a deadline may be noticed on an idle kernel.
const TICK: Duration = Duration::from_millis(50);
/// Requests of one commit.
const MAX_BATCH: usize = 4_096;
/// Requests that wait for the writer; more are refused.
const MAX_WAITING: usize = 65_536;
/// Time between two attempts to read a log that failed or that another kernel writes.
const RETRY: Duration = Duration::from_millis(200);
/// How often an idle kernel asks whether it still is the writer.
const CONFIRM: Duration = Duration::from_secs(1);
/// Changes between two snapshots.
const SNAPSHOT_CHANGES: u64 = 100_000;

type Job = Box<dyn FnOnce(&mut Core) + Send>;
/// An answer that leaves after the commit; false where the commit failed.
type Answer = Box<dyn FnOnce(bool) + Send>;

enum Input {
    Job(Job),
    Stop,
}

/// The state with its log. Only the writer's thread has it.
pub struct Core {
    settings: Settings,
    pub kernel: Kernel,
    pub hub: Hub,
    conditions: Conditions,
    log: Box<dyn Log>,
    /// The number of the last change.
    sequence: u64,
    snapshot: u64,
    last_us: i64,
    started: Instant,
    changes: Vec<log::Change>,
    /// When the first of these changes was made.
    oldest: Option<Instant>,
    counts: Counts,
    answers: Vec<Answer>,
    /// Why the log failed; until it is read again, everything is refused.
    fault: Option<LogError>,
    /// When the log was read or confirmed last.
    confirmed: Instant,
    serving: watch::Sender<bool>,
    is_draining: bool,
}

impl fmt::Debug for Core {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Core")
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

impl Core {
    /// Reads the log and rebuilds the state.
    fn open(settings: Settings, log: Box<dyn Log>) -> Result<Self, LogError> {
        let mut core = Self {
            kernel: Kernel::new(settings.clone()),
            settings,
            hub: Hub::default(),
            conditions: Conditions::default(),
            log,
            sequence: 0,
            snapshot: 0,
            last_us: 0,
            started: Instant::now(),
            changes: Vec::new(),
            oldest: None,
            counts: Counts::default(),
            answers: Vec::new(),
            fault: None,
            confirmed: Instant::now(),
            serving: watch::Sender::new(true),
            is_draining: false,
        };
        match core.rebuild() {
            Err(held @ LogError::HeldByOther(_)) => core.fail(held),
            done => done?,
        }
        Ok(core)
    }

    fn rebuild(&mut self) -> Result<(), LogError> {
        let mut kernel = Kernel::new(self.settings.clone());
        let (mut sequence, mut snapshot, mut last_us) = (0, 0, 0);
        self.log.read(&mut |entry| match entry {
            Entry::Part(at, part) => {
                (sequence, snapshot) = (at, at);
                let damaged =
                    || LogError::Failed(format!("The snapshot {at} of the kernel's log is damaged."));
                kernel.restore(*part).ok_or_else(damaged)
            }
            Entry::Change(at, change) => {
                if at != sequence + 1 {
                    return Err(LogError::Failed(format!(
                        "The kernel's log lacks the change {}.",
                        sequence + 1
                    )));
                }
                (sequence, last_us) = (at, change.at_us);
                let moment = Moment {
                    sequence: at,
                    now_us: change.at_us,
                };
                let unknown = || {
                    LogError::Failed(format!(
                        "This kernel does not know the change {at} of its log: use a newer one."
                    ))
                };
                let change = change.change.as_ref().ok_or_else(unknown)?;
                replay(&mut kernel, change, moment).map_err(|refusal| {
                    LogError::Failed(format!(
                        "The change {at} of the kernel's log cannot be applied: {refusal}"
                    ))
                })
            }
        })?;
        self.hub.keep(kernel.take_events(), snapshot);
        (self.kernel, self.sequence, self.snapshot) = (kernel, sequence, snapshot);
        self.last_us = self.last_us.max(last_us);
        self.fault = None;
        self.serving
            .send_if_modified(|is_serving| !std::mem::replace(is_serving, true));
        Ok(())
    }

    fn fail(&mut self, fault: LogError) {
        self.fault = Some(fault);
        self.serving
            .send_if_modified(|is_serving| std::mem::replace(is_serving, false));
    }

    /// Returns why everything is refused, if so.
    fn refusal(&self) -> Option<Refusal> {
        self.fault.as_ref().map(|fault| {
            Refusal::unavailable(match fault {
                LogError::HeldByOther(text) => format!("This kernel stands by: {text}"),
                LogError::Failed(text) => format!("The log of the kernel failed: {text}"),
            })
        })
    }

    /// Reads the log again after a failure, or asks whether this kernel still writes it.
    fn keep_log(&mut self) {
        let patience = if self.fault.is_some() { RETRY } else { CONFIRM };
        if self.confirmed.elapsed() < patience {
            return;
        }
        let done = if self.fault.is_some() {
            self.rebuild()
        } else {
            self.log.confirm()
        };
        self.confirmed = Instant::now();
        if let Err(fault) = done {
            self.fail(fault);
        }
    }

    /// Returns the time: that of the system, which never goes back here.
    pub fn now_us(&mut self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_us = self
            .last_us
            .max(i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
        self.last_us
    }

    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the number of the last change.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    pub fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Performs a command; its change becomes durable before any answer leaves.
    pub fn perform<C: Command>(&mut self, command: C) -> Result<C::Answer, Refusal> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        let moment = Moment {
            sequence: self.sequence + 1,
            now_us: self.now_us(),
        };
        let (answer, change) = self.kernel.perform(command, moment)?;
        if let Some(change) = change {
            self.sequence += 1;
            self.oldest.get_or_insert_with(Instant::now);
            self.changes.push(change);
        }
        Ok(answer)
    }

    /// Selects the route of a reported result and records it.
    pub fn report(
        &mut self,
        request: ReportAgentResultRequest,
    ) -> Result<ReportAgentResultResponse, Refusal> {
        let selected = match self.kernel.reported_branch(&request)? {
            Some((pid, number)) => match request.result.as_ref() {
                Some(AgentExecutionResult {
                    outcome: Some(agent_execution_result::Outcome::OutputJson(output)),
                    ..
                }) => {
                    let conditions = &mut self.conditions;
                    let routed = self.kernel.with_output(pid, number, output);
                    routed.map_or(Ok(None), |(stage, envelope)| conditions.select(stage, &envelope))
                }
                _ => Ok(None),
            },
            None => Ok(None),
        };
        let (route, routing_error) = match selected {
            Ok(route) => (route, String::new()),
            Err(error) => (None, error),
        };
        self.perform(log::RoutedResult {
            request: Some(request),
            route,
            routing_error,
        })
    }

    /// Returns the conditions, which check pipelines.
    pub fn conditions(&mut self) -> &mut Conditions {
        &mut self.conditions
    }

    /// Lets an answer leave after the commit.
    pub fn answer_later(&mut self, answer: impl FnOnce(bool) + Send + 'static) {
        self.answers.push(Box::new(answer));
    }

    fn run(mut self, inputs: &Receiver<Input>, waiting: &AtomicUsize) {
        loop {
            self.keep_log();
            let mut input = match inputs.recv_timeout(TICK) {
                Ok(input) => Some(input),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let mut is_last = false;
            let mut count = 0;
            while let Some(next) = input.take() {
                match next {
                    Input::Stop => is_last = true,
                    Input::Job(job) => {
                        waiting.fetch_sub(1, Ordering::Relaxed);
                        job(&mut self);
                    }
                }
                count += 1;
                if count < MAX_BATCH && !is_last {
                    input = inputs.try_recv().ok();
                }
            }
            self.tend();
            self.commit();
            if is_last {
                break;
            }
        }
        self.hub.close();
        if self.fault.is_none() && self.sequence > self.snapshot && self.log.has_snapshots() {
            self.compact();
        }
    }

    /// Does what is due, and gives steps to workers with streams.
    fn tend(&mut self) {
        let now_us = self.now_us();
        if self.fault.is_none() && self.kernel.is_due(now_us) {
            // A refusal would say that the state is impossible; the next tick tries again.
            drop(self.perform(CleanupRequest {}));
        }
        crate::hub::assign_steps(self);
        if self.is_draining {
            self.end_idle_streams();
        }
        self.hub.expire(now_us);
        self.hub.move_messages();
    }

    fn commit(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        let oldest = self.oldest.take();
        let mut is_durable = self.fault.is_none();
        if let Some(first) = (self.sequence + 1).checked_sub(u64::try_from(changes.len()).unwrap_or(0))
            && !changes.is_empty()
            && let Err(fault) = self.log.append(first, &changes)
        {
            is_durable = false;
            self.fail(fault);
        }
        let events = self.kernel.take_events();
        if is_durable {
            if let Some(oldest) = oldest {
                self.counts.count_commit(changes.len(), oldest.elapsed());
            }
            self.counts.count_events(&events);
            self.hub.publish_events(events);
        }
        for answer in std::mem::take(&mut self.answers) {
            answer(is_durable);
        }
        if self.fault.is_some() {
            // Streams hold work of a state that is not in the log.
            self.hub.close();
        } else if self.log.has_snapshots() && self.sequence - self.snapshot >= SNAPSHOT_CHANGES {
            self.compact();
        }
    }

    fn compact(&mut self) {
        match self.log.compact(self.sequence, &self.kernel.snapshot()) {
            Ok(()) => self.snapshot = self.sequence,
            Err(fault) => self.fail(fault),
        }
    }
}

/// The way to the state, for any number of tasks.
#[derive(Clone, Debug)]
pub struct Writer {
    way: Arc<Way>,
}

#[derive(Debug)]
struct Way {
    inputs: Sender<Input>,
    waiting: Arc<AtomicUsize>,
    serving: watch::Receiver<bool>,
}

impl fmt::Debug for Input {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Job(_) => "Job",
            Self::Stop => "Stop",
        })
    }
}

/// The thread of a writer.
#[derive(Debug)]
pub struct WriterThread {
    inputs: Sender<Input>,
    thread: JoinHandle<()>,
}

impl WriterThread {
    /// Ends the thread after what has come, with a snapshot.
    pub fn stop(self) {
        // A thread that has ended takes no input.
        drop(self.inputs.send(Input::Stop));
        drop(self.thread.join());
    }
}

impl Writer {
    /// Rebuilds the state from the log, and starts the thread that owns it.
    pub fn start(settings: Settings, log: Box<dyn Log>) -> Result<(Self, WriterThread), LogError> {
        let core = Core::open(settings, log)?;
        let serving = core.serving.subscribe();
        let (inputs, received) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&waiting);
        let thread = thread::Builder::new()
            .name("vesper-kernel".to_owned())
            .spawn(move || core.run(&received, &own));
        let thread = thread
            .map_err(|error| LogError::Failed(format!("The thread of the kernel does not start: {error}")))?;
        let of_thread = inputs.clone();
        Ok((
            Self {
                way: Arc::new(Way {
                    inputs,
                    waiting,
                    serving,
                }),
            },
            WriterThread {
                inputs: of_thread,
                thread,
            },
        ))
    }

    /// Runs a job on the state, without an answer.
    pub fn tell(&self, job: impl FnOnce(&mut Core) + Send + 'static) -> Result<(), Refusal> {
        self.way.waiting.fetch_add(1, Ordering::Relaxed);
        let sent = self.way.inputs.send(Input::Job(Box::new(job)));
        sent.map_err(|_| Refusal::unavailable("The kernel has stopped."))
    }

    /// Runs a job that answers when it wants to, after the commit.
    pub async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Core, Reply<T>) + Send + 'static,
    ) -> Result<T, Refusal> {
        if self.way.waiting.load(Ordering::Relaxed) >= MAX_WAITING {
            return Err(Refusal::exhausted(format!(
                "{MAX_WAITING} requests wait for the kernel: try again later."
            )));
        }
        let (sender, receiver) = oneshot::channel();
        self.tell(move |core| match core.refusal() {
            Some(refusal) => Reply::to(sender).now(Err(refusal)),
            None => job(core, Reply::to(sender)),
        })?;
        receiver
            .await
            .unwrap_or_else(|_| Err(Refusal::unavailable("The kernel has stopped.")))
    }

    /// Runs a job on the state, and returns its answer after the commit of all that it saw.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Core) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.ask(|core, reply| {
            let answer = job(core);
            reply.later(core, answer);
        })
        .await
    }

    /// Performs a command.
    pub async fn change<C: Command + Send + 'static>(&self, command: C) -> Result<C::Answer, Refusal> {
        self.run(move |core| {
            if core.is_draining {
                return Err(Refusal::unavailable("The kernel is shutting down."));
            }
            core.perform(command)
        })
        .await
    }

    /// Returns whether this kernel writes its log, and follows that.
    pub fn serving(&self) -> watch::Receiver<bool> {
        self.way.serving.clone()
    }

    /// Refuses further commands, except results of work under way.
    pub fn drain(&self) {
        // A thread that has ended refuses everything.
        drop(self.tell(|core| core.is_draining = true));
    }
}

/// Returns the events that are for subscribers of the kernel.
pub fn kernel_events(events: Vec<Event>) -> impl Iterator<Item = Box<crate::proto::v1::KernelEvent>> {
    events.into_iter().filter_map(|event| match event {
        Event::Kernel(event) => Some(event),
        Event::Pipeline(_) => None,
    })
}
