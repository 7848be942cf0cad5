//! What a loop has before the first item, and what it makes of it after the last.

use vesper_ir::{ErrorCode, KeyKind, Op, Type, Value};

use super::{Compiled, Compiler, ForKind, Instruction, Loop, MISSING, Operand, Register};

impl Compiler<'_> {
    /// What the result is before the first item.
    pub(super) fn begin(&mut self, this: &mut Loop<'_>) -> Compiled<()> {
        let parts = this.parts;
        let (of_out, of_beside) = match parts.kind {
            ForKind::Array
            | ForKind::Set
            | ForKind::Map
            | ForKind::DistinctBy
            | ForKind::GroupBy
            | ForKind::CountBy
            | ForKind::IndexBy
            | ForKind::TakeWhile
            | ForKind::SortBy
            // This starts with its `with`.
            | ForKind::Fold => return Ok(()),
            ForKind::ForAll => (Some(Value::Boolean(true)), None),
            ForKind::Exists => (Some(Value::Boolean(false)), None),
            ForKind::Count => (Some(Value::Integer(0)), None),
            ForKind::Sum => {
                let addition = self.type_of(parts.value)?.addition().ok_or(MISSING)?;
                (Some(addition.zero), None)
            }
            ForKind::Avg => {
                let average = self.type_of(parts.value)?.average().ok_or(MISSING)?;
                (Some(average.addition.zero), Some(Value::Integer(0)))
            }
            // No value of an ordered type is null, so null is "none yet".
            ForKind::Min | ForKind::Max => (Some(Value::Null), None),
            ForKind::MinBy | ForKind::MaxBy => (Some(Value::Null), Some(Value::Null)),
            ForKind::DropWhile => (None, Some(Value::Boolean(true))),
        };
        if let Some(value) = of_out {
            self.put(this.out, value)?;
        }
        if let Some(value) = of_beside {
            let beside = self.allocate()?;
            self.put(beside, value)?;
            this.beside = Some(beside);
        }
        Ok(())
    }

    fn put(&mut self, out: Register, value: Value) -> Compiled<()> {
        let from = self.constant(value)?;
        self.emit(Instruction::Move { out, from });
        Ok(())
    }

    /// The result, where it is not in `out` already.
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
            ForKind::Avg => return self.divide(this),
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

    /// The kind of the members or keys of what the loop builds.
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

    /// The sum divided by the count.
    fn divide(&mut self, this: &Loop<'_>) -> Compiled<()> {
        let average = self.type_of(this.parts.value)?.average().ok_or(MISSING)?;
        let (count, sum) = (Operand::register(this.beside()?), Operand::register(this.out));
        let zero = self.constant(Value::Integer(0))?;
        let divisor = self.allocate()?;
        self.apply(this, Op::IntegerEqual, divisor, count, Some(zero));
        let condition = Operand::register(divisor);
        let to_division = self.jump(Instruction::JumpIfFalse { condition, to: 0 });
        self.fail_as_empty(this);
        self.land(to_division)?;
        self.apply(this, average.from_count, divisor, count, None);
        self.apply(
            this,
            average.divide,
            this.out,
            sum,
            Some(Operand::register(divisor)),
        );
        Ok(())
    }
}
