//! Comparison of machine code and interpreter by calls that ran on both.
//!
//! Times vary with inputs, so each call is compared with itself and the median of the ratios decides; a pause of the
//! machine changes nothing. Machine code rests only if it was clearly slower twice in a row. While it is faster,
//! samples become rarer.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Open,
    Faster,
    /// Clearly slower in consecutive rounds.
    Slower,
}

/// Compared calls per verdict.
pub(super) const SAMPLES_PER_ROUND: usize = 15;
/// Consecutive rounds in which machine code must be slower.
const SLOWER_ROUNDS: u8 = 2;
/// The fixed-point unit of ratios.
const RATIO_ONE: u64 = 1_024;
/// The ratio that counts as slower: an eighth more exceeds clock noise.
const SLOWER_RATIO: u64 = RATIO_ONE + RATIO_ONE / 8;
const MIN_SAMPLE_INTERVAL: u32 = 16;
const MAX_SAMPLE_INTERVAL: u32 = 4_096;
const MIN_REST_CALLS: u32 = 10_000;
const MAX_REST_CALLS: u32 = 10_000_000;

#[derive(Debug)]
pub(super) struct Monitor {
    interval: u32,
    /// The time of machine code divided by that of the interpreter, per sample.
    ratios: Vec<u64>,
    slower: u8,
}

impl Monitor {
    pub(super) fn new() -> Self {
        Self {
            interval: MIN_SAMPLE_INTERVAL,
            ratios: Vec::new(),
            slower: 0,
        }
    }

    /// Returns the number of calls between two samples.
    pub(super) fn interval(&self) -> u32 {
        self.interval
    }

    /// Records the nanoseconds of both tiers for the same inputs.
    pub(super) fn record(&mut self, machine: u64, interpreter: u64) -> Verdict {
        // The clock may be coarser than a run, so zero counts as one.
        let (machine, interpreter) = (machine.max(1), interpreter.max(1));
        self.ratios.push(machine.saturating_mul(RATIO_ONE) / interpreter);
        if self.ratios.len() < SAMPLES_PER_ROUND {
            return Verdict::Open;
        }
        let ratio = median(std::mem::take(&mut self.ratios));
        if ratio > SLOWER_RATIO {
            self.slower += 1;
            return if self.slower >= SLOWER_ROUNDS {
                Verdict::Slower
            } else {
                Verdict::Open
            };
        }
        self.slower = 0;
        if ratio < RATIO_ONE {
            self.interval = self.interval.saturating_mul(2).min(MAX_SAMPLE_INTERVAL);
        }
        Verdict::Faster
    }
}

fn median(mut ratios: Vec<u64>) -> u64 {
    ratios.sort_unstable();
    ratios.get(ratios.len() / 2).copied().unwrap_or_default()
}

/// Returns the calls of the next rest. Each rest is longer, and code is retried because inputs may change.
pub(super) fn rest_calls(rests: u32) -> u32 {
    MIN_REST_CALLS
        .saturating_mul(4_u32.saturating_pow(rests))
        .min(MAX_REST_CALLS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(monitor: &mut Monitor, interpreter: u64, machine: u64) -> Verdict {
        let verdicts = (0..SAMPLES_PER_ROUND).map(|_| monitor.record(machine, interpreter));
        verdicts.last().unwrap_or(Verdict::Open)
    }

    #[test]
    fn slower_code_is_noticed_the_second_time() {
        let mut monitor = Monitor::new();
        assert_eq!(rounds(&mut monitor, 100, 120), Verdict::Open);
        assert_eq!(rounds(&mut monitor, 100, 120), Verdict::Slower);
    }

    #[test]
    fn code_that_is_slower_only_once_stays() {
        let mut monitor = Monitor::new();
        for _ in 0..5 {
            assert_eq!(rounds(&mut monitor, 100, 120), Verdict::Open);
            assert_eq!(rounds(&mut monitor, 100, 90), Verdict::Faster);
        }
    }

    #[test]
    fn an_eighth_more_is_noise() {
        let mut monitor = Monitor::new();
        for _ in 0..5 {
            assert_eq!(rounds(&mut monitor, 800, 900), Verdict::Faster);
        }
        assert_eq!(monitor.interval(), MIN_SAMPLE_INTERVAL, "it was not faster");
        assert_eq!(rounds(&mut monitor, 800, 901), Verdict::Open);
        assert_eq!(rounds(&mut monitor, 800, 901), Verdict::Slower);
    }

    #[test]
    fn a_few_calls_that_took_long_change_nothing() {
        let mut monitor = Monitor::new();
        for round in 0..10 * SAMPLES_PER_ROUND as u64 {
            let late = if round % 5 == 0 { 1_000_000 } else { 0 };
            assert_ne!(monitor.record(50 + late, 100), Verdict::Slower);
        }
    }

    #[test]
    fn inputs_of_all_sizes_are_compared_each_with_itself() {
        let mut monitor = Monitor::new();
        for round in 0..10 * SAMPLES_PER_ROUND as u64 {
            let size = if round % 2 == 0 { 10 } else { 10_000 };
            assert_ne!(monitor.record(size, 10 * size), Verdict::Slower);
        }
        assert!(monitor.interval() > MIN_SAMPLE_INTERVAL);
    }

    #[test]
    fn a_clock_that_stood_still_is_no_reason_to_divide_by_nothing() {
        let mut monitor = Monitor::new();
        assert_eq!(rounds(&mut monitor, 0, 0), Verdict::Faster);
    }

    #[test]
    fn faster_code_is_sampled_less_and_less() {
        let mut monitor = Monitor::new();
        for _ in 0..20 {
            rounds(&mut monitor, 100, 50);
        }
        assert_eq!(monitor.interval(), MAX_SAMPLE_INTERVAL);
    }

    #[test]
    fn each_rest_is_longer_up_to_an_end() {
        let rests: Vec<u32> = (0..8).map(rest_calls).collect();
        assert_eq!(
            rests,
            [
                10_000, 40_000, 160_000, 640_000, 2_560_000, 10_000_000, 10_000_000, 10_000_000
            ]
        );
        assert_eq!(rest_calls(u32::MAX), MAX_REST_CALLS);
    }
}
