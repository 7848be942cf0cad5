//! Work hoisted out of the rounds of a loop in step (`InStep`).

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{
    Block, InstBuilder, InstructionData, MemFlagsData, Opcode, Value, ValueDef, types,
};
use vesper_interp::code::Instruction;

use super::exits::{Late, Then};
use super::loops::InStep;
use super::masks::Chooser;
use super::unnoted_loops::Notes;
use super::{HashSet, Kind, Lower, NONE, SlotBinding, TRUSTED, accesses, offset, type_of};

/// The maximum counted choices per loop.
pub(super) const MAX_COUNTED: usize = 4;

/// A choice made once in every round whose outcomes the path records. The code counts one outcome, and writes the
/// path when the loop is left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// The start of the loop.
    start: usize,
    /// The choosing instruction.
    at: usize,
    /// The path word, and the bits of either outcome.
    word: usize,
    yes: i64,
    no: i64,
    condition: Compared,
    /// The index among the counts of the loop.
    count: usize,
    /// The number of exits when it was counted.
    exits: usize,
}

/// A comparison of a float with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Compared {
    condition: FloatCC,
    left: Value,
    right: u64,
}

impl Lower<'_, '_> {
    /// Creates the block between the end of a loop and its successor. Values pass through slots there, so that calls
    /// after the loop do not force them to memory in every round.
    pub(super) fn loop_end_block(&mut self, in_step: InStep, behind: Block) -> Block {
        let needed = self.plan.needed.get(in_step.end);
        let dirty = needed.map(|needed| self.state.dirty(needed)).unwrap_or_default();
        let inside = self.code.instructions.get(in_step.start..in_step.end);
        let inside = inside.unwrap_or_default().iter();
        let written: HashSet<usize> = inside.flat_map(|one| accesses(self.code, one).writes).collect();
        let is_parted = |(place, kind): &(usize, Kind)| {
            written.contains(place) && !matches!(kind, Kind::Range | Kind::Items)
        };
        let dirty: Vec<_> = dirty.into_iter().filter(is_parted).collect();
        let kept = dirty
            .into_iter()
            .map(|(place, kind)| self.slot_binding(place, kind));
        let kept = kept.collect();
        let block = self.builder.create_block();
        // Lowered last, because the counted choices of the loop are not known yet.
        self.late.push(Late {
            block,
            kept,
            then: Then::Behind(behind),
            in_step: Some((in_step, in_step.end)),
        });
        block
    }

    /// Reads back values that were just stored.
    pub(super) fn read_back(&mut self, kept: &[SlotBinding]) {
        for one in kept {
            for part in 0..one.kind.width() {
                let back = self.read_part_back(*one, part);
                let variable = self.variable(one.place, one.kind, part);
                self.builder.def_var(variable, back);
            }
        }
    }

    /// Reads back a part of a stored value. Uses another type, because Cranelift would otherwise forward the stored
    /// register.
    fn read_part_back(&mut self, kept: SlotBinding, part: usize) -> Value {
        let at = offset(kept.slot + part);
        let (ty, other) = match type_of(kept.kind) {
            types::F64 => (types::F64, types::I64),
            types::I64 => (types::I64, types::F64),
            _ => return self.load_part(kept, part),
        };
        let memory = self.memory();
        let bits = self.builder.ins().load(other, TRUSTED, memory, at);
        self.builder.ins().bitcast(ty, MemFlagsData::new(), bits)
    }

    /// Lowers a jump back to the head of the loop in step. Evaluates the condition of the head here, so that a round
    /// has one jump. Returns false for any other jump.
    pub(super) fn next_round(&mut self, to: usize, head: Block) -> bool {
        let Some(in_step) = self.around() else {
            return false;
        };
        // Another block in between has work to do before the head.
        let is_bare = self.block_at(to).is_ok_and(|block| block == head);
        let Some((_, taken)) = in_step.taken.filter(|(at, _)| *at == to && is_bare) else {
            return false;
        };
        let left = self.read_part(in_step.range, Kind::Range, 2);
        let stop = self.builder.use_var(in_step.stop);
        let is_over = self.builder.ins().icmp(IntCC::Equal, left, stop);
        self.builder.ins().brif(is_over, head, &NONE, taken, &NONE);
        true
    }

