//! Pool of column memory for the columns of later parts.
//!
//! The system maps each new page at its first access, which takes as long as computing a column of numbers, and
//! threads that access new pages block each other. Long columns therefore leave in buffers that return to this pool
//! when the last reader drops them. The pool has a maximum size and frees the oldest buffers first.

use std::collections::VecDeque;
use std::sync::Mutex;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{PrimitiveArray, builder::PrimitiveBuilder};
use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use bytes::Bytes;

/// Maximum size of the pool of a process, in bytes. It holds the columns of about a million rows.
const MAX_BYTES: usize = 64 << 20;
/// Minimum size of a pooled buffer, in bytes.
const MIN_BUFFER_BYTES: usize = 16 << 10;

/// Buffers in the order of their return.
struct Pool {
    buffers: VecDeque<Buffer>,
    bytes: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    buffers: VecDeque::new(),
    bytes: 0,
});

/// Returns an empty vector for `count` values. Uses pooled memory if there is a buffer of this size.
pub(crate) fn take_vec<T: ArrowNativeType>(count: usize) -> Vec<T> {
    let size = count.saturating_mul(size_of::<T>());
    if size < MIN_BUFFER_BYTES {
        return Vec::with_capacity(count);
    }
    reuse(size).unwrap_or_else(|| Vec::with_capacity(count))
}

fn reuse<T: ArrowNativeType>(size: usize) -> Option<Vec<T>> {
    // Does not wait: in a forked process the lock may be held forever.
    let mut pool = POOL.try_lock().ok()?;
    let place = pool
        .buffers
        .iter()
        .rposition(|buffer| buffer.capacity() == size)?;
    let buffer = pool.buffers.remove(place)?;
    pool.bytes -= size;
    drop(pool);
    // A buffer of values of another width cannot become this vector and is freed.
    let mut values = buffer.into_vec::<T>().ok()?;
    values.clear();
    Some(values)
}

/// Wraps a buffer so that it returns to the pool when its last reader drops it.
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

/// Returns a builder of a number column in pooled memory.
pub(crate) fn number_builder<T: ArrowPrimitiveType>(count: usize) -> PrimitiveBuilder<T> {
    PrimitiveBuilder::new_from_buffer(MutableBuffer::from(take_vec::<T::Native>(count)), None)
}

/// Finishes a column whose memory returns to the pool.
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

    /// A size that no other test uses.
    const COUNT: usize = 12_345;

    /// A single test, because the pool is global and a locked pool is skipped.
    #[test]
    fn released_memory_is_reused() {
        let mut column = number_builder::<Int64Type>(COUNT);
        column.append_slice(&vec![7; COUNT]);
        let made = finish_pooled(&mut column).unwrap();
        let address = made.values().as_ptr();
        let reader = made.clone();
        drop(made);
        let other = take_vec::<i64>(COUNT);
        assert_ne!(other.as_ptr(), address, "a reader still holds it");
        assert!(reader.values().iter().all(|value| *value == 7));
        drop(reader);
        let again = take_vec::<i64>(COUNT);
        assert_eq!((again.len(), again.as_ptr()), (0, address));
        let other = take_vec::<i64>(COUNT);
        assert_ne!(other.as_ptr(), address, "it has one owner");

        // Memory of values of another width is not reused.
        drop(recycle_on_drop(Buffer::from_vec(vec![1_i32; COUNT * 2])));
        let longs = take_vec::<i64>(COUNT);
        assert_eq!((longs.len(), longs.capacity()), (0, COUNT));

        // Short columns are not pooled.
        let short = recycle_on_drop(Buffer::from_vec(vec![1_u8; 100]));
        assert!(short.into_vec::<u8>().is_ok());
    }
}
