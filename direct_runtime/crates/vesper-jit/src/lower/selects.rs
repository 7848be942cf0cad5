//! Choices without jumps: both sides are computed and one is selected.
//!
//! A mispredicted branch costs about a dozen operations, so two short sides without effects are both computed. An
//! overflow on the side that is not taken does not count.

use std::ops::Range;

use cranelift_codegen::ir::{InstBuilder, InstructionData, MemFlagsData, Opcode, Value, ValueDef, types};
use vesper_interp::code::Instruction;

use super::masks::Chooser;
use super::{BTreeMap, How, Inline, Kind, Lower, NONE, NotCompiled, Place, State, TriedSide, apply, inline};

/// The maximum instructions of a side that is computed speculatively.
const MAX_SIDE_INSTRUCTIONS: usize = 4;

/// The two sides of a choice and their join.
#[derive(Debug)]
pub(super) struct Choice {
    next: Range<usize>,
    other: Range<usize>,
    join: usize,
    /// The results of the sides that are live after the choice.
    gives: Vec<(usize, Kind)>,
}

impl Lower<'_, '_> {
    /// Returns the choice of the current instruction, if both sides are short and without effects.
    pub(super) fn choice(&self, how: &How, to: usize) -> Result<Option<Choice>, NotCompiled> {
        let next = self.at + 1;
        if to <= next {
            return Ok(None);
        }
        let last = self.code.instructions.get(to - 1);
        let (next, other, join) = match last {
            Some(Instruction::Jump { to: join }) if *join as usize > to => {
                (next..to - 1, to..*join as usize, *join as usize)
            }
            _ => (next..to, to..to, to),
        };
        if next.len() > MAX_SIDE_INSTRUCTIONS
            || other.len() > MAX_SIDE_INSTRUCTIONS
            || !self.is_closed(to, join, !other.is_empty())
        {
            return Ok(None);
        }
        let mut state = self.state.clone();
        apply(how, &mut state)?;
        let (Some(of_next), Some(of_other)) = (
            self.side_results(&next, &state)?,
            self.side_results(&other, &state)?,
        ) else {
            return Ok(None);
        };
        let Some(needed) = self.plan.needed.get(join) else {
            return Ok(None);
        };
        let mut gives = Vec::new();
        for place in of_next.keys().chain(of_other.keys()) {
            if !needed.has(*place) || gives.iter().any(|(given, _)| given == place) {
                continue;
            }
            let stands =
                |side: &BTreeMap<usize, Kind>| side.get(place).copied().or_else(|| state.native(*place));
            match (stands(&of_next), stands(&of_other)) {
                (Some(kind), Some(other)) if kind == other => gives.push((*place, kind)),
                _ => return Ok(None),
            }
        }
        Ok(Some(Choice {
            next,
            other,
            join,
            gives,
        }))
    }

    /// Returns true if no jump enters the sides of a choice from elsewhere.
    fn is_closed(&self, to: usize, join: usize, has_other: bool) -> bool {
        let is_inside = |at: usize| at > self.at && at < join;
        let is_own = |at: usize, target: usize| at == self.at && target == to && has_other;
        let mut jumps = self.plan.jumps.iter().filter(|(_, target)| is_inside(*target));
        jumps.all(|(at, target)| is_own(*at, *target))
            && !self.plan.entries.iter().any(|entry| is_inside(*entry))
    }

    /// Returns the results of a side, or `None` if it cannot be computed speculatively.
    fn side_results(
        &self,
        side: &Range<usize>,
        before: &State,
    ) -> Result<Option<BTreeMap<usize, Kind>>, NotCompiled> {
        let mut state = before.clone();
        let mut given = BTreeMap::new();
        for at in side.clone() {
            let (Some(instruction), Some(how)) = (self.code.instructions.get(at), self.plan.how.get(at))
            else {
                return Ok(None);
            };
            let is_there = match how {
                How::Inline { uses, .. } => uses
                    .iter()
                    .all(|(place, kind)| state.native(*place) == Some(*kind)),
                How::Move { from, .. } => state.native(*from).is_some(),
                _ => false,
            };
            if !is_there || !is_harmless(instruction) {
                return Ok(None);
            }
            apply(how, &mut state)?;
            let out = match how {
                How::Inline { gives, .. } => gives.first().map(|(place, _)| *place),
                How::Move { out, .. } => Some(*out),
                _ => None,
            };
            if let Some(out) = out
                && let Some(kind) = state.native(out)
            {
                given.insert(out, kind);
            }
        }
        Ok(Some(given))
    }

