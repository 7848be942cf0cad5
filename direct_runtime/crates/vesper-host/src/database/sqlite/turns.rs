//! Turns of the threads of this process to write to an SQLite file.
//!
//! SQLite does not report that a file is free: a writer that waits sleeps, and tries again. Here a writer that is done
//! wakes the one that has waited longest, and a new one lets that one go first (docs/adr/0035).
//!
//! Nothing is owned. A turn is a moment that passes by itself, and a place in the queue is skipped where no thread
//! waits in it. The first in the queue polls as well, for another process may have written; and threads that have
//! passed the file on to one another for long pause for a moment, in which another process comes to write.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::library::SqliteError;

/// Poll interval of the first writer in the queue.
const FIRST_POLL: Duration = Duration::from_millis(2);
/// Poll interval of the others, which are woken or become the first.
const OTHERS_POLL: Duration = Duration::from_millis(20);
/// Time for which the file is reserved for a woken writer.
const RESERVED: Duration = Duration::from_millis(5);
/// Time after which threads that pass the file on to one another pause.
const CHAIN: Duration = Duration::from_millis(100);
/// Length of the pause: longer than the first in the queue of another process sleeps.
const PAUSE: Duration = Duration::from_millis(4);

/// The queue of the writers to one file.
#[derive(Debug)]
pub(super) struct Turns {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Writers that wait; the first has waited longest.
    queue: VecDeque<Arc<Writer>>,
    reserved_until: Instant,
    paused_until: Instant,
}

#[derive(Debug, Default)]
struct Writer {
    is_woken: Mutex<bool>,
    changed: Condvar,
}

impl Default for Turns {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                reserved_until: now,
                paused_until: now,
            }),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Turns {
    /// Calls `begin` until it returns true, with pauses; returns false when the time is up.
    pub(super) fn take(
        &self,
        until: Instant,
        begin: &mut dyn FnMut() -> Result<bool, SqliteError>,
    ) -> Result<bool, SqliteError> {
        if !self.is_reserved() && begin()? {
            return Ok(true);
        }
        let mut place = self.join(false);
        let result = self.wait(until, begin, &mut place);
        lock(&self.state).queue.retain(|each| !Arc::ptr_eq(each, &place));
        result
    }

    fn wait(
        &self,
        until: Instant,
        begin: &mut dyn FnMut() -> Result<bool, SqliteError>,
        place: &mut Arc<Writer>,
    ) -> Result<bool, SqliteError> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let is_woken = place.sleep(self.poll_interval(place).min(left));
            if is_woken {
                let paused = lock(&self.state)
                    .paused_until
                    .saturating_duration_since(Instant::now());
                std::thread::sleep(paused);
            } else if self.is_reserved() {
                continue;
            }
            let has_begun = begin()?;
            if has_begun || is_woken {
                lock(&self.state).reserved_until = Instant::now();
            }
            if has_begun {
                return Ok(true);
            }
            if is_woken {
                // Another writer was faster, and this one stands in no queue any more.
                *place = self.join(true);
            }
        }
    }

    /// Passes the file on, after a write.
    pub(super) fn pass_on(&self) {
        let now = Instant::now();
        let mut state = lock(&self.state);
        let Some(next) = state.queue.pop_front() else {
            state.paused_until = now;
            return;
        };
        if now.saturating_duration_since(state.paused_until) > CHAIN {
            state.paused_until = now + PAUSE;
        }
        state.reserved_until = state.paused_until.max(now) + RESERVED;
        drop(state);
        next.wake();
    }

    fn is_reserved(&self) -> bool {
        Instant::now() < lock(&self.state).reserved_until
    }

    fn poll_interval(&self, place: &Arc<Writer>) -> Duration {
        let is_first = lock(&self.state)
            .queue
            .front()
            .is_some_and(|first| Arc::ptr_eq(first, place));
        if is_first { FIRST_POLL } else { OTHERS_POLL }
    }

    fn join(&self, is_first: bool) -> Arc<Writer> {
        let place = Arc::new(Writer::default());
        let queue = &mut lock(&self.state).queue;
        if is_first {
            queue.push_front(Arc::clone(&place));
        } else {
            queue.push_back(Arc::clone(&place));
        }
        place
    }
}

impl Writer {
    /// Waits until woken, at most for this time; returns whether it was woken.
    fn sleep(&self, time: Duration) -> bool {
        let woken = self
            .changed
            .wait_timeout_while(lock(&self.is_woken), time, |is_woken| !*is_woken);
        *woken.unwrap_or_else(PoisonError::into_inner).0
    }

