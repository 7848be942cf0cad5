//! The run loop: executes bytecode on a frame until the end, a request or a call.

use std::sync::Arc;

use vesper_ir::node::ExpressionIndex;
use vesper_ir::prices::{Charge, Price, charge_of};
use vesper_ir::{CallError, ErrorCode, FailureCode, MAX_ARITY, Op, SortOrder, Value, dispatch};
use vesper_kernels::Native;

use crate::bytecode::{Code, Instruction, LoopSlot, Mention, Operand, OperandList, Phase, Register};
#[cfg(not(feature = "blind"))]
use crate::observe::marks::Mark;
use crate::observe::marks::Marks;
use frame::{Failure, Frame};
use inline_operations::{InlineResult, compare_inline, run_inline};
use loop_state::{LoopState, price_at};
use meter::Meter;

mod calls;
pub(crate) mod execution;
pub(crate) mod frame;
pub(crate) mod inline_operations;
pub(crate) mod loop_state;
pub(crate) mod meter;
pub(crate) mod reused_frame;
pub(crate) mod rows;
pub(crate) mod single_step;
pub(crate) mod strand;

/// How an execution of converted inputs ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The outputs, in declared order.
    Returned(Vec<Value>),
    /// The fields of a declared error, in declared order.
    DeclaredError(Vec<Value>),
    /// An operation, a request or a called node failed.
    Failed {
        code: FailureCode,
        expression: ExpressionIndex,
    },
    /// A clause was false.
    ContractBroken {
        phase: Phase,
        clause: u32,
        values: Vec<(Mention, Value)>,
    },
    /// The named capability is not granted.
    Denied(Arc<str>),
    /// The named limit of the Host was hit.
    LimitHit(Arc<str>),
    /// The engine violated one of its own rules. This is a bug of the engine, never of the node.
    Fault(&'static str),
}

/// A violated rule of the engine, which verification and compilation should exclude.
pub type Fault = &'static str;

pub(crate) const NO_REGISTER: Fault = "an instruction names a register that does not exist";
#[cfg(feature = "blind")]
const BLIND: Fault = "a build without marks executes a mark";
const NO_CLAUSE: Fault = "an instruction names a clause that does not exist";
const NOT_BOOLEAN: Fault = "a condition is not a boolean";
pub(crate) const NO_LOOP: Fault = "an instruction names a loop that does not exist";
const NO_PATH: Fault = "code without a path passes points";
const NO_TABLE: Fault = "an instruction names a table that does not exist";
const NO_OPERANDS: Fault = "an instruction names operands that do not exist";
const NO_FIELD: Fault = "a field is not where the type of its record says";
const NOT_A_KEY: Fault = "a key is not of a type that keys have";
const NO_SORT_ORDER: Fault = "a loop sorts neither up nor down";
const NO_ORDER: Fault = "values were compared that have no order";
const MISTYPED: Fault = "an operation was called with arguments of other types than declared";

/// Why the run loop stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    Ended(Outcome),
    /// The request of this site.
    Request(u32),
    /// The call of this site.
    Call(u32),
    /// The fork of this site.
    Fork(u32),
    Join,
    /// The end of a strand. A round has its collected value and the place of its price.
    StrandEnd(Option<(Operand, u32)>),
}

