//! Decimals with 64-bit coefficients; the interpreter computes those that overflow.

use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value, types};
use vesper_interp::code::Operand;
use vesper_ir::decimal::MAX_SCALE;

use crate::routines::POWERS;

use super::numbers::condition;
use super::{Inline, Kind, Lower, NotCompiled, TRUSTED, ValueParts};

/// Two coefficients at one scale.
struct Pair {
    left: Value,
    right: Value,
    scale: Value,
}

impl Lower<'_, '_> {
    /// Emits an operation on decimals.
    pub(super) fn decimal(
        &mut self,
        what: Inline,
        first: Operand,
        second: Operand,
    ) -> Result<ValueParts, NotCompiled> {
        if let Inline::Compare(comparison) = what
            && let Some(holds) = self.compare_with_zero(condition(comparison), first, second)?
        {
            return Ok(vec![holds]);
        }
        if let Inline::Compare(comparison) = what
            && self.is_called()
        {
            return Ok(vec![self.compare_in_slots(
                condition(comparison),
                first,
                second,
            )?]);
        }
        let left = self.operand(first, Kind::Decimal)?;
        let right = self.operand(second, Kind::Decimal)?;
        let ([left, left_scale], [right, right_scale]) = (left.as_slice(), right.as_slice()) else {
            return Err(NotCompiled::new("a decimal has other parts than two"));
        };
        let (left, left_scale, right, right_scale) = (*left, *left_scale, *right, *right_scale);
        match what {
            Inline::Negate => {
                self.guard_least(left);
                Ok(vec![self.builder.ins().ineg(left), left_scale])
            }
            Inline::Multiply => {
                let (product, overflows) = self.builder.ins().smul_overflow(left, right);
                let scale = self.builder.ins().iadd(left_scale, right_scale);
                if let Some(scale) = self.known_product(left_scale, right_scale) {
                    self.guard(overflows);
                    return Ok(vec![product, scale]);
                }
                let is_too_long =
                    self.builder
                        .ins()
                        .icmp_imm_s(IntCC::UnsignedGreaterThan, scale, i64::from(MAX_SCALE));
                let is_unusual = self.builder.ins().bor(overflows, is_too_long);
                self.guard(is_unusual);
                Ok(vec![product, scale])
            }
            Inline::Add | Inline::Subtract => {
                let pair = self.align(left, left_scale, right, right_scale);
                let (result, overflows) = if what == Inline::Add {
                    self.builder.ins().sadd_overflow(pair.left, pair.right)
                } else {
                    self.builder.ins().ssub_overflow(pair.left, pair.right)
                };
                self.guard(overflows);
                let scale = pair.scale;
                Ok(vec![result, scale])
            }
            Inline::Compare(comparison) => {
                let pair = self.align(left, left_scale, right, right_scale);
                let holds = self
                    .builder
                    .ins()
                    .icmp(condition(comparison), pair.left, pair.right);
                Ok(vec![holds])
            }
            _ => Err(NotCompiled::new("no code for an operation on decimals")),
        }
    }

    /// Emits a comparison with constant zero, which depends only on the sign.
    fn compare_with_zero(
        &mut self,
        condition: IntCC,
        first: Operand,
        second: Operand,
    ) -> Result<Option<Value>, NotCompiled> {
        if self.is_zero(second) {
            let value = self.one(first, Kind::Decimal)?;
            return Ok(Some(self.builder.ins().icmp_imm_s(condition, value, 0)));
        }
        if self.is_zero(first) {
            let value = self.one(second, Kind::Decimal)?;
            let condition = condition.swap_args();
            return Ok(Some(self.builder.ins().icmp_imm_s(condition, value, 0)));
        }
        Ok(None)
    }

    fn is_zero(&self, operand: Operand) -> bool {
        let value = match operand.as_register() {
            None => operand.read(&self.code.constants, &[]),
            Some(_) => None,
        };
        let bits = value.and_then(|value| Kind::Decimal.bits(value));
        bits.is_some_and(|[coefficient, ..]| coefficient == 0)
    }

