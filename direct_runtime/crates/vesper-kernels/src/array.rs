//! Kernels of the `array` family.

use std::cmp::Ordering;
use std::sync::Arc;

use vesper_ir::limits::ITEMS;
use vesper_ir::value::{are_equal, first_of_equals};
use vesper_ir::{ArrayKernels, ErrorCode, Set, SortOrder, Value};

use crate::{Native, count, pair, within_items};

/// Clamps a position or a count to the length. A negative one fails.
fn clamp_position(position: i64, length: usize) -> Result<usize, ErrorCode> {
    if position < 0 {
        return Err(ErrorCode::InvalidArgument);
    }
    Ok(usize::try_from(position).map_or(length, |position| position.min(length)))
}

fn items(values: &[Value], start: usize, end: usize) -> Arc<[Value]> {
    Arc::from(values.get(start..end).unwrap_or(&[]))
}

/// Returns the first of the smallest or largest items, by `side`.
fn extreme(values: &[Value], side: Ordering) -> Result<Value, ErrorCode> {
    let mut items = values.iter();
    let first = items.next().ok_or(ErrorCode::EmptyCollection)?;
    // SEMANTICS: Rust's `max` returns the last of equal items; here an equal item never replaces an earlier one.
    let found = items.fold(first, |best, item| {
        if item.compare(best) == Some(side) {
            item
        } else {
            best
        }
    });
    Ok(found.clone())
}

/// Returns the number of integers in a range. A loop over a range uses it instead of building the array.
pub fn range_length(start: i64, end: i64, step: i64) -> Result<usize, ErrorCode> {
    if step == 0 {
        return Err(ErrorCode::InvalidArgument);
    }
    // 128-bit arithmetic cannot overflow here.
    let (start, step) = (i128::from(start), i128::from(step));
    let distance = (i128::from(end) - start) * step.signum();
    let length = if distance <= 0 {
        0
    } else {
        (distance - 1) / step.abs() + 1
    };
    usize::try_from(length)
        .ok()
        .filter(|length| *length <= ITEMS)
        .ok_or(ErrorCode::TooLarge)
}

impl ArrayKernels for Native {
    fn array_equal(&self, left: &[Value], right: &[Value]) -> bool {
        are_equal(left, right)
    }

    fn array_not_equal(&self, left: &[Value], right: &[Value]) -> bool {
        !are_equal(left, right)
    }

    #[inline]
    fn array_length(&self, values: &[Value]) -> i64 {
        count(values.len())
    }

    #[inline]
    fn array_count(&self, values: &[Value]) -> i64 {
        count(values.len())
    }

    #[inline]
    fn array_at(&self, values: &[Value], index: i64) -> Result<Value, ErrorCode> {
        // SEMANTICS: Python counts negative indexes from the end; here they are out of range.
        let item = usize::try_from(index).ok().and_then(|index| values.get(index));
        item.cloned().ok_or(ErrorCode::IndexOutOfRange)
    }

    #[inline]
    fn array_is_item(&self, value: &Value, values: &[Value]) -> bool {
        // SEMANTICS: equality of the type, so that [1.00] contains 1.0.
        values.iter().any(|item| item.is_equal(value))
    }

    #[inline]
    fn array_contains(&self, values: &[Value], value: &Value) -> bool {
        self.array_is_item(value, values)
    }

    #[inline]
    fn array_get(&self, values: &[Value], index: i64) -> Option<Value> {
        usize::try_from(index)
            .ok()
            .and_then(|index| values.get(index))
            .cloned()
    }

    #[inline]
    fn array_first(&self, values: &[Value]) -> Option<Value> {
        values.first().cloned()
    }

    #[inline]
    fn array_last(&self, values: &[Value]) -> Option<Value> {
        values.last().cloned()
    }

    fn array_take(&self, values: &[Value], count: i64) -> Result<Arc<[Value]>, ErrorCode> {
        Ok(items(values, 0, clamp_position(count, values.len())?))
    }

    fn array_drop(&self, values: &[Value], count: i64) -> Result<Arc<[Value]>, ErrorCode> {
        Ok(items(values, clamp_position(count, values.len())?, values.len()))
    }

    fn array_slice(&self, values: &[Value], start: i64, end: i64) -> Result<Arc<[Value]>, ErrorCode> {
        let (start, end) = (
            clamp_position(start, values.len())?,
            clamp_position(end, values.len())?,
        );
        Ok(items(values, start, end))
    }

