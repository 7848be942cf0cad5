//! Messages whose receivers have no room yet.
//!
//! Only the oldest message of a sender can be accepted. These are grouped by the queues that they are for: what a
//! queue's room costs does not grow with the number of senders that wait for it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::Acceptance;
use crate::machines::bus::{Address, Bus, QueueId};
use crate::proto::v1::Message;

#[derive(Debug)]
pub(super) struct Parked {
    pub(super) address: Address,
    pub(super) message: Message,
    pub(super) deadline_us: i64,
    pub(super) reply: Acceptance,
}

#[derive(Debug, Default)]
pub(super) struct ParkedMessages {
    /// By arrival.
    messages: BTreeMap<u64, Parked>,
    arrivals: u64,
    deadlines: BTreeSet<(i64, u64)>,
    senders: BTreeMap<String, BTreeSet<u64>>,
    /// The oldest message of each sender, by queues.
    oldest: BTreeMap<Vec<QueueId>, BTreeSet<u64>>,
    /// The state of the bus's queues for which `oldest` is grouped.
    queue_changes: u64,
}

impl ParkedMessages {
    pub(super) fn has_sender(&self, sender: &str) -> bool {
        self.senders.contains_key(sender)
    }

    pub(super) fn push(&mut self, parked: Parked, bus: &Bus) {
        self.group(bus);
        self.arrivals += 1;
        let (number, sender) = (self.arrivals, parked.message.sender.clone());
        self.deadlines.insert((parked.deadline_us, number));
        self.messages.insert(number, parked);
        self.senders.entry(sender.clone()).or_default().insert(number);
        self.add_oldest(&sender, bus);
    }

    /// Takes the messages that the bus has room for, in the order of their arrival, and gives each to `accept`.
    pub(super) fn take_acceptable(
        &mut self,
        bus: &mut Bus,
        mut accept: impl FnMut(&mut Bus, Parked),
    ) -> usize {
        self.group(bus);
        let with_room = self.oldest.iter().filter(|(queues, _)| bus.has_room_in(queues));
        let mut next: BTreeSet<(u64, Vec<QueueId>)> = with_room
            .filter_map(|(queues, numbers)| Some((*numbers.first()?, queues.clone())))
            .collect();
        let mut count = 0;
        while let Some((number, queues)) = next.pop_first() {
            if !bus.has_room_in(&queues) {
                continue;
            }
            if let Some(parked) = self.take(number, bus) {
                next.extend(self.oldest_of(&parked.message.sender, bus));
                accept(bus, parked);
                count += 1;
            }
            if let Some(number) = self.oldest.get(&queues).and_then(BTreeSet::first) {
                next.insert((*number, queues));
            }
        }
        count
    }

    /// Takes the messages that have waited too long.
    pub(super) fn take_expired(&mut self, now_us: i64, bus: &Bus) -> Vec<Parked> {
        self.group(bus);
        let expired = self.deadlines.range(..=(now_us, u64::MAX));
        let numbers: Vec<u64> = expired.map(|(_, number)| *number).collect();
        numbers
            .into_iter()
            .filter_map(|number| self.take(number, bus))
            .collect()
    }

    fn take(&mut self, number: u64, bus: &Bus) -> Option<Parked> {
        let parked = self.messages.remove(&number)?;
        self.deadlines.remove(&(parked.deadline_us, number));
        let queues = bus.queues_of(&parked.address);
        remove(&mut self.oldest, &queues, number);
        remove(&mut self.senders, &parked.message.sender, number);
        self.add_oldest(&parked.message.sender, bus);
        Some(parked)
    }

    /// Groups the messages anew where queues came or went.
    fn group(&mut self, bus: &Bus) {
        if self.queue_changes != bus.queue_changes() {
            self.queue_changes = bus.queue_changes();
            self.oldest.clear();
            for sender in self.senders.keys().cloned().collect::<Vec<_>>() {
                self.add_oldest(&sender, bus);
            }
        }
    }

    fn add_oldest(&mut self, sender: &str, bus: &Bus) {
        if let Some((number, queues)) = self.oldest_of(sender, bus) {
            self.oldest.entry(queues).or_default().insert(number);
        }
    }

    fn oldest_of(&self, sender: &str, bus: &Bus) -> Option<(u64, Vec<QueueId>)> {
        let number = *self.senders.get(sender)?.first()?;
        let parked = self.messages.get(&number)?;
        Some((number, bus.queues_of(&parked.address)))
    }
}

fn remove<K: Ord>(groups: &mut BTreeMap<K, BTreeSet<u64>>, key: &K, number: u64) {
    if let Some(numbers) = groups.get_mut(key) {
        numbers.remove(&number);
        if numbers.is_empty() {
            groups.remove(key);
        }
    }
}
