//! Rounding of the quotient of two whole numbers by one of the seven modes.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};

use super::{Decimal, Form, MAX_SCALE, OverLimit, SMALL_POWERS};
use crate::RoundingMode;

/// Returns a power of ten.
pub(super) fn ten_to(exponent: u32) -> BigUint {
    // 5^n is cheaper to compute, and the shift is almost free.
    BigUint::from(5_u8).pow(exponent) << exponent
}

/// Returns the number of decimal digits; zero has one.
pub(super) fn digits(magnitude: &BigUint) -> u32 {
    let bits = magnitude.bits();
    if bits <= 128 {
        let small = u128::try_from(magnitude).unwrap_or(0);
        return small.checked_ilog10().unwrap_or(0) + 1;
    }
    let least = least_digits(magnitude);
    if *magnitude >= ten_to(least) {
        least + 1
    } else {
        least
    }
}

/// Returns the number of decimal digits or one less. Only the length in bits is used.
pub(super) fn least_digits(magnitude: &BigUint) -> u32 {
    // A number of n bits is at least 2^(n - 1) and below 2^n; the fraction is lg 2, rounded down.
    let bits = u128::from(magnitude.bits().max(1)) - 1;
    let whole = bits * 30_102_999_566_398_119 / 100_000_000_000_000_000;
    u32::try_from(whole).map_or(u32::MAX, |whole| whole.saturating_add(1))
}

/// Position of the remainder of a division between two whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    None,
    BelowHalf,
    Half,
    AboveHalf,
}

impl Rest {
    fn of(remainder: &BigUint, divisor: &BigUint) -> Self {
        if remainder.bits() == 0 {
            return Self::None;
        }
        match (remainder << 1_u8).cmp(divisor) {
            Ordering::Less => Self::BelowHalf,
            Ordering::Equal => Self::Half,
            Ordering::Greater => Self::AboveHalf,
        }
    }

    /// Combines the remainder of a cut with an earlier remainder behind it.
    pub(super) fn followed_by(self, behind: Self) -> Self {
        match (self, behind) {
            (rest, Self::None) => rest,
            (Self::None | Self::BelowHalf, _) => Self::BelowHalf,
            (Self::Half | Self::AboveHalf, _) => Self::AboveHalf,
        }
    }

    /// Returns true when rounding increments the magnitude.
    pub(super) fn rounds_up(self, mode: RoundingMode, is_negative: bool, is_odd: bool) -> bool {
        if self == Self::None {
            return false;
        }
        match mode {
            RoundingMode::HalfEven => self == Self::AboveHalf || self == Self::Half && is_odd,
            RoundingMode::HalfUp => self != Self::BelowHalf,
            RoundingMode::HalfDown => self == Self::AboveHalf,
            RoundingMode::Up => true,
            RoundingMode::Down => false,
            RoundingMode::Floor => is_negative,
            RoundingMode::Ceiling => !is_negative,
        }
    }
}

/// Returns quotient and remainder. INVARIANT: the divisor is not zero.
pub(super) fn divide_whole(dividend: &BigUint, divisor: &BigUint) -> (BigUint, Rest) {
    if let (Ok(left), Ok(right)) = (u128::try_from(dividend), u128::try_from(divisor))
        && let (Some(quotient), Some(remainder)) = (left.checked_div(right), left.checked_rem(right))
    {
        let rest = match (remainder, remainder.cmp(&(right - remainder))) {
            (0, _) => Rest::None,
            (_, Ordering::Less) => Rest::BelowHalf,
            (_, Ordering::Equal) => Rest::Half,
            (_, Ordering::Greater) => Rest::AboveHalf,
        };
        return (BigUint::from(quotient), rest);
    }
    let quotient = dividend / divisor;
    let remainder = dividend - &quotient * divisor;
    let rest = Rest::of(&remainder, divisor);
    (quotient, rest)
}

/// Returns the quotient of two magnitudes, rounded to a whole number. INVARIANT: the divisor is not zero.
pub(super) fn divide_rounded(
    dividend: &BigUint,
    divisor: &BigUint,
    is_negative: bool,
    mode: RoundingMode,
) -> BigUint {
    let (quotient, rest) = divide_whole(dividend, divisor);
    if rest.rounds_up(mode, is_negative, quotient.bit(0)) {
        quotient + 1_u8
    } else {
        quotient
    }
}

impl Decimal {
    pub(super) fn is_negative(&self) -> bool {
        self.signum() < 0
    }

    pub(super) fn magnitude(&self) -> BigUint {
        match &self.0 {
            Form::Small { coefficient, .. } => BigUint::from(coefficient.unsigned_abs()),
            Form::Big(big) => big.coefficient.magnitude().clone(),
        }
    }

