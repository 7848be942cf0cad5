//! Kernels of the `optional` family.

use vesper_ir::{ErrorCode, OptionalKernels, Value};

use crate::Native;

impl OptionalKernels for Native {
    #[inline]
    fn optional_some(&self, value: &Value) -> Option<Value> {
        Some(value.clone())
    }

    #[inline]
    fn optional_is_null(&self, value: Option<&Value>) -> bool {
        value.is_none()
    }

    #[inline]
    fn optional_is_not_null(&self, value: Option<&Value>) -> bool {
        value.is_some()
    }

    #[inline]
    fn optional_equal(&self, left: Option<&Value>, right: Option<&Value>) -> bool {
        match (left, right) {
            (Some(left), Some(right)) => left.is_equal(right),
            (None, None) => true,
            _ => false,
        }
    }

    #[inline]
    fn optional_not_equal(&self, left: Option<&Value>, right: Option<&Value>) -> bool {
        !self.optional_equal(left, right)
    }

    #[inline]
    fn optional_unwrap(&self, value: Option<&Value>) -> Result<Value, ErrorCode> {
        value.cloned().ok_or(ErrorCode::NullValue)
    }

    #[inline]
    fn optional_require(&self, value: Option<&Value>) -> Result<Value, ErrorCode> {
        value.cloned().ok_or(ErrorCode::NullValue)
    }

    #[inline]
    fn optional_in_force(&self, value: Option<&Value>) -> Result<Value, ErrorCode> {
        value.cloned().ok_or(ErrorCode::NotInForce)
    }
}