    /// Computes both sides and selects one.
    pub(super) fn select(
        &mut self,
        how: &How,
        choice: &Choice,
        condition: Value,
        is_jump_if_true: bool,
    ) -> Result<(), NotCompiled> {
        let opposite = self.builder.ins().bxor_imm_s(condition, 1);
        let (is_next, is_other) = if is_jump_if_true {
            (opposite, condition)
        } else {
            (condition, opposite)
        };
        let first = self.side(how, &choice.next, is_next)?;
        let second = self.side(how, &choice.other, is_other)?;
        apply(how, &mut self.state)?;
        let chooser = self.chooser(condition);
        for (place, kind) in &choice.gives {
            let mut held = Vec::with_capacity(kind.width());
            for part in 0..kind.width() {
                let mut of_side = |side: &TriedSide| match side.values.get(&(*place, part)) {
                    Some((_, value)) => *value,
                    None => self.read_part(*place, *kind, part),
                };
                let (first, second) = (of_side(&first), of_side(&second));
                let (yes, no) = if is_jump_if_true {
                    (second, first)
                } else {
                    (first, second)
                };
                if yes == no {
                    held.push(yes);
                } else if *kind == Kind::Integer && self.is_counted(*place, chooser, yes, no) {
                    held.push(self.read_part(*place, *kind, part));
                } else {
                    held.push(self.select_value(chooser, yes, no));
                }
            }
            self.write_value(*place, *kind, &held);
            self.state.set(
                *place,
                Place::Native {
                    kind: *kind,
                    dirty: true,
                },
            );
        }
        self.merged.extend(choice.next.clone());
        self.merged.extend(choice.other.clone());
        let to = self.edge(choice.join)?;
        self.builder.ins().jump(to, &NONE);
        let is_bare = self.block_at(choice.join).is_ok_and(|block| block == to);
        if is_bare && self.is_reached_from_here(choice.join) {
            // Values known here stay known in the next block.
            self.builder.seal_block(to);
            self.follows = Some(to);
        }
        Ok(())
    }

    /// Returns true if the end of the choice is reached only from its sides.
    fn is_reached_from_here(&self, join: usize) -> bool {
        let is_side = |at: usize| at >= self.at && at < join;
        let mut jumps = self.plan.jumps.iter().filter(|(_, to)| *to == join);
        jumps.all(|(from, _)| is_side(*from)) && !self.plan.entries.contains(&join)
    }

    /// Computes one side as if it were taken. Its guards leave before the choice.
    fn side(&mut self, how: &How, side: &Range<usize>, is_taken: Value) -> Result<TriedSide, NotCompiled> {
        self.tried = Some(TriedSide {
            is_taken,
            values: BTreeMap::new(),
        });
        let mut state = self.state.clone();
        apply(how, &mut state)?;
        for at in side.clone() {
            let (Some(instruction), Some(how)) = (self.code.instructions.get(at), self.plan.how.get(at))
            else {
                continue;
            };
            match how {
                How::Move { out, from } => {
                    if let Some(kind) = state.native(*from)
                        && out != from
                    {
                        let held = self.read_value(*from, kind);
                        self.write_value(*out, kind, &held);
                    }
                }
                _ => {
                    self.inline(instruction, how)?;
                }
            }
            apply(how, &mut state)?;
        }
        self.tried
            .take()
            .ok_or_else(|| NotCompiled::new("a side of a choice was lost"))
    }

