//! Does the steps of a numeric form.
//!
//! Every step is done by a function, which calls that of the next one as the last thing it does. A compiler makes a jump
//! of such a call, so that a step costs one jump; and where it does not, as in a build without optimisation, no more calls
//! are open at a time than there are steps, because what goes back returns.

use vesper_ir::Value;

use super::handlers::handler;
use super::slots::Slots;
use super::step::Step;

/// A step with the function that does it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadyStep {
    pub(super) handler: Handler,
    pub(super) step: Step,
}

impl ReadyStep {
    pub(super) fn new(step: Step) -> Self {
        Self {
            handler: handler(step.code),
            step,
        }
    }
}

/// Does a step; given are all steps, the place of the one behind this one, and what there is to work with.
pub(super) type Handler = fn(&Step, &[ReadyStep], usize, &mut Slots, &mut Work<'_>) -> Ended;

/// What steps work with besides slots.
#[derive(Debug)]
pub(super) struct Work<'a> {
    /// What the loop goes through, where its range is one of places of these.
    pub(super) items: &'a [Value],
    pub(super) fuel: u64,
    /// What was there when the round began.
    pub(super) fuel_at_head: u64,
}

/// How steps came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The loop was left by this exit.
    Left(u16),
    /// Before a round: all slots are as the round would find them.
    AtHead,
    /// In a round, which is to be undone.
    InRound,
    /// Not at all: it goes on at this step, which is not behind the last one.
    GoesOn(u16),
}

/// Does the step at a place, and those that follow.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the call of the next step must be the last of this one")]
pub(super) fn go(steps: &[ReadyStep], place: usize, slots: &mut Slots, work: &mut Work<'_>) -> Ended {
    match steps.get(place) {
        Some(ready) => (ready.handler)(&ready.step, steps, place + 1, slots, work),
        // Every way ends with a step that leaves; where one did not, the bytecode does the round.
        None => Ended::InRound,
    }
}

/// Does steps until the loop is left or a round is for the bytecode to do, and says how much fuel is left: what was there
/// before the round, where one is to be undone.
pub(super) fn run(steps: &[ReadyStep], slots: &mut Slots, items: &[Value], fuel: u64) -> (Ended, u64) {
    let mut work = Work {
        items,
        fuel,
        fuel_at_head: fuel,
    };
    let mut place = 0;
    loop {
        match go(steps, place, slots, &mut work) {
            Ended::GoesOn(to) => place = usize::from(to),
            Ended::InRound => return (Ended::InRound, work.fuel_at_head),
            ended => return (ended, work.fuel),
        }
    }
}
