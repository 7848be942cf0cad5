//! `for` expressions: one loop for every kind.
//!
//! ```text
//!         over
//!         LoopStart
//!         with, and the initial value of `out`
//! next:   LoopNext, or a jump to done after the last item
//!         where; jump to next if false
//!         key and value; their effect on the result; jump to next
//! done:   the result, unless `out` holds it already
//! ```
//!
//! This module compiles the skeleton and the operands. Operands recurse, so their functions are few and small.
//! `items` compiles the effect of an item, `results` the code before the first item and after the last.

use vesper_ir::node::{ExpressionIndex, ExpressionKind, For, ForKind};
use vesper_ir::prices::Price;
use vesper_ir::{MAX_ARITY, Op, Type};

use vesper_opt::LoopPlace;

use super::{Compiled, Compiler, Instruction, LoopSlot, MISSING, Operand, Register};

mod items;
mod results;

/// The price of a group beside its entry.
const GROUP: Price = Price::Fixed(96);

/// The locals of a loop.
#[derive(Clone, Copy)]
pub(super) struct Locals {
    /// The item; over a map, the key.
    pub(super) item: usize,
    /// The value of a map entry.
    pub(super) entry_value: Option<usize>,
    /// The accumulator of `fold`.
    pub(super) so_far: Option<usize>,
}

/// A loop under compilation.
#[derive(Clone, Copy)]
struct Loop<'a> {
    index: ExpressionIndex,
    parts: &'a For,
    slot: LoopSlot,
    /// The register of the result.
    out: Register,
    /// An extra register: the best key of `min_by` and `max_by`, or whether `drop_while` still drops.
    extra: Option<Register>,
    /// The order of `sort_by`.
    order: Option<Operand>,
}

/// The collection of a loop.
#[derive(Clone, Copy)]
pub(super) enum Over {
    Value(Operand),
    /// Start, end and step of a range, and its expression for failures.
    Range([Operand; 3], ExpressionIndex),
}

/// The operands of an item that passed the filter.
struct ItemParts {
    item: Operand,
    key: Option<Operand>,
    value: Operand,
}

impl Loop<'_> {
    /// Returns the register that the kind requires for the value of an item.
    fn value_register(&self) -> Option<Register> {
        match self.parts.kind {
            // The last value is the result.
            ForKind::ForAll | ForKind::Exists => Some(self.out),
            ForKind::DropWhile => self.extra,
            // Not for `fold`: the accumulator in `out` is read until the value is computed.
            _ => None,
        }
    }

    fn extra_register(&self) -> Compiled<Register> {
        self.extra.ok_or(MISSING)
    }
}

