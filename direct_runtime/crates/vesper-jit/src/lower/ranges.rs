//! Loops through ranges where there is no frame: they begin in machine registers, or the run is left to the ordinary way.
//!
//! Nobody can stop a run without a frame, and how long a range is says no collection of the inputs. So code with ranges
//! has a bound of its own (`MAX_WORK`), and a loop that is longer than what may still be spent is not begun.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, StackSlotData, StackSlotKind, Value, types};
use vesper_interp::code::{Instruction, LoopSlot, Operand};
use vesper_ir::limits::ITEMS;

use crate::dataflow::{accesses, takes_fuel};
use crate::frameless::{GAVE_UP, TOO_LONG};

use super::loops::InStep;
use super::{Kind, Lower, NONE, NotCompiled, TRUSTED};

impl Lower<'_, '_> {
    /// A loop through a range before its first item. A step of zero, and more items than there may be, are failures: the
    /// ordinary way has them.
    pub(super) fn first_of_range(&mut self, range: usize, bounds: [Operand; 3]) -> Result<(), NotCompiled> {
        let [start, end, step] = bounds;
        let start = self.one(start, Kind::Integer)?;
        let end = self.one(end, Kind::Integer)?;
        let step = self.one(step, Kind::Integer)?;
        let left = self.length_of_range(start, end, step);
        let held = self.range_with_end(vec![start, step, left]);
        self.write_value(range, Kind::Range, &held);
        self.start_range();
        Ok(())
    }

