//! Parked messages against a list that is gone through from its beginning.

use std::collections::{BTreeSet, VecDeque};

use super::{Acceptance, Address, Bus, Message, Parked, ParkedMessages};
use crate::proto::v1::SubscribeRequest;

const QUEUE: usize = 4_096;
const TOPICS: [&str; 4] = ["a.x", "a.y", "b.x", "b.y"];
const PATTERNS: [&str; 5] = ["a.*", "b.*", "a.x", "b.y", "c"];

/// Numbers without a pattern, the same in every run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }

    fn one_of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts.get(self.below(texts.len())).copied().unwrap_or_default()
    }
}

#[derive(Clone)]
struct Listed {
    address: Address,
    message: Message,
    deadline_us: i64,
}

/// The same messages on both sides, each with a bus of its own.
#[derive(Default)]
struct Sides {
    bus: Bus,
    parked: ParkedMessages,
    list_bus: Bus,
    list: VecDeque<Listed>,
    subscribers: Vec<u64>,
}

impl Sides {
    fn subscribe(&mut self, topic: &str) {
        let name = format!("s{}", self.bus.queue_changes());
        let request = SubscribeRequest {
            topics: vec![topic.to_owned()],
            name: name.clone(),
            max_in_flight: 1,
            ..SubscribeRequest::default()
        };
        for bus in [&mut self.bus, &mut self.list_bus] {
            self.subscribers.extend(bus.subscribe(&request));
            // The queue has room for one message.
            for _ in 1..QUEUE {
                bus.accept(&Address::Name(name.clone()), Message::default());
            }
        }
        self.subscribers.dedup();
    }

    /// Lets a subscriber take messages, or go.
    fn serve(&mut self, draws: &mut Draws, is_leaving: bool) {
        let place = draws.below(self.subscribers.len().max(1));
        let Some(id) = self.subscribers.get(place).copied() else {
            return;
        };
        for bus in [&mut self.bus, &mut self.list_bus] {
            if is_leaving {
                bus.unsubscribe(id);
            }
            bus.deliver();
            bus.taken(id, 1);
            bus.deliver();
        }
        if is_leaving {
            self.subscribers.remove(place);
        }
    }

    fn post(&mut self, listed: Listed) {
        let parked = Parked {
            address: listed.address.clone(),
            message: listed.message.clone(),
            deadline_us: listed.deadline_us,
            reply: Acceptance::Query,
        };
        self.parked.push(parked, &self.bus);
        self.list.push_back(listed);
    }

    /// Returns what each side accepts now.
    fn accept(&mut self) -> [Vec<String>; 2] {
        let mut accepted = [Vec::new(), Vec::new()];
        let [of_parked, of_list] = &mut accepted;
        let count = self.parked.take_acceptable(&mut self.bus, |bus, parked| {
            of_parked.push(parked.message.message_id.clone());
            assert!(bus.accept(&parked.address, parked.message).is_some());
        });
        assert_eq!(count, of_parked.len());
        let mut held = BTreeSet::new();
        for listed in std::mem::take(&mut self.list) {
            if held.contains(&listed.message.sender) || !self.list_bus.has_room(&listed.address) {
                held.insert(listed.message.sender.clone());
                self.list.push_back(listed);
            } else {
                of_list.push(listed.message.message_id.clone());
                self.list_bus.accept(&listed.address, listed.message);
            }
        }
        accepted
    }

    /// Returns what is too late on each side.
    fn expire(&mut self, now_us: i64) -> [BTreeSet<String>; 2] {
        let of_parked = self.parked.take_expired(now_us, &self.bus);
        let (of_list, kept) = std::mem::take(&mut self.list)
            .into_iter()
            .partition::<VecDeque<_>, _>(|listed| listed.deadline_us <= now_us);
        self.list = kept;
        [
            of_parked
                .into_iter()
                .map(|each| each.message.message_id)
                .collect(),
            of_list.into_iter().map(|each| each.message.message_id).collect(),
        ]
    }
}

#[test]
fn the_same_messages_are_accepted_in_the_same_order_as_from_a_list() {
    let (mut draws, mut sides) = (Draws(20_261_119), Sides::default());
    let (mut accepted, mut expired, mut most_parked) = (0, 0, 0);
    for now_us in 0..6_000 {
        match draws.below(20) {
            0 if sides.subscribers.len() < 6 => sides.subscribe(draws.one_of(&PATTERNS)),
            1 if draws.below(4) == 0 => sides.serve(&mut draws, true),
            2..9 => sides.serve(&mut draws, false),
            _ => {
                let topic = draws.one_of(&TOPICS).to_owned();
                let listed = Listed {
                    address: Address::Topic(topic),
                    message: Message {
                        message_id: now_us.to_string(),
                        sender: draws.below(5).to_string(),
                        ..Message::default()
                    },
                    deadline_us: now_us + i64::try_from(draws.below(200)).unwrap_or(0),
                };
                sides.post(listed);
            }
        }
        let [of_parked, of_list] = sides.expire(now_us);
        assert_eq!(of_parked, of_list, "too late at {now_us}");
        expired += of_list.len();
        most_parked = most_parked.max(sides.list.len());
        let [of_parked, of_list] = sides.accept();
        assert_eq!(of_parked, of_list, "accepted at {now_us}");
        accepted += of_list.len();
        for sender in 0..5 {
            let is_waiting = sides
                .list
                .iter()
                .any(|each| each.message.sender == sender.to_string());
            assert_eq!(sides.parked.has_sender(&sender.to_string()), is_waiting);
        }
    }
    assert!(
        accepted > 500 && expired > 100 && most_parked > 20,
        "{accepted} {expired} {most_parked}"
    );
}
