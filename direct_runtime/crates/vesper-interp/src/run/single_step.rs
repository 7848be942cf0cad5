//! Execution of a single instruction on a frame, called by machine code.
//!
//! SEMANTICS: an instruction that fails here has no effect, so the interpreter can repeat it. Only the interpreter
//! follows a failure to a handler, a declared error or the end.

use vesper_ir::limits::ITEMS;
use vesper_ir::prices::{Price, charge_of};
use vesper_ir::{CallError, MAX_ARITY, Op, SortOrder, Value, dispatch};
use vesper_kernels::Native;

use crate::bytecode::{Instruction, LoopSlot, Operand, OperandList, Register};
use crate::run::frame::Frame;
use crate::run::loop_state::{LoopState, price_at};
use crate::run::meter::Meter;
use crate::run::{Fault, NO_REGISTER, class_of, price_state, write};

/// The result of a single step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// Continue with the next instruction.
    Done,
    /// Jump to the target.
    Jumps,
    /// The interpreter must execute the instruction, because it fails or stops the run. It had no effect.
    Refused,
}

/// The tables that instructions refer to.
#[derive(Debug)]
pub struct Tables {
    pub constants: Vec<Value>,
    pub operands: Vec<Operand>,
    pub prices: Vec<(u64, Price)>,
    /// The first register of the path, if the code has one.
    pub path: Option<Register>,
}

const NO_LOOP: Fault = "compiled code names a loop that does not exist";
const NO_FIELD: Fault = "compiled code reads a field that does not exist";
const MISTYPED: Fault = "compiled code calls an operation with arguments of other types than declared";
const NOT_BOOLEAN: Fault = "a condition of compiled code is not a boolean";
const NOT_A_KEY: Fault = "a key in compiled code is not of a type that keys have";
const NO_OPERANDS: Fault = "compiled code names operands that do not exist";
const NO_PATH: Fault = "compiled code without a path passes points";
const NO_ORDER: Fault = "compiled code compares values that have no order";
const NO_SORT_ORDER: Fault = "a loop of compiled code sorts neither up nor down";

fn state(loops: &mut [LoopState], slot: LoopSlot) -> Result<&mut LoopState, Fault> {
    loops.get_mut(slot.0 as usize).ok_or(NO_LOOP)
}

fn read<'a>(tables: &'a Tables, registers: &'a [Value], operand: Operand) -> Result<&'a Value, Fault> {
    operand.read(&tables.constants, registers).ok_or(NO_REGISTER)
}

/// Borrows the field that a field instruction reads, without a copy. Returns `None` for any other instruction.
pub fn read_field<'a>(
    instruction: &Instruction,
    tables: &'a Tables,
    frame: &'a Frame,
) -> Option<Result<&'a Value, Fault>> {
    match *instruction {
        Instruction::LoopField { slot, place, .. } => {
            let state = frame.loops.get(slot.0 as usize);
            Some(
                state
                    .and_then(|state| state.field(place as usize))
                    .ok_or(NO_FIELD),
            )
        }
        Instruction::Field { of, place, .. } => Some(match read(tables, &frame.registers, of) {
            Ok(Value::Record(fields)) => fields.get(place as usize).ok_or(NO_FIELD),
            Ok(_) => Err(NO_FIELD),
            Err(fault) => Err(fault),
        }),
        _ => None,
    }
}

/// Computes the result of a call without writing it, or `None` if the call fails.
///
/// `lent` is a field instruction that serves only this call and is skipped: the call borrows the field. Returns
/// `None` for an instruction that is not a call.
pub fn call_value(
    instruction: &Instruction,
    lent: Option<&Instruction>,
    tables: &Tables,
    frame: &Frame,
) -> Option<Result<Option<Value>, Fault>> {
    let Instruction::Call { op, args, .. } = instruction else {
        return None;
    };
    let lent = match lent {
        Some(field @ (Instruction::Field { out, .. } | Instruction::LoopField { out, .. })) => {
            match self::read_field(field, tables, frame)? {
                Ok(value) => Some((Operand::register(*out), value)),
                Err(fault) => return Some(Err(fault)),
            }
        }
        _ => None,
    };
    let mut values = [&Value::Boolean(false); MAX_ARITY];
    for (value, arg) in values.iter_mut().zip(args) {
        *value = match lent {
            Some((place, lent)) if place == *arg => lent,
            _ => match read(tables, &frame.registers, *arg) {
                Ok(value) => value,
                Err(fault) => return Some(Err(fault)),
            },
        };
    }
    Some(match dispatch(&Native, *op, &values) {
        // The interpreter repeats a large call and charges it.
        Ok(value) if charge_of(*op, &values, &value).is_some() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(CallError::Failed(_)) => Ok(None),
        Err(CallError::Mistyped(_)) => Err(MISTYPED),
    })
}

