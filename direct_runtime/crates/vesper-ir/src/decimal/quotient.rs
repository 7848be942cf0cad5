//! Division to 34 significant digits, or to a number of places.

use num_bigint::BigUint;

use super::round::{Rest, digits, divide_rounded, divide_whole, least_digits, ten_to, trailing_zeros};
use super::{Decimal, MAX_DIGITS, MAX_SCALE, OverLimit};
use crate::RoundingMode;

/// Number of digits to which a longer quotient is rounded.
pub(super) const PRECISION: u32 = 34;

/// Error of a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivideError {
    ByZero,
    OverLimit,
}

impl From<OverLimit> for DivideError {
    fn from(OverLimit: OverLimit) -> Self {
        Self::OverLimit
    }
}

impl Decimal {
    /// Divides, exactly or rounded once to 34 significant digits, half to even.
    pub fn divide(&self, other: &Self) -> Result<Self, DivideError> {
        if other.signum() == 0 {
            return Err(DivideError::ByZero);
        }
        let scale = i64::from(self.scale()) - i64::from(other.scale());
        let is_negative = self.is_negative() != other.is_negative();
        Ok(quotient(
            is_negative,
            &self.magnitude(),
            &other.magnitude(),
            scale,
            scale.max(0),
        )?)
    }

    /// Divides exactly and rounds once to this many places.
    pub fn divide_to(&self, other: &Self, scale: u16, mode: RoundingMode) -> Result<Self, DivideError> {
        if other.signum() == 0 {
            return Err(DivideError::ByZero);
        }
        if scale > MAX_SCALE {
            return Err(DivideError::OverLimit);
        }
        let is_negative = self.is_negative() != other.is_negative();
        let (dividend, divisor) = (self.magnitude(), other.magnitude());
        // The shift is at most 2,000 either way.
        let shift = i32::from(scale) + i32::from(other.scale()) - i32::from(self.scale());
        let power = ten_to(shift.unsigned_abs());
        let magnitude = if shift >= 0 {
            divide_rounded(&(dividend * power), &divisor, is_negative, mode)
        } else {
            divide_rounded(&dividend, &(divisor * power), is_negative, mode)
        };
        Ok(Self::from_magnitude(is_negative, magnitude, scale)?)
    }
}

/// Returns `dividend / divisor * 10^-scale` to 34 digits. An exact quotient has a scale of at least `least_scale` if 34
/// digits permit it. INVARIANT: the divisor is not zero, `least_scale` is not negative.
pub(super) fn quotient(
    is_negative: bool,
    dividend: &BigUint,
    divisor: &BigUint,
    scale: i64,
    least_scale: i64,
) -> Result<Decimal, OverLimit> {
    if dividend.bits() == 0 {
        let scale = u16::try_from(least_scale).map_err(|_| OverLimit)?;
        return Decimal::new(0, scale);
    }
    // Shifts the dividend so that the whole part of the quotient has 34 to 37 digits.
    let lengths = i64::from(least_digits(dividend)) - i64::from(least_digits(divisor));
    let shift = i64::from(PRECISION) + 1 - lengths;
    let power = ten_to(u32::try_from(shift.unsigned_abs()).map_err(|_| OverLimit)?);
    let found = if shift >= 0 {
        to_precision(&(dividend * power), divisor)
    } else {
        to_precision(dividend, &(divisor * power))
    };
    let scale = scale + shift - i64::from(found.dropped);
    round_to_precision(is_negative, found.whole, found.rest, scale, least_scale)
}

/// Quotient cut to 34 digits.
pub(super) struct Cut {
    pub(super) whole: BigUint,
    pub(super) rest: Rest,
    /// Number of digits cut from the whole quotient.
    pub(super) dropped: u32,
}

/// Divides and cuts to 34 digits. INVARIANT: the divisor is not zero, and the quotient has at least 34 digits and few
/// more.
pub(super) fn to_precision(dividend: &BigUint, divisor: &BigUint) -> Cut {
    let (whole, rest) = divide_whole(dividend, divisor);
    let dropped = digits(&whole).saturating_sub(PRECISION);
    if dropped == 0 {
        return Cut { whole, rest, dropped };
    }
    let (whole, of_digits) = divide_whole(&whole, &ten_to(dropped));
    let rest = of_digits.followed_by(rest);
    Cut { whole, rest, dropped }
}

/// Rounds `whole * 10^-scale` with a remainder. INVARIANT: `whole` has 34 digits.
pub(super) fn round_to_precision(
    is_negative: bool,
    whole: BigUint,
    rest: Rest,
    scale: i64,
    least_scale: i64,
) -> Result<Decimal, OverLimit> {
    if rest == Rest::None {
        return exact(is_negative, whole, scale, least_scale);
    }
    let goes_up = rest.rounds_up(RoundingMode::HalfEven, is_negative, whole.bit(0));
    let whole = if goes_up { whole + 1_u8 } else { whole };
    if digits(&whole) > PRECISION {
        // Rounding up all nines adds a digit, and the result ends with a zero.
        return write_out(is_negative, whole / 10_u8, scale - 1);
    }
    write_out(is_negative, whole, scale)
}

/// Returns `whole * 10^-scale` exactly, at the smallest scale that is at least `least_scale`. Zeros that would exceed
/// 34 digits are left out. INVARIANT: `whole` is not zero and has at most 34 digits before its trailing zeros.
pub(super) fn exact(
    is_negative: bool,
    whole: BigUint,
    scale: i64,
    least_scale: i64,
) -> Result<Decimal, OverLimit> {
    let zeros = trailing_zeros(&whole);
    let shortest = whole / ten_to(zeros);
    let smallest = scale - i64::from(zeros);
    let room = i64::from(PRECISION) - i64::from(digits(&shortest));
    let wanted = smallest.max(least_scale);
    let wanted = if wanted - smallest > room {
        (smallest + room).max(0)
    } else {
        wanted
    };
    write_out(is_negative, with_zeros(shortest, wanted - smallest)?, wanted)
}

/// Returns `whole * 10^-scale`; a negative scale is written with zeros.
pub(super) fn write_out(is_negative: bool, whole: BigUint, scale: i64) -> Result<Decimal, OverLimit> {
    if scale < 0 {
        return Decimal::from_magnitude(is_negative, with_zeros(whole, -scale)?, 0);
    }
    let scale = u16::try_from(scale).map_err(|_| OverLimit)?;
    Decimal::from_magnitude(is_negative, whole, scale)
}

/// Appends zeros. More zeros than a decimal has digits are rejected before any is appended.
fn with_zeros(whole: BigUint, zeros: i64) -> Result<BigUint, OverLimit> {
    match u32::try_from(zeros) {
        Ok(0) => Ok(whole),
        Ok(zeros) if (zeros as usize) < MAX_DIGITS => Ok(whole * ten_to(zeros)),
        _ => Err(OverLimit),
    }
}
