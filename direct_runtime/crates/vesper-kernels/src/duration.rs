//! Kernels of the `duration` family: microseconds of either sign.

use std::sync::Arc;

use vesper_ir::time::{DAY, SECOND, TimeError, duration, duration_text, parse_duration};
use vesper_ir::{Decimal, DurationKernels, ErrorCode, Value};

use crate::Native;

const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const MILLISECOND: i64 = 1_000;
/// Scale of a number of seconds whose last digit is a microsecond.
const PLACES: u16 = 6;

/// Converts microseconds to a duration. Fails beyond the limit.
fn duration_in_range(microseconds: i128) -> Result<i64, ErrorCode> {
    duration(microseconds).map_err(|_| ErrorCode::TimeOverflow)
}

/// Multiplies a unit.
fn of(count: i64, unit: i64) -> Result<i64, ErrorCode> {
    duration_in_range(i128::from(count) * i128::from(unit))
}

impl DurationKernels for Native {
    #[inline]
    fn duration_equal(&self, left: i64, right: i64) -> bool {
        left == right
    }

    #[inline]
    fn duration_not_equal(&self, left: i64, right: i64) -> bool {
        left != right
    }

    #[inline]
    fn duration_less(&self, left: i64, right: i64) -> bool {
        left < right
    }

    #[inline]
    fn duration_less_or_equal(&self, left: i64, right: i64) -> bool {
        left <= right
    }

    #[inline]
    fn duration_greater(&self, left: i64, right: i64) -> bool {
        left > right
    }

    #[inline]
    fn duration_greater_or_equal(&self, left: i64, right: i64) -> bool {
        left >= right
    }

    fn duration_add(&self, left: i64, right: i64) -> Result<i64, ErrorCode> {
        duration_in_range(i128::from(left) + i128::from(right))
    }

    fn duration_subtract(&self, left: i64, right: i64) -> Result<i64, ErrorCode> {
        duration_in_range(i128::from(left) - i128::from(right))
    }

    fn duration_multiply(&self, value: i64, factor: i64) -> Result<i64, ErrorCode> {
        of(factor, value)
    }

    fn duration_divide(&self, value: i64, divisor: i64) -> Result<i64, ErrorCode> {
        if divisor == 0 {
            return Err(ErrorCode::DivisionByZero);
        }
        let (value, divisor) = (i128::from(value), i128::from(divisor));
        let (quotient, rest) = (value / divisor, value % divisor);
        let sign = value.signum() * divisor.signum();
        // Rounds to the nearest, half to even.
        let rounded = match (2 * rest.abs()).cmp(&divisor.abs()) {
            std::cmp::Ordering::Greater => quotient + sign,
            std::cmp::Ordering::Equal => quotient + sign * (quotient % 2).abs(),
            std::cmp::Ordering::Less => quotient,
        };
        // Not longer than the dividend.
        duration_in_range(rounded)
    }

    fn duration_ratio(&self, left: i64, right: i64) -> Result<Decimal, ErrorCode> {
        // The quotient of two 64-bit numbers is within the limits of a decimal, so only a zero divisor fails.
        let quotient = Decimal::from(left).divide(&Decimal::from(right));
        quotient.map_err(|_| ErrorCode::DivisionByZero)
    }

    #[inline]
    fn duration_negate(&self, value: i64) -> i64 {
        // The limit is symmetric.
        -value
    }

    #[inline]
    fn duration_abs(&self, value: i64) -> i64 {
        value.abs()
    }

    fn duration_parse(&self, value: &str) -> Result<i64, ErrorCode> {
        parse_duration(value).map_err(|error| match error {
            TimeError::Malformed => ErrorCode::BadFormat,
            TimeError::OutOfRange => ErrorCode::TimeOverflow,
        })
    }

    fn duration_text(&self, value: i64) -> Arc<str> {
        Arc::from(duration_text(value))
    }

    fn duration_total_seconds(&self, value: i64) -> Decimal {
        // Nineteen digits and six places are within the limits, so the fallback is unreachable.
        Decimal::new(i128::from(value), PLACES).unwrap_or_else(|_| Decimal::from(0))
    }

    #[inline]
    fn duration_total_microseconds(&self, value: i64) -> i64 {
        value
    }

    fn duration_from_microseconds(&self, count: i64) -> Result<i64, ErrorCode> {
        of(count, 1)
    }

    fn duration_from_days(&self, count: i64) -> Result<i64, ErrorCode> {
        of(count, DAY)
    }

    fn duration_from_hours(&self, count: i64) -> Result<i64, ErrorCode> {
        of(count, HOUR)
    }

    fn duration_from_minutes(&self, count: i64) -> Result<i64, ErrorCode> {
        of(count, MINUTE)
    }

    fn duration_from_seconds(&self, count: i64) -> Result<i64, ErrorCode> {
        of(count, SECOND)
    }

    fn duration_from_milliseconds(&self, count: i64) -> Result<i64, ErrorCode> {
        of(count, MILLISECOND)
    }

    fn duration_sum(&self, values: &[Value]) -> Result<i64, ErrorCode> {
        // SEMANTICS: from the left; a partial sum over the limit fails even if later items would reduce it.
        values.iter().try_fold(0, |sum, value| match value {
            Value::Duration(value) => self.duration_add(sum, *value),
            _ => Ok(sum),
        })
    }
}
