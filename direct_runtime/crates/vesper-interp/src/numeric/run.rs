//! Does the steps of a numeric form.
//!
//! Every step is done by a function, which calls that of the next one as the last thing it does. A compiler makes a jump
//! of such a call, so that a step costs one jump; and where it does not, as in a build without optimisation, no more calls
//! are open at a time than some rounds have steps, because every so often what goes back returns.

use vesper_ir::Value;

use super::handlers::handler;
use super::slots::Slots;
use super::step::Step;

/// The parts of a step with the function that does it: the code of the step is no more needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadyStep {
    handler: Handler,
    pub(super) to: u16,
    pub(super) out: u8,
    pub(super) a: u8,
    pub(super) b: u8,
    pub(super) c: u8,
    pub(super) d: u8,
    pub(super) e: u8,
}

impl ReadyStep {
    pub(super) fn new(step: Step) -> Self {
        Self {
            handler: handler(step.code),
            to: step.to,
            out: step.out,
            a: step.a,
            b: step.b,
            c: step.c,
            d: step.d,
            e: step.e,
        }
    }
}

/// Does a step; given are the steps behind it and what there is to work with.
pub(super) type Handler = fn(&ReadyStep, &[ReadyStep], &mut Slots, &mut Work<'_>) -> Signal;

/// What steps work with besides slots.
#[derive(Debug)]
pub(super) struct Work<'a> {
    /// All steps, for those that jump.
    pub(super) steps: &'a [ReadyStep],
    /// What the loop goes through, where its range is one of places of these.
    pub(super) items: &'a [Value],
    pub(super) fuel: u64,
    /// What was there when the round began.
    pub(super) fuel_at_head: u64,
    /// How many more jumps back are made before one returns.
    pub(super) open: u32,
}

/// So many times in a row a jump back is a call like any other. It must return now and then: a compiler that makes no
/// jumps of calls leaves all of them open.
pub(super) const MOST_OPEN: u32 = 16;

/// How the steps came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The loop was left.
    Left,
    /// Before a round: all slots are as the round would find them.
    AtHead,
    /// In a round, which is to be undone.
    InRound,
}

/// What a step gives back when it does not end in the next one: one number, because of two a compiler makes no jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signal(u32);

impl Signal {
    pub(super) const AT_HEAD: Self = Self(1 << 16);
    pub(super) const IN_ROUND: Self = Self(2 << 16);
    pub(super) const LEFT: Self = Self(3 << 16);

    /// It goes on at this step, which is not behind the last one.
    #[inline]
    pub(super) fn goes_on(at: u16) -> Self {
        Self(u32::from(at))
    }

    /// Where it goes on, or how it ended.
    #[inline]
    fn read(self) -> Result<u16, Ended> {
        match self {
            Self::LEFT => Err(Ended::Left),
            Self::AT_HEAD => Err(Ended::AtHead),
            Self(place) => u16::try_from(place).map_err(|_| Ended::InRound),
        }
    }
}

/// Does the first of these steps, and those that follow.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "the call of the next step must be the last of this one"
)]
pub(super) fn go(steps: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    match steps.split_first() {
        Some((step, behind)) => (step.handler)(step, behind, slots, work),
        // Every way ends with a step that leaves; where one did not, the bytecode does the round.
        None => Signal::IN_ROUND,
    }
}

/// Does steps until the loop is left or a round is for the bytecode to do, and says how much fuel is left: what was there
/// before the round, where one is to be undone. True with it where there was none left.
pub(super) fn run(steps: &[ReadyStep], slots: &mut Slots, items: &[Value], fuel: u64) -> (Ended, u64, bool) {
    let mut work = Work {
        steps,
        items,
        fuel,
        fuel_at_head: fuel,
        open: MOST_OPEN,
    };
    let mut place = 0;
    loop {
        let behind = steps.get(place..).unwrap_or(&[]);
        match go(behind, slots, &mut work).read() {
            Ok(to) => place = usize::from(to),
            Err(Ended::InRound) => return (Ended::InRound, work.fuel_at_head, work.fuel == 0),
            Err(ended) => return (ended, work.fuel, work.fuel == 0),
        }
    }
}
