//! Whether machine code is faster than the interpreter, from calls that were run on both sides.
//!
//! Inputs differ from call to call, and so do times: each call is compared with itself, and of the ratios the median
//! counts, so that a machine that stands still for a moment changes nothing. Machine code is left only when it was clearly
//! slower twice in a row. It is looked at less and less often while it is faster.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Open,
    Faster,
    /// Clearly, and more than once.
    Slower,
}

/// So many calls are compared before anything is said.
pub(super) const SAMPLES: usize = 15;
/// So many times in a row must it be slower.
const SLOWER: u8 = 2;
/// Ratios are counted in parts of this.
const LEVEL: u64 = 1_024;
/// An eighth more is no noise of a clock.
const CLEARLY: u64 = LEVEL + LEVEL / 8;
const EVERY: u32 = 16;
const MOST_SELDOM: u32 = 4_096;
const SHORTEST_REST: u32 = 10_000;
const LONGEST_REST: u32 = 10_000_000;

#[derive(Debug)]
pub(super) struct Monitor {
    every: u32,
    /// What machine code took, of what the interpreter took for the same inputs.
    ratios: Vec<u64>,
    slower: u8,
}

impl Monitor {
    pub(super) fn new() -> Self {
        Self {
            every: EVERY,
            ratios: Vec::new(),
            slower: 0,
        }
    }

    /// So many calls are between two that are timed.
    pub(super) fn every(&self) -> u32 {
        self.every
    }

    /// Nanoseconds that either side took for the same inputs.
    pub(super) fn record(&mut self, machine: u64, interpreter: u64) -> Verdict {
        // A clock may be coarser than a run: what took nothing took less than one.
        let (machine, interpreter) = (machine.max(1), interpreter.max(1));
        self.ratios.push(machine.saturating_mul(LEVEL) / interpreter);
        if self.ratios.len() < SAMPLES {
            return Verdict::Open;
        }
        let ratio = median(std::mem::take(&mut self.ratios));
        if ratio > CLEARLY {
            self.slower += 1;
            return if self.slower >= SLOWER {
                Verdict::Slower
            } else {
                Verdict::Open
            };
        }
        self.slower = 0;
        if ratio < LEVEL {
            self.every = self.every.saturating_mul(2).min(MOST_SELDOM);
        }
        Verdict::Faster
    }
}

fn median(mut ratios: Vec<u64>) -> u64 {
    ratios.sort_unstable();
    ratios.get(ratios.len() / 2).copied().unwrap_or_default()
}

/// For how many calls code rests that has rested so often: its inputs may become others.
pub(super) fn rest(rests: u32) -> u32 {
    SHORTEST_REST
        .saturating_mul(4_u32.saturating_pow(rests))
        .min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(monitor: &mut Monitor, interpreter: u64, machine: u64) -> Verdict {
        let verdicts = (0..SAMPLES).map(|_| monitor.record(machine, interpreter));
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
        assert_eq!(monitor.every(), EVERY, "it was not faster");
        assert_eq!(rounds(&mut monitor, 800, 901), Verdict::Open);
        assert_eq!(rounds(&mut monitor, 800, 901), Verdict::Slower);
    }

    #[test]
    fn a_few_calls_that_took_long_change_nothing() {
        let mut monitor = Monitor::new();
        for round in 0..10 * SAMPLES as u64 {
            let late = if round % 5 == 0 { 1_000_000 } else { 0 };
            assert_ne!(monitor.record(50 + late, 100), Verdict::Slower);
        }
    }

    #[test]
    fn inputs_of_all_sizes_are_compared_each_with_itself() {
        let mut monitor = Monitor::new();
        for round in 0..10 * SAMPLES as u64 {
            let size = if round % 2 == 0 { 10 } else { 10_000 };
            assert_ne!(monitor.record(size, 10 * size), Verdict::Slower);
        }
        assert!(monitor.every() > EVERY);
    }

    #[test]
    fn a_clock_that_stood_still_is_no_reason_to_divide_by_nothing() {
        let mut monitor = Monitor::new();
        assert_eq!(rounds(&mut monitor, 0, 0), Verdict::Faster);
    }

    #[test]
    fn faster_code_is_looked_at_less_and_less() {
        let mut monitor = Monitor::new();
        for _ in 0..20 {
            rounds(&mut monitor, 100, 50);
        }
        assert_eq!(monitor.every(), MOST_SELDOM);
    }

    #[test]
    fn each_rest_is_longer_up_to_an_end() {
        let rests: Vec<u32> = (0..8).map(rest).collect();
        assert_eq!(
            rests,
            [
                10_000, 40_000, 160_000, 640_000, 2_560_000, 10_000_000, 10_000_000, 10_000_000
            ]
        );
        assert_eq!(rest(u32::MAX), LONGEST_REST);
    }
}
