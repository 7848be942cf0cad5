//! Kernels of the direct engine: the implementation of every operation, one file per family.
//!
//! The kernels implement the generated traits. They are written from docs/spec/values.md and the declarations, never
//! from the Python kernels: the verifier compares the two, which has value only while neither copies the other.

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
mod lookup;
mod map;
mod optional;
mod period;
mod record;
mod regex;
mod set;
mod table;
mod text;
mod time_of_day;
mod timestamp;
mod value;

pub use array::range_length;

/// Kernels of the direct engine. Operations are functions without state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Native;

/// Fails above the maximum number of items in a collection. Callers check before they allocate.
fn within_items(length: usize) -> Result<(), ErrorCode> {
    if length > ITEMS {
        return Err(ErrorCode::TooLarge);
    }
    Ok(())
}

/// Converts a length to an integer. No collection in memory is longer than `i64::MAX`.
fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Creates a record of two fields.
fn pair(first: Value, second: Value) -> Value {
    Value::Record([first, second].into())
}
