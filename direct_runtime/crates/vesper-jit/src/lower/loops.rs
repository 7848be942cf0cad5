//! Loops over ranges and items, counted loops, and the fuel of rounds.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::Variable;
use vesper_interp::code::Instruction;

use crate::dataflow::{accesses, loop_place, register_place, takes_fuel};
use crate::plan::constant;

use super::rounds::MAX_COUNTED;
use super::unnoted_loops::Notes;
use super::{How, Kind, Lower, NONE, NotCompiled, TRUSTED, ValueParts, apply, offset, type_of};

/// A loop whose fuel falls in step with its items. Only the items are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct InStep {
    /// The place of the range.
    pub(super) range: usize,
    /// The slot with the difference between fuel and remaining items. It is read when the loop is left.
    pub(super) more: usize,
    /// The instructions of the loop.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The remaining items at which the head stops: at the end, or to check the path.
    pub(super) stop: Variable,
    /// The remaining items at which fuel, items or rounds are exhausted.
    pub(super) last: Variable,
    /// The items at the start.
    pub(super) began: Variable,
    /// The rounds in which each counted choice went one way.
    pub(super) counts: [Variable; MAX_COUNTED],
    /// The round counter, if it also runs in step.
    pub(super) rounds: Option<Rounds>,
    /// The head, once lowered, and the block that begins a round.
    pub(super) taken: Option<(usize, Block)>,
    /// The notes of its rounds.
    pub(super) notes: Notes,
}

/// A round counter that starts at zero and runs in step with the items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// The place of the counter.
    pub(super) count: usize,
    pub(super) max: u32,
}

impl Lower<'_, '_> {
    /// Takes one unit of fuel, or leaves before the current instruction.
    pub(super) fn spend(&mut self) {
        self.have_fuel();
        self.take_fuel();
    }

    /// Leaves before the current instruction if no fuel is left.
    pub(super) fn have_fuel(&mut self) {
        let is_forced = self.is_forced();
        let exit = self.exit_before();
        if is_forced {
            let next = self.builder.create_block();
            let never = self.builder.ins().iconst(types::I8, 0);
            self.builder.ins().brif(never, next, &NONE, exit, &NONE);
            self.builder.switch_to_block(next);
        }
        let next = self.builder.create_block();
        let fuel = self.builder.use_var(self.fuel);
        if self.words.is_some() {
            self.builder.ins().brif(fuel, next, &NONE, exit, &NONE);
            self.builder.switch_to_block(next);
            return;
        }
        let empty = self.builder.create_block();
        self.builder.set_cold_block(empty);
        self.builder.ins().brif(fuel, next, &NONE, empty, &NONE);
        self.builder.switch_to_block(empty);
        let fuel = self.refill_fuel();
        self.builder.def_var(self.fuel, fuel);
        self.builder.ins().brif(fuel, next, &NONE, exit, &NONE);
        self.builder.switch_to_block(next);
    }

    /// Emits a refill of fuel. The values of the loop are saved to slots around the call, so that a rare call does
    /// not determine their registers.
    fn refill_fuel(&mut self) -> Value {
        let needed = self.plan.needed.get(self.at);
        let dirty = needed.map(|needed| self.state.dirty(needed)).unwrap_or_default();
        let mut waiting = Vec::new();
        for (place, kind) in dirty {
            let kept = self.slot_binding(place, kind);
            // Only the remaining count of a range changes.
            let first = if kind == Kind::Range { 2 } else { 0 };
            waiting.extend((first..kind.width()).map(|part| (kept, part)));
        }
        for (kept, part) in &waiting {
            let value = self.read_part(kept.place, kept.kind, *part);
            self.store_part(*kept, *part, value);
        }
        let call = self.builder.ins().call(self.functions.refill, &[self.context]);
        let fuel = self.builder.inst_results(call).first().copied();
        for (kept, part) in waiting {
            let value = self.load_part(kept, part);
            let variable = self.variable(kept.place, kept.kind, part);
            self.builder.def_var(variable, value);
        }
        // The function is declared with one result.
        fuel.unwrap_or(self.context)
    }

