//! The `set` family.

use vesper_ir::{Key, Set, SetKernels};

use crate::Native;

impl SetKernels for Native {
    #[inline]
    fn set_is_member(&self, value: Key<'_>, members: &Set) -> bool {
        // INVARIANT: sets are sorted. Rust orders `str` by UTF-8 bytes, which is the order of code points.
        match (value, members) {
            (Key::Boolean(value), Set::Boolean(members)) => members.binary_search(&value).is_ok(),
            (Key::Integer(value), Set::Integer(members)) => members.binary_search(&value).is_ok(),
            (Key::Text(value), Set::Text(members)) => members
                .binary_search_by(|member| member.as_ref().cmp(value))
                .is_ok(),
            (Key::Member(value), Set::Member(members)) => members.binary_search(&value).is_ok(),
            _ => false,
        }
    }
}
