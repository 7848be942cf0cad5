//! Statistics of decimals: exact until one rounding at the end.

use num_bigint::{BigInt, BigUint};

use super::irrational::root;
use super::quotient::quotient;
use super::round::ten_to;
use super::{Decimal, MAX_SCALE, OverLimit};

/// Error of a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatisticsError {
    /// There are no values.
    Empty,
    /// The percentage is not between 0 and 100, or a sample has only one value.
    Argument,
    OverLimit,
}

impl From<OverLimit> for StatisticsError {
    fn from(OverLimit: OverLimit) -> Self {
        Self::OverLimit
    }
}

/// Returns the middle value, or the exact mean of the two in the middle.
pub fn median(values: Vec<&Decimal>) -> Result<Decimal, StatisticsError> {
    let half = Decimal::from(50);
    percentile(values, &half)
}

/// Returns the value at this percentage of the way through the values in order, interpolated exactly.
pub fn percentile(mut values: Vec<&Decimal>, percent: &Decimal) -> Result<Decimal, StatisticsError> {
    let last = values.len().checked_sub(1).ok_or(StatisticsError::Empty)?;
    if percent.is_negative() || percent.compare(&Decimal::from(100)).is_gt() {
        return Err(StatisticsError::Argument);
    }
    values.sort_by(|left, right| left.compare(right));
    // The position is `whole + rest / divisor`.
    let divisor = ten_to(u32::from(percent.scale()) + 2);
    let steps = percent.magnitude() * last;
    let (whole, rest) = (&steps / &divisor, &steps % &divisor);
    let place = usize::try_from(&whole).unwrap_or(last);
    let Some(low) = values.get(place) else {
        return Err(StatisticsError::Empty);
    };
    let high = match values.get(place + 1) {
        Some(high) if rest.bits() > 0 => high,
        _ => return Ok((*low).clone()),
    };
    let scale = low.scale().max(high.scale());
    let (bottom, top) = (low.big_coefficient_at(scale), high.big_coefficient_at(scale));
    let (rest, divisor) = (BigInt::from(rest), BigInt::from(divisor));
    let sum = &bottom * divisor + rest * (top - bottom);
    // The divisor is a power of ten: the sum has that many more places, and drops those that are zero.
    let more = u32::from(percent.scale()) + 2;
    Ok(without_zeros(sum, scale, more)?)
}

/// Returns `coefficient * 10^-(scale + more)`, with as few as possible of the places in `more`.
fn without_zeros(mut coefficient: BigInt, scale: u16, mut more: u32) -> Result<Decimal, OverLimit> {
    while more > 0 && (&coefficient % 10_u8).bits() == 0 {
        coefficient /= 10_u8;
        more -= 1;
    }
    let scale = u32::from(scale) + more;
    let scale = u16::try_from(scale).ok().filter(|scale| *scale <= MAX_SCALE);
    Decimal::from_big(coefficient, scale.ok_or(OverLimit)?)
}

/// Returns the variance of a sample or a population, divided once.
pub fn variance(values: &[&Decimal], is_sample: bool) -> Result<Decimal, StatisticsError> {
    let spread = Spread::of(values, is_sample)?;
    let scale = i64::from(spread.scale);
    Ok(quotient(
        false,
        &spread.squares,
        &spread.divisor,
        2 * scale,
        scale,
    )?)
}

/// Returns the square root of the exact variance, rounded once.
pub fn deviation(values: &[&Decimal], is_sample: bool) -> Result<Decimal, StatisticsError> {
    let spread = Spread::of(values, is_sample)?;
    let scale = i64::from(spread.scale);
    Ok(root(&spread.squares, &spread.divisor, 2 * scale, scale)?)
}

/// Variance as `squares / divisor * 10^(-2 * scale)`.
struct Spread {
    squares: BigUint,
    divisor: BigUint,
    scale: u16,
}

impl Spread {
    fn of(values: &[&Decimal], is_sample: bool) -> Result<Self, StatisticsError> {
        let count = values.len();
        let freedom = match (count, is_sample) {
            (0, _) => return Err(StatisticsError::Empty),
            (1, true) => return Err(StatisticsError::Argument),
            (_, true) => count - 1,
            (_, false) => count,
        };
        let scale = values.iter().map(|value| value.scale()).max().unwrap_or(0);
        let (mut sum, mut squares) = (BigInt::ZERO, BigUint::ZERO);
        for value in values {
            let units = value.big_coefficient_at(scale);
            squares += units.magnitude() * units.magnitude();
            sum += units;
        }
        // Never negative: the square of the sum is at most the count times the sum of the squares.
        let squares = squares * count - sum.magnitude() * sum.magnitude();
        Ok(Self {
            squares,
            divisor: BigUint::from(count) * freedom,
            scale,
        })
    }
}