/// Runs the code from the current instruction of its frame. After a stop before the end, the frame holds the state to
/// resume from.
#[expect(
    clippy::too_many_lines,
    reason = "one arm an instruction, in one place for the compiler to lay out"
)]
#[cfg_attr(
    feature = "blind",
    allow(unused_variables, reason = "there are no marks in such a build")
)]
pub(crate) fn execute(
    code: &Code,
    frame: &mut Frame,
    marks: &mut Marks,
    meter: &mut Meter,
) -> Result<Stop, Fault> {
    let constants = code.constants.as_slice();
    let Frame {
        registers,
        loops,
        flow,
        calls,
        next: place,
        keeps_outputs,
    } = frame;
    let registers = registers.as_mut_slice();
    let mut next = *place;
    // Continues at a handler of the failure, or ends the run.
    macro_rules! fail {
        ($code:expr, $expression:expr) => {{
            let failure = Failure {
                code: FailureCode::from($code),
                expression: $expression,
            };
            let at = calls.unwind(next - 1);
            match flow.handle(code, registers, at, failure)? {
                Ok(at) => next = at,
                Err(failure) => {
                    *place = next;
                    return Ok(Stop::Ended(failure.into()));
                }
            }
        }};
    }
    // Takes one unit of fuel, or ends the run. No handler catches this.
    macro_rules! spend {
        () => {
            if let Err(limit) = meter.spend() {
                *place = next;
                return Ok(Stop::Ended(limit.into()));
            }
        };
    }
    while let Some(instruction) = code.instructions.get(next) {
        next += 1;
        match *instruction {
            Instruction::Call {
                op,
                out,
                args,
                expression,
            } => {
                let [first, second, ..] = args;
                match run_inline(op, first, second, out, constants, registers)? {
                    InlineResult::Done => {}
                    InlineResult::Failed(failure) => fail!(failure, expression),
                    InlineResult::Unknown => match call(op, &args, out, constants, registers)? {
                        Ok(None) => {}
                        Ok(Some(charge)) => {
                            if let Err(limit) = meter.charge(charge) {
                                *place = next;
                                return Ok(Stop::Ended(limit.into()));
                            }
                        }
                        Err(failure) => fail!(failure, expression),
                    },
                }
            }
            Instruction::Move { out, from } => {
                if let Some((out, from)) = split_operands(registers, constants, out, from)? {
                    out.set(from);
                }
            }
            Instruction::Jump { to } => next = to as usize,
            Instruction::JumpIfTrue { condition, to } => {
                if is_true(condition, constants, registers)? {
                    next = to as usize;
                }
            }
            Instruction::JumpIfFalse { condition, to } => {
                if !is_true(condition, constants, registers)? {
                    next = to as usize;
                }
            }
            Instruction::Array { out, items } => {
                let items = gather(code, items, registers)?;
                write(registers, out, Value::Array(items))?;
            }
            Instruction::Record { out, fields } => {
                let fields = gather(code, fields, registers)?;
                write(registers, out, Value::Record(fields))?;
            }
            Instruction::Field { out, of, place } => match split_operands(registers, constants, out, of)? {
                Some((out, Value::Record(fields))) => out.set(fields.get(place as usize).ok_or(NO_FIELD)?),
                Some(_) => return Err(NO_FIELD),
                None => {
                    let Value::Record(fields) = read(of, constants, registers)? else {
                        return Err(NO_FIELD);
                    };
                    let value = fields.get(place as usize).ok_or(NO_FIELD)?.clone();
                    write(registers, out, value)?;
                }
            },
            Instruction::LoopStart { slot, over } => {
                let over = read(over, constants, registers)?;
                state(loops, slot)?.start(over);
            }
            Instruction::LoopRange {
                slot,
                start,
                end,
                step,
                expression,
            } => {
                let bounds = [start, end, step].map(|bound| integer(bound, constants, registers));
                let [Some(start), Some(end), Some(step)] = bounds else {
                    return Err(MISTYPED);
                };
                if let Err(failure) = state(loops, slot)?.start_range(start, end, step) {
                    fail!(failure, expression);
                }
            }
            Instruction::LoopNext { slot, item, done } => {
                let item = registers.get_mut(item.0 as usize).ok_or(NO_REGISTER)?;
                if state(loops, slot)?.next_item(item) {
                    spend!();
                } else {
                    next = done as usize;
                }
            }
            Instruction::LoopAdvance { slot, done } => {
                if state(loops, slot)?.advance() {
                    spend!();
                } else {
                    next = done as usize;
                }
            }
            Instruction::LoopField { slot, out, place } => {
                let field = state(loops, slot)?.field(place as usize).ok_or(NO_FIELD)?;
                registers.get_mut(out.0 as usize).ok_or(NO_REGISTER)?.set(field);
            }
            Instruction::LoopNextEntry {
                slot,
                key,
                value,
                done,
            } => match state(loops, slot)?.next_entry() {
                Some((of_key, of_value)) => {
                    spend!();
                    write(registers, key, of_key)?;
                    write(registers, value, of_value)?;
                }
                None => next = done as usize,
            },
            Instruction::LoopPush {
                slot,
                value,
                expression,
                price,
            } => {
                let value = read(value, constants, registers)?.clone();
                let state = state(loops, slot)?;
                let price = price_at(&code.prices, price, &value);
                if let Err(failure) = state.push(value) {
                    fail!(failure, expression);
                } else if let Err(limit) = state.memory.keep(price, meter) {
                    *place = next;
                    return Ok(Stop::Ended(limit.into()));
                }
            }
            Instruction::LoopMemory { slot } => state(loops, slot)?.memory.begin(meter),
            Instruction::LoopRestore { slot } => state(loops, slot)?.memory.restore(meter),
            Instruction::LoopCharge { slot, value, price } => {
                let price = price_at(&code.prices, price, read(value, constants, registers)?);
                if let Err(limit) = state(loops, slot)?.memory.keep(price, meter) {
                    *place = next;
                    return Ok(Stop::Ended(limit.into()));
                }
            }
            Instruction::LoopRecount {
                slot,
                state: variables,
                price,
            } => {
                let count = || {
                    price_state(
                        &code.operands,
                        variables,
                        &code.prices,
                        price,
                        constants,
                        registers,
                    )
                };
                if let Err(limit) = state(loops, slot)?.memory.recount(meter, count)? {
                    *place = next;
                    return Ok(Stop::Ended(limit.into()));
                }
            }
            Instruction::LoopPushMember { slot, value } => {
                let value = read(value, constants, registers)?.clone();
                state(loops, slot)?.push_member(value);
            }
            Instruction::LoopPushKeyed {
                slot,
                key,
                item,
                expression,
            } => {
                let key = read(key, constants, registers)?.clone();
                let item = read(item, constants, registers)?.clone();
                if let Err(failure) = state(loops, slot)?.push_keyed(key, item) {
                    fail!(failure, expression);
                }
            }
            Instruction::LoopPut {
                slot,
                key,
                value,
                expression,
            } => {
                let key = read(key, constants, registers)?.to_key().ok_or(NOT_A_KEY)?;
                let value = read(value, constants, registers)?.clone();
                if let Err(failure) = state(loops, slot)?.put(key, value) {
                    fail!(failure, expression);
                }
            }
            Instruction::LoopCount {
                slot,
                key,
                expression,
            } => {
                let key = read(key, constants, registers)?.to_key().ok_or(NOT_A_KEY)?;
                if let Err(failure) = state(loops, slot)?.count(key) {
                    fail!(failure, expression);
                }
            }
            Instruction::LoopGroup {
                slot,
                key,
                item,
                expression,
            } => {
                let key = read(key, constants, registers)?.to_key().ok_or(NOT_A_KEY)?;
                let item = read(item, constants, registers)?.clone();
                if let Err(failure) = state(loops, slot)?.group(key, item) {
                    fail!(failure, expression);
                }
            }
            Instruction::LoopArray { slot, out } => {
                let array = state(loops, slot)?.finish_array();
                write(registers, out, array)?;
            }
            Instruction::LoopSorted { slot, out, order } => {
                let order = match read(order, constants, registers)? {
                    Value::Member(member) => SortOrder::from_member(*member),
                    _ => None,
                };
                let array = state(loops, slot)?.finish_sorted(order.ok_or(NO_SORT_ORDER)?);
                write(registers, out, array)?;
            }
            Instruction::LoopDistinct { slot, out } => {
                let array = state(loops, slot)?.finish_distinct();
                write(registers, out, array)?;
            }
            Instruction::LoopSet {
                slot,
                out,
                kind,
                expression,
            } => match state(loops, slot)?.finish_set(kind).ok_or(NOT_A_KEY)? {
                Ok(set) => write(registers, out, set)?,
                Err(failure) => fail!(failure, expression),
            },
            Instruction::LoopMap { slot, out, kind } => {
                let map = state(loops, slot)?.finish_map(kind).ok_or(NOT_A_KEY)?;
                write(registers, out, map)?;
            }
            Instruction::LoopGroups { slot, out, kind } => {
                let map = state(loops, slot)?.finish_groups(kind).ok_or(NOT_A_KEY)?;
                write(registers, out, map)?;
            }
            Instruction::JumpUnlessBetter {
                best,
                value,
                side,
                to,
            } => {
                let value = read(value, constants, registers)?;
                let is_better = match registers.get(best.0 as usize).ok_or(NO_REGISTER)? {
                    Value::Null => true,
                    best => value.compare(best).ok_or(NO_ORDER)? == side,
                };
                if !is_better {
                    next = to as usize;
                }
            }
            Instruction::JumpUnless {
                op,
                first,
                second,
                to,
            } => {
                if !compare(op, first, second, constants, registers)? {
                    next = to as usize;
                }
            }
            Instruction::Switch { on, table } => {
                let value = match read(on, constants, registers)? {
                    Value::Integer(value) => *value,
                    Value::Member(member) => i64::from(member.0),
                    _ => return Err(MISTYPED),
                };
                let table = code.switches.get(table as usize).ok_or(NO_TABLE)?;
                next = table.target(value) as usize;
            }
            Instruction::Select {
                out,
                condition,
                then,
                otherwise,
            } => {
                let holds = is_true(condition, constants, registers)?;
                let from = if holds { then } else { otherwise };
                if let Some((out, from)) = split_operands(registers, constants, out, from)? {
                    out.set(from);
                }
            }
            Instruction::SelectThat {
                op,
                out,
                first,
                second,
                then,
                otherwise,
            } => {
                let holds = compare(op, first, second, constants, registers)?;
                let from = if holds { then } else { otherwise };
                if let Some((out, from)) = split_operands(registers, constants, out, from)? {
                    out.set(from);
                }
            }
            Instruction::RequireThat {
                op,
                first,
                second,
                clause,
            } => {
                if !compare(op, first, second, constants, registers)? {
                    *place = next;
                    return break_contract(code, clause, registers).map(Stop::Ended);
                }
            }
            Instruction::JumpUnlessNull { value, to } => {
                if !matches!(read(value, constants, registers)?, Value::Null) {
                    next = to as usize;
                }
            }
            Instruction::Fail {
                code: failure,
                expression,
            } => fail!(failure, expression),
            Instruction::Require { condition, clause } => {
                if !is_true(condition, constants, registers)? {
                    *place = next;
                    return break_contract(code, clause, registers).map(Stop::Ended);
                }
            }
            Instruction::LoopLimit {
                count,
                max,
                expression,
            } => {
                if rounds(registers, count)? >= i64::from(max) {
                    fail!(ErrorCode::LoopLimit, expression);
                }
            }
            Instruction::Spend => spend!(),
            Instruction::LoopRound { count } => {
                let rounds = rounds(registers, count)?.saturating_add(1);
                registers
                    .get_mut(count.0 as usize)
                    .ok_or(NO_REGISTER)?
                    .set_integer(rounds);
            }
            Instruction::Request { site } => {
                *place = next;
                return Ok(Stop::Request(site));
            }
            Instruction::Apply {
                function,
                out,
                args,
                expression,
            } => match calls.depth(code, function)? {
                Ok(depth) => {
                    spend!();
                    next = calls.begin(code, function, depth, args, (next, out), registers, loops)?;
                }
                Err(failure) => fail!(failure, expression),
            },
            Instruction::Leave { value } => {
                let (back, price) = calls.end(code, value, registers, loops)?;
                next = back;
                if let Err(limit) = meter.take_memory(price) {
                    *place = next;
                    return Ok(Stop::Ended(limit.into()));
                }
            }
            Instruction::CallNode { site } => {
                *place = next;
                return Ok(Stop::Call(site));
            }
            Instruction::Fork { site } => {
                *place = next;
                return Ok(Stop::Fork(site));
            }
            Instruction::Join => {
                *place = next;
                return Ok(Stop::Join);
            }
            Instruction::EndMember => {
                *place = next;
                return Ok(Stop::StrandEnd(None));
            }
            Instruction::EndRound { value, price } => {
                *place = next;
                return Ok(Stop::StrandEnd(Some((value, price))));
            }
            Instruction::FailAgain { slot } => {
                let failure = flow.take_failure(slot)?;
                fail!(failure.code, failure.expression);
            }
            Instruction::EndWithError => flow.is_error = true,
            #[cfg(feature = "blind")]
            Instruction::Mark { .. } => return Err(BLIND),
            #[cfg(not(feature = "blind"))]
            Instruction::Mark { expression, value } => {
                let value = read(value, constants, registers)?.clone();
                marks.push(Mark {
                    index: expression,
                    value,
                });
            }
            Instruction::Note { word, bit } => note(registers, word, bit)?,
            Instruction::LoopBegan { slot, out } => {
                let left = i64::try_from(state(loops, slot)?.left()).unwrap_or(i64::MAX);
                registers
                    .get_mut(out.0 as usize)
                    .ok_or(NO_REGISTER)?
                    .set_integer(left);
            }
            Instruction::NoteItems { slot, began, point } => {
                let left = i64::try_from(state(loops, slot)?.left()).unwrap_or(i64::MAX);
                let taken = rounds(registers, began)?.saturating_sub(left);
                note_class(code, registers, point, taken)?;
            }
            Instruction::NoteRounds { count, point } => {
                let taken = rounds(registers, count)?;
                note_class(code, registers, point, taken)?;
            }
        }
    }
    *place = next;
    if flow.is_error {
        let fields = code.errors.iter();
        let fields = fields.map(|field| registers.get(field.0 as usize).cloned().ok_or(NO_REGISTER));
        return Ok(Stop::Ended(Outcome::DeclaredError(
            fields.collect::<Result<_, Fault>>()?,
        )));
    }
    if *keeps_outputs {
        return Ok(Stop::Ended(Outcome::Returned(Vec::new())));
    }
    let mut outputs = Vec::with_capacity(code.returns.len());
    for output in &code.returns {
        outputs.push(read(*output, constants, registers)?.clone());
    }
    Ok(Stop::Ended(Outcome::Returned(outputs)))
}

