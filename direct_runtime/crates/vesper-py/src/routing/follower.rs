//! The follower thread: it compares executions on copies, without the global lock.
//!
//! Callers never wait for it. Results that Python has to inspect wait until the next drain, which also supervises the
//! thread: one that hangs in native code is abandoned.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use vesper_interp::guard::guarded;
use vesper_interp::words::{Ended, OwnedWords, Words};
use vesper_interp::{FingerprintKey, Limits, Outcome, Path, PathedForm};
use vesper_ir::Value;

use crate::calls::program::Program;
use crate::routing::agreements::{Agreements, Demand, Findings, lock};
use crate::routing::inflight_counters::Flight;
use crate::routing::output_comparison::{are_same, are_words, bytes_of};

/// One in this many agreements is run again, to check that the engine is deterministic.
const RECHECK_INTERVAL: u64 = 50;
/// One in this many agreements is selected for inspection by Python.
const INSPECTION_INTERVAL: u64 = 200;
/// Maximum number of agreements that wait for Python.
const MAX_HANDED: usize = 64;
/// Fuel of a frameless run, which does not read the clock. Longer runs have a frame.
const MAX_FRAMELESS_FUEL: u64 = 65_536;
/// Poll interval of the thread. A caller that woke it would pay for a system call, on a busy machine its time slice.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Polls without a job after which the thread sleeps until it is woken.
const MAX_IDLE_POLLS: u32 = 50;
/// Deadlines after which a run is abandoned. An execution runs at most twice; half as much again is for the machine.
const HANG_FACTOR: u32 = 3;
/// Maximum time that counts between two checks of the thread: the process may have been stopped meanwhile.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of used jobs that are kept for their memory.
const MAX_SPARES: usize = 256;
const MAX_SPARE_BYTES: usize = 4_096;

/// The inputs of an execution.
pub(crate) enum JobInputs {
    Values(Vec<Value>),
    Words(OwnedWords),
}

/// One execution of generated Python that returned.
pub(crate) struct Job {
    pub(crate) inputs: JobInputs,
    /// Its start time, if the node uses it.
    pub(crate) now: Option<Value>,
    pub(crate) outputs: Vec<Value>,
    /// Its nanoseconds, if measured.
    pub(crate) python: Option<u64>,
    pub(crate) key: FingerprintKey,
}

impl Job {
    fn bytes(&self) -> usize {
        let inputs = match &self.inputs {
            JobInputs::Values(values) => bytes_of(values),
            JobInputs::Words(words) => words.bytes(),
        };
        inputs + bytes_of(&self.outputs) + size_of::<Self>()
    }

    /// Returns the inputs as values in an empty frame of the pathed form.
    pub(crate) fn values(&self, program: &vesper_interp::Program) -> Option<Vec<Value>> {
        match &self.inputs {
            JobInputs::Values(values) => {
                let mut frame = program.new_pathed_frame();
                frame.extend_from_slice(values);
                Some(frame)
            }
            JobInputs::Words(words) => words.values(program.node(), program.new_pathed_frame()),
        }
    }
}

/// An execution that Python has to inspect.
pub(crate) struct HandedRun {
    pub(crate) job: Arc<Job>,
    /// True for an agreement selected for inspection.
    pub(crate) is_chosen: bool,
    /// The engine fault, if there was one.
    pub(crate) fault: Option<String>,
}

/// Bytes queued in all follower threads of this process.
static QUEUED_BYTES: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<Job>>,
    /// Used jobs, whose memory the next ones take.
    spares: Vec<Arc<Job>>,
    /// The job that the thread runs.
    current: Option<Arc<Job>>,
    /// Number of jobs started so far.
    started: u64,
    /// Number of the thread. An abandoned one has another number and ends when it returns.
    thread: u64,
    is_running: bool,
    /// True if the thread does not poll and has to be woken.
    is_asleep: bool,
    is_closed: bool,
    watch: HangWatch,
}

/// The supervision of the current job.
#[derive(Default)]
struct HangWatch {
    /// Number of the job at the last check.
    job: u64,
    checked: Option<Instant>,
    waited: Duration,
}

#[derive(Default)]
struct FollowerState {
    agreements: Agreements,
    handed: Vec<HandedRun>,
    /// Number of agreements.
    count: u64,
    /// Number of threads abandoned since the last drain.
    abandoned: u64,
}

