//! `for`: one loop, whatever it computes.
//!
//! ```text
//!         over, and what `out` holds before the first item
//!         LoopStart
//! next:   LoopNext, which jumps to done after the last item
//!         where; jumps to next if it is false
//!         key and value; what they do to the result; jumps to next
//! done:   the result, if it is not in `out` already
//! ```

use vesper_ir::node::{ExpressionIndex, For, ForKind};
use vesper_ir::{Decimal, KeyKind, MAX_ARITY, Op, Type, Value};

use super::{Compiled, Compiler, Instruction, LoopSlot, MISSING, Operand, Register};

impl Compiler<'_> {
    pub(super) fn comprehension(
        &mut self,
        index: ExpressionIndex,
        item: usize,
        entry_value: Option<usize>,
        parts: &For,
        out: Register,
    ) -> Compiled<()> {
        let top = self.top;
        let over = self.operand(parts.over)?;
        let slot = self.enter_loop();
        self.begin(index, parts.kind, out)?;
        self.emit(Instruction::LoopStart { slot, over });
        // The slot holds the collection now.
        self.top = top;

        let next = self.here()?;
        let to_done = self.next_item(slot, item, entry_value)?;
        let inner = self.top;
        if let Some(filter) = parts.filter {
            let condition = self.operand(filter)?;
            self.mark(filter, condition);
            self.emit(Instruction::JumpIfFalse { condition, to: next });
            self.top = inner;
        }
        self.each(index, parts, slot, out, next)?;
        self.land(to_done)?;
        self.finish(index, parts.kind, slot, out)?;

        self.bind(item, None)?;
        if let Some(local) = entry_value {
            self.bind(local, None)?;
        }
        self.loop_top = slot.0;
        Ok(())
    }

    pub(super) fn enter_loop(&mut self) -> LoopSlot {
        let slot = LoopSlot(self.loop_top);
        // Slots nest with the expressions, whose depth is limited.
        self.loop_top += 1;
        self.code.loops = self.code.loops.max(self.loop_top as usize);
        slot
    }

    pub(super) fn type_of(&self, index: ExpressionIndex) -> Compiled<&Type> {
        Ok(&self.node.expression(index).ok_or(MISSING)?.ty)
    }

    /// What the result is before the first item.
    fn begin(&mut self, index: ExpressionIndex, kind: ForKind, out: Register) -> Compiled<()> {
        let from = match kind {
            ForKind::Array | ForKind::Set | ForKind::Map => return Ok(()),
            ForKind::ForAll => Value::Boolean(true),
            ForKind::Exists => Value::Boolean(false),
            ForKind::Count => Value::Integer(0),
            ForKind::Sum => match self.type_of(index)? {
                Type::Decimal => Value::Decimal(Decimal::from(0)),
                _ => Value::Integer(0),
            },
            // No value of these is null, so null is "none yet".
            ForKind::Min | ForKind::Max => Value::Null,
        };
        let from = self.constant(from)?;
        self.emit(Instruction::Move { out, from });
        Ok(())
    }

    /// Binds the locals; gives the jump to the end.
    pub(super) fn next_item(
        &mut self,
        slot: LoopSlot,
        item: usize,
        entry_value: Option<usize>,
    ) -> Compiled<usize> {
        let key = self.allocate()?;
        self.bind(item, Some(Operand::register(key)))?;
        let Some(local) = entry_value else {
            return Ok(self.jump(Instruction::LoopNext {
                slot,
                item: key,
                done: 0,
            }));
        };
        let value = self.allocate()?;
        self.bind(local, Some(Operand::register(value)))?;
        Ok(self.jump(Instruction::LoopNextEntry {
            slot,
            key,
            value,
            done: 0,
        }))
    }

    /// What is done for an item that counts; goes on to the next one.
    fn each(
        &mut self,
        index: ExpressionIndex,
        parts: &For,
        slot: LoopSlot,
        out: Register,
        next: u32,
    ) -> Compiled<()> {
        let condition = Operand::register(out);
        match parts.kind {
            // The last value is the result; where it decides, the loop is left.
            ForKind::ForAll => {
                self.compute(parts.value, out)?;
                self.emit(Instruction::JumpIfTrue { condition, to: next });
                return Ok(());
            }
            ForKind::Exists => {
                self.compute(parts.value, out)?;
                self.emit(Instruction::JumpIfFalse { condition, to: next });
                return Ok(());
            }
            ForKind::Array | ForKind::Set => {
                let value = self.operand(parts.value)?;
                self.emit(Instruction::LoopPush { slot, value });
            }
            ForKind::Map => {
                let key = self.operand(parts.key.ok_or(MISSING)?)?;
                let value = self.operand(parts.value)?;
                self.emit(Instruction::LoopPut {
                    slot,
                    key,
                    value,
                    expression: index,
                });
            }
            ForKind::Sum => {
                let op = match self.type_of(index)? {
                    Type::Decimal => Op::DecimalAdd,
                    _ => Op::IntegerAdd,
                };
                let value = self.operand(parts.value)?;
                self.emit(Instruction::Call {
                    op,
                    out,
                    args: two(condition, value),
                    expression: index,
                });
            }
            ForKind::Count => {
                // Evaluated because it may fail; what it is does not matter.
                self.operand(parts.value)?;
                let one = self.constant(Value::Integer(1))?;
                self.emit(Instruction::Call {
                    op: Op::IntegerAdd,
                    out,
                    args: two(condition, one),
                    expression: index,
                });
            }
            ForKind::Min => {
                let value = self.operand(parts.value)?;
                self.emit(Instruction::KeepSmaller { best: out, value });
            }
            ForKind::Max => {
                let value = self.operand(parts.value)?;
                self.emit(Instruction::KeepLarger { best: out, value });
            }
        }
        self.emit(Instruction::Jump { to: next });
        Ok(())
    }

    fn finish(
        &mut self,
        index: ExpressionIndex,
        kind: ForKind,
        slot: LoopSlot,
        out: Register,
    ) -> Compiled<()> {
        let key_kind = |ty: &Type| -> Compiled<KeyKind> { ty.key_kind().ok_or(MISSING) };
        let last = match (kind, self.type_of(index)?) {
            (ForKind::Array, _) => Instruction::LoopArray { slot, out },
            (ForKind::Set, Type::Set(of)) => Instruction::LoopSet {
                slot,
                out,
                kind: key_kind(of)?,
            },
            (ForKind::Map, Type::Map(of)) => Instruction::LoopMap {
                slot,
                out,
                kind: key_kind(&of.key)?,
            },
            (ForKind::Set | ForKind::Map, _) => return Err(MISSING),
            (ForKind::Min | ForKind::Max, _) => Instruction::RequireBest {
                best: out,
                expression: index,
            },
            (ForKind::ForAll | ForKind::Exists | ForKind::Sum | ForKind::Count, _) => return Ok(()),
        };
        self.emit(last);
        Ok(())
    }
}

/// The arguments of an operation that takes two.
fn two(left: Operand, right: Operand) -> [Operand; MAX_ARITY] {
    let mut args = [left; MAX_ARITY];
    if let Some(second) = args.get_mut(1) {
        *second = right;
    }
    args
}
