//! Kernels of the `period` family: months of either sign.

use std::sync::Arc;

use vesper_ir::decimal::DivideError;
use vesper_ir::time::{TimeError, parse_period, period, period_text};
use vesper_ir::{Decimal, ErrorCode, PeriodKernels};

use crate::Native;

/// Converts months to a period. Fails beyond 9,999 years.
fn period_in_range(months: i64) -> Result<i32, ErrorCode> {
    period(months).map_err(|_| ErrorCode::TimeOverflow)
}

impl PeriodKernels for Native {
    #[inline]
    fn period_equal(&self, left: i32, right: i32) -> bool {
        left == right
    }

    #[inline]
    fn period_not_equal(&self, left: i32, right: i32) -> bool {
        left != right
    }

    #[inline]
    fn period_less(&self, left: i32, right: i32) -> bool {
        left < right
    }

    #[inline]
    fn period_less_or_equal(&self, left: i32, right: i32) -> bool {
        left <= right
    }

    #[inline]
    fn period_greater(&self, left: i32, right: i32) -> bool {
        left > right
    }

    #[inline]
    fn period_greater_or_equal(&self, left: i32, right: i32) -> bool {
        left >= right
    }

    fn period_parse(&self, value: &str) -> Result<i32, ErrorCode> {
        parse_period(value).map_err(|error| match error {
            TimeError::Malformed => ErrorCode::BadFormat,
            TimeError::OutOfRange => ErrorCode::TimeOverflow,
        })
    }

    fn period_text(&self, value: i32) -> Arc<str> {
        Arc::from(period_text(value))
    }

    fn period_from_years(&self, count: i64) -> Result<i32, ErrorCode> {
        period_in_range(count.saturating_mul(12))
    }

    fn period_from_months(&self, count: i64) -> Result<i32, ErrorCode> {
        period_in_range(count)
    }

    #[inline]
    fn period_total_months(&self, value: i32) -> i64 {
        i64::from(value)
    }

    fn period_add(&self, left: i32, right: i32) -> Result<i32, ErrorCode> {
        period_in_range(i64::from(left) + i64::from(right))
    }

    fn period_subtract(&self, left: i32, right: i32) -> Result<i32, ErrorCode> {
        period_in_range(i64::from(left) - i64::from(right))
    }

    fn period_multiply(&self, value: i32, factor: i64) -> Result<i32, ErrorCode> {
        period_in_range(i64::from(value).saturating_mul(factor))
    }

    fn period_ratio(&self, left: i32, right: i32) -> Result<Decimal, ErrorCode> {
        let decimal = |months: i32| Decimal::from(i64::from(months));
        // A quotient of such numbers is within the limits of a decimal.
        decimal(left)
            .divide(&decimal(right))
            .map_err(|error| match error {
                DivideError::ByZero | DivideError::OverLimit => ErrorCode::DivisionByZero,
            })
    }

    fn period_negate(&self, value: i32) -> i32 {
        -value
    }

    fn period_abs(&self, value: i32) -> i32 {
        value.abs()
    }
}
