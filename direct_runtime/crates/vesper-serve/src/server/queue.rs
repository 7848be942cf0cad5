//! Calls that wait for a thread of Python, and their answers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use vesper_interp::guard::guarded;

use super::Epoch;
use crate::answer::{Answer, Refusal, RefusalKind};
use crate::exchange::{Call, Endpoint};

/// Maximum wait of a thread without a call.
const MAX_WAIT: Duration = Duration::from_hours(1);
/// Pages of the server that may wait beside the calls of nodes.
const MAX_PAGES: usize = 64;
/// Parts of a stream that may wait for a client that reads slowly.
const MAX_PARTS: usize = 64;

/// A call without an answer. Dropped without one, it is answered as an internal error.
#[derive(Debug)]
pub struct Pending {
    pub call: Arc<Call>,
    pub epoch: Arc<Epoch>,
    /// JSON object of the inputs.
    pub inputs: Vec<u8>,
    pub deadline: Option<Instant>,
    is_abandoned: Arc<AtomicBool>,
    reply: Mutex<Option<oneshot::Sender<Replied>>>,
}

/// An answer, and the parts of its body where they come one after the other.
#[derive(Debug)]
pub(super) struct Replied {
    pub(super) answer: Answer,
    pub(super) parts: Option<mpsc::Receiver<Bytes>>,
}

/// The body of an answer that is written part by part. Dropped, it ends.
#[derive(Debug)]
pub struct Parts(mpsc::Sender<Bytes>);

impl Parts {
    /// Sends a part; returns false if the client has gone or does not read.
    pub fn send(&self, part: Bytes) -> bool {
        self.0.try_send(part).is_ok()
    }
}

/// The end of a call at its connection.
#[derive(Debug)]
pub(super) struct Awaited {
    pub(super) call: Arc<Call>,
    pub(super) answer: oneshot::Receiver<Replied>,
    pub(super) is_abandoned: Arc<AtomicBool>,
    pub(super) deadline: Option<Instant>,
}

impl Pending {
    pub(super) fn new(
        call: Arc<Call>,
        epoch: Arc<Epoch>,
        inputs: Vec<u8>,
        deadline: Option<Instant>,
    ) -> (Self, Awaited) {
        let (reply, answer) = oneshot::channel();
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let awaited = Awaited {
            call: Arc::clone(&call),
            answer,
            is_abandoned: Arc::clone(&is_abandoned),
            deadline,
        };
        (
            Self {
                call,
                epoch,
                inputs,
                deadline,
                is_abandoned,
                reply: Mutex::new(Some(reply)),
            },
            awaited,
        )
    }

    /// Returns true if the client has gone.
    pub fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }

    /// Answers the call; returns false if it has an answer already. A panic of `answer` is an internal error.
    pub fn answer(&self, answer: impl FnOnce(&Call) -> Answer) -> bool {
        self.reply(answer, None)
    }

    /// Answers the call with a body that is written part by part; returns `None` if it has an answer already.
    pub fn stream(&self, answer: impl FnOnce(&Call) -> Answer) -> Option<Parts> {
        let (sender, parts) = mpsc::channel(MAX_PARTS);
        self.reply(answer, Some(parts)).then_some(Parts(sender))
    }

    fn reply(&self, answer: impl FnOnce(&Call) -> Answer, parts: Option<mpsc::Receiver<Bytes>>) -> bool {
        let Some(reply) = self.reply.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return false;
        };
        let answer = guarded(|| answer(&self.call))
            .unwrap_or_else(|_| self.call.refuse(&Refusal::from(RefusalKind::Internal)));
        // A client that has gone needs no answer.
        drop(reply.send(Replied { answer, parts }));
        true
    }

    /// Refuses the call; returns false if it has an answer already.
    pub fn refuse(&self, refusal: &Refusal) -> bool {
        self.answer(|call| call.refuse(refusal))
    }

    fn is_late(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }
}

/// A bounded queue of calls.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    /// Signalled for each call, and for threads that take pages only.
    has_call: Condvar,
    has_page: Condvar,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    nodes: VecDeque<Pending>,
    pages: VecDeque<Pending>,
    is_closed: bool,
}

impl Queue {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            has_call: Condvar::new(),
            has_page: Condvar::new(),
            capacity,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call, or refuses it if the queue is full or closed.
    pub(super) fn push(&self, pending: Pending) {
        let is_page = matches!(pending.call.endpoint(), Endpoint::Builtin(_));
        let mut waiting = self.lock();
        let is_full = if is_page {
            waiting.pages.len() >= MAX_PAGES
        } else {
            waiting.nodes.len() >= self.capacity
        };
        if is_full || waiting.is_closed {
            let kind = if is_full {
                RefusalKind::Overloaded
            } else {
                RefusalKind::Closing
            };
            drop(waiting);
            pending.refuse(&Refusal {
                retry_after: Some(Duration::from_secs(1)),
                ..Refusal::from(kind)
            });
            return;
        }
        let list = if is_page {
            &mut waiting.pages
        } else {
            &mut waiting.nodes
        };
        list.push_back(pending);
        drop(waiting);
        self.has_call.notify_one();
        if is_page {
            self.has_page.notify_one();
        }
    }

    /// Takes the next call, pages first. Returns `None` after `limit`, or when the queue is closed and empty. Calls
    /// without a client are dropped, and those past their deadline refused.
    pub(super) fn next(&self, limit: Duration, is_for_pages: bool) -> Option<Pending> {
        let end = Instant::now() + limit.min(MAX_WAIT);
        let mut waiting = self.lock();
        loop {
            let found = match waiting.pages.pop_front() {
                None if !is_for_pages => waiting.nodes.pop_front(),
                found => found,
            };
            let now = Instant::now();
            match found {
                Some(pending) if pending.is_abandoned() => {}
                Some(pending) if pending.is_late(now) => {
                    drop(waiting);
                    pending.refuse(&Refusal::from(RefusalKind::Deadline));
                    waiting = self.lock();
                }
                Some(pending) => return Some(pending),
                None if waiting.is_closed || now >= end => return None,
                None => {
                    let signal = if is_for_pages {
                        &self.has_page
                    } else {
                        &self.has_call
                    };
                    waiting = signal
                        .wait_timeout(waiting, end - now)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0;
                }
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        let waiting = self.lock();
        waiting.nodes.len() + waiting.pages.len()
    }

    /// Refuses waiting and later calls, and wakes all threads.
    pub(super) fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        let left: Vec<Pending> = waiting.nodes.drain(..).collect();
        let pages: Vec<Pending> = waiting.pages.drain(..).collect();
        drop(waiting);
        for pending in left.into_iter().chain(pages) {
            pending.refuse(&Refusal::from(RefusalKind::Closing));
        }
        self.has_call.notify_all();
        self.has_page.notify_all();
    }
}
