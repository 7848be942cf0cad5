//! Memory of columns that nobody reads any more, kept for the columns of the next parts.
//!
//! A system hands out memory page by page, each at the first touch, which for a column of numbers takes as long as all that
//! is computed for it; threads that touch new pages wait for each other besides. So long columns go away in buffers that
//! come back here when the last reader drops them. What is kept has a bound, and the oldest is given back first.

use std::collections::VecDeque;
use std::sync::Mutex;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{PrimitiveArray, builder::PrimitiveBuilder};
use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use bytes::Bytes;

/// How many bytes a process keeps at most: the columns of about a million rows.
const MOST: usize = 64 << 20;
/// Smaller buffers are not worth it.
const LEAST: usize = 16 << 10;

/// In the order in which they came back.
struct Kept {
    buffers: VecDeque<Buffer>,
    bytes: usize,
}

static KEPT: Mutex<Kept> = Mutex::new(Kept {
    buffers: VecDeque::new(),
    bytes: 0,
});

/// An empty vector with room for so many values, in memory that was used before where there is some of this size.
pub(crate) fn room<T: ArrowNativeType>(count: usize) -> Vec<T> {
    let size = count.saturating_mul(size_of::<T>());
    if size < LEAST {
        return Vec::with_capacity(count);
    }
    taken(size).unwrap_or_else(|| Vec::with_capacity(count))
}

fn taken<T: ArrowNativeType>(size: usize) -> Option<Vec<T>> {
    // Nobody waits here, and a process that was forked while somebody held this finds it locked for ever.
    let mut kept = KEPT.try_lock().ok()?;
    let place = kept
        .buffers
        .iter()
        .rposition(|buffer| buffer.capacity() == size)?;
    let buffer = kept.buffers.remove(place)?;
    kept.bytes -= size;
    drop(kept);
    // A buffer of values of another width is no vector of these, and is given back.
    let mut values = buffer.into_vec::<T>().ok()?;
    values.clear();
    Some(values)
}

/// A buffer that is kept when its last reader drops it.
pub(crate) fn lent(buffer: Buffer) -> Buffer {
    if buffer.capacity() < LEAST || buffer.is_empty() {
        return buffer;
    }
    Buffer::from(Bytes::from_owner(Lent(Some(buffer))))
}

struct Lent(Option<Buffer>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(buffer), Ok(mut kept)) = (self.0.take(), KEPT.try_lock()) {
            kept.bytes += buffer.capacity();
            kept.buffers.push_back(buffer);
            while kept.bytes > MOST
                && let Some(oldest) = kept.buffers.pop_front()
            {
                kept.bytes -= oldest.capacity();
            }
        }
    }
}

/// A column of numbers with room for so many.
pub(crate) fn numbers<T: ArrowPrimitiveType>(count: usize) -> PrimitiveBuilder<T> {
    PrimitiveBuilder::new_from_buffer(MutableBuffer::from(room::<T::Native>(count)), None)
}

/// The column, in memory that comes back.
pub(crate) fn finished<T: ArrowPrimitiveType>(
    column: &mut PrimitiveBuilder<T>,
) -> Result<PrimitiveArray<T>, ArrowError> {
    let (data_type, values, nulls) = column.finish().into_parts();
    let values = ScalarBuffer::from(lent(values.into_inner()));
    Ok(PrimitiveArray::try_new(values, nulls)?.with_data_type(data_type))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use arrow_array::types::Int64Type;

    use super::*;

    /// A size that nothing else asks for.
    const COUNT: usize = 12_345;

    /// One test, because what is kept is the process's, and who finds it locked goes on without it.
    #[test]
    fn what_nobody_reads_is_used_again() {
        let mut column = numbers::<Int64Type>(COUNT);
        column.append_slice(&vec![7; COUNT]);
        let made = finished(&mut column).unwrap();
        let address = made.values().as_ptr();
        let reader = made.clone();
        drop(made);
        let other = room::<i64>(COUNT);
        assert_ne!(other.as_ptr(), address, "somebody reads it still");
        assert!(reader.values().iter().all(|value| *value == 7));
        drop(reader);
        let again = room::<i64>(COUNT);
        assert_eq!((again.len(), again.as_ptr()), (0, address));
        let other = room::<i64>(COUNT);
        assert_ne!(other.as_ptr(), address, "it has one owner");

        // Memory of values of another width is not taken.
        drop(lent(Buffer::from_vec(vec![1_i32; COUNT * 2])));
        let longs = room::<i64>(COUNT);
        assert_eq!((longs.len(), longs.capacity()), (0, COUNT));

        // Short columns are left alone.
        let short = lent(Buffer::from_vec(vec![1_u8; 100]));
        assert!(short.into_vec::<u8>().is_ok());
    }
}