    fn wake(&self) {
        *lock(&self.is_woken) = true;
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::{CHAIN, Turns, lock};

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn gives_up_when_the_time_is_up() {
        let turns = Turns::default();
        let until = Instant::now() + Duration::from_millis(50);
        assert_eq!(turns.take(until, &mut || Ok(false)), Ok(false));
        assert!(Instant::now() >= until);
    }

    /// A file that one writer at a time can write to.
    #[derive(Default)]
    struct File {
        writer: Mutex<Option<char>>,
        order: Mutex<Vec<char>>,
        asked: AtomicUsize,
    }

    impl File {
        fn begin(&self, name: char) -> bool {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let mut writer = lock(&self.writer);
            if writer.is_some() {
                return false;
            }
            *writer = Some(name);
            lock(&self.order).push(name);
            true
        }

        fn end(&self, turns: &Turns) {
            *lock(&self.writer) = None;
            turns.pass_on();
        }
    }

    fn is_soon(what: impl Fn() -> bool) {
        let until = soon();
        while !what() {
            assert!(Instant::now() < until);
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Starts a thread that stands in the queue.
    fn wait_for(turns: &Arc<Turns>, file: &Arc<File>, name: char) -> thread::JoinHandle<bool> {
        let before = lock(&turns.state).queue.len();
        let (own, its) = (Arc::clone(turns), Arc::clone(file));
        let thread = thread::spawn(move || own.take(soon(), &mut || Ok(its.begin(name))) == Ok(true));
        is_soon(|| lock(&turns.state).queue.len() > before);
        thread
    }

    #[test]
    fn the_writer_that_has_waited_longest_is_next() {
        let (turns, file) = (Arc::new(Turns::default()), Arc::new(File::default()));
        assert!(file.begin('a'));
        let threads: Vec<_> = ['b', 'c', 'd'].map(|name| wait_for(&turns, &file, name)).into();
        for count in 2..=4 {
            file.end(&turns);
            is_soon(|| lock(&file.order).len() == count);
        }
        for thread in threads {
            assert!(thread.join().is_ok_and(|has_begun| has_begun));
        }
        assert_eq!(*lock(&file.order), ['a', 'b', 'c', 'd']);
        assert!(lock(&turns.state).queue.is_empty());
    }

    #[test]
    fn a_new_writer_lets_the_woken_one_go_first() {
        let (turns, file) = (Arc::new(Turns::default()), Arc::new(File::default()));
        let gone = turns.join(false);
        turns.pass_on();
        assert!(gone.sleep(Duration::ZERO));
        lock(&turns.state).reserved_until = soon();
        let late = wait_for(&turns, &file, 'l');
        assert_eq!(file.asked.load(Ordering::SeqCst), 0); // though the file is free
        lock(&turns.state).reserved_until = Instant::now(); // the woken one does not come
        assert!(late.join().is_ok_and(|has_begun| has_begun));
    }

    #[test]
    fn a_writer_that_nothing_wakes_polls_by_itself() {
        let (turns, file) = (Arc::new(Turns::default()), Arc::new(File::default()));
        *lock(&file.writer) = Some('x'); // of another process
        let thread = wait_for(&turns, &file, 'b');
        is_soon(|| file.asked.load(Ordering::SeqCst) > 3);
        *lock(&file.writer) = None;
        assert!(thread.join().is_ok_and(|has_begun| has_begun));
        assert!(lock(&turns.state).queue.is_empty());
    }

    #[test]
    fn threads_that_pass_it_on_for_long_pause() {
        let turns = Turns::default();
        let _waiting = turns.join(false);
        thread::sleep(CHAIN + Duration::from_millis(5));
        turns.pass_on();
        assert!(lock(&turns.state).paused_until > Instant::now());
    }

    #[test]
    fn every_writer_gets_its_turn_and_never_two_at_once() {
        let (turns, is_busy, done) = (
            Arc::new(Turns::default()),
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let writers: Vec<_> = (0..8)
            .map(|_| {
                let (turns, is_busy, done) = (Arc::clone(&turns), Arc::clone(&is_busy), Arc::clone(&done));
                thread::spawn(move || {
                    for _ in 0..20 {
                        let begun = turns.take(soon(), &mut || Ok(!is_busy.swap(true, Ordering::SeqCst)));
                        assert_eq!(begun, Ok(true));
                        done.fetch_add(1, Ordering::SeqCst);
                        is_busy.store(false, Ordering::SeqCst);
                        turns.pass_on();
                    }
                })
            })
            .collect();
        for writer in writers {
            assert!(writer.join().is_ok());
        }
        assert_eq!(done.load(Ordering::SeqCst), 160);
    }
}