/// The findings of one drain.
#[derive(Default)]
pub(crate) struct Drained {
    pub(crate) findings: Findings,
    pub(crate) handed: Vec<HandedRun>,
    pub(crate) abandoned: u64,
}

pub(crate) struct Follower {
    program: Py<Program>,
    flight: Py<Flight>,
    /// Requests a drain.
    hurry: Py<PyAny>,
    limits: Limits,
    hang_limit: Duration,
    max_bytes: usize,
    keeps: bool,
    queue: Mutex<Queue>,
    /// Signals a new job, or an empty queue.
    changed: Condvar,
    found: Mutex<FollowerState>,
}

/// Result of running the direct engine on a job.
enum DirectRun {
    Same(Path, u64),
    /// Another outcome, or other outputs.
    Otherwise,
    Fault(String),
}

impl Follower {
    pub(crate) fn new(
        program: Py<Program>,
        flight: Py<Flight>,
        hurry: Py<PyAny>,
        deadline: Duration,
        max_bytes: usize,
        keeps: bool,
    ) -> Self {
        Self {
            program,
            flight,
            hurry,
            limits: Limits {
                time: Some(deadline),
                ..Limits::default()
            },
            hang_limit: deadline.saturating_mul(HANG_FACTOR),
            max_bytes,
            keeps,
            queue: Mutex::default(),
            changed: Condvar::new(),
            found: Mutex::default(),
        }
    }

    /// Returns a used job, if there is one that no other thread holds.
    #[inline]
    pub(crate) fn take_spare(&self) -> Option<Arc<Job>> {
        lock(&self.queue).spares.pop()
    }

    /// Queues a job. If the queue is full or closed, or no thread can be started, the comparison counts as lost.
    #[inline]
    pub(crate) fn put(self: &Arc<Self>, job: Arc<Job>) {
        let bytes = job.bytes();
        let waits = QUEUED_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let mut queue = lock(&self.queue);
        let is_taken = waits <= self.max_bytes
            && !queue.is_closed
            && (queue.is_running || self.start_thread(&mut queue));
        if !is_taken {
            drop(queue);
            QUEUED_BYTES.fetch_sub(bytes, Ordering::Relaxed);
            self.lose(1);
            return;
        }
        queue.jobs.push_back(job);
        if queue.is_asleep {
            queue.is_asleep = false;
            self.changed.notify_all();
        }
    }

    /// Returns false if the system has no more threads; the next job tries again.
    #[cold]
    fn start_thread(self: &Arc<Self>, queue: &mut Queue) -> bool {
        let (own, thread) = (Arc::clone(self), queue.thread);
        let started = std::thread::Builder::new()
            .name("vesper-follower".to_owned())
            .spawn(move || own.work(thread));
        queue.is_running = started.is_ok();
        queue.is_asleep = false;
        queue.is_running
    }

    /// Counts admitted comparisons without a result.
    pub(crate) fn lose(&self, count: u64) {
        lock(&self.found).agreements.findings.lost += count;
    }

    /// Takes the findings, and abandons a thread that hangs.
    pub(crate) fn drain(&self) -> Drained {
        self.check_thread();
        let mut found = lock(&self.found);
        let handed = std::mem::take(&mut found.handed);
        let bytes: usize = handed.iter().map(|each| each.job.bytes()).sum();
        QUEUED_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        Drained {
            findings: found.agreements.take(),
            handed,
            abandoned: std::mem::take(&mut found.abandoned),
        }
    }

    /// Keeps a drained execution for the next drain.
    pub(crate) fn hand_back(&self, handed: HandedRun) {
        QUEUED_BYTES.fetch_add(handed.job.bytes(), Ordering::Relaxed);
        lock(&self.found).handed.push(handed);
    }