/// Records a point as passed.
#[inline]
fn note(registers: &mut [Value], word: Register, bit: u8) -> Result<(), Fault> {
    match registers.get_mut(word.0 as usize) {
        Some(Value::Integer(path)) => {
            *path |= 1 << bit;
            Ok(())
        }
        _ => Err(NO_REGISTER),
    }
}

/// Records the point of a loop for its number of rounds: none, one or many.
fn note_class(code: &Code, registers: &mut [Value], first: u32, rounds: i64) -> Result<(), Fault> {
    let path = code.path.as_ref().ok_or(NO_PATH)?;
    let (word, bit) = path.place(first + class_of(rounds));
    note(registers, word, bit)
}

/// Returns the class of a round count: 0 for none, 1 for one, 2 for many.
#[inline]
pub(crate) fn class_of(rounds: i64) -> u32 {
    u32::try_from(rounds.clamp(0, 2)).unwrap_or(2)
}

/// Reads the round count of a loop.
#[inline]
fn rounds(registers: &[Value], count: Register) -> Result<i64, Fault> {
    match registers.get(count.0 as usize) {
        Some(Value::Integer(rounds)) => Ok(*rounds),
        _ => Err(NO_REGISTER),
    }
}

fn integer(operand: Operand, constants: &[Value], registers: &[Value]) -> Option<i64> {
    match operand.read(constants, registers) {
        Some(Value::Integer(value)) => Some(*value),
        _ => None,
    }
}

