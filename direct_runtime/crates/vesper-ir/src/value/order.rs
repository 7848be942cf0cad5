//! Order of values.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use super::Value;
use crate::float;

impl Value {
    /// Compares two values by the order of docs/spec/types.md. Returns `None` for values of different types or of a
    /// type without order.
    #[inline]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Decimal(left), Self::Decimal(right)) => Some(left.compare(right)),
            (Self::Float(left), Self::Float(right)) => Some(float::total_order(*left, *right)),
            (Self::Duration(left), Self::Duration(right))
            | (Self::TimeOfDay(left), Self::TimeOfDay(right)) => Some(left.cmp(right)),
            (Self::Period(left), Self::Period(right)) => Some(left.cmp(right)),
            // Equal strings often share one allocation.
            (Self::Text(left), Self::Text(right)) if Arc::ptr_eq(left, right) => Some(Ordering::Equal),
            (Self::Array(left), Self::Array(right)) | (Self::Record(left), Self::Record(right)) => {
                compare_all(left, right)
            }
            (Self::Null, Self::Null) => Some(Ordering::Equal),
            (Self::Null, _) => Some(Ordering::Less),
            (_, Self::Null) => Some(Ordering::Greater),
            _ => Some(self.as_key()?.cmp(&other.as_key()?)),
        }
    }

    /// Compares any two values of one type; exactly equal values compare as equal. Values with a NaN at the same place
    /// also compare as equal. The order serves to find equal values by sorting and is not visible in the language.
    ///
    /// The recursion is as deep as the type, which is limited.
    pub fn arrange(&self, other: &Self) -> Ordering {
        match (self, other) {
            // Equal arrays often share one allocation.
            (Self::Array(left), Self::Array(right)) | (Self::Record(left), Self::Record(right))
                if Arc::ptr_eq(left, right) =>
            {
                Ordering::Equal
            }
            (Self::Set(left), Self::Set(right)) if Arc::ptr_eq(left, right) => Ordering::Equal,
            (Self::Map(left), Self::Map(right)) if Arc::ptr_eq(left, right) => Ordering::Equal,
            (Self::Array(left), Self::Array(right)) | (Self::Record(left), Self::Record(right)) => {
                arrange_all(left, right)
            }
            (Self::Set(left), Self::Set(right)) => left.arrange(right),
            (Self::Map(left), Self::Map(right)) => {
                let keys = left.keys().arrange(right.keys());
                keys.then_with(|| arrange_all(left.values(), right.values()))
            }
            (Self::Float(left), Self::Float(right)) => float::equality_order(*left, *right),
            (Self::Json(left), Self::Json(right)) => left.arrange(right),
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Less,
            (_, Self::Null) => Ordering::Greater,
            // Unreachable for well-typed values: both have the same type.
            _ => self.compare(other).unwrap_or(Ordering::Equal),
        }
    }
}

/// Returns the indexes of the values that equal no earlier one, in order.
///
/// Sorting avoids the quadratic time of pairwise comparison.
pub fn first_of_equals(values: &[Value]) -> Vec<usize> {
    let mut places: Vec<(usize, &Value)> = values.iter().enumerate().collect();
    // The sort is stable: the first of equal values remains the first.
    places.sort_by(|(_, left), (_, right)| left.arrange(right));
    // SEMANTICS: a value with a NaN in it equals no value and is never removed.
    let mut nans = NanSearch::default();
    places.dedup_by(|(_, later), (_, first)| later.arrange(first).is_eq() && !nans.is_in(first));
    let mut places: Vec<usize> = places.into_iter().map(|(place, _)| place).collect();
    places.sort_unstable();
    places
}

/// Search for NaNs that visits each shared part once.
#[derive(Debug, Default)]
struct NanSearch(HashMap<usize, bool>);

impl NanSearch {
    /// Returns true when the value is or contains a NaN. The recursion is as deep as the type, which is limited.
    fn is_in(&mut self, value: &Value) -> bool {
        let (address, parts) = match value {
            Value::Float(value) => return value.is_nan(),
            Value::Array(parts) | Value::Record(parts) => (parts.as_ptr().addr(), parts.as_ref()),
            Value::Map(map) => (Arc::as_ptr(map).addr(), map.values()),
            _ => return false,
        };
        if let Some(known) = self.0.get(&address) {
            return *known;
        }
        let found = parts.iter().any(|part| self.is_in(part));
        self.0.insert(address, found);
        found
    }
}

/// Compares the parts of two values from the first to the last; a prefix comes first.
fn compare_all(left: &Arc<[Value]>, right: &Arc<[Value]>) -> Option<Ordering> {
    for (left, right) in left.iter().zip(right.iter()) {
        match left.compare(right)? {
            Ordering::Equal => {}
            order => return Some(order),
        }
    }
    Some(left.len().cmp(&right.len()))
}

fn arrange_all(left: &[Value], right: &[Value]) -> Ordering {
    // Comparing lengths is cheap and decides most cases.
    let lengths = left.len().cmp(&right.len());
    let mut pairs = left.iter().zip(right);
    lengths.then_with(|| {
        let differing = pairs.find_map(|(left, right)| match left.arrange(right) {
            Ordering::Equal => None,
            order => Some(order),
        });
        differing.unwrap_or(Ordering::Equal)
    })
}
