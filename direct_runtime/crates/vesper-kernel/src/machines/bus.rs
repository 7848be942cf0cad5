//! The bus: subscriptions, groups, bounded queues, queries. In memory, and without a clock.
//!
//! A queue belongs to a subscriber without a group, or to a group. A message is accepted when each queue that it is for
//! has room; then it is in all of them. Messages leave a queue in order, to subscribers with room in their window.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::proto::v1::{BusStatus, Message, SubscribeRequest};
use crate::refusal::Refusal;

/// Messages and bytes that wait in one queue.
const MAX_QUEUED: usize = 4_096;
const MAX_QUEUED_BYTES: usize = 16 << 20;
const DEFAULT_WINDOW: usize = 256;
const MAX_WINDOW: usize = 65_536;
const MAX_TOPICS: usize = 1_000;

pub type SubscriptionId = u64;

/// Who a message is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Every subscriber of a topic, and one member of each group.
    Topic(String),
    /// The subscribers with a name.
    Name(String),
    /// One subscriber of a topic.
    AnyOf(String),
}

/// A message that is to be handed to a subscriber.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub to: SubscriptionId,
    pub message: Message,
}

/// A queue of a subscriber or of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueId {
    Of(SubscriptionId),
    Group(u64),
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    members: Vec<SubscriptionId>,
    /// The member whose turn it is.
    turn: usize,
}

#[derive(Debug)]
struct Waiting {
    message: Arc<Message>,
    delivery: i32,
}

#[derive(Debug)]
struct Subscriber {
    queue: QueueId,
    acknowledges: bool,
    window: usize,
    /// Handed over and not acknowledged or taken, oldest first.
    under_way: VecDeque<Waiting>,
}

#[derive(Debug, Default)]
pub struct Bus {
    subscribers: BTreeMap<SubscriptionId, Subscriber>,
    queues: BTreeMap<QueueId, Queue>,
    groups: BTreeMap<String, u64>,
    /// The queues of topics, of patterns (without their end) and of names.
    topics: BTreeMap<String, BTreeSet<QueueId>>,
    patterns: BTreeMap<String, BTreeSet<QueueId>>,
    names: BTreeMap<String, BTreeSet<QueueId>>,
    /// Queues that may have a message for a subscriber with room.
    stirred: BTreeSet<QueueId>,
    queue_changes: u64,
    next: u64,
}

impl Bus {
    /// Adds a subscriber, and returns its number.
    pub fn subscribe(&mut self, request: &SubscribeRequest) -> Result<SubscriptionId, Refusal> {
        if request.topics.is_empty() && request.name.is_empty() {
            return Err(Refusal::invalid("Name at least one topic, or a name."));
        }
        if request.topics.len() > MAX_TOPICS || request.topics.iter().any(String::is_empty) {
            return Err(Refusal::invalid(format!(
                "A topic is empty, or there are more than {MAX_TOPICS}."
            )));
        }
        let window = match usize::try_from(request.max_in_flight) {
            Ok(0) => DEFAULT_WINDOW,
            Ok(window) if window <= MAX_WINDOW => window,
            _ => {
                return Err(Refusal::invalid(format!(
                    "max_in_flight is not between 0 and {MAX_WINDOW}."
                )));
            }
        };
        self.next += 1;
        self.queue_changes += 1;
        let id = self.next;
        let queue_id = if request.group.is_empty() {
            QueueId::Of(id)
        } else {
            QueueId::Group(*self.groups.entry(request.group.clone()).or_insert(id))
        };
        let queue = self.queues.entry(queue_id).or_default();
        queue.members.push(id);
        for topic in &request.topics {
            let (index, key) = match topic.strip_suffix(".*") {
                Some(begin) => (&mut self.patterns, begin),
                None => (&mut self.topics, topic.as_str()),
            };
            index.entry(key.to_owned()).or_default().insert(queue_id);
        }
        if !request.name.is_empty() {
            self.names
                .entry(request.name.clone())
                .or_default()
                .insert(queue_id);
        }
        self.stirred.insert(queue_id);
        let subscriber = Subscriber {
            queue: queue_id,
            acknowledges: request.acknowledges,
            window,
            under_way: VecDeque::new(),
        };
        self.subscribers.insert(id, subscriber);
        Ok(id)
    }

