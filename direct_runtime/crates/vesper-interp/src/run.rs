//! Executes bytecode: a loop over instructions and a frame of registers.

use vesper_ir::node::ExpressionIndex;
use vesper_ir::{CallError, ErrorCode, MAX_ARITY, Value, dispatch};
use vesper_kernels::Native;

use crate::bytecode::{Code, Instruction, Mention, Operand, Phase};

/// How an execution ended, from the point where the inputs are values.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The outputs, in declared order.
    Returned(Vec<Value>),
    /// An operation failed.
    Failed {
        code: ErrorCode,
        expression: ExpressionIndex,
    },
    /// A clause was false.
    ContractBroken {
        phase: Phase,
        clause: u32,
        values: Vec<(Mention, Value)>,
    },
    /// The engine broke one of its own rules. This is a bug in the engine, never in the node.
    Fault(&'static str),
}

/// Expression `index` had this value.
#[derive(Clone, Debug)]
pub struct Mark {
    pub index: ExpressionIndex,
    pub value: Value,
}

/// A rule of the engine that did not hold; verification and compilation rule these out.
type Fault = &'static str;

const NO_REGISTER: Fault = "an instruction names a register that does not exist";
const NO_CLAUSE: Fault = "an instruction names a clause that does not exist";
const NOT_BOOLEAN: Fault = "a condition is not a boolean";
const MISTYPED: Fault = "an operation was called with arguments of other types than declared";

/// Runs the code on converted inputs. `frame` holds them and nothing else.
pub(crate) fn run(code: &Code, frame: Vec<Value>, marks: &mut Vec<Mark>) -> Outcome {
    execute(code, frame, marks).unwrap_or_else(Outcome::Fault)
}

fn execute(code: &Code, mut frame: Vec<Value>, marks: &mut Vec<Mark>) -> Result<Outcome, Fault> {
    frame.resize(code.registers, Value::Boolean(false));
    let constants = code.constants.as_slice();
    let registers = frame.as_mut_slice();
    let mut next = 0_usize;
    while let Some(instruction) = code.instructions.get(next) {
        next += 1;
        match *instruction {
            Instruction::Call {
                op,
                out,
                args,
                expression,
            } => {
                let mut values = [&Value::Boolean(false); MAX_ARITY];
                for (value, arg) in values.iter_mut().zip(args) {
                    *value = read(arg, constants, registers)?;
                }
                match dispatch(&Native, op, &values) {
                    Ok(result) => *registers.get_mut(out.0 as usize).ok_or(NO_REGISTER)? = result,
                    Err(CallError::Failed(code)) => return Ok(Outcome::Failed { code, expression }),
                    Err(CallError::Mistyped(_)) => return Err(MISTYPED),
                }
            }
            Instruction::Move { out, from } => {
                let value = read(from, constants, registers)?.clone();
                *registers.get_mut(out.0 as usize).ok_or(NO_REGISTER)? = value;
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
            Instruction::Require { condition, clause } => {
                if !is_true(condition, constants, registers)? {
                    return broken(code, clause, registers);
                }
            }
            Instruction::Mark { expression, value } => {
                let value = read(value, constants, registers)?.clone();
                marks.push(Mark {
                    index: expression,
                    value,
                });
            }
        }
    }
    let mut outputs = Vec::with_capacity(code.returns.len());
    for output in &code.returns {
        outputs.push(read(*output, constants, registers)?.clone());
    }
    Ok(Outcome::Returned(outputs))
}

#[inline]
fn read<'a>(operand: Operand, constants: &'a [Value], registers: &'a [Value]) -> Result<&'a Value, Fault> {
    operand.read(constants, registers).ok_or(NO_REGISTER)
}

#[inline]
fn is_true(operand: Operand, constants: &[Value], registers: &[Value]) -> Result<bool, Fault> {
    match read(operand, constants, registers)? {
        Value::Boolean(value) => Ok(*value),
        _ => Err(NOT_BOOLEAN),
    }
}

#[cold]
fn broken(code: &Code, clause: u32, registers: &[Value]) -> Result<Outcome, Fault> {
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