    /// Selects one of two values without a jump.
    fn select_value(&mut self, chooser: Chooser, yes: Value, no: Value) -> Value {
        match self.builder.func.dfg.value_type(yes) {
            types::F64 => {}
            types::I64 => return self.select_integer(chooser, yes, no),
            _ => return self.builder.ins().select(chooser.condition, yes, no),
        }
        // SEMANTICS: `a - b` equals `a + (-b)` exactly. So a sum on either side becomes one addition of the selected
        // term, and the choice leaves the dependency chain between rounds.
        if let (Some((Opcode::Fadd, sum, term)), Some((Opcode::Fsub, other, less))) =
            (self.parts(yes), self.parts(no))
            && sum == other
        {
            let less = self.negate(less);
            let term = self.select_value(chooser, term, less);
            return self.builder.ins().fadd(sum, term);
        }
        if let Some(mask) = chooser.mask {
            return self.select_by_mask(mask, yes, no);
        }
        // Selecting floats is a jump on some processors; selecting their bits is not.
        let bits = |lower: &mut Self, value| {
            lower
                .builder
                .ins()
                .bitcast(types::I64, MemFlagsData::new(), value)
        };
        let (yes, no) = (bits(self, yes), bits(self, no));
        let chosen = self.builder.ins().select(chooser.condition, yes, no);
        self.builder
            .ins()
            .bitcast(types::F64, MemFlagsData::new(), chosen)
    }

    /// Selects one of two integers. A common operand stays outside of the selection, to shorten the dependency chain
    /// between rounds. A choice between two constants becomes arithmetic if that is cheaper.
    fn select_integer(&mut self, chooser: Chooser, yes: Value, no: Value) -> Value {
        match (self.parts(yes), self.parts(no)) {
            (Some((Opcode::Bor, first, bits)), Some((Opcode::Bor, other, or))) if first == other => {
                let bits = self.select_integer(chooser, bits, or);
                return self.builder.ins().bor(first, bits);
            }
            (Some((Opcode::Iadd, first, more)), _) if first == no => {
                let none = self.builder.ins().iconst(types::I64, 0);
                let more = self.select_integer(chooser, more, none);
                return self.builder.ins().iadd(first, more);
            }
            _ => {}
        }
        if let (Some(yes), Some(no)) = (self.constant_integer(yes), self.constant_integer(no)) {
            let apart = yes.wrapping_sub(no);
            if apart > 0 && apart.count_ones() == 1 {
                let is = self.as_integer(chooser);
                let places = i64::from(apart.trailing_zeros());
                // Two adjacent bits are the same number shifted.
                if no % apart == 0 {
                    let either = self.builder.ins().iadd_imm_s(is, no / apart);
                    return self.builder.ins().ishl_imm_s(either, places);
                }
                let more = self.builder.ins().ishl_imm_s(is, places);
                return self.builder.ins().iadd_imm_s(more, no);
            }
        }
        self.builder.ins().select(chooser.condition, yes, no)
    }

    /// Returns the integer of a constant value.
    pub(super) fn constant_integer(&self, value: Value) -> Option<i64> {
        let dfg = &self.builder.func.dfg;
        let ValueDef::Result(instruction, _) = dfg.value_def(value) else {
            return None;
        };
        match dfg.insts[instruction] {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            } => Some(imm.bits()),
            _ => None,
        }
    }

    /// Negates a float. For a product with a constant, negates the constant.
    fn negate(&mut self, value: Value) -> Value {
        if let Some((Opcode::Fmul, other, factor)) = self.parts(value)
            && let ValueDef::Result(constant, _) = self.builder.func.dfg.value_def(factor)
            && let InstructionData::UnaryIeee64 { imm, .. } = self.builder.func.dfg.insts[constant]
        {
            let opposite = -f64::from_bits(imm.bits());
            let opposite = self.builder.ins().f64const(opposite);
            return self.product(other, opposite);
        }
        self.builder.ins().fneg(value)
    }

    /// Returns the operation and the two operands that compute a value.
    pub(super) fn parts(&self, value: Value) -> Option<(Opcode, Value, Value)> {
        let dfg = &self.builder.func.dfg;
        let ValueDef::Result(instruction, _) = dfg.value_def(value) else {
            return None;
        };
        match dfg.insts[instruction] {
            InstructionData::Binary {
                opcode,
                args: [first, second],
            } => Some((opcode, first, second)),
            _ => None,
        }
    }
}

/// Returns true for a cheap instruction without effects.
fn is_harmless(instruction: &Instruction) -> bool {
    match instruction {
        Instruction::Move { .. } | Instruction::Note { .. } => true,
        Instruction::Call { op, .. } => inline(*op).is_some_and(|(what, kind, _)| match what {
            Inline::Quot | Inline::Rem | Inline::DivFloor | Inline::Mod | Inline::Divide => false,
            Inline::Add | Inline::Subtract | Inline::Compare(_) => kind != Kind::Decimal,
            _ => true,
        }),
        _ => false,
    }
}
