//! Threads that run parts of a table, ahead of whoever reads the answer.
//!
//! What one reader does with a part (another library takes it over column by column) goes on beside the next parts, and no
//! thread waits for the others: it takes the next part that is there. How far ahead they are is what the reader gives
//! them: `given` says how many parts are on their way.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use arrow_array::RecordBatch;
use vesper_interp::Program;
use vesper_interp::guard::guarded;

use crate::plan::Plan;
use crate::run::{Failed, Part, Terms, Thread};

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
    /// The oldest part was run.
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
        let mut papers = self.papers();
        let place = number
            .checked_sub(papers.oldest)
            .and_then(|place| usize::try_from(place).ok());
        if let Some(place) = place.and_then(|place| papers.done.get_mut(place)) {
            *place = Some(ran);
        }
        if place == Some(0) {
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
