//! Kernels of the `integer` family.
//!
//! SEMANTICS: Rust wraps or panics on overflow and Python never overflows; Vesper fails at each operation.

use std::sync::Arc;

use vesper_ir::decimal::{DivideError, deviation, median, percentile, variance};
use vesper_ir::{Decimal, ErrorCode, IntegerKernels, Value};

use crate::decimal::statistic;
use crate::{Native, count};

/// Checks the count of a shift: 0 to 63.
fn shift(count: i64) -> Result<u32, ErrorCode> {
    u32::try_from(count)
        .ok()
        .filter(|count| *count < i64::BITS)
        .ok_or(ErrorCode::InvalidArgument)
}

/// Iterates over an array of integers. INVARIANT: the verifier checked its type.
fn integers(values: &[Value]) -> impl Iterator<Item = i64> {
    values.iter().filter_map(|value| match value {
        Value::Integer(value) => Some(*value),
        _ => None,
    })
}

fn as_decimals(values: &[Value]) -> Vec<Decimal> {
    integers(values).map(Decimal::from).collect()
}

impl IntegerKernels for Native {
    #[inline]
    fn integer_add(&self, left: i64, right: i64) -> Result<i64, ErrorCode> {
        left.checked_add(right).ok_or(ErrorCode::IntegerOverflow)
    }

    #[inline]
    fn integer_subtract(&self, left: i64, right: i64) -> Result<i64, ErrorCode> {
        left.checked_sub(right).ok_or(ErrorCode::IntegerOverflow)
    }

    #[inline]
    fn integer_multiply(&self, left: i64, right: i64) -> Result<i64, ErrorCode> {
        left.checked_mul(right).ok_or(ErrorCode::IntegerOverflow)
    }

    #[inline]
    fn integer_negate(&self, value: i64) -> Result<i64, ErrorCode> {
        value.checked_neg().ok_or(ErrorCode::IntegerOverflow)
    }

    #[inline]
    fn integer_equal(&self, left: i64, right: i64) -> bool {
        left == right
    }

    #[inline]
    fn integer_not_equal(&self, left: i64, right: i64) -> bool {
        left != right
    }

    #[inline]
    fn integer_less(&self, left: i64, right: i64) -> bool {
        left < right
    }

    #[inline]
    fn integer_less_or_equal(&self, left: i64, right: i64) -> bool {
        left <= right
    }

    #[inline]
    fn integer_greater(&self, left: i64, right: i64) -> bool {
        left > right
    }

    #[inline]
    fn integer_greater_or_equal(&self, left: i64, right: i64) -> bool {
        left >= right
    }

    #[inline]
    fn integer_divide(&self, left: i64, right: i64) -> Result<Decimal, ErrorCode> {
        let quotient = Decimal::from(left).divide(&Decimal::from(right));
        // The quotient of two 19-digit numbers is never over a limit.
        quotient.map_err(|_: DivideError| ErrorCode::DivisionByZero)
    }

    #[inline]
    fn integer_quot(&self, left: i64, right: i64) -> Result<i64, ErrorCode> {
        if right == 0 {
            return Err(ErrorCode::DivisionByZero);
        }
        left.checked_div(right).ok_or(ErrorCode::IntegerOverflow)
    }

    #[inline]
    fn integer_rem(&self, left: i64, right: i64) -> Result<i64, ErrorCode> {
        if right == 0 {
            return Err(ErrorCode::DivisionByZero);
        }
        // SEMANTICS: Rust overflows where the quotient does, at the smallest integer and -1; the remainder is 0.
        Ok(left.wrapping_rem(right))
    }

    #[inline]
    fn integer_div_floor(&self, left: i64, right: i64) -> Result<i64, ErrorCode> {
        let quotient = self.integer_quot(left, right)?;
        let remainder = left.wrapping_rem(right);
        // SEMANTICS: `div_euclid` differs: it rounds up where the divisor is negative.
        let is_rounded_up = remainder != 0 && (remainder < 0) != (right < 0);
        Ok(if is_rounded_up { quotient - 1 } else { quotient })
    }

    #[inline]
    fn integer_mod(&self, left: i64, right: i64) -> Result<i64, ErrorCode> {
        let remainder = self.integer_rem(left, right)?;
        let is_other_sign = remainder != 0 && (remainder < 0) != (right < 0);
        // The signs differ, so the sum fits.
        Ok(if is_other_sign {
            remainder + right
        } else {
            remainder
        })
    }

    #[inline]
    fn integer_abs(&self, value: i64) -> Result<i64, ErrorCode> {
        value.checked_abs().ok_or(ErrorCode::IntegerOverflow)
    }

