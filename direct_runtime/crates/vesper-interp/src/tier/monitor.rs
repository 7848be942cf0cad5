//! Whether machine code is faster than the interpreter, from the times of some calls on either side.
//!
//! Inputs differ from call to call, and so do times: medians of some calls are compared, and machine code is left only
//! when it was clearly slower twice in a row. It is looked at less and less often while it is faster.

/// Who ran a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Interpreter,
    Machine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Open,
    Faster,
    /// Clearly, and more than once.
    Slower,
}

/// So many calls of a side are compared.
pub(super) const SAMPLES: usize = 15;
/// So many times in a row must it be slower.
const SLOWER: u8 = 2;
const EVERY: u32 = 16;
const MOST_SELDOM: u32 = 4_096;
const SHORTEST_REST: u32 = 10_000;
const LONGEST_REST: u32 = 10_000_000;

#[derive(Debug)]
pub(super) struct Monitor {
    every: u32,
    interpreter: Vec<u64>,
    machine: Vec<u64>,
    slower: u8,
}

impl Monitor {
    pub(super) fn new() -> Self {
        Self {
            every: EVERY,
            interpreter: Vec::new(),
            machine: Vec::new(),
            slower: 0,
        }
    }

    /// So many calls are between two that are timed.
    pub(super) fn every(&self) -> u32 {
        self.every
    }

    /// Who should run the next call that is timed.
    pub(super) fn side(&self) -> Side {
        if self.interpreter.len() < self.machine.len() {
            Side::Interpreter
        } else {
            Side::Machine
        }
    }

    pub(super) fn record(&mut self, side: Side, nanoseconds: u64) -> Verdict {
        match side {
            Side::Interpreter => self.interpreter.push(nanoseconds),
            Side::Machine => self.machine.push(nanoseconds),
        }
        if self.interpreter.len() < SAMPLES || self.machine.len() < SAMPLES {
            return Verdict::Open;
        }
        let interpreter = median(std::mem::take(&mut self.interpreter));
        let machine = median(std::mem::take(&mut self.machine));
        // An eighth more is no noise of a clock.
        if machine > interpreter.saturating_add(interpreter / 8) {
            self.slower += 1;
            return if self.slower >= SLOWER {
                Verdict::Slower
            } else {
                Verdict::Open
            };
        }
        self.slower = 0;
        if machine < interpreter {
            self.every = self.every.saturating_mul(2).min(MOST_SELDOM);
        }
        Verdict::Faster
    }
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
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
        let mut last = Verdict::Open;
        for _ in 0..2 * SAMPLES {
            let side = monitor.side();
            let took = match side {
                Side::Interpreter => interpreter,
                Side::Machine => machine,
            };
            last = monitor.record(side, took);
        }
        last
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
            let side = monitor.side();
            let usual = if side == Side::Machine { 50 } else { 100 };
            let took = if round % 5 == 0 { usual + 1_000_000 } else { usual };
            assert_ne!(monitor.record(side, took), Verdict::Slower);
        }
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