    /// Abandons the thread if it runs the same job for too long. Its job is an engine fault, queued jobs are lost.
    fn check_thread(&self) {
        let mut queue = lock(&self.queue);
        let (now, job) = (Instant::now(), queue.started);
        let Some(current) = queue.current.clone() else {
            queue.watch = HangWatch::default();
            return;
        };
        let since = queue.watch.checked.filter(|_| queue.watch.job == job);
        let passed = since.map_or(Duration::ZERO, |since| now.duration_since(since));
        let before = since.map_or(Duration::ZERO, |_| queue.watch.waited);
        let waited = before + passed.min(MAX_CHECK_INTERVAL);
        queue.watch = HangWatch {
            job,
            checked: Some(now),
            waited,
        };
        if waited < self.hang_limit {
            return;
        }
        queue.thread += 1;
        queue.is_running = false;
        queue.current = None;
        self.changed.notify_all();
        drop(queue);
        self.lose(self.take_jobs());
        let mut found = lock(&self.found);
        found.abandoned += 1;
        found.handed.push(HandedRun {
            job: current,
            is_chosen: false,
            fault: Some(format!(
                "it did not return within {} s",
                self.hang_limit.as_secs_f64()
            )),
        });
    }

    /// Removes all queued jobs and returns their number.
    fn take_jobs(&self) -> u64 {
        let jobs = std::mem::take(&mut lock(&self.queue).jobs);
        let bytes: usize = jobs.iter().map(|job| job.bytes()).sum();
        QUEUED_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        jobs.len() as u64
    }

    /// Waits until the queue is empty; returns false on a timeout.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let queue = lock(&self.queue);
        self.changed.notify_all();
        let is_at_work = |queue: &mut Queue| queue.current.is_some() || !queue.jobs.is_empty();
        let waited = self.changed.wait_timeout_while(queue, limit, is_at_work);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Stops following; queued jobs count as lost.
    pub(crate) fn close(&self) {
        lock(&self.queue).is_closed = true;
        self.changed.notify_all();
        self.lose(self.take_jobs());
    }

    fn work(&self, thread: u64) {
        let mut room = None;
        let mut used = None;
        while let Some(job) = self.next(thread, used.take()) {
            self.follow(thread, &job, &mut room);
            used = Some(job);
        }
    }