/// Executes one instruction. The caller accounts for its fuel.
#[expect(clippy::too_many_lines, reason = "one arm an instruction, as in `run`")]
pub fn step(
    instruction: &Instruction,
    tables: &Tables,
    frame: &mut Frame,
    meter: &mut Meter,
) -> Result<StepResult, Fault> {
    let Frame {
        registers,
        loops,
        flow,
        ..
    } = frame;
    let registers = registers.as_mut_slice();
    let value_of = |registers: &[Value], operand: Operand| read(tables, registers, operand).cloned();
    // A failure has changed nothing.
    let refuse_unless = |is_done: bool| {
        Ok(if is_done {
            StepResult::Done
        } else {
            StepResult::Refused
        })
    };
    let jump_if = |condition: bool| {
        Ok(if condition {
            StepResult::Jumps
        } else {
            StepResult::Done
        })
    };
    match *instruction {
        Instruction::Call { op, out, args, .. } => return call(op, &args, out, tables, registers),
        Instruction::Move { out, from } => {
            let value = value_of(registers, from)?;
            write(registers, out, value)?;
        }
        Instruction::Select {
            out,
            condition,
            then,
            otherwise,
        } => {
            let holds = is_true(condition, tables, registers)?;
            let value = value_of(registers, if holds { then } else { otherwise })?;
            write(registers, out, value)?;
        }
        Instruction::SelectThat {
            op,
            out,
            first,
            second,
            then,
            otherwise,
        } => {
            let holds = holds(op, first, second, tables, registers)?;
            let value = value_of(registers, if holds { then } else { otherwise })?;
            write(registers, out, value)?;
        }
        Instruction::Array { out, items } => {
            let items = gather(tables, items, registers)?;
            write(registers, out, Value::Array(items.into()))?;
        }
        Instruction::Record { out, fields } => {
            let fields = gather(tables, fields, registers)?;
            write(registers, out, Value::Record(fields.into()))?;
        }
        Instruction::Field { out, .. } | Instruction::LoopField { out, .. } => {
            let value = read_field(instruction, tables, frame).ok_or(NO_FIELD)??.clone();
            write(&mut frame.registers, out, value)?;
        }
        Instruction::LoopStart { slot, over } => {
            state(loops, slot)?.start(read(tables, registers, over)?);
        }
        Instruction::LoopRange {
            slot,
            start,
            end,
            step,
            ..
        } => {
            let bounds = [start, end, step].map(|bound| read(tables, registers, bound));
            let [
                Ok(Value::Integer(start)),
                Ok(Value::Integer(end)),
                Ok(Value::Integer(step)),
            ] = bounds
            else {
                return Err(MISTYPED);
            };
            return refuse_unless(state(loops, slot)?.start_range(*start, *end, *step).is_ok());
        }
        Instruction::LoopNext { slot, item, .. } => {
            let item = registers.get_mut(item.0 as usize).ok_or(NO_REGISTER)?;
            return jump_if(!state(loops, slot)?.next_item(item));
        }
        Instruction::LoopAdvance { slot, .. } => return jump_if(!state(loops, slot)?.advance()),
        Instruction::LoopNextEntry { slot, key, value, .. } => {
            let Some((of_key, of_value)) = state(loops, slot)?.next_entry() else {
                return Ok(StepResult::Jumps);
            };
            write(registers, key, of_key)?;
            write(registers, value, of_value)?;
        }
        Instruction::LoopPush {
            slot, value, price, ..
        } => {
            let value = value_of(registers, value)?;
            let state = state(loops, slot)?;
            let price = price_at(&tables.prices, price, &value);
            return refuse_unless(
                state.has_room() && state.memory.keep(price, meter).is_ok() && state.push(value).is_ok(),
            );
        }
        Instruction::LoopMemory { slot } => state(loops, slot)?.memory.begin(meter),
        Instruction::LoopRestore { slot } => state(loops, slot)?.memory.restore(meter),
        Instruction::LoopCharge { slot, value, price } => {
            let price = price_at(&tables.prices, price, read(tables, registers, value)?);
            return refuse_unless(state(loops, slot)?.memory.keep(price, meter).is_ok());
        }
        Instruction::LoopRecount {
            slot,
            state: variables,
            price,
        } => {
            let (constants, prices) = (&tables.constants, &tables.prices);
            let count = || price_state(&tables.operands, variables, prices, price, constants, registers);
            return refuse_unless(state(loops, slot)?.memory.recount(meter, count)?.is_ok());
        }
        Instruction::LoopPushMember { slot, value } => {
            let value = value_of(registers, value)?;
            state(loops, slot)?.push_member(value);
        }
        Instruction::LoopPushKeyed { slot, key, item, .. } => {
            let (key, item) = (value_of(registers, key)?, value_of(registers, item)?);
            return refuse_unless(state(loops, slot)?.push_keyed(key, item).is_ok());
        }
        Instruction::LoopPut { slot, key, value, .. } => {
            let key = read(tables, registers, key)?.to_key().ok_or(NOT_A_KEY)?;
            let value = value_of(registers, value)?;
            let state = state(loops, slot)?;
            // Checked first: a failing `put` would leave the entry in place.
            return refuse_unless(state.can_put(&key) && state.put(key, value).is_ok());
        }
        Instruction::LoopCount { slot, key, .. } => {
            let key = read(tables, registers, key)?.to_key().ok_or(NOT_A_KEY)?;
            return refuse_unless(state(loops, slot)?.count(key).is_ok());
        }
        Instruction::LoopGroup { slot, key, item, .. } => {
            let key = read(tables, registers, key)?.to_key().ok_or(NOT_A_KEY)?;
            let item = value_of(registers, item)?;
            return refuse_unless(state(loops, slot)?.group(key, item).is_ok());
        }
        Instruction::LoopArray { slot, out } => write(registers, out, state(loops, slot)?.finish_array())?,
        Instruction::LoopSorted { slot, out, order } => {
            let Value::Member(order) = read(tables, registers, order)? else {
                return Err(NO_SORT_ORDER);
            };
            let order = SortOrder::from_member(*order).ok_or(NO_SORT_ORDER)?;
            write(registers, out, state(loops, slot)?.finish_sorted(order))?;
        }
        Instruction::LoopDistinct { slot, out } => {
            write(registers, out, state(loops, slot)?.finish_distinct())?;
        }
        Instruction::LoopSet { slot, out, kind, .. } => {
            let state = state(loops, slot)?;
            // Checked first: a failing finish would take the items. Some of them may be equal, which the interpreter
            // determines.
            if state.built_count() > ITEMS {
                return Ok(StepResult::Refused);
            }
            let Ok(set) = state.finish_set(kind).ok_or(NOT_A_KEY)? else {
                return Err(NOT_A_KEY);
            };
            write(registers, out, set)?;
        }
        Instruction::LoopMap { slot, out, kind } => {
            let map = state(loops, slot)?.finish_map(kind).ok_or(NOT_A_KEY)?;
            write(registers, out, map)?;
        }
        Instruction::LoopGroups { slot, out, kind } => {
            let map = state(loops, slot)?.finish_groups(kind).ok_or(NOT_A_KEY)?;
            write(registers, out, map)?;
        }
        Instruction::JumpUnlessBetter {
            best, value, side, ..
        } => {
            let value = read(tables, registers, value)?;
            return jump_if(match registers.get(best.0 as usize).ok_or(NO_REGISTER)? {
                Value::Null => false,
                best => value.compare(best).ok_or(NO_ORDER)? != side,
            });
        }
        Instruction::JumpUnless {
            op, first, second, ..
        } => {
            return jump_if(!holds(op, first, second, tables, registers)?);
        }
        Instruction::RequireThat {
            op, first, second, ..
        } => {
            return refuse_unless(holds(op, first, second, tables, registers)?);
        }
        Instruction::JumpUnlessNull { value, .. } => {
            return jump_if(!matches!(read(tables, registers, value)?, Value::Null));
        }
        Instruction::JumpIfTrue { condition, .. } => {
            return jump_if(is_true(condition, tables, registers)?);
        }
        Instruction::JumpIfFalse { condition, .. } => {
            return jump_if(!is_true(condition, tables, registers)?);
        }
        Instruction::Require { condition, .. } => {
            return refuse_unless(is_true(condition, tables, registers)?);
        }
        Instruction::EndWithError => flow.is_error = true,
        Instruction::LoopBegan { slot, out } => {
            let left = i64::try_from(state(loops, slot)?.left()).unwrap_or(i64::MAX);
            write(registers, out, Value::Integer(left))?;
        }
        Instruction::NoteItems { slot, began, point } => {
            let left = i64::try_from(state(loops, slot)?.left()).unwrap_or(i64::MAX);
            let rounds = rounds(registers, began)?.saturating_sub(left);
            note(tables, registers, point + class_of(rounds))?;
        }
        Instruction::NoteRounds { count, point } => {
            let rounds = rounds(registers, count)?;
            note(tables, registers, point + class_of(rounds))?;
        }
        Instruction::Jump { .. }
        | Instruction::Switch { .. }
        | Instruction::Fail { .. }
        | Instruction::LoopLimit { .. }
        | Instruction::Spend
        | Instruction::LoopRound { .. }
        | Instruction::Request { .. }
        | Instruction::Apply { .. }
        | Instruction::Leave { .. }
        | Instruction::CallNode { .. }
        | Instruction::Fork { .. }
        | Instruction::Join
        | Instruction::EndMember
        | Instruction::EndRound { .. }
        | Instruction::FailAgain { .. }
        | Instruction::Mark { .. }
        | Instruction::Note { .. } => return Ok(StepResult::Refused),
    }
    Ok(StepResult::Done)
}