impl Compiler<'_> {
    pub(super) fn comprehension(
        &mut self,
        index: ExpressionIndex,
        locals: Locals,
        parts: &For,
        out: Register,
    ) -> Compiled<()> {
        let top = self.top;
        let over = self.collection(parts.over)?;
        let slot = self.enter_loop();
        self.start_loop(slot, over);
        // The slot holds the collection from here on.
        self.top = top;
        let prices = self.memory.fors.get(&index).cloned().ok_or(MISSING)?;
        let restores = prices.takes_memory && prices.state.is_none();
        let began = self.count_items(slot)?;
        let points = self.points_of_comprehension(index)?;
        let mut this = Loop {
            index,
            parts,
            slot,
            out,
            extra: None,
            order: None,
        };
        match (parts.kind, parts.with) {
            (ForKind::Fold, Some(with)) => self.compute(with, out)?,
            (_, Some(with)) => this.order = Some(self.operand(with)?),
            (_, None) => {}
        }
        // After `with`, which is computed before the first round: no round gives its memory back.
        if restores || prices.item.is_some() || prices.state.is_some() {
            self.emit(Instruction::LoopMemory { slot });
        }
        self.begin(&mut this)?;
        self.compute_before_loop(LoopPlace::For(index))?;

        let next = self.here()?;
        let outer = self.enter_round(points);
        let mut to_done = vec![if self.reads_fields_only(index, locals, parts)? {
            self.advance(slot, locals)?
        } else {
            self.next_item(slot, locals)?
        }];
        if let Some(local) = locals.so_far {
            // The accumulator lives in the result register.
            self.bind(local, Some(Operand::register(out)))?;
        }
        if restores {
            self.emit(Instruction::LoopRestore { slot });
        }
        let inner = self.top;
        if let Some(filter) = parts.filter {
            let condition = self.operand(filter)?;
            self.mark(filter, condition);
            self.emit_filter(filter, condition, next)?;
            self.enter_sides(filter, &[true])?;
            self.top = inner;
        }
        let to_keep = self.before_value(&this)?;
        let key = match parts.key {
            Some(key) => Some(self.operand(key)?),
            None => None,
        };
        let value = match this.value_register() {
            Some(register) => {
                self.compute(parts.value, register)?;
                Operand::register(register)
            }
            None => self.operand(parts.value)?,
        };
        let item = self.locals.get(locals.item).copied().flatten().ok_or(MISSING)?;
        let given = ItemParts { item, key, value };
        to_done.extend(self.each(&this, &given, prices, to_keep, next)?);
        self.leave(outer);
        for jump in to_done {
            self.land(jump)?;
        }
        self.end_loop(next)?;
        if let (Some(began), Some(point)) = (began, points) {
            self.emit(Instruction::NoteItems { slot, began, point });
        }
        if restores {
            self.emit(Instruction::LoopRestore { slot });
        }
        self.finish(&this)?;
        if matches!(parts.kind, ForKind::GroupBy | ForKind::CountBy) {
            let price = self.price((0, Price::Entries(Box::new(GROUP), Box::new(Price::Fixed(0)))))?;
            let value = Operand::register(out);
            self.emit(Instruction::LoopCharge { slot, value, price });
        }

        let bound = [Some(locals.item), locals.entry_value, locals.so_far];
        for local in bound.into_iter().flatten() {
            self.bind(local, None)?;
            *self.in_place.get_mut(local).ok_or(MISSING)? = None;
        }
        self.loop_top = slot.0;
        Ok(())
    }

    /// Compiles the collection of a loop. A range is not materialised.
    pub(super) fn collection(&mut self, over: ExpressionIndex) -> Compiled<Over> {
        let node = self.node;
        if let ExpressionKind::Call {
            op: Op::ArrayRange,
            args,
            ..
        } = &node.expression(over).ok_or(MISSING)?.kind
            && let [start, end, step] = args.as_slice()
        {
            let bounds = [self.operand(*start)?, self.operand(*end)?, self.operand(*step)?];
            return Ok(Over::Range(bounds, over));
        }
        self.operand(over).map(Over::Value)
    }

    pub(super) fn start_loop(&mut self, slot: LoopSlot, over: Over) {
        self.emit(match over {
            Over::Value(over) => Instruction::LoopStart { slot, over },
            Over::Range([start, end, step], expression) => Instruction::LoopRange {
                slot,
                start,
                end,
                step,
                expression,
            },
        });
    }

    pub(super) fn enter_loop(&mut self) -> LoopSlot {
        let slot = LoopSlot(self.loop_top);
        // Slots nest with expressions, whose depth is limited.
        self.loop_top += 1;
        self.code.loops = self.code.loops.max(self.loop_top as usize);
        slot
    }

    pub(super) fn type_of(&self, index: ExpressionIndex) -> Compiled<&Type> {
        Ok(&self.node.expression(index).ok_or(MISSING)?.ty)
    }

    /// Binds the locals of the item and returns the jump to the end.
    pub(super) fn next_item(&mut self, slot: LoopSlot, locals: Locals) -> Compiled<usize> {
        let key = self.allocate()?;
        self.bind(locals.item, Some(Operand::register(key)))?;
        let Some(local) = locals.entry_value else {
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

    /// Returns true for a loop over records that reads only fields. No item is copied then.
    fn reads_fields_only(&self, index: ExpressionIndex, locals: Locals, parts: &For) -> Compiled<bool> {
        let is_of_records =
            matches!(self.type_of(parts.over)?, Type::Array(item) if matches!(**item, Type::Record(_)));
        if !is_of_records || parts.kind.is_of_items() {
            return Ok(false);
        }
        let start = self.node.expression(index).ok_or(MISSING)?.start;
        let (mut mentions, mut fields) = (0_usize, 0_usize);
        for part in start..index {
            match &self.node.expression(part).ok_or(MISSING)?.kind {
                ExpressionKind::Local(local) if *local == locals.item => mentions += 1,
                ExpressionKind::Field { of, .. } => {
                    let of = &self.node.expression(*of).ok_or(MISSING)?.kind;
                    let is_of_item = matches!(of, ExpressionKind::Local(local) if *local == locals.item);
                    fields += usize::from(is_of_item);
                }
                _ => {}
            }
        }
        Ok(mentions == fields)
    }

    /// Like `next_item`, for an item that stays in the array.
    fn advance(&mut self, slot: LoopSlot, locals: Locals) -> Compiled<usize> {
        // Bound for lookups of the local; the register is never written.
        let item = self.allocate()?;
        self.bind(locals.item, Some(Operand::register(item)))?;
        *self.in_place.get_mut(locals.item).ok_or(MISSING)? = Some(slot);
        Ok(self.jump(Instruction::LoopAdvance { slot, done: 0 }))
    }

    /// Returns the loop slot of an item whose fields alone are read.
    pub(super) fn item_slot(&self, of: ExpressionIndex) -> Compiled<Option<LoopSlot>> {
        Ok(match &self.node.expression(of).ok_or(MISSING)?.kind {
            ExpressionKind::Local(local) => self.in_place.get(*local).copied().flatten(),
            _ => None,
        })
    }

    /// Emits an operation of one or two arguments whose failure belongs to the loop.
    fn apply(&mut self, this: &Loop<'_>, op: Op, out: Register, first: Operand, second: Option<Operand>) {
        let mut args = [first; MAX_ARITY];
        if let (Some(place), Some(second)) = (args.get_mut(1), second) {
            *place = second;
        }
        let expression = this.index;
        self.emit(Instruction::Call {
            op,
            out,
            args,
            expression,
        });
    }
}