    /// Takes one unit of available fuel.
    pub(super) fn take_fuel(&mut self) {
        let fuel = self.builder.use_var(self.fuel);
        let less = self.builder.ins().iadd_imm_s(fuel, -1);
        self.builder.def_var(self.fuel, less);
    }

    /// Converts a range to its register form, with the end for the next integer. The next integer would change in
    /// every round.
    pub(super) fn range_with_end(&mut self, held: ValueParts) -> ValueParts {
        let [next, step, left] = held.as_slice() else {
            return held;
        };
        let (next, step, left) = (*next, self.known_step().unwrap_or(*step), *left);
        let way = self.builder.ins().imul(left, step);
        vec![self.builder.ins().iadd(next, way), step, left]
    }

    /// Converts a range from its register form to its slot form.
    pub(super) fn range_with_next(&mut self, held: ValueParts) -> ValueParts {
        let [end, step, left] = held.as_slice() else {
            return held;
        };
        let (end, step, left) = (*end, *step, *left);
        let way = self.builder.ins().imul(left, step);
        vec![self.builder.ins().isub(end, way), step, left]
    }

    /// Returns the constant step of the range that the current instruction starts.
    fn known_step(&mut self) -> Option<Value> {
        let Some(Instruction::LoopRange { step, .. }) = self.code.instructions.get(self.at) else {
            return None;
        };
        constant(self.code, *step).filter(|kind| *kind == Kind::Integer)?;
        self.one(*step, Kind::Integer).ok()
    }

    /// Prepares a started loop over a range. If only its head takes fuel, fuel and items fall in step: only the items
    /// are counted, and the difference to the fuel is constant.
    pub(super) fn prepare_range(&mut self) {
        let Some(Instruction::LoopRange { slot, .. }) = self.code.instructions.get(self.at) else {
            return;
        };
        let range = loop_place(self.code, *slot);
        self.in_step.remove(&range);
        let whole = self.end_of_whole(self.at, *slot);
        self.refuse_long(range, whole.is_some());
        let Some(end) = whole.and_then(|(head, end)| self.end_in_step(self.at, head, end)) else {
            return;
        };
        let [stop, last, began] = [(); 3].map(|()| self.builder.declare_var(types::I64));
        let more = self.side.slots;
        self.side.slots += 1;
        let rounds = self.rounds_in_step(self.at, end);
        let rounds = rounds.map(|(count, max)| Rounds { count, max });
        let counts = [(); MAX_COUNTED].map(|()| self.builder.declare_var(types::I64));
        let in_step = InStep {
            range,
            more,
            start: self.at,
            end,
            stop,
            last,
            began,
            counts,
            rounds,
            taken: None,
            notes: self.notes(self.at, end),
        };
        self.in_step.insert(range, in_step);
        let left = self.read_part(range, Kind::Range, 2);
        self.builder.def_var(began, left);
        if self.words.is_some() {
            self.refuse_rounds(in_step);
        }
        let none = self.builder.ins().iconst(types::I64, 0);
        for count in counts {
            self.builder.def_var(count, none);
        }
        let fuel = self.builder.use_var(self.fuel);
        self.count_in_step(in_step, fuel);
    }

    /// Returns the end of a loop that can run in step. Only its head leaves it and takes fuel, and it is entered only
    /// at its start.
    fn end_in_step(&self, start: usize, head: usize, end: usize) -> Option<usize> {
        let all = self.code.instructions.iter().enumerate();
        let mut body = all.clone().skip(head + 1).take(end.saturating_sub(head + 1));
        let is_inside = |at: usize| at > start && at < end;
        let mut jumps = all.filter_map(|(at, one)| accesses(self.code, one).jump.map(|to| (at, to)));
        let is_in_step = !body.any(|(_, one)| takes_fuel(one))
            && !jumps.any(|(at, to)| is_inside(to) && !is_inside(at))
            && !self.plan.entries.iter().any(|entry| is_inside(*entry));
        is_in_step.then_some(end)
    }

