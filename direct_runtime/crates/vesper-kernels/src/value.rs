//! Kernels of the `value` family, for all ordered types.

use std::cmp::Ordering;

use vesper_ir::{ErrorCode, Value, ValueKernels};

use crate::Native;

fn compare(left: &Value, right: &Value) -> Ordering {
    // INVARIANT: the verifier checked that both have one ordered type.
    left.compare(right).unwrap_or(Ordering::Equal)
}

impl ValueKernels for Native {
    #[inline]
    fn value_min(&self, left: &Value, right: &Value) -> Value {
        // SEMANTICS: of equal values the left one, whose text may differ.
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
