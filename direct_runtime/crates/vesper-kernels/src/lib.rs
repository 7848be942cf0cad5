//! What every operation means, in Rust. One file a family; the methods are those of the generated traits.
//!
//! Written from docs/spec/values.md and the declarations, never from the Python kernels: the two are compared by the
//! verifier, and that is worth something only while neither copies the other.

mod array;
mod boolean;
mod decimal;
mod enumeration;
mod integer;
mod map;
mod optional;
mod set;
mod text;

/// The kernels of the direct runtime. There is no state: operations are functions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Native;

/// How many there are, as an integer. Nothing in memory has more parts than an `i64` holds.
fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
