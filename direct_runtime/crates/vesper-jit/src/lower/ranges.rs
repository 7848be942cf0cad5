//! Loops over ranges in frameless code: they run in machine registers, or the run gives up.
//!
//! A frameless run cannot be interrupted, and the inputs do not bound the length of a range. So code with ranges has
//! its own bound (`MAX_WORK`), and a loop that exceeds the remaining fuel does not start.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, StackSlotData, StackSlotKind, Value, types};
use vesper_interp::code::{Instruction, LoopSlot, Operand};
use vesper_ir::limits::ITEMS;

use crate::dataflow::{accesses, takes_fuel};
use crate::frameless::{GAVE_UP, TOO_LONG};

use super::loops::InStep;
use super::{Kind, Lower, NONE, NotCompiled, TRUSTED};

impl Lower<'_, '_> {
    /// Starts a loop over a range. Gives up for a zero step or too many items, which fail in the framed run.
    pub(super) fn first_of_range(&mut self, range: usize, bounds: [Operand; 3]) -> Result<(), NotCompiled> {
        let [start, end, step] = bounds;
        let start = self.one(start, Kind::Integer)?;
        let end = self.one(end, Kind::Integer)?;
        let step = self.one(step, Kind::Integer)?;
        let left = self.length_of_range(start, end, step);
        let held = self.range_with_end(vec![start, step, left]);
        self.write_value(range, Kind::Range, &held);
        self.prepare_range();
        Ok(())
    }

    /// Computes the number of integers in a range.
    fn length_of_range(&mut self, start: Value, end: Value, step: Value) -> Value {
        let (low, high, by) = match self.constant_integer(step) {
            Some(1..) => (start, end, step),
            Some(..0) => (end, start, self.builder.ins().ineg(step)),
            Some(0) | None => {
                let is_none = self.builder.ins().icmp_imm_s(IntCC::Equal, step, 0);
                self.guard(is_none);
                let is_down = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, step, 0);
                let low = self.builder.ins().select(is_down, end, start);
                let high = self.builder.ins().select(is_down, start, end);
                // Unsigned, this is correct for the minimum integer too.
                let opposite = self.builder.ins().ineg(step);
                (low, high, self.builder.ins().select(is_down, opposite, step))
            }
        };
        let is_some = self.builder.ins().icmp(IntCC::SignedLessThan, low, high);
        // Unsigned, because the difference may exceed the maximum integer.
        let apart = self.builder.ins().isub(high, low);
        let count = if matches!(self.constant_integer(step), Some(1 | -1)) {
            apart
        } else {
            let last = self.builder.ins().iadd_imm_s(apart, -1);
            let steps = self.builder.ins().udiv(last, by);
            self.builder.ins().iadd_imm_s(steps, 1)
        };
        let none = self.builder.ins().iconst(types::I64, 0);
        self.builder.ins().select(is_some, count, none)
    }

    /// Returns the end of a loop over a range that only its head leaves.
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
        // The instruction before the end may fall through to it, as when a search succeeds.
        let last = end.checked_sub(1).and_then(|last| self.plan.touched.get(last));
        let is_left = is_left || last.is_none_or(|last| !last.is_last);
        (own.0 == slot.0 && !is_left && end > head).then_some((head, end))
    }

    /// Gives up if a started loop exceeds the remaining fuel or the maximum items. With a frame neither is known
    /// before.
    pub(super) fn refuse_long(&mut self, range: usize, is_whole: bool) {
        if self.words.is_none() {
            return;
        }
        let left = self.read_part(range, Kind::Range, 2);
        // From here on; earlier work was bounded by the inputs.
        let fuel = self.fuel_for_ranges();
        if is_whole {
            // Code with ranges may spend less than the maximum items, so one check covers both.
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

    /// Gives up if a loop would exceed its maximum rounds.
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

    /// Lowers the block for loops that do not start. If nothing was spent, the attempt costs almost nothing.
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

    /// Returns the fuel of the run at its start.
    pub(super) fn first_fuel(&mut self) -> Value {
        self.builder.ins().load(types::I64, TRUSTED, self.context, 0)
    }

    /// Returns the remaining fuel once the run has entered a range.
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

    /// Returns the address of the slots. Frameless code has them on the stack, because input words stay unchanged.
    pub(super) fn memory(&mut self) -> Value {
        let Some(words) = self.words.as_mut().filter(|words| words.has_begun) else {
            return self.memory;
        };
        let builder = &mut self.builder;
        let room = *words.room.get_or_insert_with(|| {
            // The size is set at the end.
            builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 0, 3))
        });
        self.builder.ins().stack_addr(types::I64, room, 0)
    }

    /// Sets the final size of the slots on the stack.
    pub(super) fn size_slots(&mut self) {
        if let Some(room) = self.words.as_ref().and_then(|words| words.room) {
            let size = u32::try_from(self.side.slots * 8).unwrap_or(u32::MAX);
            if let Some(room) = self.builder.func.sized_stack_slots.get_mut(room) {
                room.size = size;
            }
        }
    }
}
