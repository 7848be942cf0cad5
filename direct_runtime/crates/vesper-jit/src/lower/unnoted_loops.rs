//! Copies of loops without notes, entered once the path contains all notes of the loop.
//!
//! A path is a set, so a point need not be noted twice. After its first rounds a loop checks the path. If it contains
//! every note of the loop, the remaining rounds run in the copy. Otherwise the loop continues, and checks again after
//! four times as many rounds.

use std::collections::BTreeMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use vesper_interp::code::Instruction;

use crate::dataflow::register_place;

use super::exits::{Late, Then};
use super::loops::InStep;
use super::{Kind, Lower, NONE, NotCompiled};

/// The rounds before the first check of the path.
const FIRST_CHECK_ROUNDS: i64 = 32;
/// The maximum instructions of a copied loop, because compile time grows faster than the code.
const MAX_COPIED_INSTRUCTIONS: usize = 96;

/// The notes of a loop's rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notes {
    /// None, or too many to check.
    Any,
    /// These bits of one path word.
    Bits { word: usize, bits: i64 },
    /// All are in the path: this is the copy.
    Seen,
}

/// The copies of loops.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The copied loops, by their start.
    of: BTreeMap<usize, InStep>,
    /// The block that begins a round of each copy.
    taken: BTreeMap<usize, Block>,
    /// True while a copy is lowered.
    is_written: bool,
}

impl Copies {
    pub(super) fn is_written(&self) -> bool {
        self.is_written
    }

    /// Adds a loop whose head was just lowered.
    pub(super) fn add(&mut self, in_step: InStep) {
        if matches!(in_step.notes, Notes::Bits { .. }) {
            self.of.insert(in_step.start, in_step);
        }
    }
}

impl Lower<'_, '_> {
    /// Returns the notes of the rounds of a loop.
    pub(super) fn notes(&self, start: usize, end: usize) -> Notes {
        let inside = self.code.instructions.get(start + 1..end).unwrap_or_default();
        let mut noted = inside.iter().filter_map(|one| match one {
            Instruction::Note { word, bit } => Some((register_place(*word), 1_i64 << bit)),
            _ => None,
        });
        let Some((word, first)) = noted.next() else {
            return Notes::Any;
        };
        let bits = noted.try_fold(first, |bits, (other, bit)| (other == word).then_some(bits | bit));
        match bits {
            Some(bits) if inside.len() <= MAX_COPIED_INSTRUCTIONS && self.is_only_noted(start, end, word) => {
                Notes::Bits { word, bits }
            }
            _ => Notes::Any,
        }
    }

    /// Returns the remaining items at the first check of the path.
    pub(super) fn first_check(&mut self, in_step: InStep, left: Value, last: Value) -> Value {
        if !matches!(in_step.notes, Notes::Bits { .. }) {
            return last;
        }
        let first = self.builder.ins().iconst(types::I64, FIRST_CHECK_ROUNDS);
        self.after(left, first, last)
    }

    /// Returns the remaining items after this many rounds, at least `last`.
    fn after(&mut self, left: Value, rounds: Value, last: Value) -> Value {
        let rounds = self.builder.ins().umin(rounds, left);
        let then = self.builder.ins().isub(left, rounds);
        self.builder.ins().umax(then, last)
    }

    /// Lowers the stop of a loop's head: unless the loop is over, continues at `taken` or in the copy.
    pub(super) fn check_path(&mut self, in_step: InStep, left: Value, taken: Block) {
        if !matches!(in_step.notes, Notes::Bits { .. }) {
            return;
        }
        let [looks, over] = [(); 2].map(|()| self.builder.create_block());
        self.builder.set_cold_block(looks);
        self.builder.set_cold_block(over);
        let last = self.builder.use_var(in_step.last);
        let is_over = self.builder.ins().icmp(IntCC::Equal, left, last);
        self.builder.ins().brif(is_over, over, &NONE, looks, &NONE);
        self.builder.switch_to_block(over);
        // Lowered last, because neither the counted choices nor the copy are known yet.
        self.late.push(Late {
            block: looks,
            kept: Vec::new(),
            then: Then::Rounds(taken),
            in_step: Some((in_step, self.at)),
        });
    }

    /// Continues in the copy if the path is complete, and otherwise at `taken`.
    pub(super) fn continue_unnoted(&mut self, in_step: InStep, taken: Block) {
        let (Notes::Bits { word, bits }, Some(copy)) =
            (in_step.notes, self.plain.taken.get(&in_step.start).copied())
        else {
            let last = self.builder.use_var(in_step.last);
            self.builder.def_var(in_step.stop, last);
            self.builder.ins().jump(taken, &NONE);
            return;
        };
        self.write_counted(in_step, in_step.start);
        let path = self.read_part(word, Kind::Integer, 0);
        let all = self.builder.ins().iconst(types::I64, bits);
        let seen = self.builder.ins().band(path, all);
        let is_all = self.builder.ins().icmp(IntCC::Equal, seen, all);
        let [plain, again] = [(); 2].map(|()| self.builder.create_block());
        self.builder.set_cold_block(plain);
        self.builder.set_cold_block(again);
        let last = self.builder.use_var(in_step.last);
        self.builder.ins().brif(is_all, plain, &NONE, again, &NONE);
        self.builder.switch_to_block(plain);
        self.builder.def_var(in_step.stop, last);
        self.builder.ins().jump(copy, &NONE);
        self.builder.switch_to_block(again);
        let left = self.read_part(in_step.range, Kind::Range, 2);
        let began = self.builder.use_var(in_step.began);
        let rounds = self.builder.ins().isub(began, left);
        let more = self.builder.ins().imul_imm_s(rounds, 3);
        let stop = self.after(left, more, last);
        self.builder.def_var(in_step.stop, stop);
        self.builder.ins().jump(taken, &NONE);
    }

    /// Lowers the copies.
    pub(super) fn copies(&mut self) -> Result<(), NotCompiled> {
        for (start, in_step) in std::mem::take(&mut self.plain.of) {
            let Some((head, _)) = in_step.taken else {
                continue;
            };
            let states = self.plan.blocks.range(head..in_step.end);
            let loop_place: Vec<_> = states.map(|(at, state)| (*at, state.clone())).collect();
            let blocks = self.blocks.clone();
            for (at, _) in &loop_place {
                let block = self.builder.create_block();
                self.blocks.insert(*at, block);
            }
            let copy = InStep {
                notes: Notes::Seen,
                taken: None,
                ..in_step
            };
            self.in_step.insert(in_step.range, copy);
            self.plain.is_written = true;
            for (at, state) in loop_place {
                if !self.merged.contains(&at) {
                    self.block(at, state)?;
                }
            }
            self.plain.is_written = false;
            self.blocks = blocks;
            let written = self.in_step.get(&in_step.range).and_then(|copy| copy.taken);
            if let Some((_, taken)) = written {
                self.plain.taken.insert(start, taken);
            }
        }
        Ok(())
    }
}
