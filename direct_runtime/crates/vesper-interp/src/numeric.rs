//! The numeric form of a loop: what only computes with integers, floats and booleans, on registers of 64 bits.
//!
//! In the bytecode every register holds a value, which says of what type it is. In a loop whose instructions all say that
//! already, by their operations, the registers can be plain numbers: no type is looked at, nothing is cloned or dropped.
//! Such a loop is translated once more, when the node is compiled (`translate`, then `shorten`), and its head becomes an
//! instruction that tries the numeric form (`run`).
//!
//! SEMANTICS: the numeric form decides nothing. Whatever is out of the ordinary (an operation that fails, a clause that
//! is false, fuel that is not at hand, a value that is null) is undone to the head of the round in which it happened, and
//! the bytecode does that round. A round has no effects, so it may be begun twice: registers that outlive it are written
//! at its end, fuel is put back, the collection is where it was. Errors, handlers and marks are therefore those of the
//! bytecode and of nothing else.

use vesper_ir::Value;

use crate::bytecode::{Code, Instruction, LoopSlot, Register};
use crate::loops::{LoopState, Range};
use crate::meter::Meter;

mod handlers;
mod live;
mod run;
mod shorten;
mod slots;
mod step;
mod translate;

use run::{Ended, ReadyStep};
use slots::Slots;

/// The numeric form of one loop.
#[derive(Debug)]
pub(crate) struct NumericLoop {
    steps: Vec<ReadyStep>,
    /// What stands in a slot before the first round, as bits.
    constants: Vec<(u8, u64)>,
    /// What is read from registers when the form is entered.
    loads: Vec<(Register, u8)>,
    /// The registers that outlive a round, where they are at the end of one, and where a round that is undone finds them.
    carried: Vec<Carried>,
    /// The first of the three slots for what is still to come; nothing for a loop that goes through nothing.
    position: Option<u8>,
    /// The instruction behind the loop.
    exit: usize,
    /// The words of the path that change in it. What was passed is not undone with a round: the bytecode passes it again.
    words: Vec<Word>,
    /// The form without notes of conditions, for when all of these have been passed; nothing where there are none.
    settled: Option<Box<NumericLoop>>,
}

/// A word of the path.
#[derive(Clone, Copy, Debug)]
struct Word {
    register: Register,
    slot: u8,
    /// The bits of the conditions in the loop.
    bits: u64,
}

#[derive(Clone, Copy, Debug)]
struct Carried {
    register: Register,
    slot: u8,
    /// Where it is kept for the case that the round is undone; its own slot where it is written at the very end.
    kept: u8,
}

/// A loop as the compiler has made it: where its head is, and the registers that outlive its rounds.
#[derive(Debug)]
pub(crate) struct LoopShape {
    pub(crate) head: usize,
    pub(crate) carried: Vec<Register>,
    /// The instruction behind the loop, where that is not the one behind the last jump back.
    pub(crate) exit: Option<usize>,
}

/// What a loop without a numeric form has in the place of its number.
pub(crate) const NO_FORM: u32 = u32::MAX;

/// So many entries that did little work are made, then no more: each costs as much as a few rounds.
const MAX_MISSES: u8 = 4;
/// After so many units of fuel it is looked for the first time whether all points were passed.
const FIRST_LOOK: u64 = 64;
/// Less than so many units of fuel is little work.
const LITTLE_WORK: u64 = 8;

/// Gives a numeric form to every loop that can have one.
pub(crate) fn add_numeric_forms(code: &mut Code) {
    let shapes = std::mem::take(&mut code.shapes);
    let ends = translate::ends_of_loops(code);
    let mut heads = Vec::new();
    for shape in &shapes {
        if let Some(end) = ends.get(&shape.head)
            && let Some(form) = translate::translate(code, shape, shape.exit.unwrap_or(*end + 1))
            && let Ok(number) = u32::try_from(code.numeric.len())
        {
            code.numeric.push(form);
            heads.push((shape.head, number));
        }
    }
    // Only now: the loop around another one is made of the instructions of both.
    for (head, number) in heads {
        match code.instructions.get_mut(head) {
            Some(place @ Instruction::LoopNext { .. }) => {
                if let Instruction::LoopNext { slot, item, done } = *place {
                    *place = Instruction::LoopNextNumeric {
                        form: number,
                        slot,
                        item,
                        done,
                    };
                }
            }
            Some(Instruction::LoopBegin { form, .. }) => *form = number,
            _ => {}
        }
    }
}

impl NumericLoop {
    /// Does rounds until the loop is left, and says where to go on; nothing where the bytecode does the next round.
    pub(crate) fn enter(
        &self,
        registers: &mut [Value],
        state: &mut LoopState,
        meter: &mut Meter,
    ) -> Option<usize> {
        if state.misses >= MAX_MISSES {
            return None;
        }
        let done = match &self.settled {
            None => self.rounds(registers, state, meter, u64::MAX).0,
            Some(settled) => self.noted_rounds(settled, registers, state, meter),
        };
        match done {
            Rounds::Left => Some(self.exit),
            Rounds::Many => None,
            Rounds::Few => {
                state.misses = state.misses.saturating_add(1);
                None
            }
        }
    }

