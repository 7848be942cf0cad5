//! The `integer` family.
//!
//! SEMANTICS: Rust wraps or panics on overflow and Python never overflows; Vesper fails, at each operation.

use vesper_ir::{ErrorCode, IntegerKernels};

use crate::Native;

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
}