fn rounds(registers: &[Value], count: Register) -> Result<i64, Fault> {
    match registers.get(count.0 as usize) {
        Some(Value::Integer(rounds)) => Ok(*rounds),
        _ => Err(NO_REGISTER),
    }
}

/// Records a point as passed.
fn note(tables: &Tables, registers: &mut [Value], point: u32) -> Result<(), Fault> {
    let first = tables.path.ok_or(NO_PATH)?;
    match registers.get_mut((first.0 + point / 64) as usize) {
        Some(Value::Integer(word)) => {
            *word |= 1 << (point % 64);
            Ok(())
        }
        _ => Err(NO_REGISTER),
    }
}

fn is_true(operand: Operand, tables: &Tables, registers: &[Value]) -> Result<bool, Fault> {
    match read(tables, registers, operand)? {
        Value::Boolean(value) => Ok(*value),
        _ => Err(NOT_BOOLEAN),
    }
}

fn holds(
    op: Op,
    first: Operand,
    second: Operand,
    tables: &Tables,
    registers: &[Value],
) -> Result<bool, Fault> {
    let mut values = [read(tables, registers, first)?; MAX_ARITY];
    let [_, right, ..] = &mut values;
    *right = read(tables, registers, second)?;
    match dispatch(&Native, op, &values) {
        Ok(Value::Boolean(holds)) => Ok(holds),
        Ok(_) => Err(NOT_BOOLEAN),
        Err(_) => Err(MISTYPED),
    }
}

fn call(
    op: Op,
    args: &[Operand; MAX_ARITY],
    out: Register,
    tables: &Tables,
    registers: &mut [Value],
) -> Result<StepResult, Fault> {
    let mut values = [&Value::Boolean(false); MAX_ARITY];
    for (value, arg) in values.iter_mut().zip(args) {
        *value = read(tables, registers, *arg)?;
    }
    match dispatch(&Native, op, &values) {
        Ok(result) if charge_of(op, &values, &result).is_some() => Ok(StepResult::Refused),
        Ok(result) => write(registers, out, result).map(|()| StepResult::Done),
        Err(CallError::Failed(_)) => Ok(StepResult::Refused),
        Err(CallError::Mistyped(_)) => Err(MISTYPED),
    }
}

fn gather(tables: &Tables, list: OperandList, registers: &[Value]) -> Result<Vec<Value>, Fault> {
    let start = list.start as usize;
    let operands = tables.operands.get(start..start + list.length as usize);
    let values = operands.ok_or(NO_OPERANDS)?.iter();
    values
        .map(|operand| read(tables, registers, *operand).cloned())
        .collect()
}