    /// Removes a subscriber. What it had not acknowledged returns to its group.
    pub fn unsubscribe(&mut self, id: SubscriptionId) {
        let Some(subscriber) = self.subscribers.remove(&id) else {
            return;
        };
        if let QueueId::Of(_) = subscriber.queue {
            self.queue_changes += 1;
            self.queues.remove(&subscriber.queue);
            for index in [&mut self.topics, &mut self.patterns, &mut self.names] {
                index.retain(|_, queues| !queues.remove(&subscriber.queue) || !queues.is_empty());
            }
            return;
        }
        let Some(queue) = self.queues.get_mut(&subscriber.queue) else {
            return;
        };
        queue.members.retain(|member| *member != id);
        queue.turn = 0;
        self.stirred.insert(subscriber.queue);
        for mut waiting in subscriber.under_way.into_iter().rev() {
            waiting.delivery += 1;
            queue.bytes += size(&waiting.message);
            queue.waiting.push_front(waiting);
        }
    }

    /// Accepts a message into the queues that it is for, and returns their number. None: one of them has no room.
    pub fn accept(&mut self, address: &Address, message: Message) -> Option<usize> {
        let mut targets = self.queues_of(address);
        if matches!(address, Address::AnyOf(_)) {
            // One receiver: that with members and the fewest messages waiting.
            let rank = |id: &QueueId| {
                self.queues
                    .get(id)
                    .map(|queue| (queue.members.is_empty(), queue.waiting.len(), *id))
            };
            targets.sort_by_key(rank);
            targets.truncate(1);
        }
        if !self.has_room_in(&targets) {
            return None;
        }
        let message = Arc::new(message);
        for id in &targets {
            if let Some(queue) = self.queues.get_mut(id) {
                queue.bytes += size(&message);
                queue.waiting.push_back(Waiting {
                    message: Arc::clone(&message),
                    delivery: 1,
                });
            }
            self.stirred.insert(*id);
        }
        Some(targets.len())
    }

    /// Returns true where a subscriber with a stream would get such a message.
    pub fn has_receiver(&self, address: &Address) -> bool {
        let has_member = |id: &QueueId| self.queues.get(id).is_some_and(|queue| !queue.members.is_empty());
        self.queues_of(address).iter().any(has_member)
    }

    /// Returns true where there is a queue for such a message, even without a member.
    pub fn has_queue(&self, address: &Address) -> bool {
        !self.queues_of(address).is_empty()
    }

    /// Returns true where a message could be accepted now.
    pub fn has_room(&self, address: &Address) -> bool {
        self.has_room_in(&self.queues_of(address))
    }

    /// Returns true where each of the queues has room.
    pub fn has_room_in(&self, queues: &[QueueId]) -> bool {
        let has_room = |id: &QueueId| self.queues.get(id).is_some_and(Queue::has_room);
        queues.iter().all(has_room)
    }

    /// Changes whenever the queues of an address may have changed.
    pub fn queue_changes(&self) -> u64 {
        self.queue_changes
    }

    /// Returns the queues that a message is for.
    pub fn queues_of(&self, address: &Address) -> Vec<QueueId> {
        let topic = match address {
            Address::Name(name) => return self.names.get(name).into_iter().flatten().copied().collect(),
            Address::Topic(topic) | Address::AnyOf(topic) => topic,
        };
        let mut found: BTreeSet<QueueId> = self.topics.get(topic).into_iter().flatten().copied().collect();
        for (end, _) in topic.match_indices('.') {
            let begin = topic.get(..end).and_then(|begin| self.patterns.get(begin));
            found.extend(begin.into_iter().flatten());
        }
        found.into_iter().collect()
    }

