//! The initial value of a loop's result, and its completion after the last item.

use vesper_ir::{ErrorCode, KeyKind, Type, Value};

use super::{Compiled, Compiler, ForKind, Instruction, Loop, MISSING, Operand, Register};

impl Compiler<'_> {
    /// Emits the result before the first item.
    pub(super) fn begin(&mut self, this: &mut Loop<'_>) -> Compiled<()> {
        let parts = this.parts;
        let (of_out, of_extra) = match parts.kind {
            ForKind::Array
            | ForKind::Set
            | ForKind::Map
            | ForKind::DistinctBy
            | ForKind::GroupBy
            | ForKind::CountBy
            | ForKind::IndexBy
            | ForKind::TakeWhile
            | ForKind::SortBy
            | ForKind::Avg
            // `fold` starts with its `with`.
            | ForKind::Fold => return Ok(()),
            ForKind::ForAll => (Some(Value::Boolean(true)), None),
            ForKind::Exists => (Some(Value::Boolean(false)), None),
            ForKind::Count => (Some(Value::Integer(0)), None),
            ForKind::Sum => {
                let addition = self.type_of(parts.value)?.addition().ok_or(MISSING)?;
                (Some(addition.zero), None)
            }
            // No value of an ordered type is null, so null means none yet.
            ForKind::Min | ForKind::Max => (Some(Value::Null), None),
            ForKind::MinBy | ForKind::MaxBy => (Some(Value::Null), Some(Value::Null)),
            ForKind::DropWhile => (None, Some(Value::Boolean(true))),
        };
        if let Some(value) = of_out {
            self.put(this.out, value)?;
        }
        if let Some(value) = of_extra {
            let extra = self.allocate()?;
            self.put(extra, value)?;
            this.extra = Some(extra);
        }
        Ok(())
    }

    fn put(&mut self, out: Register, value: Value) -> Compiled<()> {
        let from = self.constant(value)?;
        self.emit(Instruction::Move { out, from });
        Ok(())
    }

    /// Emits the result after the last item, unless `out` holds it already.
    pub(super) fn finish(&mut self, this: &Loop<'_>) -> Compiled<()> {
        let (slot, out, expression) = (this.slot, this.out, this.index);
        let last = match this.parts.kind {
            ForKind::Array | ForKind::TakeWhile | ForKind::DropWhile => Instruction::LoopArray { slot, out },
            ForKind::SortBy => Instruction::LoopSorted {
                slot,
                out,
                order: this.order.ok_or(MISSING)?,
            },
            ForKind::DistinctBy => Instruction::LoopDistinct { slot, out },
            ForKind::Set => Instruction::LoopSet {
                slot,
                out,
                kind: self.key_kind(this)?,
                expression,
            },
            ForKind::Map | ForKind::CountBy | ForKind::IndexBy => Instruction::LoopMap {
                slot,
                out,
                kind: self.key_kind(this)?,
            },
            ForKind::GroupBy => Instruction::LoopGroups {
                slot,
                out,
                kind: self.key_kind(this)?,
            },
            ForKind::Min | ForKind::Max => {
                let value = Operand::register(out);
                let to_end = self.jump(Instruction::JumpUnlessNull { value, to: 0 });
                self.fail_as_empty(this);
                return self.land(to_end);
            }
            ForKind::Avg => return self.average(this),
            ForKind::ForAll
            | ForKind::Exists
            | ForKind::Sum
            | ForKind::Count
            | ForKind::MinBy
            | ForKind::MaxBy
            | ForKind::Fold => return Ok(()),
        };
        self.emit(last);
        Ok(())
    }

    /// Returns the kind of the members or keys that the loop builds.
    fn key_kind(&self, this: &Loop<'_>) -> Compiled<KeyKind> {
        let kind = match self.type_of(this.index)? {
            Type::Set(of) => of.key_kind(),
            Type::Map(of) => of.key.key_kind(),
            _ => None,
        };
        kind.ok_or(MISSING)
    }

    fn fail_as_empty(&mut self, this: &Loop<'_>) {
        let code = ErrorCode::EmptyCollection;
        let expression = this.index;
        self.emit(Instruction::Fail { code, expression });
    }

    /// Emits the average of the collected values.
    fn average(&mut self, this: &Loop<'_>) -> Compiled<()> {
        let (slot, out) = (this.slot, this.out);
        self.emit(Instruction::LoopArray { slot, out });
        let (op, _) = self.type_of(this.parts.value)?.average().ok_or(MISSING)?;
        self.apply(this, op, out, Operand::register(out), None);
        Ok(())
    }
}
