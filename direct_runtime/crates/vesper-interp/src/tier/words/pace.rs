//! The pace of frameless runs. They cannot be interrupted, so a run that would take too long must not start.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest time for which a signal may have to wait.
const MAX_UNINTERRUPTED: Duration = Duration::from_millis(100);

/// The recent time per row, in picoseconds. A row may take less than a nanosecond.
#[derive(Debug, Default)]
pub struct Pace(AtomicU64);

impl Pace {
    /// Returns true if this many rows will finish in time. Also true if no time is known yet.
    pub fn allows(&self, rows: usize) -> bool {
        let a_row = self.0.load(Ordering::Relaxed);
        let expected = Duration::from_nanos(a_row.saturating_mul(rows as u64) / 1_000);
        if expected <= MAX_UNINTERRUPTED {
            return true;
        }
        // The machine may have been busy: the estimate decays, so that a later run is tried again.
        self.0.store(a_row - a_row / 8, Ordering::Relaxed);
        false
    }

    /// Records the time of this many rows. A run that gave up may have stopped at the first row, so it can only raise
    /// the estimate.
    pub fn took(&self, rows: usize, time: Duration, has_run: bool) {
        let picoseconds = u64::try_from(time.as_nanos().saturating_mul(1_000)).unwrap_or(u64::MAX);
        let a_row = picoseconds / rows.max(1) as u64;
        let before = self.0.load(Ordering::Relaxed);
        let known = if has_run { a_row } else { a_row.max(before) };
        self.0.store(known, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn what_takes_too_long_is_not_begun_and_tried_again_later() {
        let pace = Pace::default();
        assert!(pace.allows(usize::MAX));
        pace.took(10_000, 10 * MILLISECOND, true);
        assert!(pace.allows(50_000));
        assert!(!pace.allows(200_000));
        let refused = (0..20).take_while(|_| !pace.allows(200_000)).count();
        assert!((1..10).contains(&refused), "{refused}");
    }

    #[test]
    fn what_gave_up_at_once_says_nothing_good() {
        let pace = Pace::default();
        pace.took(10_000, 10 * MILLISECOND, true);
        pace.took(10_000, Duration::ZERO, false);
        assert!(!pace.allows(200_000));
        pace.took(10_000, 200 * MILLISECOND, false);
        assert!(!pace.allows(10_000));
        pace.took(10_000, MILLISECOND, true);
        assert!(pace.allows(200_000));
    }

    #[test]
    fn no_number_is_too_long_to_be_kept() {
        let pace = Pace::default();
        pace.took(0, Duration::MAX, true);
        assert!(!pace.allows(usize::MAX));
    }
}
