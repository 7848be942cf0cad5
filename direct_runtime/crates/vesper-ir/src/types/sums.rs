//! Addition and average by type: the single definition for `sum` and `avg`.

use super::Type;
use crate::decimal::Decimal;
use crate::generated::ops::Op;
use crate::value::Value;

/// Zero and addition operation of a type. Sums are computed from the left.
#[derive(Clone, Debug)]
pub struct Addition {
    /// Initial value of a sum.
    pub zero: Value,
    pub add: Op,
}

impl Type {
    /// Returns the addition of this type, or `None` where values cannot be added.
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

    /// Returns operation and result type of the average over an array of this type. Returns `None` where there is no
    /// average.
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
