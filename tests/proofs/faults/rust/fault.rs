//! Selects one planted fault for the whole process (docs/how-to/plant-faults.md).
//!
//! `tests/proofs/faults/weave.py` adds this file to a copy of the engine and appends the list `FAULTS`.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The right expression, or the wrong one while the fault of this name is selected.
#[macro_export]
macro_rules! planted {
    ($name:literal, $right:expr, $wrong:expr $(,)?) => {
        if $crate::fault::is_selected(const { $crate::fault::number($name) }) {
            $wrong
        } else {
            $right
        }
    };
}

/// No fault.
const NONE: usize = usize::MAX;

static SELECTED: AtomicUsize = AtomicUsize::new(NONE);

/// Returns the number of a fault. An unknown name stops the build.
#[allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "evaluated by the compiler, where a panic is an error"
)]
pub const fn number(name: &str) -> usize {
    let mut number = 0;
    while number < FAULTS.len() {
        if is_same(FAULTS[number].0.as_bytes(), name.as_bytes()) {
            return number;
        }
        number += 1;
    }
    panic!("this fault is not in the list")
}

#[allow(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, where a panic is an error"
)]
const fn is_same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut place = 0;
    while place < left.len() {
        if left[place] != right[place] {
            return false;
        }
        place += 1;
    }
    true
}

#[inline]
pub fn is_selected(number: usize) -> bool {
    SELECTED.load(Ordering::Relaxed) == number
}

/// Selects a fault for the whole process, or none. Returns false for an unknown name.
pub fn select(name: Option<&str>) -> bool {
    let found = match name {
        None => Some(NONE),
        Some(name) => FAULTS.iter().position(|(own, _)| *own == name),
    };
    if let Some(number) = found {
        SELECTED.store(number, Ordering::Relaxed);
    }
    found.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_selected_fault_is_wrong() {
        // One test: the selection holds for the whole process.
        let answer = || planted!("integer.add_wraps", "right", "wrong");
        assert_eq!(answer(), "right");
        assert!(select(Some("integer.add_wraps")));
        assert_eq!(answer(), "wrong");
        assert!(!select(Some("no.such_fault")));
        assert_eq!(answer(), "wrong");
        assert!(select(Some("integer.negate_wraps")));
        assert_eq!(answer(), "right");
        assert!(select(None));
    }
}
