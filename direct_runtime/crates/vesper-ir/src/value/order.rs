//! The order of values.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Value;

impl Value {
    /// The order of docs/spec/types.md, by which values are sorted; nothing for values of two types and for those of a
    /// type without order.
    #[inline]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Decimal(left), Self::Decimal(right)) => Some(left.compare(right)),
            // One long string may be there many times.
            (Self::Text(left), Self::Text(right)) if Arc::ptr_eq(left, right) => Some(Ordering::Equal),
            _ => Some(self.as_key()?.cmp(&other.as_key()?)),
        }
    }

    /// An order of all values of a type, ordered ones or not, in which exactly the equal ones are equal: for finding
    /// those without comparing each with each. It shows nowhere in the language.
    ///
    /// Goes as deep as the type does, which is limited.
    pub fn arrange(&self, other: &Self) -> Ordering {
        match (self, other) {
            // So may one long array. What it holds equals itself, as long as there is no NaN.
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
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Less,
            (_, Self::Null) => Ordering::Greater,
            // Values of two types do not meet.
            _ => self.compare(other).unwrap_or(Ordering::Equal),
        }
    }
}

/// The places of the values that equal no earlier one, in their order.
///
/// By sorting, because comparing each with each takes forever on a long array.
pub fn first_of_equals(values: &[Value]) -> Vec<usize> {
    let mut places: Vec<(usize, &Value)> = values.iter().enumerate().collect();
    // Stable, so that the first of equal ones stays the first.
    places.sort_by(|(_, left), (_, right)| left.arrange(right));
    places.dedup_by(|(_, later), (_, first)| later.arrange(first).is_eq());
    let mut places: Vec<usize> = places.into_iter().map(|(place, _)| place).collect();
    places.sort_unstable();
    places
}

fn arrange_all(left: &[Value], right: &[Value]) -> Ordering {
    // The length first: it is cheap, and most often it decides.
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
