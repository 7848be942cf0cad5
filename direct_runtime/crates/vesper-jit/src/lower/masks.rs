//! Selection by masks, for processors on which a float comparison yields all bits or none.
//!
//! The selection then needs no move to integer registers and back.

use cranelift_codegen::ir::{Endianness, InstBuilder, InstructionData, MemFlagsData, Value, ValueDef, types};

use super::Lower;

/// The condition of a choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chooser {
    pub(super) condition: Value,
    /// The condition as a mask, if there is one: all bits of both lanes, or none.
    pub(super) mask: Option<Value>,
}

impl Lower<'_, '_> {
    /// Returns the chooser of a condition.
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

    /// Selects one of two floats by a mask.
    pub(super) fn select_by_mask(&mut self, mask: Value, yes: Value, no: Value) -> Value {
        let yes = self.builder.ins().splat(types::F64X2, yes);
        let no = self.builder.ins().splat(types::F64X2, no);
        let mask = self.lanes(mask);
        let chosen = self.builder.ins().bitselect(mask, yes, no);
        self.builder.ins().extractlane(chosen, 0)
    }

    /// Returns one if the condition holds, else zero.
    pub(super) fn as_integer(&mut self, chooser: Chooser) -> Value {
        let Some(mask) = chooser.mask else {
            return self.builder.ins().uextend(types::I64, chooser.condition);
        };
        let mask = self.lanes(mask);
        let first = self.builder.ins().extractlane(mask, 0);
        let bits = self.builder.ins().bitcast(types::I64, MemFlagsData::new(), first);
        self.builder.ins().ineg(bits)
    }

    /// Reinterprets a mask as floats.
    fn lanes(&mut self, mask: Value) -> Value {
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.builder.ins().bitcast(types::F64X2, flags, mask)
    }
}
