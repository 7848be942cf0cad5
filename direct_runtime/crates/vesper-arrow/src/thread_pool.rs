//! Threads that run parts of a table ahead of the reader of the result.
//!
//! The reader processes a part while the next ones run, and no thread waits for another: each takes the next part of
//! the queue. The reader limits the lead by the number of parts it pushes (`pending`). For short parts it is woken
//! once for several, because on a fully used machine each wake-up interrupts a thread.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use arrow_array::RecordBatch;
use vesper_interp::Program;
use vesper_interp::guard::guarded;

use crate::part::{Part, PartError, RunTerms, Thread};
use crate::plan::Plan;

/// Duration of a part that wakes the reader at once. Waiting for more parts would be noticeable.
const SLOW_PART: Duration = Duration::from_millis(2);

/// Owner of the program that the threads run.
pub trait ProgramHolder: Send + Sync + 'static {
    fn program(&self) -> &Program;
}

/// The threads. Dropping the pool ends each after its current row.
#[derive(Debug)]
pub struct ThreadPool {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
    /// Process of the threads; a fork copies this value, but not the threads.
    process: u32,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<QueueState>,
    /// Signals a part to run, or the end.
    has_work: Condvar,
    /// Signals enough finished parts for the reader.
    has_results: Condvar,
    is_cancelled: AtomicBool,
}

#[derive(Debug, Default)]
struct QueueState {
    /// Parts not started yet, with their numbers.
    waiting: VecDeque<(u64, RecordBatch)>,
    /// All parts that were pushed and not taken, in order; `None` while unfinished.
    done: VecDeque<Option<FinishedPart>>,
    /// Number of the first entry of `done`.
    oldest: u64,
}

impl QueueState {
    /// Returns true if the reader should be woken after a part of this duration. Otherwise a later part wakes it;
    /// there is one while parts wait.
    fn is_worth_reading(&self, took: Duration) -> bool {
        let is_read_next = matches!(self.done.front(), Some(Some(_)));
        let ready = || self.done.iter().filter(|each| each.is_some()).count();
        is_read_next && (took >= SLOW_PART || self.waiting.is_empty() || ready() * 2 >= self.done.len())
    }
}