    /// Returns the round counter of a loop and its maximum, if it can run in step. The last instruction before the
    /// only jump back must count each round once.
    fn rounds_in_step(&self, start: usize, end: usize) -> Option<(usize, u32)> {
        let inside = self.code.instructions.get(start..end)?;
        let [
            ..,
            Instruction::LoopRound { count },
            Instruction::Jump { to: back },
        ] = inside
        else {
            return None;
        };
        let (count, back) = (register_place(*count), *back as usize);
        let head = back.checked_sub(start).and_then(|at| inside.get(at));
        if !head.is_some_and(takes_fuel) {
            return None;
        }
        let mut limit = None;
        for (at, one) in (start..).zip(inside) {
            let touched = accesses(self.code, one);
            let is_last = at + 2 >= end;
            // Only one jump back, and no jump to it or past the counter.
            if !is_last && touched.jump.is_some_and(|to| to == back || to == end - 1) {
                return None;
            }
            match *one {
                Instruction::Move { from, .. } if at < back && touched.writes.contains(&count) => {
                    let from = from
                        .as_register()
                        .is_none()
                        .then(|| from.read(&self.code.constants, &[]));
                    if !matches!(from.flatten(), Some(vesper_ir::Value::Integer(0))) {
                        return None;
                    }
                }
                Instruction::LoopLimit { count: own, max, .. }
                    if register_place(own) == count && at > back =>
                {
                    limit = limit.or(Some(max));
                    if limit != Some(max) {
                        return None;
                    }
                }
                _ if is_last => {}
                // No other instruction may access the counter, whose value lags within a round.
                _ if touched.writes.contains(&count) || touched.reads.contains(&count) => {
                    return None;
                }
                _ => {}
            }
        }
        limit.map(|max| (count, max))
    }

    /// Starts a loop that counts fuel and items together.
    ///
    /// Stores how much fuel exceeds the remaining items, and the item count at which fuel or items run out.
    fn count_in_step(&mut self, in_step: InStep, fuel: Value) {
        let left = self.read_part(in_step.range, Kind::Range, 2);
        let more = self.builder.ins().isub(fuel, left);
        let (memory, at) = (self.memory(), offset(in_step.more));
        self.builder.ins().store(TRUSTED, more, memory, at);
        let stop = if self.words.is_some() {
            // Both suffice for all rounds, or the loop would not have started.
            self.builder.ins().iconst(types::I64, 0)
        } else {
            self.last_in_step(in_step, left, fuel)
        };
        self.builder.def_var(in_step.last, stop);
        let stop = self.first_check(in_step, left, stop);
        self.builder.def_var(in_step.stop, stop);
    }

