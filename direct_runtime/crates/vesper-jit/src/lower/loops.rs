//! Loops through ranges, counted loops, and the fuel that rounds take.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::Variable;
use vesper_interp::code::Instruction;

use crate::dataflow::{accesses, loop_place, register_place, takes_fuel};
use crate::plan::constant;

use super::rounds::MAX_COUNTED;
use super::unnoted_loops::Notes;
use super::{How, Kind, Lower, NONE, NotCompiled, TRUSTED, ValueParts, apply, offset, type_of};

/// How the fuel is known in a loop whose items it becomes less in step with.
#[derive(Clone, Copy, Debug)]
pub(super) struct InStep {
    /// The range.
    pub(super) range: usize,
    /// The slot that says how much more there is of it than of items: it is read where the loop is left.
    pub(super) more: usize,
    /// Where the loop begins and ends.
    pub(super) start: usize,
    pub(super) end: usize,
    /// How many items are left where the head looks up: where it is over, or where it is asked what the path has seen.
    pub(super) stop: Variable,
    /// How many items are left where fuel or items are used up, or no further round may begin.
    pub(super) last: Variable,
    /// How many items there were to begin with.
    pub(super) began: Variable,
    /// In how many rounds choices went one way.
    pub(super) counts: [Variable; MAX_COUNTED],
    /// The rounds, where they are counted in step as well.
    pub(super) rounds: Option<Rounds>,
    /// The head, once it is written, and where that goes on with a round that may begin.
    pub(super) taken: Option<(usize, Block)>,
    /// What its rounds note.
    pub(super) notes: Notes,
}

/// How the rounds of a loop are known that it counts from zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// The place that they are counted in.
    pub(super) count: usize,
    pub(super) max: u32,
}

impl Lower<'_, '_> {
    /// Takes one unit of fuel, or leaves the code before the instruction at hand where there is none to be had.
    pub(super) fn spend(&mut self) {
        self.have_fuel();
        self.take_fuel();
    }

    /// Leaves the code before the instruction at hand where there is no fuel to be had.
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

