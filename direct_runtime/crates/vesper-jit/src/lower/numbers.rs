//! Arithmetic and comparisons of values in one machine register.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, InstructionData, Opcode, Value, ValueDef, types};
use vesper_interp::code::Operand;

use super::{Comparison, Inline, Kind, Lower, NotCompiled, ValueParts};

impl Lower<'_, '_> {
    /// Emits an inline operation.
    pub(super) fn compute(
        &mut self,
        what: Inline,
        kind: Kind,
        first: Operand,
        second: Operand,
    ) -> Result<ValueParts, NotCompiled> {
        if kind == Kind::Decimal {
            return self.decimal(what, first, second);
        }
        // A constant is cheapest on the right, and sums and products commute.
        let is_swapped = kind == Kind::Float
            && matches!(what, Inline::Add | Inline::Multiply)
            && first.as_register().is_none();
        let (first, second) = if is_swapped {
            (second, first)
        } else {
            (first, second)
        };
        let left = self.one(first, kind)?;
        // A unary operation repeats its operand, which is read once.
        let right = if second == first {
            left
        } else {
            self.one(second, kind)?
        };
        Ok(match (what, kind) {
            (Inline::Compare(comparison), Kind::Float) => {
                let condition = float_condition(comparison);
                vec![self.builder.ins().fcmp(condition, left, right)]
            }
            (Inline::Compare(comparison), _) => {
                let condition = condition(comparison);
                vec![self.builder.ins().icmp(condition, left, right)]
            }
            (Inline::Divide, Kind::Float) => {
                if let Some(inverse) = self.exact_inverse(second) {
                    let inverse = self.builder.ins().f64const(inverse);
                    return Ok(vec![self.builder.ins().fmul(left, inverse)]);
                }
                vec![self.builder.ins().fdiv(left, right)]
            }
            (_, Kind::Float) => vec![self.float(what, left, right)?],
            (Inline::Not, Kind::Boolean) => vec![self.builder.ins().bxor_imm_s(left, 1)],
            (Inline::ToFloat, _) => vec![self.builder.ins().fcvt_from_sint(types::F64, left)],
            (Inline::ToDecimal, _) => {
                let scale = self.builder.ins().iconst(types::I64, 0);
                vec![left, scale]
            }
            _ => vec![self.integer(what, left, right)?],
        })
    }

    /// Returns the inverse of a constant power of two. Multiplying by it equals dividing exactly, in a third of the
    /// time.
    fn exact_inverse(&self, operand: Operand) -> Option<f64> {
        if operand.as_register().is_some() {
            return None;
        }
        let Some(vesper_ir::Value::Float(value)) = operand.read(&self.code.constants, &[]) else {
            return None;
        };
        let inverse = 1.0 / *value;
        // The lower 52 bits are the fraction, which is zero for a power of two.
        let is_power = |value: f64| value.is_normal() && value.to_bits() << 12 == 0;
        let is_exact = is_power(*value) && is_power(inverse);
        is_exact.then_some(inverse)
    }

    fn float(&mut self, what: Inline, left: Value, right: Value) -> Result<Value, NotCompiled> {
        Ok(match what {
            Inline::Add => self.builder.ins().fadd(left, right),
            Inline::Subtract => self.builder.ins().fsub(left, right),
            Inline::Multiply => self.product(left, right),
            _ => return Err(NotCompiled::new("no code for an operation on floats")),
        })
    }

    /// Emits the product of two floats.
    ///
    /// SEMANTICS: an integer times a power of two is exact, and so is the next such product. So the powers are
    /// multiplied first, which shortens the dependency chain.
    pub(super) fn product(&mut self, left: Value, right: Value) -> Value {
        if let Some((Opcode::Fmul, integer, first)) = self.parts(left)
            && self.is_of_integer(integer)
            && let (Some(first), Some(second)) = (self.power(first), self.power(right))
        {
            let both = first * second;
            let both = self.builder.ins().f64const(both);
            return self.builder.ins().fmul(integer, both);
        }
        self.builder.ins().fmul(left, right)
    }

    /// Returns true for a float converted from an integer.
    fn is_of_integer(&self, value: Value) -> bool {
        let dfg = &self.builder.func.dfg;
        let ValueDef::Result(instruction, _) = dfg.value_def(value) else {
            return false;
        };
        dfg.insts[instruction].opcode() == Opcode::FcvtFromSint
    }

    /// Returns the value of a constant that is a power of two or its negation. Excludes extremes whose product with
    /// an integer could be inexact.
    fn power(&self, value: Value) -> Option<f64> {
        let dfg = &self.builder.func.dfg;
        let ValueDef::Result(instruction, _) = dfg.value_def(value) else {
            return None;
        };
        let InstructionData::UnaryIeee64 { imm, .. } = dfg.insts[instruction] else {
            return None;
        };
        let power = f64::from_bits(imm.bits());
        let is_power = power.is_normal() && power.to_bits() << 12 == 0;
        (is_power && (1e-100..1e100).contains(&power.abs())).then_some(power)
    }

