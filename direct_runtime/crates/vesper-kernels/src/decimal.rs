//! The `decimal` family. The arithmetic is in `vesper_ir::decimal`; here a result over a limit becomes a failure.
//!
//! SEMANTICS: Python's `decimal` rounds to the context's precision and knows −0; Vesper is exact and does not.

use vesper_ir::decimal::OverLimit;
use vesper_ir::{Decimal, DecimalKernels, ErrorCode};

use crate::Native;

fn or_overflow(result: Result<Decimal, OverLimit>) -> Result<Decimal, ErrorCode> {
    result.map_err(|OverLimit| ErrorCode::DecimalOverflow)
}

impl DecimalKernels for Native {
    #[inline]
    fn decimal_from_integer(&self, value: i64) -> Decimal {
        Decimal::from(value)
    }

    #[inline]
    fn decimal_add(&self, left: &Decimal, right: &Decimal) -> Result<Decimal, ErrorCode> {
        or_overflow(left.add(right))
    }

    #[inline]
    fn decimal_subtract(&self, left: &Decimal, right: &Decimal) -> Result<Decimal, ErrorCode> {
        or_overflow(left.subtract(right))
    }

    #[inline]
    fn decimal_multiply(&self, left: &Decimal, right: &Decimal) -> Result<Decimal, ErrorCode> {
        or_overflow(left.multiply(right))
    }

    #[inline]
    fn decimal_negate(&self, value: &Decimal) -> Decimal {
        value.negate()
    }

    #[inline]
    fn decimal_equal(&self, left: &Decimal, right: &Decimal) -> bool {
        left.compare(right).is_eq()
    }

    #[inline]
    fn decimal_not_equal(&self, left: &Decimal, right: &Decimal) -> bool {
        left.compare(right).is_ne()
    }

    #[inline]
    fn decimal_less(&self, left: &Decimal, right: &Decimal) -> bool {
        left.compare(right).is_lt()
    }

    #[inline]
    fn decimal_less_or_equal(&self, left: &Decimal, right: &Decimal) -> bool {
        left.compare(right).is_le()
    }

    #[inline]
    fn decimal_greater(&self, left: &Decimal, right: &Decimal) -> bool {
        left.compare(right).is_gt()
    }

    #[inline]
    fn decimal_greater_or_equal(&self, left: &Decimal, right: &Decimal) -> bool {
        left.compare(right).is_ge()
    }
}
