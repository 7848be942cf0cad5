//! Decimal text: parses the grammar of docs/spec/values.md and formats plain notation.
//!
//! Texts come from callers, so a long or hostile one must cost at most one pass over it. Every limit is checked on the
//! *count* of digits before any digit is converted.

use std::fmt;

use num_bigint::BigInt;

use super::{Decimal, Form, MAX_DIGITS, MAX_SCALE, ParseDecimalError};

/// Pieces of a text that follows the grammar.
pub(crate) struct Pieces<'a> {
    pub(crate) is_negative: bool,
    pub(crate) whole: &'a [u8],
    pub(crate) fraction: &'a [u8],
    /// Exponent, saturated to `i64`. At the ends the number is out of range or zero.
    pub(crate) exponent: i64,
}

/// Splits a text into its pieces. Returns `None` for text outside the grammar.
pub(crate) fn pieces(text: &str) -> Option<Pieces<'_>> {
    split(text.as_bytes())
}

pub(super) fn parse(text: &str) -> Result<Decimal, ParseDecimalError> {
    let pieces = split(text.as_bytes()).ok_or(ParseDecimalError::Malformed)?;
    let fraction_digits = i64::try_from(pieces.fraction.len()).map_err(|_| ParseDecimalError::OutOfRange)?;
    let scale = fraction_digits.saturating_sub(pieces.exponent);

    let (whole, fraction) = (without_leading_zeros(pieces.whole), pieces.fraction);
    let fraction = if whole.is_empty() {
        without_leading_zeros(fraction)
    } else {
        fraction
    };
    let digits = whole.len().saturating_add(fraction.len());
    if digits == 0 {
        // A zero with any positive exponent is `0`.
        let scale = u16::try_from(scale.max(0)).map_err(|_| ParseDecimalError::OutOfRange)?;
        return Decimal::new(0, scale).map_err(|_| ParseDecimalError::OutOfRange);
    }
    if digits > MAX_DIGITS || scale > i64::from(MAX_SCALE) {
        return Err(ParseDecimalError::OutOfRange);
    }
    let padding = usize::try_from(scale.saturating_neg().max(0)).unwrap_or(usize::MAX);
    if digits.saturating_add(padding) > MAX_DIGITS {
        return Err(ParseDecimalError::OutOfRange);
    }
    let scale = u16::try_from(scale.max(0)).map_err(|_| ParseDecimalError::OutOfRange)?;

    // 38 digits always fit 128 bits; `from_big` handles the 39-digit numbers that also fit.
    if digits + padding <= 38 {
        let mut coefficient = 0_i128;
        for digit in whole.iter().chain(fraction) {
            coefficient = coefficient * 10 + i128::from(digit - b'0');
        }
        for _ in 0..padding {
            coefficient *= 10;
        }
        let coefficient = if pieces.is_negative {
            -coefficient
        } else {
            coefficient
        };
        return Ok(Decimal(Form::Small { coefficient, scale }));
    }
    let mut spelled = Vec::with_capacity(digits + padding);
    spelled.extend_from_slice(whole);
    spelled.extend_from_slice(fraction);
    spelled.resize(digits + padding, b'0');
    let coefficient = BigInt::parse_bytes(&spelled, 10).ok_or(ParseDecimalError::Malformed)?;
    let coefficient = if pieces.is_negative {
        -coefficient
    } else {
        coefficient
    };
    Decimal::from_big(coefficient, scale).map_err(|_| ParseDecimalError::OutOfRange)
}

/// Splits by the grammar `[+-]? ( digits [ . digits? ] | . digits ) ( [eE] [+-]? digits )?`.
fn split(text: &[u8]) -> Option<Pieces<'_>> {
    let (is_negative, rest) = sign(text);
    let (whole, rest) = digits(rest);
    let (fraction, rest) = match rest.split_first() {
        Some((b'.', rest)) => digits(rest),
        _ => (&[][..], rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let exponent = match rest.split_first() {
        None => 0,
        Some((b'e' | b'E', rest)) => {
            let (is_negative, rest) = sign(rest);
            let (exponent, rest) = digits(rest);
            if exponent.is_empty() || !rest.is_empty() {
                return None;
            }
            let magnitude = exponent.iter().fold(0_i64, |sum, digit| {
                sum.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
            });
            if is_negative { -magnitude } else { magnitude }
        }
        Some(_) => return None,
    };
    Some(Pieces {
        is_negative,
        whole,
        fraction,
        exponent,
    })
}

fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at_checked(count).unwrap_or((text, &[]))
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.get(zeros..).unwrap_or(&[])
}

/// Writes a magnitude with `scale` digits after the point and at least one before it.
pub(super) fn write_plain(
    formatter: &mut fmt::Formatter<'_>,
    is_negative: bool,
    magnitude: &str,
    scale: u16,
) -> fmt::Result {
    let scale = usize::from(scale);
    if is_negative {
        formatter.write_str("-")?;
    }
    if scale == 0 {
        return formatter.write_str(magnitude);
    }
    match magnitude.len().checked_sub(scale) {
        Some(whole) if whole > 0 => {
            let (whole, fraction) = magnitude.split_at_checked(whole).ok_or(fmt::Error)?;
            write!(formatter, "{whole}.{fraction}")
        }
        _ => write!(formatter, "0.{magnitude:0>scale$}"),
    }
}