    /// Creates the number with this sign and magnitude; zero has no sign.
    pub(super) fn from_magnitude(
        is_negative: bool,
        magnitude: BigUint,
        scale: u16,
    ) -> Result<Self, OverLimit> {
        let sign = if is_negative { Sign::Minus } else { Sign::Plus };
        Self::from_big(BigInt::from_biguint(sign, magnitude), scale)
    }

    /// Rounds once to this many places. A negative scale rounds to tens, hundreds and so on.
    ///
    /// Time is bounded for every scale that the language permits, which is 1,000 either way.
    pub fn round(&self, scale: i16, mode: RoundingMode) -> Result<Self, OverLimit> {
        let own = self.scale();
        if let Ok(scale) = u16::try_from(scale)
            && scale >= own
        {
            if scale > MAX_SCALE {
                return Err(OverLimit);
            }
            if let Some(coefficient) = self.small_coefficient_at(scale) {
                return Ok(Self(Form::Small { coefficient, scale }));
            }
            return Self::from_big(self.big_coefficient_at(scale), scale);
        }
        // Number of digits to cut; positive here.
        let cut = u32::try_from(i32::from(own) - i32::from(scale)).unwrap_or(0);
        let places = u16::try_from(scale).unwrap_or(0);
        let zeros = u32::try_from(-i32::from(scale)).unwrap_or(0);
        if let (Form::Small { coefficient, .. }, 0, Some(divisor)) =
            (&self.0, zeros, SMALL_POWERS.get(cut as usize))
        {
            return Ok(Self(Form::Small {
                coefficient: round_small(*coefficient, *divisor, mode),
                scale: places,
            }));
        }
        let rounded = divide_rounded(&self.magnitude(), &ten_to(cut), self.is_negative(), mode);
        if zeros > 0 && rounded.bits() > 0 {
            return Self::from_magnitude(self.is_negative(), rounded * ten_to(zeros), places);
        }
        Self::from_magnitude(self.is_negative(), rounded, places)
    }

    /// Rounds to a whole number. Returns `None` if it does not fit 64 bits.
    pub fn to_whole(&self, mode: RoundingMode) -> Option<i64> {
        match self.round(0, mode).ok()?.0 {
            Form::Small { coefficient, .. } => i64::try_from(coefficient).ok(),
            Form::Big(_) => None,
        }
    }

    /// Returns true when the number has no fraction.
    pub fn is_whole(&self) -> bool {
        match (&self.0, self.scale()) {
            (_, 0) => true,
            (Form::Small { coefficient, scale }, _) => match SMALL_POWERS.get(usize::from(*scale)) {
                Some(power) => coefficient % power == 0,
                None => *coefficient == 0,
            },
            (Form::Big(big), scale) => {
                divide_whole(big.coefficient.magnitude(), &ten_to(u32::from(scale))).1 == Rest::None
            }
        }
    }

    /// Returns the same number at the smallest scale.
    #[must_use]
    pub fn normalize(&self) -> Self {
        match &self.0 {
            Form::Small { coefficient: 0, .. } => Self::from(0),
            Form::Small { coefficient, scale } => {
                let (mut coefficient, mut scale) = (*coefficient, *scale);
                while scale > 0 && coefficient % 10 == 0 {
                    coefficient /= 10;
                    scale -= 1;
                }
                Self(Form::Small { coefficient, scale })
            }
            Form::Big(big) => {
                let zeros = trailing_zeros(big.coefficient.magnitude()).min(u32::from(big.scale));
                let places = u16::try_from(zeros).map_or(0, |zeros| big.scale.saturating_sub(zeros));
                let magnitude = big.coefficient.magnitude() / ten_to(zeros);
                Self::from_magnitude(self.is_negative(), magnitude, places).unwrap_or_else(|_| self.clone())
            }
        }
    }
}

/// Returns the number of trailing zeros, in time quadratic in the digits. INVARIANT: the magnitude is not zero and has
/// a few thousand digits at most.
pub(super) fn trailing_zeros(magnitude: &BigUint) -> u32 {
    let text = magnitude.to_string();
    let zeros = text.bytes().rev().take_while(|digit| *digit == b'0').count();
    u32::try_from(zeros).unwrap_or(u32::MAX)
}

fn round_small(coefficient: i128, divisor: i128, mode: RoundingMode) -> i128 {
    let (quotient, remainder) = (coefficient / divisor, (coefficient % divisor).abs());
    let rest = match (remainder, remainder.cmp(&(divisor - remainder))) {
        (0, _) => Rest::None,
        (_, Ordering::Less) => Rest::BelowHalf,
        (_, Ordering::Equal) => Rest::Half,
        (_, Ordering::Greater) => Rest::AboveHalf,
    };
    if !rest.rounds_up(mode, coefficient < 0, quotient & 1 == 1) {
        quotient
    } else if coefficient < 0 {
        // With a remainder the divisor is at least 10, so that this cannot overflow.
        quotient - 1
    } else {
        quotient + 1
    }
}