    /// Returns the remaining items at which fuel or rounds are exhausted.
    fn last_in_step(&mut self, in_step: InStep, left: Value, fuel: Value) -> Value {
        let short = self.builder.ins().isub(left, fuel);
        let is_short = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, left, fuel);
        let none = self.builder.ins().iconst(types::I64, 0);
        let stop = self.builder.ins().select(is_short, short, none);
        match in_step.rounds {
            Some(rounds) => {
                let began = self.builder.use_var(in_step.began);
                let max = self.builder.ins().iconst(types::I64, i64::from(rounds.max));
                let is_more = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, began, max);
                let over = self.builder.ins().isub(began, max);
                let over = self.builder.ins().select(is_more, over, none);
                self.builder.ins().umax(stop, over)
            }
            None => stop,
        }
    }

    /// Lowers the head of a loop in step, and returns the remaining items.
    fn next_in_step(&mut self, in_step: InStep, range: usize, ended: Block) -> Value {
        let left = self.read_part(range, Kind::Range, 2);
        self.rounds_so_far(in_step, left);
        let [taken, stops] = [(); 2].map(|()| self.builder.create_block());
        self.builder.set_cold_block(stops);
        if let Some(kept) = self.in_step.get_mut(&range) {
            kept.taken = Some((self.at, taken));
            self.plain.add(*kept);
        }
        let is_forced = self.is_forced();
        let exit = self.exit_before();
        if is_forced {
            let next = self.builder.create_block();
            self.builder.ins().brif(left, exit, &NONE, next, &NONE);
            self.builder.switch_to_block(next);
        }
        let stop = self.builder.use_var(in_step.stop);
        let is_over = self.builder.ins().icmp(IntCC::Equal, left, stop);
        self.builder.ins().brif(is_over, stops, &NONE, taken, &NONE);
        self.builder.switch_to_block(stops);
        self.check_path(in_step, left, taken);
        let fuel = self.fuel_in_step(in_step);
        self.builder.def_var(self.fuel, fuel);
        let over = self.loop_end_block(in_step, ended);
        if self.words.is_some() {
            self.builder.ins().jump(over, &NONE);
            return self.begin_round_in_step(in_step, taken);
        }
        let empty = self.builder.create_block();
        self.builder.set_cold_block(empty);
        self.builder.ins().brif(left, empty, &NONE, over, &NONE);
        self.builder.switch_to_block(empty);
        if in_step.rounds.is_some() {
            // With fuel left it is the round limit, which the interpreter reports.
            let next = self.builder.create_block();
            self.builder.set_cold_block(next);
            self.builder.ins().brif(fuel, exit, &NONE, next, &NONE);
            self.builder.switch_to_block(next);
        }
        let fuel = self.refill_fuel();
        self.builder.def_var(self.fuel, fuel);
        self.count_in_step(in_step, fuel);
        if in_step.rounds.is_some() {
            // Both may be exhausted at once.
            let left = self.read_part(range, Kind::Range, 2);
            let stop = self.builder.use_var(in_step.stop);
            let is_over = self.builder.ins().icmp(IntCC::Equal, left, stop);
            self.builder.ins().brif(is_over, exit, &NONE, taken, &NONE);
        } else {
            self.builder.ins().brif(fuel, taken, &NONE, exit, &NONE);
        }
        self.begin_round_in_step(in_step, taken)
    }

    /// Begins a round and returns the remaining items.
    fn begin_round_in_step(&mut self, in_step: InStep, taken: Block) -> Value {
        self.builder.switch_to_block(taken);
        let left = self.read_part(in_step.range, Kind::Range, 2);
        // Recomputed, because a reload from the slot would be carried through all rounds.
        self.rounds_so_far(in_step, left);
        left
    }

    /// Returns the available fuel in a loop in step.
    pub(super) fn fuel_in_step(&mut self, in_step: InStep) -> Value {
        let left = self.read_part(in_step.range, Kind::Range, 2);
        let (memory, at) = (self.memory(), offset(in_step.more));
        let more = self.builder.ins().load(types::I64, TRUSTED, memory, at);
        self.builder.ins().iadd(left, more)
    }

    /// Returns the loop in step around the current instruction.
    pub(super) fn around(&self) -> Option<InStep> {
        let mut all = self.in_step.values();
        all.find(|one| one.start < self.at && self.at < one.end).copied()
    }

    /// Sets the round counter from the remaining items.
    fn rounds_so_far(&mut self, in_step: InStep, left: Value) {
        if let Some(rounds) = in_step.rounds {
            let began = self.builder.use_var(in_step.began);
            let so_far = self.builder.ins().isub(began, left);
            self.write_value(rounds.count, Kind::Integer, &[so_far]);
        }
    }

    /// Returns the loop in step around the current instruction that uses this round counter.
    fn loop_counting_in(&self, count: usize) -> Option<InStep> {
        let is_it = |one: &InStep| one.rounds.is_some_and(|rounds| rounds.count == count);
        self.around().filter(is_it)
    }

    /// Lowers the head of a loop over a range.
    pub(super) fn next_of_range(
        &mut self,
        how: &How,
        range: usize,
        item: usize,
        done: usize,
    ) -> Result<bool, NotCompiled> {
        // Before any effect of the instruction: at the end of the loop it takes nothing.
        let ended = self.edge(done)?;
        let left = if let Some(in_step) = self.in_step.get(&range).copied() {
            self.next_in_step(in_step, range, ended)
        } else {
            let taken = self.builder.create_block();
            let left = self.read_part(range, Kind::Range, 2);
            self.builder.ins().brif(left, taken, &NONE, ended, &NONE);
            self.builder.switch_to_block(taken);
            self.spend();
            self.read_part(range, Kind::Range, 2)
        };
        let held = self.read_value(range, Kind::Range);
        let [end, step, _] = held.as_slice() else {
            return Err(NotCompiled::new("a range has other parts than three"));
        };
        let (end, step) = (*end, *step);
        let way = self.builder.ins().imul(left, step);
        let next = self.builder.ins().isub(end, way);
        let less = self.builder.ins().iadd_imm_s(left, -1);
        let variable = self.variable(range, Kind::Range, 2);
        self.builder.def_var(variable, less);
        self.write_value(item, Kind::Integer, &[next]);
        apply(how, &mut self.state)?;
        let to = self.edge(self.at + 1)?;
        self.builder.ins().jump(to, &NONE);
        Ok(true)
    }

    /// Lowers the head of a loop over an array of which only fields are read.
    pub(super) fn next_of_items(
        &mut self,
        how: &How,
        items: usize,
        done: usize,
    ) -> Result<bool, NotCompiled> {
        let taken = self.builder.create_block();
        let ended = self.edge(done)?;
        let left = self.read_part(items, Kind::Items, 2);
        self.builder.ins().brif(left, taken, &NONE, ended, &NONE);
        self.builder.switch_to_block(taken);
        self.spend();
        let held = self.read_value(items, Kind::Items);
        let [row, next, left] = held.as_slice() else {
            return Err(NotCompiled::new("a loop has other parts than three"));
        };
        let (row, next, left) = (*row, *next, *left);
        let width = self.plan.rows.get(&self.at).map_or(0, |rows| rows.width);
        let row = self.builder.ins().iadd_imm_s(row, i64::from(offset(width)));
        let next = self.builder.ins().iadd_imm_s(next, 1);
        let left = self.builder.ins().iadd_imm_s(left, -1);
        self.write_value(items, Kind::Items, &[row, next, left]);
        apply(how, &mut self.state)?;
        let to = self.edge(self.at + 1)?;
        self.builder.ins().jump(to, &NONE);
        Ok(true)
    }

    /// Reads a field of the current item.
    pub(super) fn field(&mut self, how: &How, items: usize, place: u32) -> Result<(), NotCompiled> {
        let missing = || NotCompiled::new("a field is read that was not gathered");
        let How::Inline { gives, .. } = how else {
            return Err(missing());
        };
        let [(out, kind)] = gives.as_slice() else {
            return Err(missing());
        };
        let rows = self.plan.rows.get(&self.at).ok_or_else(missing)?;
        let at = rows.offset(place, *kind).ok_or_else(missing)?;
        // The loop points to the next row; the current one is before it.
        let back = offset(rows.width);
        let held = self.read_value(items, Kind::Items);
        let row = held.first().copied().ok_or_else(missing)?;
        let parts = (0..kind.width()).map(|part| {
            let flags = TRUSTED.with_readonly();
            self.builder
                .ins()
                .load(type_of(*kind), flags, row, offset(at + part) - back)
        });
        let parts: Vec<_> = parts.collect();
        self.write_value(*out, *kind, &parts);
        Ok(())
    }

    /// Leaves a loop that has reached its maximum rounds to the interpreter.
    pub(super) fn limit(&mut self, count: usize, max: u32) -> Result<(), NotCompiled> {
        if self.loop_counting_in(count).is_some() {
            return Ok(());
        }
        let rounds = self.only(count, Kind::Integer)?;
        let is_over = self
            .builder
            .ins()
            .icmp_imm_s(IntCC::SignedGreaterThanOrEqual, rounds, i64::from(max));
        self.guard(is_over);
        Ok(())
    }

    /// Counts a round.
    pub(super) fn round(&mut self, count: usize) -> Result<(), NotCompiled> {
        if let Some(in_step) = self.loop_counting_in(count) {
            let left = self.read_part(in_step.range, Kind::Range, 2);
            self.rounds_so_far(in_step, left);
            return Ok(());
        }
        let rounds = self.only(count, Kind::Integer)?;
        // No overflow: each round takes a unit of fuel.
        let more = self.builder.ins().iadd_imm_s(rounds, 1);
        self.write_value(count, Kind::Integer, &[more]);
        Ok(())
    }
}
