//! What lives only as long as the process: streams of events, messages and workers, and requests that wait for them.

mod dispatch;
mod parked;
mod streams;

use std::collections::{BTreeMap, VecDeque};

use tokio::sync::mpsc;

use crate::counts::MessageCounts;
use crate::kernel::Event;
use crate::machines::bus::{Bus, SubscriptionId};
use crate::proto::v1::{KernelEvent, Message, PipelineEvent, PublishResponse, QueryResponse};
use crate::writer::Reply;

use parked::ParkedMessages;

pub use dispatch::{Work, WorkerStream, assign_steps};
pub use streams::{EventStream, Stream};

/// Events that a subscriber may lag behind.
const EVENT_LAG: usize = 1_024;
/// Events that can be read again.
const KEPT_EVENTS: usize = 10_000;

/// Who waits for a message to be accepted.
#[derive(Debug)]
pub enum Acceptance {
    Publish(Reply<PublishResponse>),
    /// The sender waits for the reply to its query.
    Query,
}

#[derive(Debug)]
struct OpenQuery {
    deadline_us: i64,
    reply: Reply<QueryResponse>,
}

#[derive(Debug, Default)]
pub struct Hub {
    events: Vec<EventStream>,
    kept: VecDeque<Box<KernelEvent>>,
    /// All events after this sequence are kept.
    kept_after: i64,
    pipelines: BTreeMap<String, Vec<mpsc::Sender<PipelineEvent>>>,
    pub bus: Bus,
    subscriptions: BTreeMap<SubscriptionId, mpsc::Sender<Message>>,
    parked: ParkedMessages,
    queries: BTreeMap<u64, OpenQuery>,
    messages: u64,
    pub(crate) counted: MessageCounts,
    workers: BTreeMap<String, WorkerStream>,
    works: u64,
    epochs: u64,
}

impl Hub {
    /// Ends all streams.
    pub fn close(&mut self) {
        let (kept, kept_after) = (std::mem::take(&mut self.kept), self.kept_after);
        let (messages, counted) = (self.messages, self.counted);
        let (works, epochs) = (self.works, self.epochs);
        *self = Self {
            kept,
            kept_after,
            messages,
            counted,
            works,
            epochs,
            ..Self::default()
        };
    }

    /// Ends the streams of those who only read.
    pub(crate) fn end_readers(&mut self) {
        self.events.clear();
        self.pipelines.clear();
        self.subscriptions.clear();
    }

    /// Keeps the events that were replayed after a snapshot, for subscribers that continue.
    pub fn keep(&mut self, events: Vec<Event>, snapshot: u64) {
        self.kept = crate::writer::kernel_events(events).collect();
        self.kept_after = snapshot.cast_signed();
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        while self.kept.len() > KEPT_EVENTS
            && let Some(event) = self.kept.pop_front()
        {
            self.kept_after = event.sequence;
        }
    }
}
