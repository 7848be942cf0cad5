//! Handles of series: the addresses of their cells.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::layout::{BUCKETS, EXEMPLAR, SUM};

/// Upper bounds of the buckets of every histogram, in nanoseconds: 1 µs to 10 s.
pub const BOUNDS_NS: [u64; 22] = {
    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;
    [
        US,
        2_500,
        5 * US,
        10 * US,
        25 * US,
        50 * US,
        100 * US,
        250 * US,
        500 * US,
        MS,
        2_500 * US,
        5 * MS,
        10 * MS,
        25 * MS,
        50 * MS,
        100 * MS,
        250 * MS,
        500 * MS,
        1_000 * MS,
        2_500 * MS,
        5_000 * MS,
        10_000 * MS,
    ]
};

/// A number that only grows.
#[derive(Debug, Clone, Copy)]
pub struct Counter(pub(crate) &'static AtomicU64);

impl Counter {
    #[inline]
    pub fn add(self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    #[inline]
    pub fn get(self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A value that is set, with the time of its last change.
#[derive(Debug, Clone, Copy)]
pub struct Gauge {
    pub(crate) value: &'static AtomicU64,
    pub(crate) changed_at: &'static AtomicU64,
}

impl Gauge {
    pub fn set(self, value: f64) {
        self.value.store(value.to_bits(), Ordering::Relaxed);
        self.changed_at.store(now_ns(), Ordering::Relaxed);
    }

    pub fn get(self) -> f64 {
        f64::from_bits(self.value.load(Ordering::Relaxed))
    }

    pub fn add(self, by: f64) {
        let added = |bits| Some((f64::from_bits(bits) + by).to_bits());
        // The function always returns a value, so the update succeeds.
        let _ = self
            .value
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
        self.changed_at.store(now_ns(), Ordering::Relaxed);
    }
}

/// A distribution of durations.
#[derive(Debug, Clone, Copy)]
pub struct Histogram(pub(crate) &'static [AtomicU64]);

impl Histogram {
    pub fn observe(self, duration: Duration) {
        let nanoseconds = nanoseconds(duration);
        let bucket = BOUNDS_NS.partition_point(|bound| *bound < nanoseconds);
        for (place, by) in [(bucket, 1), (SUM, nanoseconds)] {
            if let Some(cell) = self.0.get(place) {
                cell.fetch_add(by, Ordering::Relaxed);
            }
        }
    }

    /// Adds a duration, and keeps it with the id of its trace as the exemplar of this series.
    pub fn observe_traced(self, duration: Duration, trace: u128) {
        self.observe(duration);
        let Some([sequence, fields @ ..]) = self.0.get(EXEMPLAR..) else {
            return;
        };
        let last = sequence.load(Ordering::Relaxed);
        let is_ours = last.is_multiple_of(2)
            && sequence
                .compare_exchange(last, last + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        // An odd number: another thread writes, and its exemplar is as good.
        if is_ours {
            let [high, low] =
                [trace >> 64, trace & u128::from(u64::MAX)].map(|half| u64::try_from(half).unwrap_or(0));
            let new = [high, low, nanoseconds(duration), now_ns()];
            for (cell, value) in fields.iter().zip(new) {
                cell.store(value, Ordering::Relaxed);
            }
            sequence.store(last + 2, Ordering::Release);
        }
    }
}

const _: () = assert!(BUCKETS == BOUNDS_NS.len() + 1);

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn now_ns() -> u64 {
    nanoseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}
