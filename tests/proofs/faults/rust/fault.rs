//! Selects one planted fault for the whole process (docs/how-to/plant-faults.md).
//!
//! `VESPER_FAULT` names the first selection, so that any command can run with a fault.
//! `tests/proofs/faults/weave.py` adds this file to a copy of the engine and appends the list `FAULTS`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
/// The environment was not read yet.
const UNREAD: usize = usize::MAX - 1;
/// No fault, and the places of faults are noted as they are reached.
const NOTING: usize = usize::MAX - 2;

static SELECTED: AtomicUsize = AtomicUsize::new(UNREAD);
static REACHED: [AtomicBool; FAULTS.len()] = [const { AtomicBool::new(false) }; FAULTS.len()];

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
    let selected = SELECTED.load(Ordering::Relaxed);
    selected == number || (selected == UNREAD && read_environment() == number)
}

#[cold]
#[allow(clippy::panic, reason = "a wrong name must not seem to be a fault that nothing notices")]
fn read_environment() -> usize {
    let name = std::env::var("VESPER_FAULT").ok();
    assert!(select(name.as_deref()), "VESPER_FAULT names no fault");
    SELECTED.load(Ordering::Relaxed)
}

/// Notes that the place of a fault is reached, if that was asked for.
#[inline]
pub fn note(number: usize) {
    if SELECTED.load(Ordering::Relaxed) == NOTING
        && let Some(place) = REACHED.get(number)
    {
        place.store(true, Ordering::Relaxed);
    }
}

/// Selects no fault, and notes from now on which places are reached.
pub fn note_reached() {
    SELECTED.store(NOTING, Ordering::Relaxed);
}

/// Returns the faults whose places were reached since the last call.
pub fn take_reached() -> Vec<&'static str> {
    let reached = REACHED.iter().map(|place| place.swap(false, Ordering::Relaxed));
    let named = FAULTS.iter().zip(reached).filter(|(_, is_reached)| *is_reached);
    named.map(|((name, _), _)| *name).collect()
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
