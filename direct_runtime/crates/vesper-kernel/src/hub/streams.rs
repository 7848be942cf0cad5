//! Streams of events and messages.

use std::collections::BTreeSet;

use tokio::sync::mpsc;

use super::parked::Parked;
use super::{Acceptance, EVENT_LAG, Hub, KEPT_EVENTS, OpenQuery};
use crate::counts::MessageCounts;
use crate::kernel::Event;
use crate::machines::bus::{Address, Bus, SubscriptionId};
use crate::proto::v1::{
    KernelEvent, KernelEventKind, Message, PipelineEvent, PipelineEventKind, PublishResponse, QueryResponse,
    SubscribeEventsRequest, SubscribeRequest,
};
use crate::refusal::Refusal;
use crate::writer::Reply;

/// The receiving end of a stream.
pub type Stream<T> = mpsc::Receiver<T>;

/// A subscriber of events.
#[derive(Debug)]
pub struct EventStream {
    pid: String,
    kinds: BTreeSet<i32>,
    sender: mpsc::Sender<KernelEvent>,
}

impl EventStream {
    fn wants(&self, event: &KernelEvent) -> bool {
        (self.pid.is_empty() || self.pid == event.pid)
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
    }
}

fn is_event_kind(kind: i32) -> bool {
    KernelEventKind::try_from(kind).is_ok_and(|kind| kind != KernelEventKind::Unspecified)
}

impl Hub {
    pub fn subscribe_events(
        &mut self,
        request: SubscribeEventsRequest,
    ) -> Result<Stream<KernelEvent>, Refusal> {
        if request.kinds.iter().any(|kind| !is_event_kind(*kind)) {
            return Err(Refusal::invalid(
                "kinds has a value that is none of the enumeration KernelEventKind.",
            ));
        }
        let (sender, receiver) = mpsc::channel(KEPT_EVENTS + EVENT_LAG);
        let stream = EventStream {
            pid: request.pid,
            kinds: request.kinds.into_iter().collect(),
            sender,
        };
        if let Some(after) = request.after_sequence {
            if after < self.kept_after {
                return Err(Refusal::out_of_range(format!(
                    "The events after {after} are not kept any more: read the state, then subscribe without after_sequence."
                )));
            }
            for event in self
                .kept
                .iter()
                .filter(|event| event.sequence > after && stream.wants(event))
            {
                // There is room for all that is kept.
                drop(stream.sender.try_send((**event).clone()));
            }
        }
        self.events.push(stream);
        Ok(receiver)
    }

    /// Adds a subscriber to the events of one pipeline, from its start or from now on.
    pub fn subscribe_pipeline(&mut self, pid: &str) -> Stream<PipelineEvent> {
        let (sender, receiver) = mpsc::channel(EVENT_LAG);
        self.pipelines.entry(pid.to_owned()).or_default().push(sender);
        receiver
    }

    /// Ends the streams of a pipeline that has ended.
    pub fn forget_pipeline(&mut self, pid: &str) {
        self.pipelines.remove(pid);
    }

