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
const MAX_BYTES: usize = 64 << 20;
/// Smaller buffers are not worth it.
const MIN_BUFFER_BYTES: usize = 16 << 10;

/// In the order in which they came back.
struct Pool {
    buffers: VecDeque<Buffer>,
    bytes: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    buffers: VecDeque::new(),
    bytes: 0,
});

/// An empty vector with room for so many values, in memory that was used before where there is some of this size.
pub(crate) fn take_vec<T: ArrowNativeType>(count: usize) -> Vec<T> {
    let size = count.saturating_mul(size_of::<T>());
    if size < MIN_BUFFER_BYTES {
        return Vec::with_capacity(count);
    }
    reuse(size).unwrap_or_else(|| Vec::with_capacity(count))
}

fn reuse<T: ArrowNativeType>(size: usize) -> Option<Vec<T>> {
    // Nobody waits here, and a process that was forked while somebody held this finds it locked for ever.
    let mut pool = POOL.try_lock().ok()?;
    let place = pool
        .buffers
        .iter()
        .rposition(|buffer| buffer.capacity() == size)?;
    let buffer = pool.buffers.remove(place)?;
    pool.bytes -= size;
    drop(pool);
    // A buffer of values of another width is no vector of these, and is given back.
    let mut values = buffer.into_vec::<T>().ok()?;
    values.clear();
    Some(values)
}

/// A buffer that is kept when its last reader drops it.
pub(crate) fn recycle_on_drop(buffer: Buffer) -> Buffer {
    if buffer.capacity() < MIN_BUFFER_BYTES || buffer.is_empty() {
        return buffer;
    }
    Buffer::from(Bytes::from_owner(PooledBuffer(Some(buffer))))
}

struct PooledBuffer(Option<Buffer>);

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        if let (Some(buffer), Ok(mut pool)) = (self.0.take(), POOL.try_lock()) {
            pool.bytes += buffer.capacity();
            pool.buffers.push_back(buffer);
            while pool.bytes > MAX_BYTES
                && let Some(oldest) = pool.buffers.pop_front()
            {
                pool.bytes -= oldest.capacity();
            }
        }
    }
}

/// A column of numbers with room for so many.
pub(crate) fn number_builder<T: ArrowPrimitiveType>(count: usize) -> PrimitiveBuilder<T> {
    PrimitiveBuilder::new_from_buffer(MutableBuffer::from(take_vec::<T::Native>(count)), None)
}

/// The column, in memory that comes back.
pub(crate) fn finish_pooled<T: ArrowPrimitiveType>(
    column: &mut PrimitiveBuilder<T>,
) -> Result<PrimitiveArray<T>, ArrowError> {
    let (data_type, values, nulls) = column.finish().into_parts();
    let values = ScalarBuffer::from(recycle_on_drop(values.into_inner()));
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
        let mut column = number_builder::<Int64Type>(COUNT);
        column.append_slice(&vec![7; COUNT]);
        let made = finish_pooled(&mut column).unwrap();
        let address = made.values().as_ptr();
        let reader = made.clone();
        drop(made);
        let other = take_vec::<i64>(COUNT);
        assert_ne!(other.as_ptr(), address, "somebody reads it still");
        assert!(reader.values().iter().all(|value| *value == 7));
        drop(reader);
        let again = take_vec::<i64>(COUNT);
        assert_eq!((again.len(), again.as_ptr()), (0, address));
        let other = take_vec::<i64>(COUNT);
        assert_ne!(other.as_ptr(), address, "it has one owner");

        // Memory of values of another width is not taken.
        drop(recycle_on_drop(Buffer::from_vec(vec![1_i32; COUNT * 2])));
        let longs = take_vec::<i64>(COUNT);
        assert_eq!((longs.len(), longs.capacity()), (0, COUNT));

        // Short columns are left alone.
        let short = recycle_on_drop(Buffer::from_vec(vec![1_u8; 100]));
        assert!(short.into_vec::<u8>().is_ok());
    }
}