    /// Asks for more fuel. What the loop computes waits in its slots meanwhile: a call that hardly ever happens must not be
    /// what decides where the values of a loop stand.
    fn refill_fuel(&mut self) -> Value {
        let needed = self.plan.needed.get(self.at);
        let dirty = needed.map(|needed| self.state.dirty(needed)).unwrap_or_default();
        let mut waiting = Vec::new();
        for (place, kind) in dirty {
            let kept = self.slot_binding(place, kind);
            // Of a range only what is left changes.
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
        // It is declared with one result.
        fuel.unwrap_or(self.context)
    }

    /// Takes one unit of the fuel that is there.
    pub(super) fn take_fuel(&mut self) {
        let fuel = self.builder.use_var(self.fuel);
        let less = self.builder.ins().iadd_imm_s(fuel, -1);
        self.builder.def_var(self.fuel, less);
    }

    /// A range in machine registers has its end in place of what comes next, which would change in every round: nobody
    /// may ever ask for it.
    pub(super) fn range_with_end(&mut self, held: ValueParts) -> ValueParts {
        let [next, step, left] = held.as_slice() else {
            return held;
        };
        let (next, step, left) = (*next, self.known_step().unwrap_or(*step), *left);
        let way = self.builder.ins().imul(left, step);
        vec![self.builder.ins().iadd(next, way), step, left]
    }

    /// The same as it stands in slots.
    pub(super) fn range_with_next(&mut self, held: ValueParts) -> ValueParts {
        let [end, step, left] = held.as_slice() else {
            return held;
        };
        let (end, step, left) = (*end, *step, *left);
        let way = self.builder.ins().imul(left, step);
        vec![self.builder.ins().isub(end, way), step, left]
    }

    /// The step of the range that the instruction at hand starts, where it is a constant.
    fn known_step(&mut self) -> Option<Value> {
        let Some(Instruction::LoopRange { step, .. }) = self.code.instructions.get(self.at) else {
            return None;
        };
        constant(self.code, *step).filter(|kind| *kind == Kind::Integer)?;
        self.one(*step, Kind::Integer).ok()
    }

    /// A loop through a range has started. Where nothing but its head takes fuel until it ends, fuel and items become
    /// less in step: one of the two is counted, and the fuel is so much more than the items that are left.
    pub(super) fn start_range(&mut self) {
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

    /// The end of a loop that nothing leaves but its head, where nothing else takes fuel from its start to there, and
    /// nobody comes in from elsewhere.
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

    /// The place that the rounds of a loop are counted in, and how many there may be, where each round is counted once: by
    /// the last instruction before the one jump back.
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
            // One jump back, and none to the instruction that jumps back or behind the count.
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
                // The rounds may be read by nobody else: they are not the same before and behind the last one.
                _ if touched.writes.contains(&count) || touched.reads.contains(&count) => {
                    return None;
                }
                _ => {}
            }
        }
        limit.map(|max| (count, max))
    }

    /// Begins to count from so much fuel: how much more it is than the items that are left, and how many of them are left
    /// where one of the two is used up.
    fn count_in_step(&mut self, in_step: InStep, fuel: Value) {
        let left = self.read_part(in_step.range, Kind::Range, 2);
        let more = self.builder.ins().isub(fuel, left);
        let (memory, at) = (self.memory(), offset(in_step.more));
        self.builder.ins().store(TRUSTED, more, memory, at);
        let stop = if self.words.is_some() {
            // There is enough of both for all of them, or the loop would not have begun.
            self.builder.ins().iconst(types::I64, 0)
        } else {
            self.last_in_step(in_step, left, fuel)
        };
        self.builder.def_var(in_step.last, stop);
        let stop = self.first_check(in_step, left, stop);
        self.builder.def_var(in_step.stop, stop);
    }

    /// How many items are left where fuel is used up, or the rounds that there may be.
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

    /// The head of a loop through a range whose items and fuel become less in step; what is left of the items.
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
            // With fuel at hand it is the limit of rounds, which is the interpreter's affair.
            let next = self.builder.create_block();
            self.builder.set_cold_block(next);
            self.builder.ins().brif(fuel, exit, &NONE, next, &NONE);
            self.builder.switch_to_block(next);
        }
        let fuel = self.refill_fuel();
        self.builder.def_var(self.fuel, fuel);
        self.count_in_step(in_step, fuel);
        if in_step.rounds.is_some() {
            // Both may be used up at once.
            let left = self.read_part(range, Kind::Range, 2);
            let stop = self.builder.use_var(in_step.stop);
            let is_over = self.builder.ins().icmp(IntCC::Equal, left, stop);
            self.builder.ins().brif(is_over, exit, &NONE, taken, &NONE);
        } else {
            self.builder.ins().brif(fuel, taken, &NONE, exit, &NONE);
        }
        self.begin_round_in_step(in_step, taken)
    }

    /// Goes on with a round that may begin; what is left of the items.
    fn begin_round_in_step(&mut self, in_step: InStep, taken: Block) -> Value {
        self.builder.switch_to_block(taken);
        let left = self.read_part(in_step.range, Kind::Range, 2);
        // Known anew: what came back from its slot would be carried from round to round.
        self.rounds_so_far(in_step, left);
        left
    }

    /// The fuel that is at hand in a loop that takes it in step.
    pub(super) fn fuel_in_step(&mut self, in_step: InStep) -> Value {
        let left = self.read_part(in_step.range, Kind::Range, 2);
        let (memory, at) = (self.memory(), offset(in_step.more));
        let more = self.builder.ins().load(types::I64, TRUSTED, memory, at);
        self.builder.ins().iadd(left, more)
    }

    /// The loop around the instruction at hand that takes fuel in step.
    pub(super) fn around(&self) -> Option<InStep> {
        let mut all = self.in_step.values();
        all.find(|one| one.start < self.at && self.at < one.end).copied()
    }

    /// The rounds of a loop with so many items left.
    fn rounds_so_far(&mut self, in_step: InStep, left: Value) {
        if let Some(rounds) = in_step.rounds {
            let began = self.builder.use_var(in_step.began);
            let so_far = self.builder.ins().isub(began, left);
            self.write_value(rounds.count, Kind::Integer, &[so_far]);
        }
    }

    /// The loop around the instruction at hand, where it counts its rounds in this place in step with its items.
    fn loop_counting_in(&self, count: usize) -> Option<InStep> {
        let is_it = |one: &InStep| one.rounds.is_some_and(|rounds| rounds.count == count);
        self.around().filter(is_it)
    }

    /// The head of a loop through a range.
    pub(super) fn next_of_range(
        &mut self,
        how: &How,
        range: usize,
        item: usize,
        done: usize,
    ) -> Result<bool, NotCompiled> {
        // Before anything of the instruction is done: where it is done with, it takes nothing.
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

    /// The head of a loop through an array, of whose items only fields are read.
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

    /// A field of the item that a loop is at.
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
        // The row that comes next is behind the one that the loop is at.
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

    /// Leaves a loop that had as many rounds as it may have to the interpreter.
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
        // There are never as many rounds as would not fit: each takes a unit of fuel.
        let more = self.builder.ins().iadd_imm_s(rounds, 1);
        self.write_value(count, Kind::Integer, &[more]);
        Ok(())
    }
}