    /// Hands out events of durable changes. A subscriber that lags behind too far loses its stream.
    pub fn publish_events(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Kernel(event) => {
                    self.events.retain(|stream| {
                        !stream.wants(&event) || stream.sender.try_send((*event).clone()).is_ok()
                    });
                    self.kept.push_back(event);
                    self.forget_oldest();
                }
                Event::Pipeline(event) => {
                    let is_last = event.kind() == PipelineEventKind::Ended;
                    if let Some(streams) = self.pipelines.get_mut(&event.pid) {
                        streams.retain(|sender| sender.try_send((*event).clone()).is_ok());
                    }
                    if is_last {
                        self.pipelines.remove(&event.pid);
                    }
                }
            }
        }
    }

    /// Adds a subscriber of the bus.
    pub fn subscribe(
        &mut self,
        request: &SubscribeRequest,
    ) -> Result<(SubscriptionId, Stream<Message>), Refusal> {
        let id = self.bus.subscribe(request)?;
        // The window of the bus is the bound: the channel always has room.
        let (sender, receiver) = mpsc::channel(1 << 16);
        self.subscriptions.insert(id, sender);
        Ok((id, receiver))
    }

    pub fn unsubscribe(&mut self, id: SubscriptionId) {
        self.subscriptions.remove(&id);
        self.bus.unsubscribe(id);
    }

    /// Gives a message its identifier and its time.
    pub fn stamp(&mut self, message: Message, now_us: i64) -> Message {
        self.messages += 1;
        Message {
            message_id: format!("m{}", self.messages),
            sent_us: now_us,
            ..message
        }
    }

    /// Accepts a message, or keeps it until its receivers have room.
    pub fn post(&mut self, address: Address, message: Message, deadline_us: i64, reply: Acceptance) {
        // What the sender posted before goes first.
        let is_behind = self.parked.has_sender(&message.sender);
        let parked = Parked {
            address,
            message,
            deadline_us,
            reply,
        };
        if is_behind || !self.bus.has_room(&parked.address) {
            self.parked.push(parked, &self.bus);
        } else {
            accept(&mut self.bus, &mut self.counted, parked);
        }
    }

    /// Asks a subscriber of the topic, whose reply goes to `reply`.
    pub fn query(&mut self, topic: String, message: Message, deadline_us: i64, reply: Reply<QueryResponse>) {
        let address = Address::AnyOf(topic);
        if !self.bus.has_receiver(&address) {
            reply.now(Err(Refusal::unavailable("The topic has no subscriber.")));
            return;
        }
        self.messages += 1;
        let id = self.messages;
        self.queries.insert(id, OpenQuery { deadline_us, reply });
        let message = Message {
            query_id: format!("q{id}"),
            ..message
        };
        self.post(address, message, deadline_us, Acceptance::Query);
    }

    /// Answers a query.
    pub fn reply(&mut self, query_id: &str, response: QueryResponse) -> Result<(), Refusal> {
        if query_id.is_empty() {
            return Err(Refusal::invalid("Name the query."));
        }
        let number = query_id.strip_prefix('q').and_then(|digits| digits.parse().ok());
        let query = number.and_then(|number: u64| self.queries.remove(&number));
        let gone = || Refusal::not_found(format!("Nobody waits for a reply to \"{query_id}\"."));
        query.ok_or_else(gone)?.reply.now(Ok(response));
        Ok(())
    }

    pub fn open_queries(&self) -> usize {
        self.queries.len()
    }

    /// Accepts what has room by now, and hands messages to subscribers.
    pub fn move_messages(&mut self) {
        loop {
            for delivery in self.bus.deliver() {
                let sender = self.subscriptions.get(&delivery.to);
                self.counted.delivered += 1;
                if sender.is_none_or(|sender| sender.try_send(delivery.message).is_err()) {
                    self.unsubscribe(delivery.to);
                }
            }
            let counted = &mut self.counted;
            let accepted = self
                .parked
                .take_acceptable(&mut self.bus, |bus, parked| accept(bus, counted, parked));
            if accepted == 0 {
                break;
            }
        }
    }

    /// Refuses what has waited too long.
    pub fn expire(&mut self, now_us: i64) {
        for parked in self.parked.take_expired(now_us, &self.bus) {
            if let Acceptance::Publish(reply) = parked.reply {
                self.counted.refused += 1;
                reply.now(Err(Refusal::exhausted("A receiver of the message has no room.")));
            }
        }
        let over: Vec<u64> = self
            .queries
            .iter()
            .filter(|(_, query)| query.deadline_us <= now_us)
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            if let Some(query) = self.queries.remove(&id) {
                query.reply.now(Err(Refusal::too_late("No reply came in time.")));
            }
        }
    }
}

fn accept(bus: &mut Bus, counted: &mut MessageCounts, parked: Parked) {
    let message_id = parked.message.message_id.clone();
    let receivers = bus.accept(&parked.address, parked.message);
    counted.accepted += 1;
    let receivers = receivers.and_then(|count| i64::try_from(count).ok()).unwrap_or(0);
    if let Acceptance::Publish(reply) = parked.reply {
        reply.now(Ok(PublishResponse {
            message_id,
            receivers,
        }));
    }
}
