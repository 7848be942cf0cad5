//! The instructions of a loop, as steps.
//!
//! A loop is the instructions from its head to the last one that jumps back there. It has a numeric form where each of
//! them has steps, and where what is read from registers that were written before is a number, which shows when the form
//! is entered. Whatever is not in the lists here is left to the bytecode, and so is the whole loop.

use std::collections::HashMap;

use vesper_ir::limits::ITEMS;
use vesper_ir::planted;
use vesper_ir::{Op, Value};

use super::live::{SlotSet, live_before, successors};
use super::run::ReadyStep;
use super::shorten::shorten;
use super::step::{COMPARISONS, JUMPS_UNLESS, Step, StepCode};
use super::{Carried, LoopShape, NumericLoop, Positions, Word, bits_of};
use crate::bytecode::{Code, Instruction, LoopSlot, Operand, Register};

/// A loop of more instructions has no numeric form: the time to find one grows faster than the loop.
const MAX_INSTRUCTIONS: usize = 400;

/// The numeric form of a loop that goes from its head to `exit`, if it has one.
pub(super) fn translate(code: &Code, shape: &LoopShape, exit: usize) -> Option<NumericLoop> {
    let body = code.instructions.get(shape.head..exit)?;
    let notes = body.iter().filter(|instruction| is_note(instruction)).count();
    if body.len() - notes > MAX_INSTRUCTIONS {
        return None;
    }
    let has_conditions = body.iter().any(|each| matches!(each, Instruction::Note { .. }));
    let settled = translated(code, shape, exit, None)?;
    if has_conditions {
        translated(code, shape, exit, Some(Box::new(settled)))
    } else {
        Some(settled)
    }
}

/// True for what stands in the pathed form only.
fn is_note(instruction: &Instruction) -> bool {
    matches!(
        instruction,
        Instruction::Note { .. }
            | Instruction::LoopBegan { .. }
            | Instruction::NoteItems { .. }
            | Instruction::NoteRounds { .. }
    )
}

/// The numeric form of a loop without notes of conditions, or the one with them, given the one without.
fn translated(
    code: &Code,
    shape: &LoopShape,
    exit: usize,
    settled: Option<Box<NumericLoop>>,
) -> Option<NumericLoop> {
    let body = code.instructions.get(shape.head..exit)?;
    let mut draft = Draft::new(code, shape, exit);
    for instruction in body {
        draft.starts.push(draft.steps.len());
        if !is_note(instruction) {
            draft.instruction(*instruction)?;
        } else if settled.is_some() || !matches!(instruction, Instruction::Note { .. }) {
            draft.note(*instruction)?;
        }
    }
    draft.starts.push(draft.steps.len());
    // A loop that ends by going on behind its last instruction leaves there.
    draft.jump(draft.exit);
    draft.resolve()?;
    draft.finish(settled)
}

/// For each instruction to which others jump back, the last of these.
pub(super) fn ends_of_loops(code: &Code) -> HashMap<usize, usize> {
    let jumps = code.instructions.iter().enumerate();
    let back = jumps.filter_map(|(place, instruction)| target(instruction).map(|to| (to, place)));
    back.filter(|(to, place)| to <= place).collect()
}

/// How a loop that goes through something takes the next of it: that shows where it is started.
fn head_of(code: &Code, head: usize) -> Option<StepCode> {
    let Some(Instruction::LoopNext { slot, .. }) = code.instructions.get(head) else {
        return None;
    };
    let mut before = code.instructions.get(..head)?.iter().rev();
    before.find_map(|instruction| match instruction {
        Instruction::LoopRange { slot: own, .. } if own == slot => Some(StepCode::HeadNext),
        Instruction::LoopStart { slot: own, .. } if own == slot => Some(StepCode::HeadNextItem),
        _ => None,
    })
}

fn target(instruction: &Instruction) -> Option<usize> {
    match instruction {
        Instruction::Jump { to }
        | Instruction::JumpIfTrue { to, .. }
        | Instruction::JumpIfFalse { to, .. }
        | Instruction::JumpUnless { to, .. } => Some(*to as usize),
        _ => None,
    }
}

struct Draft<'a> {
    code: &'a Code,
    shape: &'a LoopShape,
    /// The first step, where the loop goes through something.
    head: Option<StepCode>,
    steps: Vec<Option<Step>>,
    /// The first step of each instruction.
    starts: Vec<usize>,
    /// For each step that jumps, the instruction it goes to.
    targets: Vec<(usize, usize)>,
    /// The instruction behind the loop.
    exit: usize,
    registers: Vec<(Register, u8)>,
    constants: Vec<(u8, u64)>,
    positions: Positions,
    /// The words of the path.
    words: Vec<Word>,
    /// For each step that notes a condition, the place of its word among these, and its bit.
    noted: Vec<(usize, usize, u64)>,
    /// How many slots are taken.
    slots: usize,
}

