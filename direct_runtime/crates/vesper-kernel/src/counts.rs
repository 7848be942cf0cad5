//! What a kernel counts for its metrics, since its process began.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::kernel::Event;
use crate::proto::v1::{BusStatus, KernelEventKind};

/// Upper bounds of the buckets of durations, in microseconds.
pub const BOUNDS_US: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

/// Durations in buckets.
#[derive(Debug, Default)]
pub struct Durations {
    buckets: [AtomicU64; BOUNDS_US.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl Durations {
    pub fn observe(&self, duration: Duration) {
        let length_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let place = BOUNDS_US.partition_point(|bound| *bound < length_us);
        if let Some(bucket) = self.buckets.get(place) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_us.fetch_add(length_us, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the bounds, each with the number of durations up to it.
    pub fn cumulated(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.buckets.iter().scan(0, |sum, bucket| {
            *sum += bucket.load(Ordering::Relaxed);
            Some(*sum)
        });
        BOUNDS_US.into_iter().zip(counts)
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub fn sum_us(&self) -> u64 {
        self.sum_us.load(Ordering::Relaxed)
    }
}

/// Messages of the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    pub accepted: u64,
    /// Handed to the stream of a subscriber; a message for several counts for each.
    pub delivered: u64,
    /// Without room until the deadline of their sender.
    pub refused: u64,
}

/// What the writer counts.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Changes that were appended to the log.
    pub changes: u64,
    /// From the first change of a commit until it is durable.
    pub lag: Arc<Durations>,
    /// Processes that exceeded their quota, by counter.
    pub exceeded: BTreeMap<String, u64>,
}

impl Counts {
    pub(crate) fn count_commit(&mut self, changes: usize, lag: Duration) {
        self.changes += u64::try_from(changes).unwrap_or(0);
        self.lag.observe(lag);
    }

    pub(crate) fn count_events(&mut self, events: &[Event]) {
        for event in events {
            if let Event::Kernel(event) = event
                && event.kind() == KernelEventKind::ResourceExceeded
            {
                *self.exceeded.entry(event.resource.clone()).or_default() += 1;
            }
        }
    }
}

/// The state of a kernel in numbers.
#[derive(Clone, Debug)]
pub struct Figures {
    pub processes: BTreeMap<String, i64>,
    pub pending_interrupts: usize,
    pub bus: BusStatus,
    pub messages: MessageCounts,
    pub counts: Counts,
    /// This kernel writes its log and does not shut down.
    pub is_serving: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_the_durations_up_to_its_bound() {
        let durations = Durations::default();
        for length_us in [100, 101, 250, 9_999_999, 20_000_000] {
            durations.observe(Duration::from_micros(length_us));
        }
        let found: Vec<(u64, u64)> = durations.cumulated().collect();
        assert_eq!(found.first(), Some(&(100, 1)));
        assert_eq!(found.get(1), Some(&(250, 3)));
        assert_eq!(found.last(), Some(&(10_000_000, 4)));
        assert_eq!((durations.count(), durations.sum_us()), (5, 30_000_450));
    }
}
