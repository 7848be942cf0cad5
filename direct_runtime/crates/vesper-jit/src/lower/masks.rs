//! Choices by masks: on some processors a comparison of floats gives all bits or none, and what is chosen is a matter of
//! bits, without a way through the registers of integers and back.

use cranelift_codegen::ir::{Endianness, InstBuilder, InstructionData, MemFlagsData, Value, ValueDef, types};

use super::Lower;

/// What decides a choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chooser {
    pub(super) condition: Value,
    /// The same as a mask, where there is one: all bits of both lanes, or none.
    pub(super) mask: Option<Value>,
}

impl Lower<'_, '_> {
    /// What decides a choice by a condition.
    pub(super) fn chooser(&mut self, condition: Value) -> Chooser {
        let dfg = &self.builder.func.dfg;
        let mut mask = None;
        if cfg!(target_arch = "x86_64")
            && let ValueDef::Result(instruction, _) = dfg.value_def(condition)
            && let InstructionData::FloatCompare {
                cond,
                args: [left, right],
                ..
            } = dfg.insts[instruction]
        {
            let left = self.builder.ins().splat(types::F64X2, left);
            let right = self.builder.ins().splat(types::F64X2, right);
            mask = Some(self.builder.ins().fcmp(cond, left, right));
        }
        Chooser { condition, mask }
    }

    /// One of two floats.
    pub(super) fn select_by_mask(&mut self, mask: Value, yes: Value, no: Value) -> Value {
        let yes = self.builder.ins().splat(types::F64X2, yes);
        let no = self.builder.ins().splat(types::F64X2, no);
        let mask = self.lanes(mask);
        let chosen = self.builder.ins().bitselect(mask, yes, no);
        self.builder.ins().extractlane(chosen, 0)
    }

    /// One where the condition holds, zero where it does not.
    pub(super) fn as_integer(&mut self, chooser: Chooser) -> Value {
        let Some(mask) = chooser.mask else {
            return self.builder.ins().uextend(types::I64, chooser.condition);
        };
        let mask = self.lanes(mask);
        let first = self.builder.ins().extractlane(mask, 0);
        let bits = self.builder.ins().bitcast(types::I64, MemFlagsData::new(), first);
        self.builder.ins().ineg(bits)
    }

    /// A mask as the floats whose bits it is.
    fn lanes(&mut self, mask: Value) -> Value {
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.builder.ins().bitcast(types::F64X2, flags, mask)
    }
}