#[inline]
fn read<'a>(operand: Operand, constants: &'a [Value], registers: &'a [Value]) -> Result<&'a Value, Fault> {
    operand.read(constants, registers).ok_or(NO_REGISTER)
}

/// Returns the price of a loop's state.
#[cold]
pub(crate) fn price_state(
    operands: &[Operand],
    variables: OperandList,
    prices: &[(u64, Price)],
    first: u32,
    constants: &[Value],
    registers: &[Value],
) -> Result<u64, Fault> {
    let start = variables.start as usize;
    let variables = operands.get(start..start + variables.length as usize);
    let mut total = 0;
    for (place, variable) in (first..).zip(variables.ok_or(NO_OPERANDS)?) {
        total += price_at(prices, place, read(*variable, constants, registers)?);
    }
    Ok(total)
}

/// Evaluates a comparison.
#[inline]
fn compare(
    op: Op,
    first: Operand,
    second: Operand,
    constants: &[Value],
    registers: &[Value],
) -> Result<bool, Fault> {
    let left = read(first, constants, registers)?;
    let right = read(second, constants, registers)?;
    match compare_inline(op, left, right) {
        Some(holds) => Ok(holds),
        None => compare_any(op, left, right),
    }
}

#[cold]
fn compare_any(op: Op, left: &Value, right: &Value) -> Result<bool, Fault> {
    let mut values = [left; MAX_ARITY];
    let [_, second, ..] = &mut values;
    *second = right;
    match dispatch(&Native, op, &values) {
        Ok(Value::Boolean(holds)) => Ok(holds),
        Ok(_) => Err(NOT_BOOLEAN),
        Err(_) => Err(MISTYPED),
    }
}

