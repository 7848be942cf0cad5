//! Record splitting: fields of a record that is only read by field become registers.
//!
//! A loop builds such a record for its state. Only frameless code is split.

use std::collections::{BTreeMap, BTreeSet};

use vesper_interp::code::{Code, Instruction, Operand, OperandList, Register};

use crate::dataflow::{Accesses, all_accesses, register_place};

/// Replaces records that are only read by field, or returns `None` if there are none. The result is for machine code
/// that never resumes in the interpreter, because it lacks the record and its instructions are renumbered.
pub(crate) fn split_records(code: &Code) -> Option<Code> {
    let touched = all_accesses(code);
    let mut registers = code.registers;
    // The instructions to replace, and the first register of their fields.
    let mut others: BTreeMap<usize, usize> = BTreeMap::new();
    for (register, made) in records(code) {
        let (good, fields) = read_by_field(code, &touched, register, &made);
        let widest = good
            .iter()
            .filter_map(|at| fields_of(code, *at))
            .map(|list| list.length);
        let Some(widest) = widest.max() else {
            continue;
        };
        others.extend(good.into_iter().chain(fields).map(|at| (at, registers)));
        registers += widest as usize;
    }
    if others.is_empty() {
        return None;
    }
    let mut made = Vec::with_capacity(code.instructions.len());
    let mut places = Vec::with_capacity(code.instructions.len() + 1);
    for (at, instruction) in code.instructions.iter().enumerate() {
        places.push(u32::try_from(made.len()).ok()?);
        match (*instruction, others.get(&at)) {
            (Instruction::Record { fields, .. }, Some(first)) => {
                for (out, from) in (*first..).zip(operands_of(code, fields)) {
                    let out = Register(u32::try_from(out).ok()?);
                    made.push(Instruction::Move { out, from: *from });
                }
            }
            (Instruction::Field { out, place, .. }, Some(first)) => {
                let from = Register(u32::try_from(*first).ok()? + place);
                made.push(Instruction::Move {
                    out,
                    from: Operand::register(from),
                });
            }
            (instruction, _) => made.push(instruction),
        }
    }
    places.push(u32::try_from(made.len()).ok()?);
    for instruction in &mut made {
        if let Some(to) = target(instruction) {
            *to = *places.get(*to as usize)?;
        }
    }
    code.with(made, registers)
}

/// Returns the instructions that create records, by output register.
fn records(code: &Code) -> BTreeMap<usize, Vec<usize>> {
    let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, instruction) in code.instructions.iter().enumerate() {
        if let Instruction::Record { out, .. } = instruction {
            found.entry(register_place(*out)).or_default().push(at);
        }
    }
    found
}

fn fields_of(code: &Code, at: usize) -> Option<OperandList> {
    match code.instructions.get(at)? {
        Instruction::Record { fields, .. } => Some(*fields),
        _ => None,
    }
}

fn operands_of(code: &Code, list: OperandList) -> &[Operand] {
    let start = list.start as usize;
    let operands = code.operands.get(start..start + list.length as usize);
    operands.unwrap_or_default()
}

/// Returns the records of a register that are only read by field, and their readers. Those instructions never find
/// another value there.
fn read_by_field(
    code: &Code,
    touched: &[Accesses],
    register: usize,
    made: &[usize],
) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let is_written = |at: &usize| touched.get(*at).is_some_and(|one| one.writes.contains(&register));
    let writers = (0..touched.len()).filter(is_written);
    // The initial value counts as written before the first instruction.
    let starts = writers.map(|at| (Some(at), at + 1)).chain([(None, 0)]);
    let read: Vec<(Option<usize>, BTreeSet<usize>)> = starts
        .map(|(writer, from)| (writer, readers(code, touched, register, from)))
        .collect();
    let is_field = |at: &usize| {
        matches!(code.instructions.get(*at), Some(Instruction::Field { of: from, .. })
            if from.as_register().is_some_and(|from| register_place(from) == register))
    };
    let mut good: BTreeSet<usize> = made.iter().copied().collect();
    loop {
        let is_good = |writer: &Option<usize>| writer.is_some_and(|at| good.contains(&at));
        let others = read.iter().filter(|(writer, _)| !is_good(writer));
        let taken: BTreeSet<usize> = others.flat_map(|(_, readers)| readers).copied().collect();
        let own = read.iter().filter(|(writer, _)| is_good(writer));
        let bad = own.filter(|(_, readers)| readers.iter().any(|at| !is_field(at) || taken.contains(at)));
        let bad: Vec<usize> = bad.filter_map(|(writer, _)| *writer).collect();
        if bad.is_empty() {
            let own = read.iter().filter(|(writer, _)| is_good(writer));
            let fields = own.flat_map(|(_, readers)| readers).copied().collect();
            return (good, fields);
        }
        good.retain(|at| !bad.contains(at));
    }
}

/// Returns the instructions that read a register from an instruction on. One past the last instruction stands for the
/// end, which reads the results.
fn readers(code: &Code, touched: &[Accesses], register: usize, from: usize) -> BTreeSet<usize> {
    let (mut seen, mut found, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        if !seen.insert(at) {
            continue;
        }
        let Some(one) = touched.get(at) else {
            let returned = code.returns.iter().filter_map(|operand| operand.as_register());
            if returned
                .chain(code.errors.iter().copied())
                .any(|each| register_place(each) == register)
            {
                found.insert(at);
            }
            continue;
        };
        if one.reads.contains(&register) {
            found.insert(at);
        }
        // An instruction that jumps has not written its output.
        open.extend(one.jump);
        if !one.is_last && !one.writes.contains(&register) {
            open.push(at + 1);
        }
    }
    found
}

/// Returns the jump target of an instruction.
fn target(instruction: &mut Instruction) -> Option<&mut u32> {
    match instruction {
        Instruction::Jump { to }
        | Instruction::JumpIfTrue { to, .. }
        | Instruction::JumpIfFalse { to, .. }
        | Instruction::JumpUnless { to, .. }
        | Instruction::JumpUnlessNull { to, .. }
        | Instruction::JumpUnlessBetter { to, .. }
        | Instruction::LoopNext { done: to, .. }
        | Instruction::LoopNextEntry { done: to, .. }
        | Instruction::LoopAdvance { done: to, .. } => Some(to),
        _ => None,
    }
}
