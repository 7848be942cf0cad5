//! The `enum` family. Both members are of the same enum (the verifier saw to that), so their places decide.

use vesper_ir::{EnumKernels, Member};

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
}
