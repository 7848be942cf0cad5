//! Frequent operations, computed inside the run loop.
//!
//! `dispatch` returns each result as a value, and moving it to a register passes through memory in pieces that the
//! processor cannot forward. The functions here call the same kernels and write to the register directly. They decide
//! nothing: any other operation, or an argument of unusual size, goes to `dispatch`.

use std::cmp::Ordering;

use vesper_ir::{BooleanKernels, Decimal, ErrorCode, FloatKernels, IntegerKernels, Op, Value};
use vesper_kernels::Native;

use crate::bytecode::{Operand, Register};
use crate::run::{Fault, NO_REGISTER};

/// The result of an inline operation.
pub(crate) enum InlineResult {
    /// The result is in the output register.
    Done,
    Failed(ErrorCode),
    /// The operation or its arguments have no inline form.
    Unknown,
}

/// Returns true for comparisons of numbers, which never fail.
pub(crate) fn is_comparison(op: Op) -> bool {
    matches!(
        op,
        Op::IntegerEqual
            | Op::IntegerNotEqual
            | Op::IntegerLess
            | Op::IntegerLessOrEqual
            | Op::IntegerGreater
            | Op::IntegerGreaterOrEqual
            | Op::FloatEqual
            | Op::FloatNotEqual
            | Op::FloatLess
            | Op::FloatLessOrEqual
            | Op::FloatGreater
            | Op::FloatGreaterOrEqual
            | Op::DecimalEqual
            | Op::DecimalNotEqual
            | Op::DecimalLess
            | Op::DecimalLessOrEqual
            | Op::DecimalGreater
            | Op::DecimalGreaterOrEqual
    )
}

/// Evaluates a comparison of numbers of usual size, or returns `None` for any other.
#[inline]
pub(crate) fn compare_inline(op: Op, left: &Value, right: &Value) -> Option<bool> {
    match (left, right) {
        (Value::Decimal(left), Value::Decimal(right)) => {
            let order = Decimal::small_order(left, right)?;
            Some(match op {
                Op::DecimalEqual => order.is_eq(),
                Op::DecimalNotEqual => order.is_ne(),
                Op::DecimalLess => order.is_lt(),
                Op::DecimalLessOrEqual => order.is_le(),
                Op::DecimalGreater => order.is_gt(),
                Op::DecimalGreaterOrEqual => order.is_ge(),
                _ => return None,
            })
        }
        (Value::Integer(left), Value::Integer(right)) => Some(match op {
            Op::IntegerEqual => Native.integer_equal(*left, *right),
            Op::IntegerNotEqual => Native.integer_not_equal(*left, *right),
            Op::IntegerLess => Native.integer_less(*left, *right),
            Op::IntegerLessOrEqual => Native.integer_less_or_equal(*left, *right),
            Op::IntegerGreater => Native.integer_greater(*left, *right),
            Op::IntegerGreaterOrEqual => Native.integer_greater_or_equal(*left, *right),
            _ => return None,
        }),
        (Value::Float(left), Value::Float(right)) => Some(match op {
            Op::FloatEqual => Native.float_equal(*left, *right),
            Op::FloatNotEqual => Native.float_not_equal(*left, *right),
            Op::FloatLess => Native.float_less(*left, *right),
            Op::FloatLessOrEqual => Native.float_less_or_equal(*left, *right),
            Op::FloatGreater => Native.float_greater(*left, *right),
            Op::FloatGreaterOrEqual => Native.float_greater_or_equal(*left, *right),
            _ => return None,
        }),
        _ => None,
    }
}