    /// Takes the messages for which subscribers have room out of the queues.
    pub fn deliver(&mut self) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        for id in std::mem::take(&mut self.stirred) {
            let Some(queue) = self.queues.get_mut(&id) else {
                continue;
            };
            while let Some(member) = queue.next_member(&self.subscribers) {
                let Some(waiting) = queue.waiting.pop_front() else {
                    break;
                };
                let Some(subscriber) = self.subscribers.get_mut(&member) else {
                    break;
                };
                queue.bytes -= size(&waiting.message).min(queue.bytes);
                let message = Message {
                    subscription_id: member.to_string(),
                    delivery: waiting.delivery,
                    ..(*waiting.message).clone()
                };
                subscriber.under_way.push_back(waiting);
                deliveries.push(Delivery { to: member, message });
            }
        }
        deliveries
    }

    /// Learns that the stream of a subscriber has taken its oldest messages.
    pub fn taken(&mut self, id: SubscriptionId, count: usize) {
        let subscriber = self.subscribers.get_mut(&id);
        if let Some(subscriber) = subscriber.filter(|subscriber| !subscriber.acknowledges) {
            let count = count.min(subscriber.under_way.len());
            subscriber.under_way.drain(..count);
            self.stirred.insert(subscriber.queue);
        }
    }

    /// Learns that a subscriber has acknowledged messages, and returns how many were waiting for it.
    pub fn acknowledge(&mut self, id: &str, messages: &[String]) -> Result<i64, Refusal> {
        if id.is_empty() {
            return Err(Refusal::invalid("Name the subscription."));
        }
        let unknown = || Refusal::not_found(format!("There is no subscription \"{id}\"."));
        let number: u64 = id.parse().map_err(|_| unknown())?;
        let subscriber = self.subscribers.get_mut(&number).ok_or_else(unknown)?;
        if !subscriber.acknowledges {
            return Err(Refusal::precondition(format!(
                "The subscription {id} does not acknowledge: subscribe with acknowledges."
            )));
        }
        let named: BTreeSet<&str> = messages.iter().map(String::as_str).collect();
        let before = subscriber.under_way.len();
        subscriber
            .under_way
            .retain(|waiting| !named.contains(waiting.message.message_id.as_str()));
        self.stirred.insert(subscriber.queue);
        Ok(i64::try_from(before - subscriber.under_way.len()).unwrap_or(i64::MAX))
    }

    pub fn status(&self) -> BusStatus {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let under_way = self
            .subscribers
            .values()
            .map(|subscriber| subscriber.under_way.len());
        BusStatus {
            subscribers: count(self.subscribers.len()),
            topics: count(self.topics.len() + self.patterns.len()),
            queued: count(
                self.queues
                    .values()
                    .map(|queue| queue.waiting.len())
                    .chain(under_way)
                    .sum(),
            ),
            open_queries: 0,
        }
    }
}

impl Queue {
    fn has_room(&self) -> bool {
        self.waiting.len() < MAX_QUEUED && self.bytes < MAX_QUEUED_BYTES
    }

    /// Returns the next member with room, and passes the turn on.
    fn next_member(&mut self, subscribers: &BTreeMap<SubscriptionId, Subscriber>) -> Option<SubscriptionId> {
        if self.waiting.is_empty() {
            return None;
        }
        let count = self.members.len();
        let places = (self.turn..self.turn + count).map(|place| place % count.max(1));
        let has_room = |member: &SubscriptionId| {
            subscribers
                .get(member)
                .is_some_and(|subscriber| subscriber.under_way.len() < subscriber.window)
        };
        for place in places {
            if let Some(member) = self.members.get(place).copied().filter(has_room) {
                self.turn = place + 1;
                return Some(member);
            }
        }
        None
    }
}

fn size(message: &Message) -> usize {
    let headers: usize = message
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    message.payload.len() + headers + 200
}
