//! Signals that end a wait: the caller of this crate knows whether one came.

use std::sync::OnceLock;

static CHECK: OnceLock<fn() -> bool> = OnceLock::new();

/// Sets the check of this process. It is called on a thread whose wait a signal interrupted; true ends the wait.
pub fn set_check(check: fn() -> bool) {
    // The first one stays: the extension sets one when it is imported.
    let _ = CHECK.set(check);
}

/// Returns true where a signal that came is to end the wait.
pub(crate) fn is_interrupted() -> bool {
    CHECK.get().is_some_and(|check| check())
}
