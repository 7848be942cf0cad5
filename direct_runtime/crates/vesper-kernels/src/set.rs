//! The `set` family.

use vesper_ir::{Key, Set, SetKernels};

use crate::{Native, count};

impl SetKernels for Native {
    #[inline]
    fn set_is_member(&self, value: Key<'_>, members: &Set) -> bool {
        members.find(value).is_some()
    }

    #[inline]
    fn set_length(&self, members: &Set) -> i64 {
        count(members.len())
    }

    #[inline]
    fn set_contains(&self, members: &Set, value: Key<'_>) -> bool {
        self.set_is_member(value, members)
    }
}