    /// Returns the next job; `None` if the thread has to end. Keeps the used one for its memory.
    fn next(&self, thread: u64, used: Option<Arc<Job>>) -> Option<Arc<Job>> {
        let mut queue = lock(&self.queue);
        if queue.thread != thread {
            return None;
        }
        let mut idle_polls = 0;
        queue.current = None;
        if let Some(used) = used
            && queue.spares.len() < MAX_SPARES
            && Arc::strong_count(&used) == 1
            && matches!(used.inputs, JobInputs::Words(_))
            && used.bytes() <= MAX_SPARE_BYTES
        {
            queue.spares.push(used);
        }
        loop {
            if queue.thread != thread {
                return None;
            }
            if let Some(job) = queue.jobs.pop_front() {
                queue.current = Some(Arc::clone(&job));
                queue.started += 1;
                return Some(job);
            }
            self.changed.notify_all();
            if queue.is_closed {
                queue.is_running = false;
                return None;
            }
            idle_polls += 1;
            queue.is_asleep = idle_polls > MAX_IDLE_POLLS;
            queue = if queue.is_asleep {
                self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
            } else {
                let waited = self.changed.wait_timeout(queue, POLL_INTERVAL);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }

    fn follow(&self, thread: u64, job: &Arc<Job>, room: &mut Option<Words<'static>>) {
        let begun = Instant::now();
        let ran = self.run(|| self.run_shortest(job, room));
        let took = nanoseconds(begun);
        let (mut agreed, mut fault) = (None, None);
        match ran {
            DirectRun::Same(path, fingerprint)
                if !fingerprint.is_multiple_of(RECHECK_INTERVAL)
                    || self.is_same_again(job, &path, fingerprint) =>
            {
                agreed = Some((path, fingerprint));
            }
            DirectRun::Same(..) | DirectRun::Otherwise => {}
            DirectRun::Fault(what) => fault = Some(what),
        }
        let spent = nanoseconds(begun);
        // An abandoned thread reports nothing: its job is a fault already.
        if lock(&self.queue).thread != thread {
            return;
        }
        let mut found = lock(&self.found);
        found.agreements.cost(spent, 1);
        let is_agreement = agreed.is_some();
        let mut is_chosen = false;
        if let Some((path, fingerprint)) = agreed {
            found.count += 1;
            let is_full = found.handed.len() >= MAX_HANDED;
            is_chosen = !is_full && mix_count(fingerprint, found.count).is_multiple_of(INSPECTION_INTERVAL);
            let demand = if is_full {
                Demand::None
            } else {
                Demand::Wanted { keeps: self.keeps }
            };
            if !is_chosen && found.agreements.agree(&path, fingerprint, demand) {
                if job.python.is_some() {
                    found.agreements.time(job.python, Some(took));
                }
                QUEUED_BYTES.fetch_sub(job.bytes(), Ordering::Relaxed);
                return;
            }
        }
        let is_first = found.handed.is_empty();
        found.handed.push(HandedRun {
            job: Arc::clone(job),
            is_chosen,
            fault,
        });
        drop(found);
        if is_first && !is_agreement {
            self.request_drain();
        }
    }

    /// Lets Python take over a possible difference soon. No lock of this module is held, because a thread with the
    /// lock of Python may wait for it.
    #[cold]
    fn request_drain(&self) {
        Python::try_attach(|py| {
            if let Err(error) = self.hurry.call0(py) {
                error.write_unraisable(py, None);
            }
        });
    }

    /// Counts a run as in flight and catches every panic.
    fn run(&self, does: impl FnOnce() -> DirectRun) -> DirectRun {
        self.flight.get().enter_shared();
        let ran = guarded(does).unwrap_or_else(DirectRun::Fault);
        self.flight.get().leave_shared();
        ran
    }

    /// Runs without a frame if possible, in the form that answers in `direct_only`.
    fn run_shortest(&self, job: &Job, room: &mut Option<Words<'static>>) -> DirectRun {
        let form = self.program.get().compiled().pathed_form();
        if let (JobInputs::Words(words), Some(form)) = (&job.inputs, form)
            && let Some(ran) = run_frameless(form, words, job, room)
        {
            return ran;
        }
        self.run_framed(job)
    }

    fn run_framed(&self, job: &Job) -> DirectRun {
        let program = self.program.get().compiled();
        let Some(inputs) = job.values(program) else {
            return DirectRun::Fault("the words of the inputs are no values".to_owned());
        };
        let ran = program.run_pathed(inputs, job.now.clone(), self.limits, &job.key);
        match ran.outcome {
            Outcome::Returned(values) if are_same(&values, &job.outputs) => {
                DirectRun::Same(ran.path, ran.fingerprint)
            }
            Outcome::Fault(what) => DirectRun::Fault(what.to_owned()),
            _ => DirectRun::Otherwise,
        }
    }

    /// Returns true if a second run, with a frame, has the same result. It also checks that the tiers agree.
    fn is_same_again(&self, job: &Job, path: &Path, fingerprint: u64) -> bool {
        let again = self.run(|| self.run_framed(job));
        matches!(again, DirectRun::Same(its_path, its) if its_path == *path && its == fingerprint)
    }
}

/// Returns `None` if machine code is missing, rests or gives up.
fn run_frameless(
    form: &PathedForm,
    inputs: &OwnedWords,
    job: &Job,
    room: &mut Option<Words<'static>>,
) -> Option<DirectRun> {
    let express = form.express()?;
    let spare = room.take().unwrap_or_else(|| Words::new(express.shape()));
    let mut words = inputs.load(spare);
    let ended = express.run(&mut words, MAX_FRAMELESS_FUEL);
    let ran = if ended == Ended::Done {
        compare_words(form, &words, job)
    } else {
        None
    };
    if ended != Ended::TooLong {
        form.expressed(ran.is_some());
    }
    *room = Some(words.again());
    ran
}

fn compare_words(form: &PathedForm, words: &Words<'_>, job: &Job) -> Option<DirectRun> {
    let path = words.path();
    let fingerprint = form.fingerprint_of(words, &path, &job.key)?;
    Some(if are_words(words, &job.outputs)? {
        DirectRun::Same(path, fingerprint)
    } else {
        DirectRun::Otherwise
    })
}

/// Resets the byte count in the child of a fork, where nothing is queued.
pub(crate) fn after_fork() {
    QUEUED_BYTES.store(0, Ordering::Relaxed);
}

/// Returns a random number for one of several executions with the same fingerprint.
fn mix_count(fingerprint: u64, count: u64) -> u64 {
    let mix_count = (fingerprint ^ count.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mix_count ^ (mix_count >> 29)
}

pub(crate) fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