    #[inline]
    fn integer_sign(&self, value: i64) -> i64 {
        value.signum()
    }

    fn integer_pow(&self, base: i64, exponent: i64) -> Result<i64, ErrorCode> {
        if exponent < 0 {
            return Err(ErrorCode::InvalidArgument);
        }
        match (base, u32::try_from(exponent)) {
            (_, Ok(exponent)) => base.checked_pow(exponent).ok_or(ErrorCode::IntegerOverflow),
            (0 | 1, Err(_)) => Ok(base),
            (-1, Err(_)) => Ok(if exponent % 2 == 0 { 1 } else { -1 }),
            (_, Err(_)) => Err(ErrorCode::IntegerOverflow),
        }
    }

    #[inline]
    #[expect(
        clippy::cast_precision_loss,
        reason = "Rust also rounds to the nearest, ties to even"
    )]
    fn integer_to_float(&self, value: i64) -> f64 {
        value as f64
    }

    #[inline]
    fn integer_text(&self, value: i64) -> Arc<str> {
        Arc::from(value.to_string())
    }

    fn integer_parse(&self, value: &str) -> Result<i64, ErrorCode> {
        let (is_negative, digits) = match value.as_bytes() {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] | digits => (false, digits),
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(ErrorCode::BadFormat);
        }
        // Counts downwards, because the negative range has one number more.
        let mut number = 0_i64;
        for digit in digits {
            let next = number
                .checked_mul(10)
                .and_then(|number| number.checked_sub(i64::from(digit - b'0')));
            number = next.ok_or(ErrorCode::IntegerOverflow)?;
        }
        if is_negative {
            Ok(number)
        } else {
            number.checked_neg().ok_or(ErrorCode::IntegerOverflow)
        }
    }

    #[inline]
    fn integer_bit_and(&self, left: i64, right: i64) -> i64 {
        left & right
    }

    #[inline]
    fn integer_bit_or(&self, left: i64, right: i64) -> i64 {
        left | right
    }

    #[inline]
    fn integer_bit_xor(&self, left: i64, right: i64) -> i64 {
        left ^ right
    }

    #[inline]
    fn integer_bit_not(&self, value: i64) -> i64 {
        !value
    }

    #[inline]
    fn integer_shift_left(&self, value: i64, count: i64) -> Result<i64, ErrorCode> {
        // SEMANTICS: Rust drops the bits that do not fit; 128 bits hold all of them.
        let shifted = i128::from(value) << shift(count)?;
        i64::try_from(shifted).map_err(|_| ErrorCode::IntegerOverflow)
    }

    #[inline]
    fn integer_shift_right(&self, value: i64, count: i64) -> Result<i64, ErrorCode> {
        // The shift of a signed integer rounds toward negative infinity.
        Ok(value >> shift(count)?)
    }

    #[inline]
    fn integer_bit_count(&self, value: i64) -> i64 {
        i64::from(value.count_ones())
    }

    fn integer_sum(&self, values: &[Value]) -> Result<i64, ErrorCode> {
        // SEMANTICS: every partial sum must fit, not only the last one.
        integers(values).try_fold(0, |sum: i64, value| {
            sum.checked_add(value).ok_or(ErrorCode::IntegerOverflow)
        })
    }

    fn integer_avg(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        // The sum of an array of integers fits 128 bits.
        let sum: i128 = integers(values).map(i128::from).sum();
        let average = Decimal::whole(sum).divide(&Decimal::from(count(values.len())));
        // The quotient is never over a limit, so only a count of zero fails.
        average.map_err(|_: DivideError| ErrorCode::EmptyCollection)
    }

    fn integer_median(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        let values = as_decimals(values);
        statistic(median(values.iter().collect()))
    }

    fn integer_percentile(&self, values: &[Value], percent: &Decimal) -> Result<Decimal, ErrorCode> {
        let values = as_decimals(values);
        statistic(percentile(values.iter().collect(), percent))
    }

    fn integer_variance(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        let values = as_decimals(values);
        statistic(variance(&values.iter().collect::<Vec<_>>(), true))
    }

    fn integer_population_variance(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        let values = as_decimals(values);
        statistic(variance(&values.iter().collect::<Vec<_>>(), false))
    }

    fn integer_stddev(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        let values = as_decimals(values);
        statistic(deviation(&values.iter().collect::<Vec<_>>(), true))
    }

    fn integer_population_stddev(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        let values = as_decimals(values);
        statistic(deviation(&values.iter().collect::<Vec<_>>(), false))
    }
}
