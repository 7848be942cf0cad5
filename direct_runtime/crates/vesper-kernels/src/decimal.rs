//! Kernels of the `decimal` family. `vesper_ir::decimal` has the arithmetic; here a result over a limit becomes a
//! failure.
//!
//! SEMANTICS: Python's `decimal` rounds to the context's precision and has −0; Vesper does neither.

use std::sync::Arc;

use vesper_ir::decimal::{
    AllocateError, DivideError, FunctionError, OverLimit, ParseDecimalError, StatisticsError, allocate,
    deviation, median, percentile, variance,
};
use vesper_ir::{Decimal, DecimalKernels, ErrorCode, RoundingMode, Value};

use crate::{Native, count};

fn or_overflow(result: Result<Decimal, OverLimit>) -> Result<Decimal, ErrorCode> {
    result.map_err(|OverLimit| ErrorCode::DecimalOverflow)
}

fn quotient(result: Result<Decimal, DivideError>) -> Result<Decimal, ErrorCode> {
    result.map_err(|error| match error {
        DivideError::ByZero => ErrorCode::DivisionByZero,
        DivideError::OverLimit => ErrorCode::DecimalOverflow,
    })
}

fn function(result: Result<Decimal, FunctionError>) -> Result<Decimal, ErrorCode> {
    result.map_err(|error| match error {
        FunctionError::Domain => ErrorCode::InvalidArgument,
        FunctionError::ByZero => ErrorCode::DivisionByZero,
        FunctionError::OverLimit => ErrorCode::DecimalOverflow,
    })
}

pub(crate) fn statistic(result: Result<Decimal, StatisticsError>) -> Result<Decimal, ErrorCode> {
    result.map_err(|error| match error {
        StatisticsError::Empty => ErrorCode::EmptyCollection,
        StatisticsError::Argument => ErrorCode::InvalidArgument,
        StatisticsError::OverLimit => ErrorCode::DecimalOverflow,
    })
}

fn whole(value: &Decimal, mode: RoundingMode) -> Result<i64, ErrorCode> {
    value.to_whole(mode).ok_or(ErrorCode::IntegerOverflow)
}

/// Iterates over an array of decimals. INVARIANT: the verifier checked its type.
fn decimals(values: &[Value]) -> impl Iterator<Item = &Decimal> {
    values.iter().filter_map(|value| match value {
        Value::Decimal(value) => Some(value),
        _ => None,
    })
}

impl DecimalKernels for Native {
    #[inline]
    fn decimal_from_integer(&self, value: i64) -> Decimal {
        Decimal::from(value)
    }

    #[inline]
    fn decimal_add(&self, left: &Decimal, right: &Decimal) -> Result<Decimal, ErrorCode> {
        or_overflow(left.add(right))
    }

    #[inline]
    fn decimal_subtract(&self, left: &Decimal, right: &Decimal) -> Result<Decimal, ErrorCode> {
        or_overflow(left.subtract(right))
    }

    #[inline]
    fn decimal_multiply(&self, left: &Decimal, right: &Decimal) -> Result<Decimal, ErrorCode> {
        or_overflow(left.multiply(right))
    }

    #[inline]
    fn decimal_negate(&self, value: &Decimal) -> Decimal {
        value.negate()
    }

    #[inline]
    fn decimal_equal(&self, left: &Decimal, right: &Decimal) -> bool {
        left.compare(right).is_eq()
    }

    #[inline]
    fn decimal_not_equal(&self, left: &Decimal, right: &Decimal) -> bool {
        left.compare(right).is_ne()
    }

    #[inline]
    fn decimal_less(&self, left: &Decimal, right: &Decimal) -> bool {
        left.compare(right).is_lt()
    }

    #[inline]
    fn decimal_less_or_equal(&self, left: &Decimal, right: &Decimal) -> bool {
        left.compare(right).is_le()
    }

    #[inline]
    fn decimal_greater(&self, left: &Decimal, right: &Decimal) -> bool {
        left.compare(right).is_gt()
    }

    #[inline]
    fn decimal_greater_or_equal(&self, left: &Decimal, right: &Decimal) -> bool {
        left.compare(right).is_ge()
    }

    #[inline]
    fn decimal_divide(&self, left: &Decimal, right: &Decimal) -> Result<Decimal, ErrorCode> {
        quotient(left.divide(right))
    }

    fn decimal_div(
        &self,
        left: &Decimal,
        right: &Decimal,
        scale: i64,
        mode: RoundingMode,
    ) -> Result<Decimal, ErrorCode> {
        let scale = u16::try_from(scale).ok().filter(|scale| *scale <= 1_000);
        let scale = scale.ok_or(ErrorCode::InvalidArgument)?;
        quotient(left.divide_to(right, scale, mode))
    }

