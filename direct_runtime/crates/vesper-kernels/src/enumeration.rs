//! The `enum` family. Both members are of the same enum (the verifier saw to that), so their places decide.

use std::sync::Arc;

use vesper_ir::{EnumKernels, Member, Value};

use crate::Native;

impl EnumKernels for Native {
    #[inline]
    fn enum_equal(&self, left: Member, right: Member) -> bool {
        left == right
    }

    #[inline]
    fn enum_not_equal(&self, left: Member, right: Member) -> bool {
        left != right
    }

    #[inline]
    fn enum_text(&self, value: Member, members_of_e: &[Value]) -> Arc<str> {
        match members_of_e.get(value.0 as usize) {
            Some(Value::Text(name)) => Arc::clone(name),
            // No member is outside its enum.
            _ => Arc::from(""),
        }
    }
}
