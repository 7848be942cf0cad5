//! What every operation means, in Rust. One file a family; the methods are those of the generated traits.
//!
//! Written from docs/spec/values.md and the declarations, never from the Python kernels: the two are compared by the
//! verifier, and that is worth something only while neither copies the other.

use vesper_ir::limits::ITEMS;
use vesper_ir::{ErrorCode, Value};

mod array;
mod boolean;
mod business;
mod bytes;
mod date;
mod decimal;
mod duration;
mod enumeration;
mod float;
mod integer;
mod json;
mod map;
mod optional;
mod record;
mod regex;
mod set;
mod text;
mod timestamp;
mod value;

pub use array::range_length;

/// The kernels of the direct runtime. There is no state: operations are functions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Native;

/// Fails where there would be more items than a collection holds; asked before they are made.
fn within_items(length: usize) -> Result<(), ErrorCode> {
    if length > ITEMS {
        return Err(ErrorCode::TooLarge);
    }
    Ok(())
}

/// How many there are, as an integer. Nothing in memory has more parts than an `i64` holds.
fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// A record of two fields.
fn pair(first: Value, second: Value) -> Value {
    Value::Record([first, second].into())
}
