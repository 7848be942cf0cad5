//! Floats of docs/spec/numbers.md: their canonical text, parsing, and the order for sorting.

use std::cmp::Ordering;
use std::fmt::Write as _;

use crate::decimal::{Decimal, pieces};

/// Decimal exponents for which plain notation is written.
const PLAIN_EXPONENTS: std::ops::Range<i32> = -4..16;
/// Largest decimal exponent that is parsed; beyond it every number is zero or infinite.
const MAX_EXPONENT: i64 = 400;

/// Formats a float with the shortest digits that parse as the same float.
pub fn text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}Infinity");
    }
    let spelled = shortest(value.abs());
    let (digits, exponent) = spelled.split_once('e').unwrap_or((&spelled, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !PLAIN_EXPONENTS.contains(&exponent) {
        let direction = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{digits}e{direction}{:02}", exponent.unsigned_abs());
    }
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    let Ok(whole) = usize::try_from(exponent) else {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or_default());
        return format!("{sign}0.{zeros}{digits}");
    };
    // Plain notation has exponent + 1 digits before the point and at least one after it.
    let padded = format!("{digits:0<width$}", width = whole + 2);
    let (whole, fraction) = padded.split_at_checked(whole + 1).unwrap_or((&padded, "0"));
    format!("{sign}{whole}.{fraction}")
}

/// Returns the shortest digits and their exponent: `1.5e-7`, `1e16`, `0e0`.
fn shortest(value: f64) -> String {
    let spelled = format!("{value:e}");
    // SEMANTICS: of two equally short and near texts Rust takes the larger and the specification the even one.
    // Formatting with a precision rounds exactly, ties to even. Where that parses as another float, the shortest text
    // was unique.
    let digits = spelled
        .bytes()
        .take_while(|byte| *byte != b'e')
        .filter(u8::is_ascii_digit)
        .count();
    let even = format!("{value:.*e}", digits.saturating_sub(1));
    let is_same = even.parse::<f64>().is_ok_and(|read| is_identical(read, value));
    if is_same { even } else { spelled }
}

/// Parses a float: nearest value, ties to even, infinite past the largest. Returns `None` for text outside the grammar.
pub fn parse(text: &str) -> Option<f64> {
    parse_named(text).or_else(|| parse_digits(text))
}

/// Parses the floats that have names instead of digits.
pub fn parse_named(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn parse_digits(text: &str) -> Option<f64> {
    let pieces = pieces(text)?;
    let sign = if pieces.is_negative { -1.0 } else { 1.0 };
    let is_zero = |digit: &&u8| **digit == b'0';
    let digits = || pieces.whole.iter().chain(pieces.fraction);
    let zeros = digits().take_while(is_zero).count();
    if zeros == pieces.whole.len() + pieces.fraction.len() {
        return Some(0.0_f64.copysign(sign));
    }
    // The number is 0.DIGITS times this power of ten. Rust's parser stops counting at exponents of six digits, which a
    // text with as many zeros may need. The digits are therefore shifted so that its exponent is small.
    let place = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
    let power = (place(pieces.whole.len()) - place(zeros)).saturating_add(pieces.exponent);
    if power > MAX_EXPONENT {
        return Some(f64::INFINITY.copysign(sign));
    }
    if power < -MAX_EXPONENT {
        return Some(0.0_f64.copysign(sign));
    }
    let mut spelled = String::with_capacity(pieces.whole.len() + pieces.fraction.len() + 8);
    spelled.push_str("0.");
    spelled.extend(digits().skip(zeros).copied().map(char::from));
    // Writing to a string cannot fail.
    let _ = write!(spelled, "e{power}");
    spelled.parse::<f64>().ok().map(|value| value.copysign(sign))
}

/// Converts a whole number to a float. Returns `None` where the float would be inexact.
pub fn from_whole(value: &Decimal) -> Option<f64> {
    let nearest = value.to_float();
    // Formatting without a fraction is exact for floats of any size.
    (value.scale() == 0 && nearest.is_finite() && format!("{nearest:.0}") == value.to_string())
        .then_some(nearest)
}

/// Compares floats for sorting: −Infinity … −0.0, 0.0 … Infinity, NaN.
pub fn total_order(left: f64, right: f64) -> Ordering {
    match (left.is_nan(), right.is_nan()) {
        (false, false) => left.total_cmp(&right),
        // SEMANTICS: there is one NaN and it sorts last; `total_cmp` sorts negative NaNs first.
        (left, right) => left.cmp(&right),
    }
}

/// Compares floats so that equal ones, also -0.0 and 0.0, compare as equal. NaNs come last and compare as equal.
pub fn equality_order(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right)
        .unwrap_or_else(|| total_order(left, right))
}

/// Returns true when both floats have the same text.
pub fn is_identical(left: f64, right: f64) -> bool {
    total_order(left, right).is_eq()
}
