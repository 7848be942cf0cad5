//! Coins: a generator of its own for each thread, begun anew after a fork.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::intern;
use pyo3::prelude::*;

thread_local! {
    /// The fork in which it was begun, and where it is.
    static STATE: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
}

/// How many forks led to this process, and one more: no thread has begun in fork 0.
static FORK: AtomicU32 = AtomicU32::new(1);

/// A child must not draw what its parent draws.
pub(crate) fn after_fork() {
    FORK.fetch_add(1, Ordering::Relaxed);
}

/// The next number of this thread (`SplitMix64`: fair coins in two nanoseconds, and nobody sees them).
#[inline]
pub(crate) fn draw(py: Python<'_>) -> PyResult<u64> {
    let (fork, mut state) = STATE.get();
    let now = FORK.load(Ordering::Relaxed);
    if fork != now {
        state = seed(py)?;
    }
    state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set((now, state));
    let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Ok(mixed ^ (mixed >> 31))
}

#[cold]
fn seed(py: Python<'_>) -> PyResult<u64> {
    let bytes = py.import("os")?.call_method1(intern!(py, "urandom"), (8,))?;
    Ok(u64::from_ne_bytes(bytes.extract()?))
}

/// The number below which this share of all numbers is; one that is the whole takes every number but the last.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares are between 0 and 1, and a cast of more saturates"
)]
pub(crate) fn below(share: f64) -> u64 {
    (share * 18_446_744_073_709_551_616.0) as u64
}
