//! Kernels of the `enum` family. The verifier checked that both members have the same enum, so their indexes decide.

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
            // Unreachable: every member is in its enum.
            _ => Arc::from(""),
        }
    }
}
