//! The follower thread: it compares long executions on copies, without the global lock.
//!
//! Results that Python has to inspect wait until the next drain.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use vesper_interp::guard::guarded;
use vesper_interp::{FingerprintKey, Limits, Outcome, Path};
use vesper_ir::Value;

use crate::calls::program::Program;
use crate::routing::agreements::{Agreements, Demand, Findings, lock};
use crate::routing::inflight_counters::Flight;
use crate::routing::output_comparison::{are_same, bytes_of};
use crate::routing::route::{INSPECTION_INTERVAL, RECHECK_INTERVAL};

/// One execution of generated Python that returned.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) inputs: Vec<Value>,
    /// Its start time, if the node uses it.
    pub(crate) now: Option<Value>,
    pub(crate) outputs: Vec<Value>,
    /// Its nanoseconds, if measured.
    pub(crate) python: Option<u64>,
    pub(crate) key: FingerprintKey,
    bytes: usize,
}

impl Job {
    pub(crate) fn new(
        inputs: Vec<Value>,
        now: Option<Value>,
        outputs: Vec<Value>,
        python: Option<u64>,
        key: FingerprintKey,
    ) -> Self {
        let bytes = bytes_of(&inputs) + bytes_of(&outputs) + size_of::<Self>();
        Self {
            inputs,
            now,
            outputs,
            python,
            key,
            bytes,
        }
    }
}

/// An execution that Python has to inspect.
pub(crate) struct HandedRun {
    pub(crate) job: Job,
    /// True for an agreement selected for inspection.
    pub(crate) is_chosen: bool,
    /// The engine fault, if there was one.
    pub(crate) fault: Option<String>,
}

/// Number of queued jobs that wakes the thread. Fewer wait for the next drain, which comes several times a second.
/// Each wake-up costs the caller a system call, and on a busy machine its time slice.
const WAKE_THRESHOLD: usize = 16;

/// Bytes queued in all follower threads of this process.
static QUEUED_BYTES: AtomicUsize = AtomicUsize::new(0);

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    is_busy: bool,
    is_closed: bool,
}

#[derive(Default)]
struct FollowerState {
    agreements: Agreements,
    handed: Vec<HandedRun>,
    /// Number of agreements.
    count: u64,
}

pub(crate) struct Follower {
    program: Py<Program>,
    flight: Py<Flight>,
    limits: Limits,
    max_bytes: usize,
    keeps: bool,
    queue: Mutex<Queue>,
    /// Signals a new job, or an empty queue.
    changed: Condvar,
    found: Mutex<FollowerState>,
}

impl Follower {
    /// Starts the thread.
    pub(crate) fn start(
        program: Py<Program>,
        flight: Py<Flight>,
        deadline: Duration,
        max_bytes: usize,
        keeps: bool,
    ) -> std::io::Result<Arc<Self>> {
        let follower = Arc::new(Self {
            program,
            flight,
            limits: Limits {
                time: Some(deadline),
                ..Limits::default()
            },
            max_bytes,
            keeps,
            queue: Mutex::default(),
            changed: Condvar::new(),
            found: Mutex::default(),
        });
        let own = Arc::clone(&follower);
        std::thread::Builder::new()
            .name("vesper-follower".to_owned())
            .spawn(move || own.work())?;
        Ok(follower)
    }

    /// Queues a job. If the queue is full or closed, the comparison counts as lost.
    pub(crate) fn put(&self, job: Job) {
        let bytes = job.bytes;
        let waits = QUEUED_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let mut queue = lock(&self.queue);
        if waits > self.max_bytes || queue.is_closed {
            drop(queue);
            QUEUED_BYTES.fetch_sub(bytes, Ordering::Relaxed);
            lock(&self.found).agreements.findings.lost += 1;
            return;
        }
        queue.jobs.push_back(job);
        if queue.jobs.len() >= WAKE_THRESHOLD {
            self.changed.notify_all();
        }
    }

    /// Takes the findings.
    pub(crate) fn drain(&self) -> (Findings, Vec<HandedRun>) {
        self.changed.notify_all();
        let mut found = lock(&self.found);
        let handed = std::mem::take(&mut found.handed);
        let bytes: usize = handed.iter().map(|each| each.job.bytes).sum();
        QUEUED_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        (found.agreements.take(), handed)
    }

    /// Waits until the queue is empty; returns false on a timeout.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let queue = lock(&self.queue);
        self.changed.notify_all();
        let is_at_work = |queue: &mut Queue| queue.is_busy || !queue.jobs.is_empty();
        let waited = self.changed.wait_timeout_while(queue, limit, is_at_work);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Stops following; queued jobs count as lost.
    pub(crate) fn close(&self) {
        let left = {
            let mut queue = lock(&self.queue);
            queue.is_closed = true;
            self.changed.notify_all();
            std::mem::take(&mut queue.jobs)
        };
        let bytes: usize = left.iter().map(|job| job.bytes).sum();
        QUEUED_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        lock(&self.found).agreements.findings.lost += left.len() as u64;
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            self.follow(job);
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        queue.is_busy = false;
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                queue.is_busy = true;
                return Some(job);
            }
            self.changed.notify_all();
            if queue.is_closed {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn follow(&self, job: Job) {
        let begun = Instant::now();
        let kept = job.inputs.clone();
        let ran = self.run(job.inputs, job.now.clone(), &job.key);
        let took = nanoseconds(begun);
        let job = Job { inputs: kept, ..job };
        let mut fault = None;
        let mut agreed = None;
        match ran {
            Ok((Outcome::Returned(values), path, fingerprint)) if are_same(&values, &job.outputs) => {
                if !fingerprint.is_multiple_of(RECHECK_INTERVAL)
                    || self.is_same_again(&job, &path, fingerprint)
                {
                    agreed = Some((path, fingerprint));
                }
            }
            Ok((Outcome::Fault(what), ..)) => fault = Some(what.to_owned()),
            Ok(_) => {}
            Err(what) => fault = Some(what),
        }
        let spent = nanoseconds(begun);
        let mut found = lock(&self.found);
        found.agreements.cost(spent, 1);
        let mut is_chosen = false;
        if let Some((path, fingerprint)) = agreed {
            found.count += 1;
            is_chosen = mix_count(fingerprint, found.count).is_multiple_of(INSPECTION_INTERVAL);
            let demand = Demand::Wanted { keeps: self.keeps };
            if !is_chosen && found.agreements.agree(&path, fingerprint, demand) {
                found.agreements.time(job.python, Some(took));
                QUEUED_BYTES.fetch_sub(job.bytes, Ordering::Relaxed);
                return;
            }
        }
        found.handed.push(HandedRun {
            job,
            is_chosen,
            fault,
        });
    }

    fn run(
        &self,
        inputs: Vec<Value>,
        now: Option<Value>,
        key: &FingerprintKey,
    ) -> Result<(Outcome, Path, u64), String> {
        let program = self.program.get().compiled();
        self.flight.get().enter();
        let ran = guarded(|| {
            let ran = program.run_pathed(inputs, now, self.limits, key);
            (ran.outcome, ran.path, ran.fingerprint)
        });
        self.flight.get().leave();
        ran
    }

    /// Returns true if a second run has the same result.
    fn is_same_again(&self, job: &Job, path: &Path, fingerprint: u64) -> bool {
        let again = self.run(job.inputs.clone(), job.now.clone(), &job.key);
        again.is_ok_and(|(outcome, its_path, its_fingerprint)| {
            matches!(outcome, Outcome::Returned(values) if are_same(&values, &job.outputs))
                && its_path == *path
                && its_fingerprint == fingerprint
        })
    }
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
