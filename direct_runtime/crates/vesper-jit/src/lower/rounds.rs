//! Rounds of a loop that takes fuel in step with its items: what they do not have to do, because it can be done once.

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

/// So many choices of a loop are counted at most.
pub(super) const MAX_COUNTED: usize = 4;

/// A choice that a loop makes once in every round, and of which the path wants to know which ways it went: it is counted
/// how often it went one way, and written into the path where the loop is left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// The loop, by where it starts.
    start: usize,
    /// The instruction that chooses.
    at: usize,
    /// The word of the path, and what either way writes there.
    word: usize,
    yes: i64,
    no: i64,
    condition: Compared,
    /// Which count of the loop.
    count: usize,
    /// How many exits there were when it was counted.
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
    /// The block for the end of a loop, on the way to the one behind it. What the loop has computed goes there by its
    /// slots: calls behind the loop would else decide where its values stand, and some would go to memory and back in
    /// every round.
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
        // Written last: what is counted in the loop is not known yet.
        self.late.push(Late {
            block,
            kept,
            then: Then::Behind(behind),
            in_step: Some((in_step, in_step.end)),
        });
        block
    }

    /// Reads values back that have just been written.
    pub(super) fn read_back(&mut self, kept: &[SlotBinding]) {
        for one in kept {
            for part in 0..one.kind.width() {
                let back = self.read_part_back(*one, part);
                let variable = self.variable(one.place, one.kind, part);
                self.builder.def_var(variable, back);
            }
        }
    }

    /// Reads a part of a value that has just been written. Cranelift knows what stands there, and would leave it where it
    /// was; bits of another type it does read.
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

    /// A jump back to the head of the loop around that takes fuel in step: what the head asks is asked here, so that a
    /// round has one jump, not two. True where it is one.
    pub(super) fn next_round(&mut self, to: usize, head: Block) -> bool {
        let Some(in_step) = self.around() else {
            return false;
        };
        // Another block is one between, with something to do before the head.
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

    /// Counts a choice instead of writing it into a word of the path in every round; false where that cannot be.
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
        let (Some(yes), Some(no)) = (self.known(yes), self.known(no)) else {
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
        // One and the same condition is counted once, unless somebody may leave in between, or come from elsewhere.
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

    /// True where every round comes to the choice at hand: nobody jumps over it.
    fn is_once_a_round(&self, in_step: InStep) -> bool {
        let Some((head, _)) = in_step.taken else {
            return false;
        };
        let mut jumps = self.plan.jumps.iter();
        !jumps.any(|(from, to)| *from > head && *from < self.at && *to > self.at && *to <= in_step.end)
    }

    /// True where a word of the path stands in a machine register throughout a loop, and nothing of the loop but notes
    /// asks for it.
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

    /// Writes into the path which ways counted choices went, where a loop is left and the interpreter goes on at `next`.
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
            // Of the round that is under way the choice may be still to come.
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

    /// What is compared, where a condition is whether a float is more or less than a constant.
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