    fn decimal_round(&self, value: &Decimal, scale: i64, mode: RoundingMode) -> Result<Decimal, ErrorCode> {
        let scale = i16::try_from(scale)
            .ok()
            .filter(|scale| (-1_000..=1_000).contains(scale));
        or_overflow(value.round(scale.ok_or(ErrorCode::InvalidArgument)?, mode))
    }

    #[inline]
    fn decimal_floor(&self, value: &Decimal) -> Result<i64, ErrorCode> {
        whole(value, RoundingMode::Floor)
    }

    #[inline]
    fn decimal_ceil(&self, value: &Decimal) -> Result<i64, ErrorCode> {
        whole(value, RoundingMode::Ceiling)
    }

    #[inline]
    fn decimal_trunc(&self, value: &Decimal) -> Result<i64, ErrorCode> {
        whole(value, RoundingMode::Down)
    }

    #[inline]
    fn decimal_to_integer(&self, value: &Decimal) -> Result<i64, ErrorCode> {
        if !value.is_whole() {
            return Err(ErrorCode::NotWhole);
        }
        whole(value, RoundingMode::Down)
    }

    #[inline]
    fn decimal_to_float(&self, value: &Decimal) -> f64 {
        value.to_float()
    }

    #[inline]
    fn decimal_abs(&self, value: &Decimal) -> Decimal {
        value.abs()
    }

    #[inline]
    fn decimal_sign(&self, value: &Decimal) -> i64 {
        i64::from(value.signum())
    }

    fn decimal_exact_pow(&self, base: &Decimal, exponent: i64) -> Result<Decimal, ErrorCode> {
        let exponent = u64::try_from(exponent).map_err(|_| ErrorCode::InvalidArgument)?;
        base.exact_pow(exponent).map_err(|_| ErrorCode::DecimalOverflow)
    }

    fn decimal_pow(&self, base: &Decimal, exponent: i64) -> Result<Decimal, ErrorCode> {
        quotient(base.pow(exponent))
    }

    #[inline]
    fn decimal_scale(&self, value: &Decimal) -> i64 {
        i64::from(value.scale())
    }

    #[inline]
    fn decimal_normalize(&self, value: &Decimal) -> Decimal {
        value.normalize()
    }

    #[inline]
    fn decimal_text(&self, value: &Decimal) -> Arc<str> {
        Arc::from(value.to_string())
    }

    fn decimal_parse(&self, value: &str) -> Result<Decimal, ErrorCode> {
        Decimal::parse(value).map_err(|error| match error {
            ParseDecimalError::Malformed => ErrorCode::BadFormat,
            ParseDecimalError::OutOfRange => ErrorCode::DecimalOverflow,
        })
    }

    fn decimal_allocate(&self, total: &Decimal, weights: &[Value]) -> Result<Arc<[Value]>, ErrorCode> {
        let weights: Vec<&Decimal> = decimals(weights).collect();
        let parts = allocate(total, &weights);
        let parts = parts.map_err(|AllocateError::Weights| ErrorCode::InvalidArgument)?;
        Ok(parts.into_iter().map(Value::Decimal).collect())
    }

    fn decimal_sum(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        decimals(values).try_fold(Decimal::from(0), |sum, value| or_overflow(sum.add(value)))
    }

    fn decimal_avg(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        if values.is_empty() {
            return Err(ErrorCode::EmptyCollection);
        }
        let sum = self.decimal_sum(values)?;
        quotient(sum.divide(&Decimal::from(count(values.len()))))
    }

    fn decimal_sqrt(&self, value: &Decimal) -> Result<Decimal, ErrorCode> {
        function(value.sqrt())
    }

    fn decimal_exp(&self, value: &Decimal) -> Result<Decimal, ErrorCode> {
        function(value.exp())
    }

    fn decimal_ln(&self, value: &Decimal) -> Result<Decimal, ErrorCode> {
        function(value.ln())
    }

    fn decimal_log10(&self, value: &Decimal) -> Result<Decimal, ErrorCode> {
        function(value.log10())
    }

    fn decimal_power(&self, base: &Decimal, exponent: &Decimal) -> Result<Decimal, ErrorCode> {
        function(base.power(exponent))
    }

    fn decimal_median(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        statistic(median(decimals(values).collect::<Vec<_>>()))
    }

    fn decimal_percentile(&self, values: &[Value], percent: &Decimal) -> Result<Decimal, ErrorCode> {
        statistic(percentile(decimals(values).collect(), percent))
    }

    fn decimal_variance(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        statistic(variance(&decimals(values).collect::<Vec<_>>(), true))
    }

    fn decimal_population_variance(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        statistic(variance(&decimals(values).collect::<Vec<_>>(), false))
    }

    fn decimal_stddev(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        statistic(deviation(&decimals(values).collect::<Vec<_>>(), true))
    }

    fn decimal_population_stddev(&self, values: &[Value]) -> Result<Decimal, ErrorCode> {
        statistic(deviation(&decimals(values).collect::<Vec<_>>(), false))
    }
}