/// The result of a part, and its input columns. The reader drops these, because releasing memory of another library
/// may be unsupported on a thread unknown to it.
#[derive(Debug)]
struct FinishedPart {
    result: Result<Part, PartError>,
    _given: RecordBatch,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        // No code panics while holding the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next part to run; returns `None` at the end.
    fn next(&self) -> Option<(u64, RecordBatch)> {
        let mut state = self.state();
        loop {
            if self.is_cancelled.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(part) = state.waiting.pop_front() {
                return Some(part);
            }
            state = self.has_work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn put(&self, number: u64, ran: FinishedPart) {
        let took = ran.result.as_ref().map_or(SLOW_PART, |part| part.took);
        let mut state = self.state();
        let place = number
            .checked_sub(state.oldest)
            .and_then(|place| usize::try_from(place).ok());
        if let Some(place) = place.and_then(|place| state.done.get_mut(place)) {
            *place = Some(ran);
        }
        if state.is_worth_reading(took) {
            drop(state);
            self.has_results.notify_one();
        }
    }
}

impl ThreadPool {
    /// Starts `threads` threads, or as many as the system allows; returns `None` if it allows none.
    pub fn new(
        holder: &Arc<impl ProgramHolder>,
        plan: &Arc<Plan>,
        terms: &RunTerms,
        threads: NonZeroUsize,
    ) -> Option<Self> {
        let queue = Arc::<Queue>::default();
        let started = (0..threads.get()).map_while(|_| {
            let (queue, holder, plan) = (Arc::clone(&queue), Arc::clone(holder), Arc::clone(plan));
            let terms = terms.clone();
            let builder = Builder::new().name("vesper-batch".to_owned());
            builder
                .spawn(move || work(&queue, holder.program(), &plan, &terms))
                .ok()
        });
        let threads: Vec<_> = started.collect();
        (!threads.is_empty()).then(|| Self {
            queue,
            threads,
            process: std::process::id(),
        })
    }

    /// Queues a part after all earlier ones.
    pub fn push(&self, part: RecordBatch) {
        let mut state = self.queue.state();
        let number = state.oldest + state.done.len() as u64;
        state.waiting.push_back((number, part));
        state.done.push_back(None);
        drop(state);
        self.queue.has_work.notify_one();
    }

    /// Returns the number of parts pushed and not taken.
    pub fn pending(&self) -> usize {
        self.queue.state().done.len()
    }

    /// Returns true if the threads belong to this process.
    pub fn is_own_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// Waits for the oldest part. Returns `None` after a timeout or if there is no part.
    pub fn take(&self, patience: Duration) -> Option<Result<Part, PartError>> {
        let state = self.queue.state();
        let waits = |state: &mut QueueState| matches!(state.done.front(), Some(None));
        let (mut state, _) = self
            .queue
            .has_results
            .wait_timeout_while(state, patience, waits)
            .unwrap_or_else(PoisonError::into_inner);
        let is_one_gone = || self.threads.iter().any(JoinHandle::is_finished);
        if matches!(state.done.front(), Some(None)) && is_one_gone() {
            // The part of an ended thread will never finish.
            return Some(Err(PartError::Engine("a thread of the batch is gone".to_owned())));
        }
        let done = state.done.front_mut()?.take()?;
        state.done.pop_front();
        state.oldest += 1;
        Some(done.result)
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if !self.is_own_process() {
            // A forked process has no threads to join, and the lock may be held forever.
            threads.into_iter().for_each(std::mem::forget);
            return;
        }
        {
            let _state = self.queue.state();
            self.queue.is_cancelled.store(true, Ordering::Relaxed);
        }
        self.queue.has_work.notify_all();
        for thread in threads {
            // Parts run under a guard, so a panic here has no reader to report to.
            let _ = thread.join();
        }
    }
}

fn work(queue: &Queue, program: &Program, plan: &Plan, terms: &RunTerms) {
    let is_cancelled = || queue.is_cancelled.load(Ordering::Relaxed);
    let made = guarded(|| Thread::new(program, plan, terms, &is_cancelled));
    let mut thread = made.and_then(|made| made);
    while let Some((number, part)) = queue.next() {
        let given = part.clone();
        let result = match &mut thread {
            Ok(thread) => thread.part(part),
            // The reader gets the error with the first part.
            Err(message) => Err(PartError::Engine(message.clone())),
        };
        queue.put(
            number,
            FinishedPart {
                result,
                _given: given,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::Schema;

    fn empty_part() -> RecordBatch {
        RecordBatch::new_empty(Arc::new(Schema::empty()))
    }

    fn finished_part() -> FinishedPart {
        FinishedPart {
            result: Err(PartError::Cancelled),
            _given: empty_part(),
        }
    }

    /// Makes a queue of eight parts, of which those at these positions are finished.
    fn state(ran_so_far: &[usize], waiting: usize) -> QueueState {
        QueueState {
            waiting: (0..waiting).map(|number| (number as u64, empty_part())).collect(),
            done: (0..8)
                .map(|place| ran_so_far.contains(&place).then(finished_part))
                .collect(),
            oldest: 0,
        }
    }

    #[test]
    fn short_parts_are_read_several_at_once() {
        let took = Duration::from_micros(700);
        assert!(!state(&[0], 5).is_worth_reading(took));
        assert!(!state(&[0, 1, 2], 3).is_worth_reading(took));
        assert!(state(&[0, 1, 2, 3], 2).is_worth_reading(took));
        assert!(state(&[0, 3, 4, 5], 1).is_worth_reading(took));
    }

    #[test]
    fn the_next_part_is_read_at_once_where_it_took_long_or_no_other_waits() {
        assert!(state(&[0], 5).is_worth_reading(SLOW_PART));
        assert!(state(&[0], 0).is_worth_reading(Duration::ZERO));
    }

    #[test]
    fn reader_is_not_woken_for_parts_behind_a_running_one() {
        assert!(!state(&[1, 2, 3, 4, 5, 6, 7], 0).is_worth_reading(SLOW_PART));
    }

    #[test]
    fn reader_gets_an_error_for_a_thread_that_ended() {
        let gone = std::thread::spawn(|| ());
        while !gone.is_finished() {
            std::thread::yield_now();
        }
        let pool = ThreadPool {
            queue: Arc::default(),
            threads: vec![gone],
            process: std::process::id(),
        };
        assert!(pool.take(Duration::ZERO).is_none()); // the queue is empty
        pool.push(empty_part());
        let taken = pool.take(Duration::ZERO);
        assert!(matches!(taken, Some(Err(PartError::Engine(message))) if message.contains("is gone")));
    }
}
