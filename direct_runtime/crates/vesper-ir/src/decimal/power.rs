//! Powers: computed exactly, then rounded once.

use num_bigint::BigUint;

use super::quotient::{DivideError, PRECISION, exact, quotient, round_to_precision, to_precision, write_out};
use super::round::{digits, least_digits, ten_to, trailing_zeros};
use super::{Decimal, MAX_DIGITS, MAX_SCALE, OverLimit};

/// Maximum number of digits of a power before it is rounded.
const MAX_POWER_DIGITS: u64 = 1_000_000;
/// Bound of the decimal exponent: every non-zero decimal is between 10^-1003 and 10^1003.
const MAX_EXPONENT: f64 = 1_003.0;

impl Decimal {
    /// Returns the power, exact or rounded once to 34 significant digits, half to even. A negative exponent divides 1
    /// by the exact power.
    ///
    /// Results out of range are detected before any multiplication.
    pub fn pow(&self, exponent: i64) -> Result<Self, DivideError> {
        if exponent == 0 {
            return Ok(Self::from(1));
        }
        let is_zero = self.signum() == 0;
        if is_zero && exponent < 0 {
            return Err(DivideError::ByZero);
        }
        let own = self.magnitude();
        let times = exponent.unsigned_abs();
        if times.saturating_mul(u64::from(digits(&own))) > MAX_POWER_DIGITS {
            return Err(DivideError::OverLimit);
        }
        // At most a million from here on.
        let times = u32::try_from(times).map_err(|_| DivideError::OverLimit)?;
        let scale = i64::from(times) * i64::from(self.scale());
        if is_zero {
            let scale = u16::try_from(scale).map_err(|_| DivideError::OverLimit)?;
            return Ok(Self::new(0, scale)?);
        }
        let is_negative = self.is_negative() && times % 2 == 1;

        // own = base * 10^zeros; neither the base nor any power of it ends with a zero.
        let zeros = trailing_zeros(&own);
        let base = own / ten_to(zeros);
        let zeros = i64::from(times) * i64::from(zeros);
        let point = i32::try_from(scale - zeros).map_err(|_| DivideError::OverLimit)?;
        let size = lg(&base) * f64::from(times) - f64::from(point);
        if size.abs() > MAX_EXPONENT {
            return Err(DivideError::OverLimit);
        }
        let power = base.pow(times);
        Ok(if exponent < 0 {
            quotient(is_negative, &BigUint::from(1_u8), &power, zeros - scale, 0)?
        } else {
            positive(is_negative, power, zeros, scale)?
        })
    }
}

impl Decimal {
    /// Returns the exact power. One that exceeds the limits is never computed.
    pub fn exact_pow(&self, exponent: u64) -> Result<Self, OverLimit> {
        if exponent == 0 {
            return Ok(Self::from(1));
        }
        let scale = u64::from(self.scale()).saturating_mul(exponent);
        let scale = u16::try_from(scale)
            .ok()
            .filter(|scale| *scale <= MAX_SCALE)
            .ok_or(OverLimit)?;
        let own = self.magnitude();
        if self.signum() == 0 {
            return Self::new(0, scale);
        }
        let is_negative = self.is_negative() && exponent % 2 == 1;
        let one = BigUint::from(1_u8);
        if own == one {
            return Self::from_magnitude(is_negative, one, scale);
        }
        // A power of two or more has at least a quarter as many digits as its exponent.
        let least = u64::from(digits(&own) - 1).saturating_mul(exponent);
        let times = u32::try_from(exponent).map_err(|_| OverLimit)?;
        if least >= MAX_DIGITS as u64 || exponent > 4 * MAX_DIGITS as u64 {
            return Err(OverLimit);
        }
        Self::from_magnitude(is_negative, own.pow(times), scale)
    }
}

/// Returns `power * 10^zeros * 10^-scale`. INVARIANT: `power` does not end with a zero.
fn positive(is_negative: bool, power: BigUint, zeros: i64, scale: i64) -> Result<Decimal, OverLimit> {
    let least = least_digits(&power);
    if least <= PRECISION && digits(&power) <= PRECISION {
        let room = i64::from(PRECISION) - i64::from(digits(&power));
        if zeros <= room {
            let power = power * ten_to(u32::try_from(zeros).map_err(|_| OverLimit)?);
            return write_out(is_negative, power, scale);
        }
        // Too many zeros: as many are kept as 34 digits permit.
        return exact(is_negative, power, scale - zeros, scale);
    }
    let cut = least.saturating_sub(PRECISION);
    let power = to_precision(&power, &ten_to(cut));
    let scale = scale - zeros - i64::from(cut) - i64::from(power.dropped);
    round_to_precision(is_negative, power.whole, power.rest, scale, 0)
}

/// Returns the decimal logarithm to about nine digits. INVARIANT: the magnitude is not zero.
fn lg(magnitude: &BigUint) -> f64 {
    let shift = magnitude.bits().saturating_sub(32);
    let top = u32::try_from(magnitude >> shift).unwrap_or(u32::MAX);
    let shift = u32::try_from(shift).unwrap_or(u32::MAX);
    f64::from(top).log10() + f64::from(shift) * std::f64::consts::LOG10_2
}
