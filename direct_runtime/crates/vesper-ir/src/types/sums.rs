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

impl Type {
    /// How values of this type are added up; nothing where they cannot be.
    pub fn addition(&self) -> Option<Addition> {
        let (zero, add) = match self {
            Self::Integer => (Value::Integer(0), Op::IntegerAdd),
            Self::Decimal => (Value::Decimal(Decimal::from(0)), Op::DecimalAdd),
            Self::Float => (Value::Float(0.0), Op::FloatAdd),
            Self::Duration => (Value::Duration(0), Op::DurationAdd),
            _ => return None,
        };
        Some(Addition { zero, add })
    }

    /// The operation that gives the average of an array of this type, and the type of that; nothing where there is none.
    pub fn average(&self) -> Option<(Op, Self)> {
        match self {
            // SEMANTICS: the average of integers is a decimal.
            Self::Integer => Some((Op::IntegerAvg, Self::Decimal)),
            Self::Decimal => Some((Op::DecimalAvg, Self::Decimal)),
            Self::Float => Some((Op::FloatAvg, Self::Float)),
            _ => None,
        }
    }
}