    /// Notes cost something in every round, and most points are passed in the first few: then the form without notes
    /// goes on. It is looked at seldom enough not to cost anything.
    fn noted_rounds(
        &self,
        settled: &Self,
        registers: &mut [Value],
        state: &mut LoopState,
        meter: &mut Meter,
    ) -> Rounds {
        let before = meter.at_hand();
        let mut most = FIRST_LOOK;
        loop {
            if self.is_settled(registers) {
                let done = settled.rounds(registers, state, meter, u64::MAX).0;
                return done.or_many(before.saturating_sub(meter.at_hand()));
            }
            let is_all = most >= meter.at_hand();
            let (done, is_out_of_fuel) = self.rounds(registers, state, meter, most);
            if is_all || !is_out_of_fuel || matches!(done, Rounds::Left) {
                return done.or_many(before.saturating_sub(meter.at_hand()));
            }
            most = most.saturating_mul(8);
        }
    }

    /// Does rounds until `most` units are spent; true with it where that was too little to go on.
    fn rounds(
        &self,
        registers: &mut [Value],
        state: &mut LoopState,
        meter: &mut Meter,
        most: u64,
    ) -> (Rounds, bool) {
        let is_number = |register: &Register| {
            let value = registers.get(register.0 as usize);
            value.is_some_and(|value| bits_of(value).is_some())
        };
        let (range, items) = state.position();
        let range = match self.position.zip(range) {
            None if self.position.is_some() => return (Rounds::Few, false),
            range => range,
        };
        if !self.loads.iter().all(|(register, _)| is_number(register)) {
            return (Rounds::Few, false);
        }
        let mut slots = Slots::new();
        for (slot, bits) in &self.constants {
            slots.put(*slot, *bits);
        }
        for (register, slot) in &self.loads {
            let value = registers.get(register.0 as usize);
            slots.put(*slot, value.and_then(bits_of).unwrap_or_default());
        }
        if let Some((position, range)) = range {
            slots.put_range(position, range);
        }
        let before = meter.at_hand();
        let given = before.min(most);
        let (ended, left, is_out_of_fuel) = run::run(&self.steps, &mut slots, items, given);
        let after = before - (given - left);
        let is_undone = matches!(ended, Ended::InRound);
        for carried in &self.carried {
            let slot = if is_undone { carried.kept } else { carried.slot };
            if let Some(place) = registers.get_mut(carried.register.0 as usize) {
                set_bits(place, slots.get(slot));
            }
        }
        for word in &self.words {
            if let Some(place) = registers.get_mut(word.register.0 as usize) {
                set_bits(place, slots.get(word.slot));
            }
        }
        if let Some(position) = self.position {
            let mut range = slots.range(position);
            if is_undone {
                range.next = range.next.wrapping_sub(range.step);
                range.left = range.left.saturating_add(1);
            }
            state.set_position(range);
        }
        meter.set_at_hand(after);
        let done = match ended {
            Ended::Left => Rounds::Left,
            _ => Rounds::Few.or_many(before.saturating_sub(after)),
        };
        (done, is_out_of_fuel)
    }

    /// True where all conditions of the loop have been both.
    fn is_settled(&self, registers: &[Value]) -> bool {
        self.words.iter().all(|word| {
            let path = registers.get(word.register.0 as usize).and_then(bits_of);
            path.is_some_and(|path| path & word.bits == word.bits)
        })
    }
}

/// What the rounds of a numeric form came to.
enum Rounds {
    /// The loop is left.
    Left,
    /// The next round is for the bytecode; there were many before it,
    Many,
    /// or too few to be worth the entry.
    Few,
}

impl Rounds {
    /// Few are many where so much was spent on them.
    fn or_many(self, spent: u64) -> Self {
        match self {
            Self::Few if spent >= LITTLE_WORK => Self::Many,
            other => other,
        }
    }
}

/// What a slot holds for a value; nothing for values of other types.
#[inline]
fn bits_of(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(value) => Some(value.cast_unsigned()),
        Value::Float(value) => Some(value.to_bits()),
        Value::Boolean(value) => Some(u64::from(*value)),
        _ => None,
    }
}

/// The value for a register that holds one of the same type: that is the type it has in every round.
#[inline]
fn set_bits(place: &mut Value, bits: u64) {
    match place {
        Value::Integer(place) => *place = bits.cast_signed(),
        Value::Float(place) => *place = f64::from_bits(bits),
        Value::Boolean(place) => *place = bits != 0,
        // It was of one of these types when it was loaded.
        _ => {}
    }
}

/// The state of a loop, as a numeric form sees it.
impl LoopState {
    /// What is still to come, and the items where that is their places.
    fn position(&self) -> (Option<Range>, &[Value]) {
        if let Value::Array(items) = &self.over {
            let left = items.len().saturating_sub(self.next);
            let range = Range {
                next: i64::try_from(self.next).unwrap_or(i64::MAX),
                step: 1,
                left: left as u64,
            };
            return (Some(range), items);
        }
        (self.range, &[])
    }

    fn set_position(&mut self, to: Range) {
        if let Some(range) = &mut self.range {
            *range = to;
        } else {
            self.next = usize::try_from(to.next).unwrap_or(usize::MAX);
        }
    }
}

/// The slot of a loop's state, for the translation.
type Positions = Vec<(LoopSlot, u8)>;