impl<'a> Draft<'a> {
    fn new(code: &'a Code, shape: &'a LoopShape, exit: usize) -> Self {
        Self {
            code,
            shape,
            head: head_of(code, shape.head),
            steps: Vec::new(),
            starts: Vec::new(),
            targets: Vec::new(),
            exit,
            registers: Vec::new(),
            constants: Vec::new(),
            positions: Vec::new(),
            words: Vec::new(),
            noted: Vec::new(),
            slots: 0,
        }
    }

    /// So many slots in a row; nothing where there are no more.
    fn allocate(&mut self, count: usize) -> Option<u8> {
        let first = self.slots;
        self.slots += count;
        (self.slots <= 256).then(|| u8::try_from(first).ok()).flatten()
    }

    fn register(&mut self, register: Register) -> Option<u8> {
        let known = self.registers.iter().find(|(own, _)| *own == register);
        if let Some((_, slot)) = known {
            return Some(*slot);
        }
        let slot = self.allocate(1)?;
        self.registers.push((register, slot));
        Some(slot)
    }

    fn bits(&mut self, bits: u64) -> Option<u8> {
        let known = self.constants.iter().find(|(_, own)| *own == bits);
        if let Some((slot, _)) = known {
            return Some(*slot);
        }
        let slot = self.allocate(1)?;
        self.constants.push((slot, bits));
        Some(slot)
    }

    fn operand(&mut self, operand: Operand) -> Option<u8> {
        match operand.as_register() {
            Some(register) => self.register(register),
            None => self.bits(bits_of(operand.read(&self.code.constants, &[])?)?),
        }
    }

    fn position(&mut self, slot: LoopSlot) -> Option<u8> {
        let known = self.positions.iter().find(|(own, _)| *own == slot);
        if let Some((_, first)) = known {
            return Some(*first);
        }
        let first = self.allocate(3)?;
        self.positions.push((slot, first));
        Some(first)
    }

    fn push(&mut self, step: Step) {
        self.steps.push(Some(step));
    }

    /// A jump to an instruction.
    fn jump_step(&mut self, step: Step, to: usize) {
        self.targets.push((self.steps.len(), to));
        self.push(step);
    }

    fn jump(&mut self, to: usize) {
        self.jump_step(Step::new(StepCode::Jump), to);
    }