    fn array_append(&self, values: &[Value], value: &Value) -> Result<Arc<[Value]>, ErrorCode> {
        within_items(values.len().saturating_add(1))?;
        Ok(values.iter().chain([value]).cloned().collect())
    }

    fn array_concat(&self, left: &[Value], right: &[Value]) -> Result<Arc<[Value]>, ErrorCode> {
        within_items(left.len().saturating_add(right.len()))?;
        Ok(left.iter().chain(right).cloned().collect())
    }

    fn array_replace_at(
        &self,
        values: &[Value],
        index: i64,
        value: &Value,
    ) -> Result<Arc<[Value]>, ErrorCode> {
        let place = usize::try_from(index).ok().filter(|place| *place < values.len());
        let place = place.ok_or(ErrorCode::IndexOutOfRange)?;
        let items = values.iter().enumerate();
        Ok(items
            .map(|(other, item)| if other == place { value } else { item })
            .cloned()
            .collect())
    }

    fn array_flatten(&self, values: &[Value]) -> Result<Arc<[Value]>, ErrorCode> {
        let parts = || {
            values.iter().map(|value| match value {
                Value::Array(items) => items.as_ref(),
                _ => &[],
            })
        };
        let length = parts().fold(0, |sum: usize, items| sum.saturating_add(items.len()));
        within_items(length)?;
        let mut result = Vec::with_capacity(length);
        parts().for_each(|items| {
            result.extend_from_slice(items);
        });
        Ok(Arc::from(result))
    }

    fn array_sort(&self, values: &[Value], order: SortOrder) -> Arc<[Value]> {
        let mut result = values.to_vec();
        let compare = |left: &Value, right: &Value| left.compare(right).unwrap_or(Ordering::Equal);
        // SEMANTICS: stable in both directions. Reversing a sorted array would also reverse equal items.
        match order {
            SortOrder::Ascending => result.sort_by(compare),
            SortOrder::Descending => result.sort_by(|left, right| compare(right, left)),
        }
        Arc::from(result)
    }

    fn array_distinct(&self, values: &[Value]) -> Arc<[Value]> {
        let kept = first_of_equals(values).into_iter();
        kept.filter_map(|place| values.get(place).cloned()).collect()
    }

    fn array_zip(&self, left: &[Value], right: &[Value]) -> Result<Arc<[Value]>, ErrorCode> {
        // SEMANTICS: Rust's `zip` stops at the shorter one.
        if left.len() != right.len() {
            return Err(ErrorCode::InvalidArgument);
        }
        let pairs = left.iter().zip(right);
        Ok(pairs
            .map(|(first, second)| pair(first.clone(), second.clone()))
            .collect())
    }

    fn array_enumerate(&self, values: &[Value]) -> Arc<[Value]> {
        let places = (0..).map(Value::Integer);
        places
            .zip(values)
            .map(|(index, value)| pair(index, value.clone()))
            .collect()
    }

    fn array_min(&self, values: &[Value]) -> Result<Value, ErrorCode> {
        extreme(values, Ordering::Less)
    }

    fn array_max(&self, values: &[Value]) -> Result<Value, ErrorCode> {
        extreme(values, Ordering::Greater)
    }

    fn array_range(&self, start: i64, end: i64, step: i64) -> Result<Arc<[Value]>, ErrorCode> {
        let length = range_length(start, end, step)?;
        let mut next = start;
        let mut result = Vec::with_capacity(length);
        for _ in 0..length {
            result.push(Value::Integer(next));
            // The value after the last item may overflow and is not used.
            next = next.wrapping_add(step);
        }
        Ok(Arc::from(result))
    }

    fn array_reverse(&self, values: &[Value]) -> Arc<[Value]> {
        values.iter().rev().cloned().collect()
    }

    fn array_chunks(&self, values: &[Value], size: i64) -> Result<Arc<[Value]>, ErrorCode> {
        if size < 1 {
            return Err(ErrorCode::InvalidArgument);
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let chunks = values.chunks(size);
        Ok(chunks.map(|items| Value::Array(Arc::from(items))).collect())
    }

    fn array_index_of(&self, values: &[Value], value: &Value) -> Option<Value> {
        let place = values.iter().position(|item| item.is_equal(value));
        place.map(|place| Value::Integer(count(place)))
    }

    fn array_to_set(&self, values: &[Value]) -> Set {
        Set::of_values(values).unwrap_or_default()
    }
}
