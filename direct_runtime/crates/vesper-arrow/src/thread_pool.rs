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

use crate::part::{Failed, Part, Terms, Thread};
use crate::plan::Plan;

/// A part that takes so long is read at once: to wait for others would be felt.
const LONG: Duration = Duration::from_millis(2);

/// Whoever has the program: threads run it for as long as they like.
pub trait Holder: Send + Sync + 'static {
    fn program(&self) -> &Program;
}

/// The threads. They end when this is dropped, with the rows that they are at.
#[derive(Debug)]
pub struct Crew {
    desk: Arc<Desk>,
    threads: Vec<JoinHandle<()>>,
    /// A process that is forked has this, and not the threads.
    process: u32,
}

#[derive(Debug, Default)]
struct Desk {
    papers: Mutex<Papers>,
    /// There is a part to run, or none will come.
    is_given: Condvar,
    /// Enough was run that it is worth to be read.
    is_done: Condvar,
    is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct Papers {
    /// The parts that nobody has begun, with their numbers.
    waiting: VecDeque<(u64, RecordBatch)>,
    /// Of every part that was given and is not taken, in their order.
    done: VecDeque<Option<Ran>>,
    /// The number of the oldest of them.
    oldest: u64,
}

impl Papers {
    /// Whether the reader should be woken, now that a part has run for so long. One that is not is woken by a later part:
    /// while parts wait, there is one.
    fn is_worth_reading(&self, took: Duration) -> bool {
        let is_read_next = matches!(self.done.front(), Some(Some(_)));
        let ready = || self.done.iter().filter(|each| each.is_some()).count();
        is_read_next && (took >= LONG || self.waiting.is_empty() || ready() * 2 >= self.done.len())
    }
}

/// What came of a part, and what was given: that goes back to who gave it, so that he drops it. Other libraries do things
/// then that are not for a thread that they have never seen.
#[derive(Debug)]
struct Ran {
    came: Result<Part, Failed>,
    _given: RecordBatch,
}

impl Desk {
    fn papers(&self) -> MutexGuard<'_, Papers> {
        // Nobody panics while he holds them.
        self.papers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next part to run; waits for one.
    fn next(&self) -> Option<(u64, RecordBatch)> {
        let mut papers = self.papers();
        loop {
            if self.is_over.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(part) = papers.waiting.pop_front() {
                return Some(part);
            }
            papers = self.is_given.wait(papers).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn put(&self, number: u64, ran: Ran) {
        let took = ran.came.as_ref().map_or(LONG, |part| part.took);
        let mut papers = self.papers();
        let place = number
            .checked_sub(papers.oldest)
            .and_then(|place| usize::try_from(place).ok());
        if let Some(place) = place.and_then(|place| papers.done.get_mut(place)) {
            *place = Some(ran);
        }
        if papers.is_worth_reading(took) {
            drop(papers);
            self.is_done.notify_one();
        }
    }
}

impl Crew {
    /// So many threads, or as many of them as the system has; nothing where it has none.
    pub fn new(
        holder: &Arc<impl Holder>,
        plan: &Arc<Plan>,
        terms: &Terms,
        threads: NonZeroUsize,
    ) -> Option<Self> {
        let desk = Arc::<Desk>::default();
        let started = (0..threads.get()).map_while(|_| {
            let (desk, holder, plan) = (Arc::clone(&desk), Arc::clone(holder), Arc::clone(plan));
            let terms = terms.clone();
            let builder = Builder::new().name("vesper-batch".to_owned());
            builder
                .spawn(move || work(&desk, holder.program(), &plan, &terms))
                .ok()
        });
        let threads: Vec<_> = started.collect();
        (!threads.is_empty()).then(|| Self {
            desk,
            threads,
            process: std::process::id(),
        })
    }

    /// A part to run after all that were given before.
    pub fn give(&self, part: RecordBatch) {
        let mut papers = self.desk.papers();
        let number = papers.oldest + papers.done.len() as u64;
        papers.waiting.push_back((number, part));
        papers.done.push_back(None);
        drop(papers);
        self.desk.is_given.notify_one();
    }

    /// How many parts were given and not taken.
    pub fn given(&self) -> usize {
        self.desk.papers().done.len()
    }

    /// Whether the threads are of this process.
    pub fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// The oldest part when it has run; nothing where that takes longer than this, or where there is none.
    pub fn take(&self, patience: Duration) -> Option<Result<Part, Failed>> {
        let papers = self.desk.papers();
        let waits = |papers: &mut Papers| matches!(papers.done.front(), Some(None));
        let (mut papers, _) = self
            .desk
            .is_done
            .wait_timeout_while(papers, patience, waits)
            .unwrap_or_else(PoisonError::into_inner);
        let is_one_gone = || self.threads.iter().any(JoinHandle::is_finished);
        if matches!(papers.done.front(), Some(None)) && is_one_gone() {
            // Whatever it was, nobody will run what that thread had.
            return Some(Err(Failed::Engine("a thread of the batch is gone".to_owned())));
        }
        let done = papers.done.front_mut()?.take()?;
        papers.done.pop_front();
        papers.oldest += 1;
        Some(done.came)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if !self.is_here() {
            // Nobody is there to wait for, and whoever held the papers holds them for ever.
            threads.into_iter().for_each(std::mem::forget);
            return;
        }
        {
            let _papers = self.desk.papers();
            self.desk.is_over.store(true, Ordering::Relaxed);
        }
        self.desk.is_given.notify_all();
        for thread in threads {
            // What they run is guarded; one that panicked all the same has nobody who waits for it now.
            let _ = thread.join();
        }
    }
}

fn work(desk: &Desk, program: &Program, plan: &Plan, terms: &Terms) {
    let is_over = || desk.is_over.load(Ordering::Relaxed);
    let made = guarded(|| Thread::new(program, plan, terms, &is_over));
    let mut thread = made.and_then(|made| made);
    while let Some((number, part)) = desk.next() {
        let given = part.clone();
        let came = match &mut thread {
            Ok(thread) => thread.part(part),
            // Whoever reads is told at the first part, and waits for none.
            Err(message) => Err(Failed::Engine(message.clone())),
        };
        desk.put(number, Ran { came, _given: given });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::Schema;

    fn given() -> RecordBatch {
        RecordBatch::new_empty(Arc::new(Schema::empty()))
    }

    fn ran() -> Ran {
        Ran {
            came: Err(Failed::Over),
            _given: given(),
        }
    }

    /// Of eight parts, those whose places are named have run.
    fn papers(ran_so_far: &[usize], waiting: usize) -> Papers {
        Papers {
            waiting: (0..waiting).map(|number| (number as u64, given())).collect(),
            done: (0..8)
                .map(|place| ran_so_far.contains(&place).then(ran))
                .collect(),
            oldest: 0,
        }
    }

    #[test]
    fn short_parts_are_read_several_at_once() {
        let took = Duration::from_micros(700);
        assert!(!papers(&[0], 5).is_worth_reading(took));
        assert!(!papers(&[0, 1, 2], 3).is_worth_reading(took));
        assert!(papers(&[0, 1, 2, 3], 2).is_worth_reading(took));
        assert!(papers(&[0, 3, 4, 5], 1).is_worth_reading(took));
    }

    #[test]
    fn the_next_part_is_read_at_once_where_it_took_long_or_no_other_waits() {
        assert!(papers(&[0], 5).is_worth_reading(LONG));
        assert!(papers(&[0], 0).is_worth_reading(Duration::ZERO));
    }

    #[test]
    fn nobody_is_woken_for_parts_behind_one_that_runs() {
        assert!(!papers(&[1, 2, 3, 4, 5, 6, 7], 0).is_worth_reading(LONG));
    }

    #[test]
    fn who_reads_is_told_of_a_thread_that_is_gone() {
        let gone = std::thread::spawn(|| ());
        while !gone.is_finished() {
            std::thread::yield_now();
        }
        let crew = Crew {
            desk: Arc::default(),
            threads: vec![gone],
            process: std::process::id(),
        };
        assert!(crew.take(Duration::ZERO).is_none()); // nothing was given
        crew.give(given());
        let told = crew.take(Duration::ZERO);
        assert!(matches!(told, Some(Err(Failed::Engine(message))) if message.contains("is gone")));
    }
}