/// Computes an operation of one or two arguments that has an inline form.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "one jump for the instruction and its operation"
)]
#[expect(clippy::too_many_lines, reason = "one arm an operation, as in `dispatch`")]
pub(crate) fn run_inline(
    op: Op,
    first: Operand,
    second: Operand,
    out: Register,
    constants: &[Value],
    registers: &mut [Value],
) -> Result<InlineResult, Fault> {
    let left = first.read(constants, registers).ok_or(NO_REGISTER)?;
    let right = second.read(constants, registers).ok_or(NO_REGISTER)?;
    macro_rules! write {
        ($set:ident($($part:expr),*)) => {{
            registers.get_mut(out.0 as usize).ok_or(NO_REGISTER)?.$set($($part),*);
            Ok(InlineResult::Done)
        }};
    }
    // Binds two arguments of one type; `dispatch` reports a mismatch.
    macro_rules! two {
        ($kind:ident) => {
            match (left, right) {
                (Value::$kind(left), Value::$kind(right)) => (left, right),
                _ => return Ok(InlineResult::Unknown),
            }
        };
    }
    macro_rules! compare {
        ($kind:ident, $kernel:ident) => {{
            let (left, right) = two!($kind);
            let holds = Native.$kernel(*left, *right);
            write!(set_boolean(holds))
        }};
    }
    macro_rules! integer {
        ($kernel:ident) => {{
            let (left, right) = two!(Integer);
            match Native.$kernel(*left, *right) {
                Ok(value) => write!(set_integer(value)),
                Err(code) => Ok(InlineResult::Failed(code)),
            }
        }};
    }
    macro_rules! float {
        ($kernel:ident) => {{
            let (left, right) = two!(Float);
            let value = Native.$kernel(*left, *right);
            write!(set_float(value))
        }};
    }
    macro_rules! decimal {
        ($small:ident) => {{
            let (left, right) = two!(Decimal);
            match left.$small(right) {
                Some((coefficient, scale)) => write!(set_small_decimal(coefficient, scale)),
                None => Ok(InlineResult::Unknown),
            }
        }};
    }
    macro_rules! order {
        ($holds:expr) => {{
            let (left, right) = two!(Decimal);
            let holds: fn(Ordering) -> bool = $holds;
            match Decimal::small_order(left, right) {
                Some(order) => write!(set_boolean(holds(order))),
                None => Ok(InlineResult::Unknown),
            }
        }};
    }
    match op {
        Op::IntegerAdd => integer!(integer_add),
        Op::IntegerSubtract => integer!(integer_subtract),
        Op::IntegerMultiply => integer!(integer_multiply),
        Op::IntegerQuot => integer!(integer_quot),
        Op::IntegerRem => integer!(integer_rem),
        Op::IntegerDivFloor => integer!(integer_div_floor),
        Op::IntegerMod => integer!(integer_mod),
        Op::IntegerBitAnd => {
            let (left, right) = two!(Integer);
            let value = Native.integer_bit_and(*left, *right);
            write!(set_integer(value))
        }
        Op::IntegerEqual => compare!(Integer, integer_equal),
        Op::IntegerNotEqual => compare!(Integer, integer_not_equal),
        Op::IntegerLess => compare!(Integer, integer_less),
        Op::IntegerLessOrEqual => compare!(Integer, integer_less_or_equal),
        Op::IntegerGreater => compare!(Integer, integer_greater),
        Op::IntegerGreaterOrEqual => compare!(Integer, integer_greater_or_equal),
        Op::IntegerToFloat => {
            let Value::Integer(value) = left else {
                return Ok(InlineResult::Unknown);
            };
            let value = Native.integer_to_float(*value);
            write!(set_float(value))
        }
        Op::DecimalFromInteger => {
            let Value::Integer(value) = left else {
                return Ok(InlineResult::Unknown);
            };
            let value = i128::from(*value);
            write!(set_small_decimal(value, 0))
        }
        Op::FloatAdd => float!(float_add),
        Op::FloatSubtract => float!(float_subtract),
        Op::FloatMultiply => float!(float_multiply),
        Op::FloatDivide => float!(float_divide),
        Op::FloatEqual => compare!(Float, float_equal),
        Op::FloatNotEqual => compare!(Float, float_not_equal),
        Op::FloatLess => compare!(Float, float_less),
        Op::FloatLessOrEqual => compare!(Float, float_less_or_equal),
        Op::FloatGreater => compare!(Float, float_greater),
        Op::FloatGreaterOrEqual => compare!(Float, float_greater_or_equal),
        Op::DecimalAdd => decimal!(small_sum),
        Op::DecimalSubtract => decimal!(small_difference),
        Op::DecimalMultiply => decimal!(small_product),
        Op::DecimalEqual => order!(Ordering::is_eq),
        Op::DecimalNotEqual => order!(Ordering::is_ne),
        Op::DecimalLess => order!(Ordering::is_lt),
        Op::DecimalLessOrEqual => order!(Ordering::is_le),
        Op::DecimalGreater => order!(Ordering::is_gt),
        Op::DecimalGreaterOrEqual => order!(Ordering::is_ge),
        Op::BooleanNot => {
            let Value::Boolean(value) = left else {
                return Ok(InlineResult::Unknown);
            };
            let value = Native.boolean_not(*value);
            write!(set_boolean(value))
        }
        _ => Ok(InlineResult::Unknown),
    }
}
