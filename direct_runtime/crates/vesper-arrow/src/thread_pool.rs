//! Threads that run parts of a table, ahead of whoever reads the answer.
//!
//! What one reader does with a part (another library takes it over column by column) goes on beside the next parts, and no
//! thread waits for the others: it takes the next part that is there. How far ahead they are is what the reader gives
//! them: `given` says how many parts are on their way. He is woken for several parts at once where they are short: where
//! all processors are busy with parts, each time that he is woken one of them has to stop for him.

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

/// A part that takes so long is read at once: to wait for others would be felt.
const SLOW_PART: Duration = Duration::from_millis(2);

/// Whoever has the program: threads run it for as long as they like.
pub trait ProgramHolder: Send + Sync + 'static {
    fn program(&self) -> &Program;
}

/// The threads. They end when this is dropped, with the rows that they are at.
#[derive(Debug)]
pub struct ThreadPool {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
    /// A process that is forked has this, and not the threads.
    process: u32,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<QueueState>,
    /// There is a part to run, or none will come.
    has_work: Condvar,
    /// Enough was run that it is worth to be read.
    has_results: Condvar,
    is_cancelled: AtomicBool,
}

#[derive(Debug, Default)]
struct QueueState {
    /// The parts that nobody has begun, with their numbers.
    waiting: VecDeque<(u64, RecordBatch)>,
    /// Of every part that was given and is not taken, in their order.
    done: VecDeque<Option<FinishedPart>>,
    /// The number of the oldest of them.
    oldest: u64,
}

impl QueueState {
    /// Whether the reader should be woken, now that a part has run for so long. One that is not is woken by a later part:
    /// while parts wait, there is one.
    fn is_worth_reading(&self, took: Duration) -> bool {
        let is_read_next = matches!(self.done.front(), Some(Some(_)));
        let ready = || self.done.iter().filter(|each| each.is_some()).count();
        is_read_next && (took >= SLOW_PART || self.waiting.is_empty() || ready() * 2 >= self.done.len())
    }
}

/// What came of a part, and what was given: that goes back to who gave it, so that he drops it. Other libraries do things
/// then that are not for a thread that they have never seen.
#[derive(Debug)]
struct FinishedPart {
    result: Result<Part, PartError>,
    _given: RecordBatch,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        // Nobody panics while he holds them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next part to run; waits for one.
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
    /// So many threads, or as many of them as the system has; nothing where it has none.
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

    /// A part to run after all that were given before.
    pub fn push(&self, part: RecordBatch) {
        let mut state = self.queue.state();
        let number = state.oldest + state.done.len() as u64;
        state.waiting.push_back((number, part));
        state.done.push_back(None);
        drop(state);
        self.queue.has_work.notify_one();
    }

    /// How many parts were given and not taken.
    pub fn pending(&self) -> usize {
        self.queue.state().done.len()
    }

    /// Whether the threads are of this process.
    pub fn is_own_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// The oldest part when it has run; nothing where that takes longer than this, or where there is none.
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
            // Whatever it was, nobody will run what that thread had.
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
            // Nobody is there to wait for, and whoever held the papers holds them for ever.
            threads.into_iter().for_each(std::mem::forget);
            return;
        }
        {
            let _state = self.queue.state();
            self.queue.is_cancelled.store(true, Ordering::Relaxed);
        }
        self.queue.has_work.notify_all();
        for thread in threads {
            // What they run is guarded; one that panicked all the same has nobody who waits for it now.
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
            // Whoever reads is told at the first part, and waits for none.
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

    /// Of eight parts, those whose places are named have run.
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
        assert!(pool.take(Duration::ZERO).is_none()); // nothing was given
        pool.push(empty_part());
        let taken = pool.take(Duration::ZERO);
        assert!(matches!(taken, Some(Err(PartError::Engine(message))) if message.contains("is gone")));
    }
}