    /// How many integers a range has.
    fn length_of_range(&mut self, start: Value, end: Value, step: Value) -> Value {
        let (low, high, by) = match self.known(step) {
            Some(1..) => (start, end, step),
            Some(..0) => (end, start, self.builder.ins().ineg(step)),
            Some(0) | None => {
                let is_none = self.builder.ins().icmp_imm_s(IntCC::Equal, step, 0);
                self.guard(is_none);
                let is_down = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, step, 0);
                let low = self.builder.ins().select(is_down, end, start);
                let high = self.builder.ins().select(is_down, start, end);
                // As a number without a sign it is right for the least integer too.
                let opposite = self.builder.ins().ineg(step);
                (low, high, self.builder.ins().select(is_down, opposite, step))
            }
        };
        let is_some = self.builder.ins().icmp(IntCC::SignedLessThan, low, high);
        // Without a sign: two integers may be further apart than the largest of them.
        let apart = self.builder.ins().isub(high, low);
        let count = if matches!(self.known(step), Some(1 | -1)) {
            apart
        } else {
            let last = self.builder.ins().iadd_imm_s(apart, -1);
            let steps = self.builder.ins().udiv(last, by);
            self.builder.ins().iadd_imm_s(steps, 1)
        };
        let none = self.builder.ins().iconst(types::I64, 0);
        self.builder.ins().select(is_some, count, none)
    }

    /// The end of a loop through a range that nothing leaves but its head.
    pub(super) fn end_of_whole(&self, start: usize, slot: LoopSlot) -> Option<(usize, usize)> {
        let all = self.code.instructions.iter().enumerate();
        let head = all.clone().skip(start + 1).find(|(_, one)| takes_fuel(one));
        let Some((head, Instruction::LoopNext { slot: own, done, .. })) = head else {
            return None;
        };
        let end = *done as usize;
        let is_inside = |at: usize| at > start && at < end;
        let mut leaving = all;
        let is_left = leaving.any(|(at, one)| {
            let to = accesses(self.code, one).jump;
            is_inside(at) && at != head && to.is_some_and(|to| !is_inside(to))
        });
        // What stands before the end may go on there without a jump, as where one that was looked for is found.
        let last = end.checked_sub(1).and_then(|last| self.plan.touched.get(last));
        let is_left = is_left || last.is_none_or(|last| !last.is_last);
        (own.0 == slot.0 && !is_left && end > head).then_some((head, end))
    }

    /// Leaves a loop that was just started to the ordinary way where it has more rounds than may be spent, or more than
    /// there may be at all. Where there is a frame, neither is known before.
    pub(super) fn refuse_long(&mut self, range: usize, is_whole: bool) {
        if self.words.is_none() {
            return;
        }
        let left = self.read_part(range, Kind::Range, 2);
        // From here on: what was done before had its bound in the inputs.
        let fuel = self.fuel_for_ranges();
        if is_whole {
            // Code with ranges may spend less than the most items there are, so this is the bound of those too.
            let is_long = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, left, fuel);
            let is_long = if self.is_forced() {
                self.builder.ins().iconst(types::I8, 1)
            } else {
                is_long
            };
            let (long, next) = (self.too_long(), self.builder.create_block());
            self.builder.ins().brif(is_long, long, &NONE, next, &NONE);
            self.builder.switch_to_block(next);
            self.builder.def_var(self.fuel, fuel);
            return;
        }
        self.builder.def_var(self.fuel, fuel);
        let most = i64::try_from(ITEMS).unwrap_or(i64::MAX);
        let is_long = self
            .builder
            .ins()
            .icmp_imm_s(IntCC::UnsignedGreaterThan, left, most);
        self.guard(is_long);
    }

    /// Leaves a loop to the ordinary way that has more rounds before it than it may have.
    pub(super) fn refuse_rounds(&mut self, in_step: InStep) {
        let Some(max) = in_step.rounds.map(|rounds| i64::from(rounds.max)) else {
            return;
        };
        let began = self.builder.use_var(in_step.began);
        let is_more = self
            .builder
            .ins()
            .icmp_imm_s(IntCC::UnsignedGreaterThan, began, max);
        self.guard(is_more);
    }

    fn too_long(&mut self) -> Block {
        if let Some(block) = self.words.as_ref().and_then(|words| words.too_long) {
            return block;
        }
        let block = self.builder.create_block();
        self.builder.set_cold_block(block);
        if let Some(words) = &mut self.words {
            words.too_long = Some(block);
        }
        block
    }

    /// Writes the block for what is not begun. Where nothing was spent, that cost nothing worth counting.
    pub(super) fn write_too_long(&mut self) {
        let Some(block) = self.words.as_mut().and_then(|words| words.too_long.take()) else {
            return;
        };
        self.builder.switch_to_block(block);
        let (fuel, first) = (self.builder.use_var(self.fuel), self.first_fuel());
        let is_first = self.builder.ins().icmp(IntCC::Equal, fuel, first);
        let nothing_done = self.builder.ins().iconst(types::I64, TOO_LONG);
        let gave_up = self.builder.ins().iconst(types::I64, GAVE_UP);
        let answer = self.builder.ins().select(is_first, nothing_done, gave_up);
        self.builder.ins().return_(&[answer]);
    }

    /// What the run may spend from its start on.
    pub(super) fn first_fuel(&mut self) -> Value {
        self.builder.ins().load(types::I64, TRUSTED, self.context, 0)
    }

    /// What it may still spend once it goes through a range.
    fn fuel_for_ranges(&mut self) -> Value {
        let fuel = self.builder.use_var(self.fuel);
        match self.plan.max_units.and_then(|most| i64::try_from(most).ok()) {
            Some(most) => {
                let most = self.builder.ins().iconst(types::I64, most);
                self.builder.ins().umin(fuel, most)
            }
            None => fuel,
        }
    }

    /// Where the slots are: without a frame, on the stack, since what the inputs stand in is left as it is.
    pub(super) fn memory(&mut self) -> Value {
        let Some(words) = self.words.as_mut().filter(|words| words.has_begun) else {
            return self.memory;
        };
        let builder = &mut self.builder;
        let room = *words.room.get_or_insert_with(|| {
            // How large it is, is known in the end.
            builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 0, 3))
        });
        self.builder.ins().stack_addr(types::I64, room, 0)
    }

    /// Gives the slots on the stack the size that they have come to.
    pub(super) fn size_slots(&mut self) {
        if let Some(room) = self.words.as_ref().and_then(|words| words.room) {
            let size = u32::try_from(self.side.slots * 8).unwrap_or(u32::MAX);
            if let Some(room) = self.builder.func.sized_stack_slots.get_mut(room) {
                room.size = size;
            }
        }
    }
}