    /// Returns the scale of a product, if it is known and valid.
    fn known_product(&mut self, left: Value, right: Value) -> Option<Value> {
        let sum = self
            .constant_integer(left)?
            .checked_add(self.constant_integer(right)?)?;
        (sum <= i64::from(MAX_SCALE)).then(|| self.builder.ins().iconst(types::I64, sum))
    }

    /// Aligns two coefficients with known scales by at most one multiplication, none of a constant. Returns `None` if
    /// a power of ten or the constant overflows.
    fn align_by_constants(
        &mut self,
        left: Value,
        left_scale: Value,
        right: Value,
        right_scale: Value,
    ) -> Option<Pair> {
        let apart = self
            .constant_integer(left_scale)?
            .checked_sub(self.constant_integer(right_scale)?)?;
        let power = *POWERS.get(usize::try_from(apart.unsigned_abs()).ok()?)?;
        Some(match apart {
            0 => Pair {
                left,
                right,
                scale: left_scale,
            },
            ..0 => Pair {
                left: self.raise_scale(left, power)?,
                right,
                scale: right_scale,
            },
            _ => Pair {
                left,
                right: self.raise_scale(right, power)?,
                scale: left_scale,
            },
        })
    }

    /// Multiplies a coefficient by a power of ten.
    fn raise_scale(&mut self, value: Value, power: i64) -> Option<Value> {
        if let Some(known) = self.constant_integer(value) {
            let raised = known.checked_mul(power)?;
            return Some(self.builder.ins().iconst(types::I64, raised));
        }
        let power = self.builder.ins().iconst(types::I64, power);
        let (raised, overflows) = self.builder.ins().smul_overflow(value, power);
        self.guard(overflows);
        Some(raised)
    }

    /// Aligns two coefficients to the larger scale.
    fn align(&mut self, left: Value, left_scale: Value, right: Value, right_scale: Value) -> Pair {
        if let Some(pair) = self.align_by_constants(left, left_scale, right, right_scale) {
            return pair;
        }
        let apart = self.builder.ins().isub(left_scale, right_scale);
        let unequal = self.builder.create_block();
        let join = self.builder.create_block();
        let parts = [(); 3].map(|()| self.builder.append_block_param(join, types::I64));
        let equal = [left, right, left_scale].map(BlockArg::Value);
        self.builder
            .ins()
            .brif(apart, unequal, &super::NONE, join, &equal);
        self.builder.switch_to_block(unequal);
        let is_left = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, apart, 0);
        let places = self.builder.ins().iabs(apart);
        // A difference that is too large reads the last power, whose result is unused.
        let most = self
            .builder
            .ins()
            .iconst(types::I64, i64::try_from(POWERS.len()).unwrap_or(1) - 1);
        let is_too_far = self.builder.ins().icmp(IntCC::UnsignedGreaterThan, places, most);
        let places = self.builder.ins().umin(places, most);
        // Addresses have 64 bits on every supported processor.
        let table = self.builder.ins().iconst(types::I64, address());
        let at = self.builder.ins().ishl_imm_s(places, 3);
        let at = self.builder.ins().iadd(table, at);
        let power = self
            .builder
            .ins()
            .load(types::I64, TRUSTED.with_readonly(), at, 0);
        let moved = self.builder.ins().select(is_left, left, right);
        let (moved, overflows) = self.builder.ins().smul_overflow(moved, power);
        let is_unusual = self.builder.ins().bor(is_too_far, overflows);
        self.guard(is_unusual);
        let left = self.builder.ins().select(is_left, moved, left);
        let right = self.builder.ins().select(is_left, right, moved);
        let scale = self.builder.ins().select(is_left, right_scale, left_scale);
        let unequal = [left, right, scale].map(BlockArg::Value);
        self.builder.ins().jump(join, &unequal);
        self.builder.switch_to_block(join);
        let [left, right, scale] = parts;
        Pair { left, right, scale }
    }
}

/// Returns the address of the powers, which is valid for the life of the process.
fn address() -> i64 {
    i64::try_from(POWERS.as_ptr().addr()).unwrap_or(0)
}
