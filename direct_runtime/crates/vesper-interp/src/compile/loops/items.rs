//! The effect of one item on the result of a loop.

use std::cmp::Ordering;

use vesper_ir::prices::Price;
use vesper_ir::{Op, Value};

use crate::bytecode::{LoopSlot, OperandList};
use crate::compile::memory::ForPrices;
use crate::compile::place;

use super::{Compiled, Compiler, ForKind, Instruction, ItemParts, Loop, MISSING, Operand, Register};

impl Compiler<'_> {
    /// Emits the code before the value of an item. Returns a jump past the value, if there is one.
    pub(super) fn before_value(&mut self, this: &Loop<'_>) -> Compiled<Option<usize>> {
        if this.parts.kind != ForKind::DropWhile {
            return Ok(None);
        }
        // After the first kept item no condition is evaluated.
        let condition = Operand::register(this.extra_register()?);
        Ok(Some(self.jump(Instruction::JumpIfFalse { condition, to: 0 })))
    }

    /// Emits the use of the value and the jump to the next item. Returns a jump to the end, if there is one.
    pub(super) fn each(
        &mut self,
        this: &Loop<'_>,
        given: &ItemParts,
        prices: ForPrices,
        to_keep: Option<usize>,
        next: u32,
    ) -> Compiled<Option<usize>> {
        let (slot, expression, out) = (this.slot, this.index, this.out);
        let (item, value) = (given.item, given.value);
        let mut to_done = None;
        let place = match prices.item {
            Some(item) => Some(self.price(item)?),
            None => None,
        };
        if let Some(price) = place
            && !matches!(
                this.parts.kind,
                ForKind::Array | ForKind::Avg | ForKind::TakeWhile | ForKind::DropWhile
            )
        {
            self.emit(Instruction::LoopCharge { slot, value, price });
        }
        if let (Some(key), Some(price)) = (given.key, prices.key) {
            let price = self.price(price)?;
            self.emit(Instruction::LoopCharge {
                slot,
                value: key,
                price,
            });
        }
        match this.parts.kind {
            // The loop ends when the value decides it.
            ForKind::ForAll => {
                let condition = value;
                self.emit(Instruction::JumpIfTrue { condition, to: next });
                return Ok(None);
            }
            ForKind::Exists => {
                let condition = value;
                self.emit(Instruction::JumpIfFalse { condition, to: next });
                return Ok(None);
            }
            // The average is computed after all values.
            ForKind::Array | ForKind::Avg => self.push(this, value, place)?,
            ForKind::Set => self.emit(Instruction::LoopPushMember { slot, value }),
            ForKind::Map => {
                let key = given.key.ok_or(MISSING)?;
                self.emit(Instruction::LoopPut {
                    slot,
                    key,
                    value,
                    expression,
                });
            }
            ForKind::Sum => self.add(this, value)?,
            // The value is evaluated only because it may fail.
            ForKind::Count => self.add_one(this, out)?,
            ForKind::Min => self.keep_better(out, value, Ordering::Less, next),
            ForKind::Max => self.keep_better(out, value, Ordering::Greater, next),
            ForKind::MinBy => {
                self.keep_better(this.extra_register()?, value, Ordering::Less, next);
                self.emit(Instruction::Move { out, from: item });
            }
            ForKind::MaxBy => {
                self.keep_better(this.extra_register()?, value, Ordering::Greater, next);
                self.emit(Instruction::Move { out, from: item });
            }
            ForKind::SortBy | ForKind::DistinctBy => self.emit(Instruction::LoopPushKeyed {
                slot,
                key: value,
                item,
                expression,
            }),
            ForKind::GroupBy => self.emit(Instruction::LoopGroup {
                slot,
                key: value,
                item,
                expression,
            }),
            ForKind::CountBy => self.emit(Instruction::LoopCount {
                slot,
                key: value,
                expression,
            }),
            ForKind::IndexBy => self.emit(Instruction::LoopPut {
                slot,
                key: value,
                value: item,
                expression,
            }),
            ForKind::TakeWhile => {
                let condition = value;
                to_done = Some(self.jump(Instruction::JumpIfFalse { condition, to: 0 }));
                self.push(this, item, place)?;
            }
            ForKind::DropWhile => {
                let condition = value;
                self.emit(Instruction::JumpIfTrue { condition, to: next });
                self.land(to_keep.ok_or(MISSING)?)?;
                self.push(this, item, place)?;
            }
            ForKind::Fold => {
                self.emit(Instruction::Move { out, from: value });
                if let Some(price) = prices.state {
                    self.recount(slot, &[Operand::register(out)], vec![price])?;
                }
            }
        }
        self.emit(Instruction::Jump { to: next });
        Ok(to_done)
    }

    fn push(&mut self, this: &Loop<'_>, value: Operand, price: Option<u32>) -> Compiled<()> {
        self.emit(Instruction::LoopPush {
            slot: this.slot,
            value,
            expression: this.index,
            price: price.ok_or(MISSING)?,
        });
        Ok(())
    }

    /// Emits the count of a loop's state.
    pub(in super::super) fn recount(
        &mut self,
        slot: LoopSlot,
        variables: &[Operand],
        prices: Vec<Price>,
    ) -> Compiled<()> {
        let state = OperandList {
            start: place(self.code.operands.len())?,
            length: place(variables.len())?,
        };
        self.code.operands.extend(variables);
        let price = place(self.code.prices.len())?;
        self.code
            .prices
            .extend(prices.into_iter().map(|price| match price {
                Price::Fixed(fixed) => (fixed, Price::Fixed(0)),
                price => (0, price),
            }));
        self.emit(Instruction::LoopRecount { slot, state, price });
        Ok(())
    }

    /// Adds a value to the sum.
    fn add(&mut self, this: &Loop<'_>, value: Operand) -> Compiled<()> {
        let add = self.type_of(this.parts.value)?.addition().ok_or(MISSING)?.add;
        self.apply(this, add, this.out, Operand::register(this.out), Some(value));
        Ok(())
    }

    fn add_one(&mut self, this: &Loop<'_>, count: Register) -> Compiled<()> {
        let one = self.constant(Value::Integer(1))?;
        self.apply(this, Op::IntegerAdd, count, Operand::register(count), Some(one));
        Ok(())
    }

    /// Keeps a value that compares as `side` to the best so far. Otherwise continues with the next item. The first of
    /// equal values stays.
    fn keep_better(&mut self, best: Register, value: Operand, side: Ordering, next: u32) {
        let (from, to) = (value, next);
        self.emit(Instruction::JumpUnlessBetter {
            best,
            value,
            side,
            to,
        });
        self.emit(Instruction::Move { out: best, from });
    }
}