/// Calls a kernel. Returns the charge of a large call.
#[inline(never)]
fn call(
    op: Op,
    args: &[Operand; MAX_ARITY],
    out: Register,
    constants: &[Value],
    registers: &mut [Value],
) -> Result<Result<Option<Charge>, ErrorCode>, Fault> {
    let mut values = [&Value::Boolean(false); MAX_ARITY];
    for (value, arg) in values.iter_mut().zip(args) {
        *value = read(*arg, constants, registers)?;
    }
    match dispatch(&Native, op, &values) {
        Ok(result) => {
            let charge = charge_of(op, &values, &result);
            write(registers, out, result)?;
            Ok(Ok(charge))
        }
        Err(CallError::Failed(failure)) => Ok(Err(failure)),
        Err(CallError::Mistyped(_)) => Err(MISTYPED),
    }
}

/// Borrows the target and the source of a copy. Returns `None` if both are one register.
#[inline]
fn split_operands<'a>(
    registers: &'a mut [Value],
    constants: &'a [Value],
    out: Register,
    from: Operand,
) -> Result<Option<(&'a mut Value, &'a Value)>, Fault> {
    let out = out.0 as usize;
    let Some(from) = from.as_register() else {
        let from = from.read(constants, &[]).ok_or(NO_REGISTER)?;
        return Ok(Some((registers.get_mut(out).ok_or(NO_REGISTER)?, from)));
    };
    let from = from.0 as usize;
    if out == from {
        return Ok(None);
    }
    let [out, from] = registers.get_disjoint_mut([out, from]).map_err(|_| NO_REGISTER)?;
    Ok(Some((out, from)))
}