    #[expect(clippy::too_many_lines, reason = "one arm an instruction")]
    fn instruction(&mut self, instruction: Instruction) -> Option<()> {
        let is_head = self.steps.is_empty();
        match instruction {
            Instruction::Call { op, out, args, .. } => {
                let [a, b, ..] = args;
                if op == Op::FloatDivide
                    && let Some(inverse) = self.exact_inverse(b)
                {
                    let step = Step {
                        a: self.operand(a)?,
                        b: self.bits(inverse.to_bits())?,
                        out: self.register(out)?,
                        ..Step::new(StepCode::MultiplyF)
                    };
                    self.push(step);
                    return Some(());
                }
                let code = step_of(op)?;
                let step = Step {
                    a: self.operand(a)?,
                    b: self.operand(b)?,
                    out: self.register(out)?,
                    ..Step::new(code)
                };
                self.push(step);
            }
            Instruction::Move { out, from } => {
                let step = Step {
                    a: self.operand(from)?,
                    out: self.register(out)?,
                    ..Step::new(StepCode::Move)
                };
                self.push(step);
            }
            Instruction::Jump { to } => self.jump(to as usize),
            Instruction::JumpIfTrue { condition, to } => {
                self.conditional(StepCode::JumpIfTrue, condition, to)?;
            }
            Instruction::JumpIfFalse { condition, to } => {
                self.conditional(StepCode::JumpIfFalse, condition, to)?;
            }
            Instruction::JumpUnless {
                op,
                first,
                second,
                to,
            } => {
                let step = Step {
                    a: self.operand(first)?,
                    b: self.operand(second)?,
                    ..Step::new(*JUMPS_UNLESS.get(comparison(op)?)?)
                };
                self.jump_step(step, to as usize);
            }
            Instruction::RequireThat {
                op, first, second, ..
            } => {
                let step = Step {
                    a: self.operand(first)?,
                    b: self.operand(second)?,
                    out: self.allocate(1)?,
                    ..Step::new(*COMPARISONS.get(comparison(op)?)?)
                };
                self.push(step);
                self.push(Step {
                    a: step.out,
                    ..Step::new(StepCode::Require)
                });
            }
            Instruction::LoopRange {
                slot,
                start,
                end,
                step,
                ..
            } => {
                let step = Step {
                    a: self.position(slot)?,
                    b: self.operand(start)?,
                    c: self.operand(end)?,
                    d: self.operand(step)?,
                    ..Step::new(StepCode::Range)
                };
                self.push(step);
            }
            // A loop that goes through nothing.
            Instruction::LoopStart { over, .. } => match over.read(&self.code.constants, &[]) {
                Some(Value::Null) if over.as_register().is_none() => {}
                _ => return None,
            },
            Instruction::LoopNext { slot, item, done } => {
                let code = if is_head { self.head? } else { StepCode::Next };
                let step = Step {
                    a: self.position(slot)?,
                    out: self.register(item)?,
                    ..Step::new(code)
                };
                self.jump_step(step, done as usize);
            }
            Instruction::LoopBegin { .. } if is_head => self.push(Step::new(StepCode::Head)),
            Instruction::LoopBegin { .. } => {}
            // This loop goes through something, and has no more rounds than that has items.
            Instruction::LoopLimit { count, max, .. }
                if self.head.is_some() && max as usize >= ITEMS && self.shape.carried.contains(&count) => {}
            Instruction::LoopLimit { count, max, .. } => {
                let step = Step {
                    a: self.register(count)?,
                    b: self.bits(u64::from(max))?,
                    ..Step::new(StepCode::Limit)
                };
                self.push(step);
            }
            Instruction::Spend => self.push(Step::new(StepCode::Spend)),
            Instruction::LoopRound { count } => {
                let step = Step {
                    a: self.register(count)?,
                    ..Step::new(StepCode::Round)
                };
                self.push(step);
            }
            Instruction::Require { condition, .. } => {
                let step = Step {
                    a: self.operand(condition)?,
                    ..Step::new(StepCode::Require)
                };
                self.push(step);
            }
            Instruction::Fail { .. } => self.push(Step::new(StepCode::Undo)),
            _ => return None,
        }
        Some(())
    }

    /// A note, as a step.
    fn note(&mut self, instruction: Instruction) -> Option<()> {
        let step = match instruction {
            Instruction::Note { word, bit } => {
                let (place, path) = self.word(word)?;
                self.noted.push((self.steps.len(), place, 1 << bit));
                Step {
                    a: path,
                    b: self.bits(1 << bit)?,
                    out: path,
                    ..Step::new(planted!(
                        "paths.numeric_loops_have_no_notes",
                        StepCode::OrI,
                        StepCode::Move
                    ))
                }
            }
            Instruction::LoopBegan { slot, out } => Step {
                a: self.position(slot)?.checked_add(2)?,
                out: self.register(out)?,
                ..Step::new(StepCode::Move)
            },
            Instruction::NoteItems { slot, began, point } => {
                let left = self.position(slot)?.checked_add(2)?;
                let began = self.register(began)?;
                self.class(left, began, point)?
            }
            Instruction::NoteRounds { count, point } => {
                let none = self.bits(0)?;
                let count = self.register(count)?;
                self.class(none, count, point)?
            }
            _ => return None,
        };
        self.push(step);
        Some(())
    }

    /// The step that passes one of the three points of a loop. They have to be in one word.
    fn class(&mut self, a: u8, b: u8, point: u32) -> Option<Step> {
        let path = self.code.path.as_ref()?;
        let ((word, bit), (last, _)) = (path.place(point), path.place(point + 2));
        if word != last {
            return None;
        }
        let (_, path) = self.word(word)?;
        Some(Step {
            a,
            b,
            c: self.bits(1 << bit)?,
            d: path,
            out: path,
            ..Step::new(StepCode::Class)
        })
    }

    /// The place of a word of the path, and its slot.
    fn word(&mut self, register: Register) -> Option<(usize, u8)> {
        let known = self.words.iter().position(|word| word.register == register);
        if let Some(place) = known {
            return Some((place, self.words.get(place)?.slot));
        }
        let slot = self.register(register)?;
        self.words.push(Word {
            register,
            slot,
            bits: 0,
        });
        Some((self.words.len() - 1, slot))
    }

