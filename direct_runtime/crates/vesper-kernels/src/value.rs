//! The `value` family: what all ordered types have.

use std::cmp::Ordering;

use vesper_ir::{ErrorCode, Value, ValueKernels};

use crate::Native;

fn compare(left: &Value, right: &Value) -> Ordering {
    // Both are of one ordered type: the verifier saw to that.
    left.compare(right).unwrap_or(Ordering::Equal)
}

impl ValueKernels for Native {
    #[inline]
    fn value_min(&self, left: &Value, right: &Value) -> Value {
        // SEMANTICS: of equal ones the left one, whose text may be another.
        if compare(right, left).is_lt() { right } else { left }.clone()
    }

    #[inline]
    fn value_max(&self, left: &Value, right: &Value) -> Value {
        if compare(right, left).is_gt() { right } else { left }.clone()
    }

    #[inline]
    fn value_clamp(&self, value: &Value, low: &Value, high: &Value) -> Result<Value, ErrorCode> {
        if compare(low, high).is_gt() {
            return Err(ErrorCode::InvalidArgument);
        }
        let nearest = if compare(value, low).is_lt() {
            low
        } else if compare(value, high).is_gt() {
            high
        } else {
            value
        };
        Ok(nearest.clone())
    }
}
