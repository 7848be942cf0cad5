//! Panic guard: turns a panic of the engine into an engine fault and prints nothing.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Installs a panic hook that silences guarded panics and passes on all others.
pub fn quiet_guarded_panics() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IS_GUARDED.get() {
                LAST_PANIC.replace(describe(info));
            } else {
                previous(info);
            }
        }));
    });
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let what = info.payload_as_str().unwrap_or("a panic without a message");
    match info.location() {
        Some(place) => format!("{what} ({}:{})", place.file(), place.line()),
        None => what.to_owned(),
    }
}

/// Returns the result of `run`, or the message of its panic.
///
/// INVARIANT: `run` borrows only immutable data (a loaded program) or data of its own, so no half-changed state
/// remains visible.
pub fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    let outer = IS_GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    IS_GUARDED.set(outer);
    result.map_err(|_| LAST_PANIC.take())
}

#[cfg(test)]
#[allow(clippy::panic, reason = "that is what is tested")]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_message_and_the_next_run_is_as_before() {
        quiet_guarded_panics();
        let message =
            guarded(|| -> i32 { panic!("planted {}", 7) }).map_or_else(|message| message, |_| String::new());
        assert!(
            message.starts_with("planted 7 (") && message.contains("guard.rs:"),
            "{message}"
        );
        assert_eq!(guarded(|| 3), Ok(3));
    }

    #[test]
    fn a_guard_in_a_guard_leaves_the_outer_one_in_place() {
        quiet_guarded_panics();
        let outer = guarded(|| {
            let inner = guarded(|| panic!("inner")).map(|()| 0);
            assert!(inner.is_err());
            panic!("outer")
        })
        .map(|()| 0);
        assert!(outer.is_err_and(|message| message.starts_with("outer")));
    }

    #[test]
    fn what_a_panic_says_is_an_outcome() {
        assert_eq!(
            crate::json::fault("a \"quote\""),
            r#"{"kind":"engine_fault","message":"a \"quote\""}"#
        );
    }
}