    /// Which bits the steps note that can be come to: what only a failure comes to is for the bytecode.
    fn find_bits(&mut self) {
        let mut is_reached = vec![false; self.steps.len()];
        let mut waiting = vec![0];
        while let Some(place) = waiting.pop() {
            let Some(reached) = is_reached.get_mut(place).filter(|reached| !**reached) else {
                continue;
            };
            *reached = true;
            let (to, behind) = successors(&self.steps, place);
            waiting.extend(to.into_iter().chain(behind));
        }
        for (step, word, bit) in &self.noted {
            if is_reached.get(*step).copied().unwrap_or_default()
                && let Some(word) = self.words.get_mut(*word)
            {
                word.bits |= bit;
            }
        }
    }

    /// Of a constant that is a power of two, its inverse: multiplying by that is the same as dividing, to the last bit,
    /// because both only change the exponent, and round once where that is too small.
    fn exact_inverse(&self, operand: Operand) -> Option<f64> {
        let Some(Value::Float(value)) = operand.read(&self.code.constants, &[]) else {
            return None;
        };
        let is_power = operand.as_register().is_none() && value.to_bits().trailing_zeros() >= 52;
        let inverse = value.recip();
        (is_power && value.is_normal() && inverse.is_normal()).then_some(inverse)
    }

    fn conditional(&mut self, code: StepCode, condition: Operand, to: u32) -> Option<()> {
        let step = Step {
            a: self.operand(condition)?,
            ..Step::new(code)
        };
        self.jump_step(step, to as usize);
        Some(())
    }

    /// Lets the jumps go to steps: those behind the loop to one that leaves it. Any other way out is a return, which the
    /// bytecode makes: what it gives is written to registers that no round leaves behind.
    fn resolve(&mut self) -> Option<()> {
        let leave = self.steps.len();
        self.push(Step::new(StepCode::Leave));
        self.push(Step::new(StepCode::Undo));
        let starts = self.starts.get(..self.starts.len().saturating_sub(1))?;
        for (place, to) in std::mem::take(&mut self.targets) {
            let inside = to.checked_sub(self.shape.head).and_then(|to| starts.get(to));
            let at = match inside {
                Some(start) => *start,
                None if to == self.exit => leave,
                None => leave + 1,
            };
            let step = self.steps.get_mut(place)?.as_mut()?;
            step.to = u16::try_from(at).ok()?;
        }
        Some(())
    }

    /// Looks which registers come from outside and which go there.
    fn finish(mut self, settled: Option<Box<NumericLoop>>) -> Option<NumericLoop> {
        let first = self.steps.first().copied().flatten()?;
        let position = self.head.map(|_| first.a);
        let mut carried = Vec::with_capacity(self.shape.carried.len());
        for register in &self.shape.carried {
            let slot = self.register(*register)?;
            carried.push(Carried {
                register: *register,
                slot,
                kept: slot,
            });
        }
        let mut always = SlotSet::of(carried.iter().map(|carried| carried.slot));
        for place in position
            .into_iter()
            .flat_map(|first| first..first.saturating_add(3))
        {
            always.add(place);
        }
        self.find_bits();
        for word in &self.words {
            always.add(word.slot);
        }
        let outside = live_before(&self.steps, always).first().copied()?;
        let written = SlotSet::of(self.steps.iter().flatten().flat_map(Step::writes));
        let is_given = |slot: u8| self.constants.iter().any(|(own, _)| *own == slot) || always.has(slot);
        let mut loads: Vec<(Register, u8)> = carried.iter().map(|own| (own.register, own.slot)).collect();
        loads.extend(self.words.iter().map(|word| (word.register, word.slot)));
        for slot in outside.iter().filter(|slot| !is_given(*slot)) {
            let (register, _) = self.registers.iter().find(|(_, own)| *own == slot)?;
            // What a round leaves for the next one is carried; anything else is none of the loops we know.
            if written.has(slot) {
                return None;
            }
            loads.push((*register, slot));
        }
        let mut free = u8::try_from(self.slots)
            .into_iter()
            .flat_map(|first| first..=u8::MAX);
        // Where a round may be undone after a register was written that outlives it, that register is kept.
        if may_be_undone_late(&self.steps, SlotSet::of(carried.iter().map(|own| own.slot))) {
            let mut moves = Vec::with_capacity(carried.len());
            for own in &mut carried {
                own.kept = free.next()?;
                moves.push(Some(Step {
                    out: own.kept,
                    a: own.slot,
                    ..Step::new(StepCode::Move)
                }));
                always.add(own.kept);
            }
            insert_behind_head(&mut self.steps, moves)?;
        }
        let steps = shorten(self.steps, always, &carried, free);
        Some(NumericLoop {
            steps: steps.into_iter().map(ReadyStep::new).collect(),
            constants: self.constants,
            loads,
            carried,
            position,
            exit: self.exit,
            words: self.words,
            settled,
        })
    }
}

