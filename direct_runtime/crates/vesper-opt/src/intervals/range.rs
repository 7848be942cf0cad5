//! Ranges of numbers. Integers are bounded by their type; a decimal may be unbounded.

use vesper_ir::{Decimal, Value};

/// Range of a value. INVARIANT: the lower bound is at most the upper bound, except in unreachable code.
#[derive(Clone, Debug)]
pub(crate) enum Range {
    Integer(i128, i128),
    Decimal(Option<Decimal>, Option<Decimal>),
    /// Any value, also one that is not a number.
    Any,
}

/// Maximum scale of a bound; a longer bound is dropped.
const MAX_BOUND_SCALE: u16 = 60;

impl Range {
    pub(crate) const INTEGER: Self = Self::Integer(i64::MIN as i128, i64::MAX as i128);
    pub(crate) const DECIMAL: Self = Self::Decimal(None, None);

    /// Returns the range of one value.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Integer(value) => Self::Integer(i128::from(*value), i128::from(*value)),
            Value::Decimal(value) => Self::Decimal(bound(value.clone()), bound(value.clone())),
            _ => Self::Any,
        }
    }

    /// Returns true where every integer of the range fits 64 bits.
    pub(crate) fn fits(&self) -> bool {
        match self {
            Self::Integer(low, high) => *low >= i128::from(i64::MIN) && *high <= i128::from(i64::MAX),
            _ => false,
        }
    }

    /// Returns the smallest range that contains both.
    pub(crate) fn hull(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Integer(low, high), Self::Integer(other_low, other_high)) => {
                Self::Integer(*low.min(other_low), *high.max(other_high))
            }
            (Self::Decimal(low, high), Self::Decimal(other_low, other_high)) => Self::Decimal(
                lower(low.as_ref(), other_low.as_ref()),
                higher(high.as_ref(), other_high.as_ref()),
            ),
            _ => Self::Any,
        }
    }

    /// Returns true where the other range contains this one.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Any) => true,
            (Self::Integer(low, high), Self::Integer(other_low, other_high)) => {
                low >= other_low && high <= other_high
            }
            (Self::Decimal(low, high), Self::Decimal(other_low, other_high)) => {
                let above = match (low, other_low) {
                    (_, None) => true,
                    (None, Some(_)) => false,
                    (Some(low), Some(other)) => low.compare(other).is_ge(),
                };
                let below = match (high, other_high) {
                    (_, None) => true,
                    (None, Some(_)) => false,
                    (Some(high), Some(other)) => high.compare(other).is_le(),
                };
                above && below
            }
            _ => false,
        }
    }

    /// Returns the range of the sum, without overflow for integers.
    pub(crate) fn add(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Integer(low, high), Self::Integer(other_low, other_high)) => {
                Self::Integer(low.saturating_add(*other_low), high.saturating_add(*other_high))
            }
            (Self::Decimal(low, high), Self::Decimal(other_low, other_high)) => Self::Decimal(
                sum(low.as_ref(), other_low.as_ref()),
                sum(high.as_ref(), other_high.as_ref()),
            ),
            _ => Self::Any,
        }
    }

    pub(crate) fn negate(&self) -> Self {
        match self {
            Self::Integer(low, high) => Self::Integer(-high, -low),
            Self::Decimal(low, high) => Self::Decimal(
                high.as_ref().map(Decimal::negate),
                low.as_ref().map(Decimal::negate),
            ),
            Self::Any => Self::Any,
        }
    }

    pub(crate) fn subtract(&self, other: &Self) -> Self {
        self.add(&other.negate())
    }

    pub(crate) fn multiply(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Integer(low, high), Self::Integer(other_low, other_high)) => {
                let products = [
                    low.saturating_mul(*other_low),
                    low.saturating_mul(*other_high),
                    high.saturating_mul(*other_low),
                    high.saturating_mul(*other_high),
                ];
                let [first, .., last] = products;
                let lowest = products.iter().copied().fold(first, i128::min);
                let highest = products.iter().copied().fold(last, i128::max);
                Self::Integer(lowest, highest)
            }
            (Self::Decimal(low, high), Self::Decimal(other_low, other_high)) => {
                if let (Some(low), Some(high), Some(other_low), Some(other_high)) =
                    (low, high, other_low, other_high)
                {
                    let products = [
                        (low, other_low),
                        (low, other_high),
                        (high, other_low),
                        (high, other_high),
                    ];
                    let products = products.map(|(left, right)| left.multiply(right).ok().and_then(bound));
                    let [Some(first), Some(second), Some(third), Some(fourth)] = products else {
                        return Self::DECIMAL;
                    };
                    let rest = [second, third, fourth];
                    let least = rest
                        .iter()
                        .fold(first.clone(), |least, next| smaller(&least, next));
                    let most = rest.iter().fold(first, |most, next| larger(&most, next));
                    return Self::Decimal(Some(least), Some(most));
                }
                // For non-negative factors the product of the lower bounds is a lower bound.
                match (low, other_low) {
                    (Some(low), Some(other)) if low.signum() >= 0 && other.signum() >= 0 => {
                        let high = match (high, other_high) {
                            (Some(high), Some(other)) => high.multiply(other).ok().and_then(bound),
                            _ => None,
                        };
                        Self::Decimal(low.multiply(other).ok().and_then(bound), high)
                    }
                    _ => Self::DECIMAL,
                }
            }
            _ => Self::Any,
        }
    }

    /// Narrows the range to values that can be at most the other (`is_less`: less).
    pub(crate) fn at_most(&self, other: &Self, is_less: bool) -> Self {
        match (self, other) {
            (Self::Integer(low, high), Self::Integer(_, other_high)) => {
                let most = other_high - i128::from(is_less);
                Self::Integer(*low, *high.min(&most))
            }
            (Self::Decimal(low, high), Self::Decimal(_, Some(other_high))) => {
                let high = high
                    .as_ref()
                    .map_or_else(|| other_high.clone(), |own| smaller(own, other_high));
                Self::Decimal(low.clone(), Some(high))
            }
            _ => self.clone(),
        }
    }

    /// Narrows the range to values that can be at least the other (`is_more`: more).
    pub(crate) fn at_least(&self, other: &Self, is_more: bool) -> Self {
        self.negate().at_most(&other.negate(), is_more).negate()
    }

    /// Returns true where every value is less than every other one (`or_equal`: at most).
    pub(crate) fn is_below(&self, other: &Self, or_equal: bool) -> bool {
        match (self, other) {
            (Self::Integer(_, high), Self::Integer(low, _)) => high < low || (or_equal && high == low),
            (Self::Decimal(_, Some(high)), Self::Decimal(Some(low), _)) => {
                let order = high.compare(low);
                order.is_lt() || (or_equal && order.is_eq())
            }
            _ => false,
        }
    }
}

/// Returns a bound, unless it is too long.
fn bound(value: Decimal) -> Option<Decimal> {
    let is_short = value
        .as_small()
        .is_some_and(|(_, scale)| scale <= MAX_BOUND_SCALE);
    is_short.then_some(value)
}

fn smaller(left: &Decimal, right: &Decimal) -> Decimal {
    if left.compare(right).is_le() { left } else { right }.clone()
}

fn larger(left: &Decimal, right: &Decimal) -> Decimal {
    if left.compare(right).is_ge() { left } else { right }.clone()
}

fn lower(left: Option<&Decimal>, right: Option<&Decimal>) -> Option<Decimal> {
    left.zip(right).map(|(left, right)| smaller(left, right))
}

fn higher(left: Option<&Decimal>, right: Option<&Decimal>) -> Option<Decimal> {
    left.zip(right).map(|(left, right)| larger(left, right))
}

fn sum(left: Option<&Decimal>, right: Option<&Decimal>) -> Option<Decimal> {
    left.zip(right)
        .and_then(|(left, right)| left.add(right).ok())
        .and_then(bound)
}
