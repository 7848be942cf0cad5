//! Which values can be added up, and how: the one place that says so, for `sum` and `avg`.

use super::Type;
use crate::decimal::Decimal;
use crate::generated::ops::Op;
use crate::value::Value;

/// How values of a type are added up, from the left.
#[derive(Clone, Debug)]
pub struct Addition {
    /// What a sum starts with.
    pub zero: Value,
    pub add: Op,
}

/// How the average of values of a type is found: their sum, divided by their count.
#[derive(Clone, Debug)]
pub struct Average {
    /// What is done to a value before it is added, where it is not added as it is.
    pub widen: Option<Op>,
    pub addition: Addition,
    /// Makes of the count, an integer, something that the sum is divided by.
    pub from_count: Op,
    /// Its result is the average.
    pub divide: Op,
}

impl Type {
    /// How values of this type are added up; nothing where they cannot be.
    pub fn addition(&self) -> Option<Addition> {
        let (zero, add) = match self {
            Self::Integer => (Value::Integer(0), Op::IntegerAdd),
            Self::Decimal => (Value::Decimal(Decimal::from(0)), Op::DecimalAdd),
            _ => return None,
        };
        Some(Addition { zero, add })
    }

    /// How the average of values of this type is found; nothing where there is none.
    pub fn average(&self) -> Option<Average> {
        // SEMANTICS: integers are added as decimals, which do not overflow, and their average is a decimal.
        let (widen, added) = match self {
            Self::Integer => (Some(Op::DecimalFromInteger), Self::Decimal),
            Self::Decimal => (None, Self::Decimal),
            _ => return None,
        };
        Some(Average {
            widen,
            addition: added.addition()?,
            from_count: Op::DecimalFromInteger,
            divide: Op::DecimalDivide,
        })
    }
}
