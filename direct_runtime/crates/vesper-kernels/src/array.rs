//! The `array` family.

use vesper_ir::{ArrayKernels, ErrorCode, Value};

use crate::{Native, count};

impl ArrayKernels for Native {
    #[inline]
    fn array_length(&self, values: &[Value]) -> i64 {
        count(values.len())
    }

    #[inline]
    fn array_at(&self, values: &[Value], index: i64) -> Result<Value, ErrorCode> {
        // SEMANTICS: Python counts negative indexes from the end; here they are out of range, like those past it.
        let item = usize::try_from(index).ok().and_then(|index| values.get(index));
        item.cloned().ok_or(ErrorCode::IndexOutOfRange)
    }

    #[inline]
    fn array_is_item(&self, value: &Value, values: &[Value]) -> bool {
        // SEMANTICS: by the equality of the type, so that 1.0 is among [1.00].
        values.iter().any(|item| item.is_equal(value))
    }

    #[inline]
    fn array_contains(&self, values: &[Value], value: &Value) -> bool {
        self.array_is_item(value, values)
    }
}