/// True where a step that may leave the round may come after one that writes one of these.
fn may_be_undone_late(steps: &[Option<Step>], carried: SlotSet) -> bool {
    let writes = |step: &Step| step.writes().into_iter().any(|slot| carried.has(slot));
    let Some(first) = steps.iter().position(|step| step.as_ref().is_some_and(writes)) else {
        return false;
    };
    // Behind it, or before it where a jump that is not to the head goes back over it.
    let behind = steps.get(first + 1..).unwrap_or(&[]).iter().flatten();
    behind
        .into_iter()
        .any(|step| step.may_undo() || (step.jumps() && step.to > 0 && usize::from(step.to) <= first))
}

/// Puts steps behind the first one. Jumps to the head are to the head, and all others go further.
fn insert_behind_head(steps: &mut Vec<Option<Step>>, more: Vec<Option<Step>>) -> Option<()> {
    let by = u16::try_from(more.len()).ok()?;
    for step in steps.iter_mut().flatten() {
        if step.jumps() && step.to > 0 {
            step.to = step.to.checked_add(by)?;
        }
    }
    steps.splice(1..1, more);
    Some(())
}

/// The place of a comparison among those of steps.
fn comparison(op: Op) -> Option<usize> {
    let code = step_of(op)?;
    COMPARISONS.iter().position(|own| *own == code)
}

/// The step of an operation of numbers.
fn step_of(op: Op) -> Option<StepCode> {
    Some(match op {
        Op::IntegerAdd => StepCode::AddI,
        Op::IntegerSubtract => StepCode::SubtractI,
        Op::IntegerMultiply => StepCode::MultiplyI,
        Op::IntegerQuot => StepCode::QuotI,
        Op::IntegerRem => StepCode::RemI,
        Op::IntegerDivFloor => StepCode::DivFloorI,
        Op::IntegerMod => StepCode::ModI,
        Op::IntegerBitAnd => StepCode::AndI,
        Op::IntegerBitOr => StepCode::OrI,
        Op::IntegerBitXor => StepCode::XorI,
        Op::IntegerShiftLeft => StepCode::ShiftLeftI,
        Op::IntegerShiftRight => StepCode::ShiftRightI,
        Op::IntegerNegate => StepCode::NegateI,
        Op::IntegerAbs => StepCode::AbsI,
        Op::IntegerSign => StepCode::SignI,
        Op::IntegerBitNot => StepCode::NotI,
        Op::IntegerBitCount => StepCode::CountI,
        Op::IntegerToFloat => StepCode::ToFloat,
        Op::FloatAdd => StepCode::AddF,
        Op::FloatSubtract => StepCode::SubtractF,
        Op::FloatMultiply => StepCode::MultiplyF,
        Op::FloatDivide => StepCode::DivideF,
        Op::FloatNegate => StepCode::NegateF,
        Op::FloatAbs => StepCode::AbsF,
        Op::FloatSqrt => StepCode::SqrtF,
        Op::FloatFloor => StepCode::FloorF,
        Op::FloatCeil => StepCode::CeilF,
        Op::FloatTrunc => StepCode::TruncF,
        Op::FloatToInteger => StepCode::ToIntegerF,
        Op::FloatIsNan => StepCode::IsNanF,
        Op::FloatIsFinite => StepCode::IsFiniteF,
        Op::BooleanNot => StepCode::NotB,
        Op::BooleanEqual => StepCode::EqualB,
        Op::BooleanNotEqual => StepCode::NotEqualB,
        Op::IntegerEqual => StepCode::EqualI,
        Op::IntegerNotEqual => StepCode::NotEqualI,
        Op::IntegerLess => StepCode::LessI,
        Op::IntegerLessOrEqual => StepCode::LessOrEqualI,
        Op::IntegerGreater => StepCode::GreaterI,
        Op::IntegerGreaterOrEqual => StepCode::GreaterOrEqualI,
        Op::FloatEqual => StepCode::EqualF,
        Op::FloatNotEqual => StepCode::NotEqualF,
        Op::FloatLess => StepCode::LessF,
        Op::FloatLessOrEqual => StepCode::LessOrEqualF,
        Op::FloatGreater => StepCode::GreaterF,
        Op::FloatGreaterOrEqual => StepCode::GreaterOrEqualF,
        _ => return None,
    })
}
