//! Sessions of one process with one server, each used by one thread at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::postgres::session::{Problem, Session};

/// Limit of sessions for each level of durability.
pub const MAX_SESSIONS: usize = 16;

/// Why no session was lent.
#[derive(Debug)]
pub enum NotLent {
    /// All sessions were in use for too long.
    Crowded,
    Failed(Problem),
}

/// Sessions of both levels of durability.
#[derive(Debug, Default)]
pub struct Pool {
    synced: Level,
    unsynced: Level,
    is_ready: AtomicBool,
}

/// Sessions of one level.
#[derive(Debug, Default)]
struct Level {
    sessions: Mutex<Sessions>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Sessions {
    idle: Vec<Session>,
    lent: usize,
}

impl Pool {
    /// Returns true once the tables were found or made.
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    pub fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    /// Lends a session to this thread; `open` opens one where none is idle. Waits for `patience` at most.
    pub fn lend(
        &self,
        is_synced: bool,
        patience: Duration,
        open: impl FnOnce() -> Result<Session, Problem>,
    ) -> Result<Lent<'_>, NotLent> {
        let level = if is_synced { &self.synced } else { &self.unsynced };
        level.reserve(patience)?;
        let mut lent = Lent { level, session: None }; // Dropping it gives the place back.
        loop {
            let idle = level.sessions().idle.pop();
            match idle {
                Some(session) if session.is_alive() => {
                    lent.session = Some(session);
                    return Ok(lent);
                }
                Some(_) => {}
                None => break,
            }
        }
        lent.session = Some(open().map_err(NotLent::Failed)?);
        Ok(lent)
    }

    /// Closes idle sessions. The pool stays usable.
    pub fn close(&self) {
        for level in [&self.synced, &self.unsynced] {
            let idle = std::mem::take(&mut level.sessions().idle);
            drop(idle);
        }
    }
}

impl Level {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve(&self, patience: Duration) -> Result<(), NotLent> {
        let deadline = Instant::now() + patience;
        let mut sessions = self.sessions();
        while sessions.lent >= MAX_SESSIONS {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NotLent::Crowded);
            }
            let waited = self.returned.wait_timeout(sessions, left);
            (sessions, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        sessions.lent += 1;
        Ok(())
    }
}

/// A session that this thread may use; dropping it returns the session where it can be used again.
#[derive(Debug)]
pub struct Lent<'a> {
    level: &'a Level,
    session: Option<Session>,
}

impl Lent<'_> {
    /// Returns the session; it is there until it is returned.
    pub fn session(&mut self) -> Result<&mut Session, Problem> {
        self.session
            .as_mut()
            .ok_or_else(|| Problem::Lost("the session has ended".to_owned()))
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let session = self.session.take().filter(Session::is_usable);
        let mut sessions = self.level.sessions();
        sessions.idle.extend(session);
        sessions.lent -= 1;
        drop(sessions);
        self.level.returned.notify_one();
    }
}
