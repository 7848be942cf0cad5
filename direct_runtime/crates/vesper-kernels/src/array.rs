//! The `array` family.

use vesper_ir::{ArrayKernels, ErrorCode, Key, Value};

use crate::{Native, count};

impl ArrayKernels for Native {
    #[inline]
    fn array_length(&self, items: &[Value]) -> i64 {
        count(items.len())
    }

    #[inline]
    fn array_at(&self, items: &[Value], index: i64) -> Result<Value, ErrorCode> {
        // SEMANTICS: Python counts negative indexes from the end; here they are out of range, like those past it.
        let item = usize::try_from(index).ok().and_then(|index| items.get(index));
        item.cloned().ok_or(ErrorCode::IndexOutOfRange)
    }

    #[inline]
    fn array_is_member(&self, value: Key<'_>, items: &[Value]) -> bool {
        items.iter().any(|item| item.as_key() == Some(value))
    }

    #[inline]
    fn array_contains(&self, items: &[Value], value: Key<'_>) -> bool {
        self.array_is_member(value, items)
    }
}