#[inline]
fn is_true(operand: Operand, constants: &[Value], registers: &[Value]) -> Result<bool, Fault> {
    match read(operand, constants, registers)? {
        Value::Boolean(value) => Ok(*value),
        _ => Err(NOT_BOOLEAN),
    }
}

#[inline]
pub(crate) fn write(registers: &mut [Value], out: Register, value: Value) -> Result<(), Fault> {
    *registers.get_mut(out.0 as usize).ok_or(NO_REGISTER)? = value;
    Ok(())
}

#[inline]
fn state(loops: &mut [LoopState], slot: LoopSlot) -> Result<&mut LoopState, Fault> {
    loops.get_mut(slot.0 as usize).ok_or(NO_LOOP)
}

/// Collects the values of the operands in one allocation.
fn gather(code: &Code, list: OperandList, registers: &[Value]) -> Result<Arc<[Value]>, Fault> {
    let start = list.start as usize;
    let operands = code.operands.get(start..start + list.length as usize);
    let mut is_whole = true;
    let values = operands.ok_or(NO_OPERANDS)?.iter().map(|operand| {
        let value = operand.read(&code.constants, registers);
        is_whole &= value.is_some();
        value.map_or(Value::Null, Value::clone)
    });
    // A `Result` per item would hide the length from `collect` and cost a second allocation.
    let values = values.collect();
    if is_whole { Ok(values) } else { Err(NO_REGISTER) }
}

#[cold]
fn break_contract(code: &Code, clause: u32, registers: &[Value]) -> Result<Outcome, Fault> {
    let clause = code.clauses.get(clause as usize).ok_or(NO_CLAUSE)?;
    let mut values = Vec::with_capacity(clause.mentions.len());
    for (mention, operand) in &clause.mentions {
        values.push((*mention, read(*operand, &code.constants, registers)?.clone()));
    }
    Ok(Outcome::ContractBroken {
        phase: clause.phase,
        clause: clause.number,
        values,
    })
}
