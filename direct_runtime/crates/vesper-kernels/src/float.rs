//! Kernels of the `float` family: IEEE 754 binary64. Each operation rounds to nearest even, as in Rust.

use std::sync::Arc;

use vesper_ir::{Decimal, ErrorCode, FloatKernels, Value, float};

use crate::Native;

/// 2^63, the smallest float above the integers; its negation is the smallest integer.
const INTEGER_BOUND: f64 = 9_223_372_036_854_775_808.0;

/// Converts a float without a fraction to an integer.
fn whole(value: f64) -> Result<i64, ErrorCode> {
    if !(-INTEGER_BOUND..INTEGER_BOUND).contains(&value) {
        return Err(ErrorCode::IntegerOverflow);
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole and within 64 bits")]
    Ok(value as i64)
}

fn finite(value: f64) -> Result<f64, ErrorCode> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(ErrorCode::NotFinite)
}

fn floats(values: &[Value]) -> impl Iterator<Item = f64> {
    values.iter().filter_map(|value| match value {
        Value::Float(value) => Some(*value),
        _ => None,
    })
}

impl FloatKernels for Native {
    #[inline]
    fn float_add(&self, left: f64, right: f64) -> f64 {
        left + right
    }

    #[inline]
    fn float_subtract(&self, left: f64, right: f64) -> f64 {
        left - right
    }

    #[inline]
    fn float_multiply(&self, left: f64, right: f64) -> f64 {
        left * right
    }

    #[inline]
    fn float_divide(&self, left: f64, right: f64) -> f64 {
        left / right
    }

    #[inline]
    fn float_negate(&self, value: f64) -> f64 {
        -value
    }

    #[inline]
    #[expect(clippy::float_cmp, reason = "this is the equality of IEEE 754")]
    fn float_equal(&self, left: f64, right: f64) -> bool {
        left == right
    }

    #[inline]
    #[expect(clippy::float_cmp, reason = "this is the equality of IEEE 754")]
    fn float_not_equal(&self, left: f64, right: f64) -> bool {
        left != right
    }

    #[inline]
    fn float_less(&self, left: f64, right: f64) -> bool {
        left < right
    }

    #[inline]
    fn float_less_or_equal(&self, left: f64, right: f64) -> bool {
        left <= right
    }

    #[inline]
    fn float_greater(&self, left: f64, right: f64) -> bool {
        left > right
    }

    #[inline]
    fn float_greater_or_equal(&self, left: f64, right: f64) -> bool {
        left >= right
    }

    #[inline]
    fn float_abs(&self, value: f64) -> f64 {
        value.abs()
    }

    #[inline]
    fn float_sqrt(&self, value: f64) -> f64 {
        value.sqrt()
    }

    #[inline]
    fn float_floor(&self, value: f64) -> Result<i64, ErrorCode> {
        whole(finite(value)?.floor())
    }

    #[inline]
    fn float_ceil(&self, value: f64) -> Result<i64, ErrorCode> {
        whole(finite(value)?.ceil())
    }

    #[inline]
    fn float_trunc(&self, value: f64) -> Result<i64, ErrorCode> {
        whole(finite(value)?.trunc())
    }

    #[inline]
    fn float_to_integer(&self, value: f64) -> Result<i64, ErrorCode> {
        // Checked before the range. Every float beyond the integers is whole, so at most one of the two failures
        // applies.
        if finite(value)?.fract() != 0.0 {
            return Err(ErrorCode::NotWhole);
        }
        whole(value)
    }

    fn float_to_decimal(&self, value: f64) -> Result<Decimal, ErrorCode> {
        // A finite float has at most 17 digits and 324 places, far below the limits.
        Decimal::parse(&float::text(finite(value)?)).map_err(|_| ErrorCode::NotFinite)
    }

    fn float_text(&self, value: f64) -> Arc<str> {
        Arc::from(float::text(value))
    }

    fn float_parse(&self, value: &str) -> Result<f64, ErrorCode> {
        float::parse(value).ok_or(ErrorCode::BadFormat)
    }

    #[inline]
    fn float_is_nan(&self, value: f64) -> bool {
        value.is_nan()
    }

    #[inline]
    fn float_is_finite(&self, value: f64) -> bool {
        value.is_finite()
    }

    fn float_sum(&self, values: &[Value]) -> f64 {
        // SEMANTICS: starts with 0.0 and adds one by one. Rust's `sum` starts with -0.0.
        floats(values).fold(0.0, |sum, value| sum + value)
    }

    fn float_avg(&self, values: &[Value]) -> Result<f64, ErrorCode> {
        if values.is_empty() {
            return Err(ErrorCode::EmptyCollection);
        }
        #[expect(clippy::cast_precision_loss, reason = "an array has at most a million items")]
        let count = values.len() as f64;
        Ok(self.float_sum(values) / count)
    }
}
