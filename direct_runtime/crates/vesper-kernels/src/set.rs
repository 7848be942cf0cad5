//! Kernels of the `set` family.

use std::sync::Arc;

use vesper_ir::{ErrorCode, Key, Set, SetKernels, Value};

use crate::{Native, count, within_items};

impl SetKernels for Native {
    #[inline]
    fn set_is_member(&self, value: Key<'_>, members: &Set) -> bool {
        members.find(value).is_some()
    }

    fn set_equal(&self, left: &Set, right: &Set) -> bool {
        left == right
    }

    fn set_not_equal(&self, left: &Set, right: &Set) -> bool {
        left != right
    }

    #[inline]
    fn set_length(&self, members: &Set) -> i64 {
        count(members.len())
    }

    #[inline]
    fn set_contains(&self, members: &Set, value: Key<'_>) -> bool {
        self.set_is_member(value, members)
    }

    fn set_union(&self, left: &Set, right: &Set) -> Result<Set, ErrorCode> {
        // The result is at most as long as both operands, so it may be checked after it is built.
        let union = left.union(right);
        within_items(union.len())?;
        Ok(union)
    }

    fn set_intersection(&self, left: &Set, right: &Set) -> Set {
        left.intersection(right)
    }

    fn set_difference(&self, left: &Set, right: &Set) -> Set {
        left.difference(right)
    }

    fn set_is_subset(&self, left: &Set, right: &Set) -> bool {
        left.len() <= right.len() && left.keys().all(|key| right.find(key).is_some())
    }

    fn set_is_disjoint(&self, left: &Set, right: &Set) -> bool {
        let (shorter, longer) = if left.len() <= right.len() {
            (left, right)
        } else {
            (right, left)
        };
        shorter.keys().all(|key| longer.find(key).is_none())
    }

    fn set_put(&self, members: &Set, value: Key<'_>) -> Result<Set, ErrorCode> {
        if members.find(value).is_none() {
            within_items(members.len().saturating_add(1))?;
        }
        Ok(members.put(value))
    }

    fn set_remove(&self, members: &Set, value: Key<'_>) -> Set {
        members.remove(value)
    }

    fn set_to_array(&self, members: &Set) -> Arc<[Value]> {
        members.iter().collect()
    }
}
