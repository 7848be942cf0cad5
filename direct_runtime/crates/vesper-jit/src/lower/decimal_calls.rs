//! Decimals of the quick level: one routine call per operation, with slot numbers as arguments.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{FuncRef, InstBuilder, Value, types};
use vesper_interp::code::Operand;
use vesper_ir::Op;

use crate::routines::Work;

use super::{Inline, Kind, Lower, NotCompiled, inline};

impl Lower<'_, '_> {
    /// Returns true if decimal operations are calls. Values of a speculative side are in no slots.
    pub(super) fn is_called(&self) -> bool {
        self.in_slots && self.tried.is_none()
    }

    /// Emits a routine call for a decimal operation. Returns false if the operation is inline.
    pub(super) fn decimal_in_slots(
        &mut self,
        op: Op,
        out: usize,
        args: &[Operand],
    ) -> Result<bool, NotCompiled> {
        let ([first, second, ..], true) = (args, self.is_called()) else {
            return Ok(false);
        };
        let function = match inline(op) {
            Some((Inline::Add, Kind::Decimal, _)) => self.functions.decimal_add,
            Some((Inline::Subtract, Kind::Decimal, _)) => self.functions.decimal_subtract,
            Some((Inline::Multiply, Kind::Decimal, _)) => self.functions.decimal_multiply,
            _ => return Ok(false),
        };
        self.force();
        let state = self.state.clone();
        let (exit, _) = self.numbered_exit(self.at, &state);
        let work = Work {
            left: self.slot_of(*first)?,
            right: self.slot_of(*second)?,
            to: self.slot_binding(out, Kind::Decimal).slot,
            exit,
        };
        let answer = self.call_routine(function, work)?;
        self.leave_if_refused(answer);
        Ok(true)
    }

    /// Emits a comparison of two decimals by a routine.
    pub(super) fn compare_in_slots(
        &mut self,
        condition: IntCC,
        first: Operand,
        second: Operand,
    ) -> Result<Value, NotCompiled> {
        let work = Work {
            left: self.slot_of(first)?,
            right: self.slot_of(second)?,
            to: 0,
            exit: 0,
        };
        let order = self.call_routine(self.functions.decimal_compare, work)?;
        Ok(self.builder.ins().icmp_imm_s(condition, order, 0))
    }

    fn call_routine(&mut self, function: FuncRef, work: Work) -> Result<Value, NotCompiled> {
        let told = work
            .pack()
            .ok_or_else(|| NotCompiled::new("it has more values than a routine can address"))?;
        let told = self.builder.ins().iconst(types::I64, told.cast_signed());
        let call = self.builder.ins().call(function, &[self.context, told]);
        let answer = self.builder.inst_results(call).first().copied();
        // The routine is declared with one result.
        Ok(answer.unwrap_or(told))
    }

    /// Returns the slot of an operand. A constant is in its slot from the start of a run.
    fn slot_of(&mut self, operand: Operand) -> Result<usize, NotCompiled> {
        if let Some(register) = operand.as_register() {
            return Ok(self
                .slot_binding(super::register_place(register), Kind::Decimal)
                .slot);
        }
        let value = operand.read(&self.code.constants, &[]);
        let bits = value.and_then(|value| Kind::Decimal.bits(value));
        let [coefficient, scale, _] =
            bits.ok_or_else(|| NotCompiled::new("a constant has no form in machine registers"))?;
        let bits = [coefficient, scale];
        let side = &mut self.side;
        Ok(*self.constants.entry(bits).or_insert_with(|| {
            let slot = side.slots;
            side.slots += bits.len();
            side.constants.push((slot, bits));
            slot
        }))
    }
}