    /// Counts a choice instead of noting it in every round. Returns false if that is not possible.
    pub(super) fn is_counted(&mut self, word: usize, chooser: Chooser, yes: Value, no: Value) -> bool {
        let Some(in_step) = self.around() else {
            return false;
        };
        let (Some(compared), Some((Opcode::Bor, before, yes)), Some((Opcode::Bor, other, no))) = (
            self.comparison(chooser.condition),
            self.parts(yes),
            self.parts(no),
        ) else {
            return false;
        };
        let (Some(yes), Some(no)) = (self.constant_integer(yes), self.constant_integer(no)) else {
            return false;
        };
        let is_as_it_was = before == other && before == self.read_part(word, Kind::Integer, 0);
        if !is_as_it_was
            || !self.is_once_a_round(in_step)
            || !self.is_only_noted(in_step.start, in_step.end, word)
        {
            return false;
        }
        let start = in_step.start;
        let exits = self.side.exits.len();
        let own: Vec<Counted> = self
            .counted
            .iter()
            .filter(|one| one.start == start)
            .copied()
            .collect();
        // An equal condition is counted once, unless the code can be left or entered in between.
        let same = own
            .iter()
            .find(|one| one.condition == compared && one.exits == exits);
        let same = same
            .filter(|one| self.chain.contains(&one.at))
            .map(|one| one.count);
        let next = own.iter().map(|one| one.count + 1).max().unwrap_or(0);
        let count = same.unwrap_or(next);
        let Some(variable) = in_step.counts.get(count) else {
            return false;
        };
        if same.is_none() {
            let is = self.as_integer(chooser);
            let so_far = self.builder.use_var(*variable);
            let more = self.builder.ins().iadd(so_far, is);
            self.builder.def_var(*variable, more);
        }
        self.chain.push(self.at);
        self.counted.push(Counted {
            start,
            at: self.at,
            word,
            yes,
            no,
            condition: compared,
            count,
            exits,
        });
        true
    }

    /// Returns true if every round reaches the current choice.
    fn is_once_a_round(&self, in_step: InStep) -> bool {
        let Some((head, _)) = in_step.taken else {
            return false;
        };
        let mut jumps = self.plan.jumps.iter();
        // A jump over the choice, or one back to the head: an item that `where` excludes ends its round there.
        let leaves_out = |to: usize| (to > self.at && to <= in_step.end) || to <= head;
        !jumps.any(|(from, to)| *from > head && *from < self.at && leaves_out(*to))
    }

    /// Returns true if a path word stays in a machine register throughout a loop. Only notes may access it.
    pub(super) fn is_only_noted(&self, start: usize, end: usize, word: usize) -> bool {
        let inside = self.code.instructions.get(start + 1..end);
        let mut others = inside.unwrap_or_default().iter().filter(|one| {
            let touched = accesses(self.code, one);
            touched.reads.contains(&word) || touched.writes.contains(&word)
        });
        let mut blocks = self.plan.blocks.range(start + 1..=end);
        others.all(|one| matches!(one, Instruction::Note { .. }))
            && blocks.all(|(_, state)| state.native(word) == Some(Kind::Integer))
    }

    /// Writes the outcomes of counted choices to the path when a loop is left; the interpreter continues at `next`.
    pub(super) fn write_counted(&mut self, in_step: InStep, next: usize) {
        if matches!(in_step.notes, Notes::Seen) {
            return;
        }
        let all = self.counted.iter().filter(|one| one.start == in_step.start);
        let all: Vec<Counted> = all.copied().collect();
        let is_in_round = in_step.taken.is_some_and(|(head, _)| next > head) && next < in_step.end;
        for one in all {
            let Some(variable) = in_step.counts.get(one.count) else {
                continue;
            };
            let count = self.builder.use_var(*variable);
            let began = self.builder.use_var(in_step.began);
            let left = self.read_part(in_step.range, Kind::Range, 2);
            let rounds = self.builder.ins().isub(began, left);
            // In the current round the choice may still be ahead.
            let comes = is_in_round && one.at >= next;
            let chosen = self.builder.ins().iadd_imm_s(rounds, if comes { -1 } else { 0 });
            let never = self.builder.ins().iconst(types::I64, 0);
            let is_yes = self.builder.ins().icmp(IntCC::NotEqual, count, never);
            let is_no = self.builder.ins().icmp(IntCC::NotEqual, count, chosen);
            let word = self.read_part(one.word, Kind::Integer, 0);
            let yes = self.builder.ins().iconst(types::I64, one.yes);
            let no = self.builder.ins().iconst(types::I64, one.no);
            let yes = self.builder.ins().select(is_yes, yes, never);
            let no = self.builder.ins().select(is_no, no, never);
            let word = self.builder.ins().bor(word, yes);
            let word = self.builder.ins().bor(word, no);
            self.write_value(one.word, Kind::Integer, &[word]);
        }
    }

    /// Decodes a condition that compares a float with a constant.
    fn comparison(&self, condition: Value) -> Option<Compared> {
        let dfg = &self.builder.func.dfg;
        let ValueDef::Result(instruction, _) = dfg.value_def(condition) else {
            return None;
        };
        let InstructionData::FloatCompare {
            cond,
            args: [left, right],
            ..
        } = dfg.insts[instruction]
        else {
            return None;
        };
        let ValueDef::Result(constant, _) = dfg.value_def(right) else {
            return None;
        };
        let InstructionData::UnaryIeee64 { imm, .. } = dfg.insts[constant] else {
            return None;
        };
        Some(Compared {
            condition: cond,
            left,
            right: imm.bits(),
        })
    }
}