    fn integer(&mut self, what: Inline, left: Value, right: Value) -> Result<Value, NotCompiled> {
        Ok(match what {
            Inline::Add if self.is_proven => self.builder.ins().iadd(left, right),
            Inline::Subtract if self.is_proven => self.builder.ins().isub(left, right),
            Inline::Multiply if self.is_proven => self.builder.ins().imul(left, right),
            Inline::Add => {
                let (sum, overflows) = self.builder.ins().sadd_overflow(left, right);
                self.guard(overflows);
                sum
            }
            Inline::Subtract => {
                let (difference, overflows) = self.builder.ins().ssub_overflow(left, right);
                self.guard(overflows);
                difference
            }
            Inline::Multiply => {
                let (product, overflows) = self.builder.ins().smul_overflow(left, right);
                self.guard(overflows);
                product
            }
            Inline::Quot | Inline::Rem | Inline::DivFloor | Inline::Mod => self.division(what, left, right),
            Inline::And => self.builder.ins().band(left, right),
            Inline::Or => self.builder.ins().bor(left, right),
            Inline::Xor => self.builder.ins().bxor(left, right),
            Inline::Not => self.builder.ins().bnot(left),
            Inline::Negate => {
                self.guard_least(left);
                self.builder.ins().ineg(left)
            }
            Inline::Abs => {
                self.guard_least(left);
                self.builder.ins().iabs(left)
            }
            _ => return Err(NotCompiled::new("no code for an operation on integers")),
        })
    }

    /// Guards against the minimum integer, which has no negation.
    pub(super) fn guard_least(&mut self, value: Value) {
        let is_least = self.builder.ins().icmp_imm_s(IntCC::Equal, value, i64::MIN);
        self.guard(is_least);
    }

    fn division(&mut self, what: Inline, left: Value, right: Value) -> Value {
        let is_zero = self.builder.ins().icmp_imm_s(IntCC::Equal, right, 0);
        self.guard(is_zero);
        if matches!(what, Inline::Quot | Inline::DivFloor) {
            // The only quotient that overflows; the processor would trap.
            let is_least = self.builder.ins().icmp_imm_s(IntCC::Equal, left, i64::MIN);
            let is_minus_one = self.builder.ins().icmp_imm_s(IntCC::Equal, right, -1);
            let overflows = self.builder.ins().band(is_least, is_minus_one);
            self.guard(overflows);
        }
        let remainder = match what {
            Inline::Quot => return self.builder.ins().sdiv(left, right),
            _ => self.builder.ins().srem(left, right),
        };
        if what == Inline::Rem {
            return remainder;
        }
        // SEMANTICS: rounds down, so one less if the signs differ and the remainder is not zero.
        let is_rest = self.builder.ins().icmp_imm_s(IntCC::NotEqual, remainder, 0);
        let signs = self.builder.ins().bxor(remainder, right);
        let differ = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, signs, 0);
        let is_rounded_up = self.builder.ins().band(is_rest, differ);
        if what == Inline::Mod {
            let moved = self.builder.ins().iadd(remainder, right);
            return self.builder.ins().select(is_rounded_up, moved, remainder);
        }
        let quotient = self.builder.ins().sdiv(left, right);
        let less = self.builder.ins().iadd_imm_s(quotient, -1);
        self.builder.ins().select(is_rounded_up, less, quotient)
    }
}

/// Returns the condition of a signed integer comparison.
pub(super) fn condition(comparison: Comparison) -> IntCC {
    match comparison {
        Comparison::Equal => IntCC::Equal,
        Comparison::NotEqual => IntCC::NotEqual,
        Comparison::Less => IntCC::SignedLessThan,
        Comparison::LessOrEqual => IntCC::SignedLessThanOrEqual,
        Comparison::Greater => IntCC::SignedGreaterThan,
        Comparison::GreaterOrEqual => IntCC::SignedGreaterThanOrEqual,
    }
}

/// Returns the condition of a float comparison. With NaN only "not equal" holds.
fn float_condition(comparison: Comparison) -> FloatCC {
    match comparison {
        Comparison::Equal => FloatCC::Equal,
        Comparison::NotEqual => FloatCC::NotEqual,
        Comparison::Less => FloatCC::LessThan,
        Comparison::LessOrEqual => FloatCC::LessThanOrEqual,
        Comparison::Greater => FloatCC::GreaterThan,
        Comparison::GreaterOrEqual => FloatCC::GreaterThanOrEqual,
    }
}
