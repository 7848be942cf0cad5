//! Roots, exponentials, logarithms and fractional powers, rounded once to 34 significant digits, half to even.
//!
//! A transcendental result is computed in binary fixed point with a bound of its error. Where the two ends of that
//! interval round differently, the computation is repeated with twice the precision (Ziv's method). A result that is
//! exact or a tie is recognised before, so that the repetition ends.

use num_bigint::{BigInt, BigUint, Sign};

use super::quotient::{DivideError, PRECISION, exact, quotient, round_to_precision, write_out};
use super::round::{Rest, digits, divide_whole, ten_to, trailing_zeros};
use super::{Decimal, OverLimit};
use crate::RoundingMode;

/// Error of a function of decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionError {
    /// The function has no real value here.
    Domain,
    ByZero,
    OverLimit,
}

impl From<OverLimit> for FunctionError {
    fn from(OverLimit: OverLimit) -> Self {
        Self::OverLimit
    }
}

impl From<DivideError> for FunctionError {
    fn from(error: DivideError) -> Self {
        match error {
            DivideError::ByZero => Self::ByZero,
            DivideError::OverLimit => Self::OverLimit,
        }
    }
}

/// Bits of a first attempt: 34 digits have 113.
const FIRST_BITS: u64 = 160;
/// Bound of the natural logarithm of every decimal.
const MAX_EXPONENT: u32 = 2_400;
/// Bits of a whole number up to the bound, and one.
const EXPONENT_BITS: u64 = 13;
/// No whole number but 1 within the limits is a perfect power of a higher degree.
const MAX_DEGREE: u32 = 8_000;
/// No power to a larger exponent is short enough to be exact or a tie, except of a power of ten.
const MAX_EXACT_POWER: u32 = 120;

/// Approximation `value * 2^-bits` with an error below `2^-precise` of its magnitude.
struct Approximation {
    value: BigInt,
    bits: u64,
    precise: u64,
}

impl Approximation {
    /// Rounds to 34 digits if every number within the error rounds to the same.
    fn round(&self) -> Result<Option<Decimal>, OverLimit> {
        let error = (self.value.magnitude() >> self.precise) + 1_u8;
        if *self.value.magnitude() <= error {
            return Ok(None);
        }
        let is_negative = self.value.sign() == Sign::Minus;
        let divisor = BigUint::from(1_u8) << self.bits;
        let end = |magnitude: BigUint| quotient(is_negative, &magnitude, &divisor, 0, 0);
        let (least, most) = (
            end(self.value.magnitude() - &error),
            end(self.value.magnitude() + &error),
        );
        match (least, most) {
            (Ok(least), Ok(most)) => Ok(least.is_identical(&most).then_some(least)),
            (Err(OverLimit), Err(OverLimit)) => Err(OverLimit),
            _ => Ok(None),
        }
    }
}

/// Repeats a computation with more bits until its result rounds in only one way.
fn until_rounded(
    mut approximate: impl FnMut(u64) -> Result<Approximation, OverLimit>,
) -> Result<Decimal, OverLimit> {
    let mut bits = FIRST_BITS;
    loop {
        if let Some(found) = approximate(bits)?.round()? {
            return Ok(found);
        }
        bits = bits.saturating_mul(2);
    }
}

impl Decimal {
    /// Returns the square root.
    pub fn sqrt(&self) -> Result<Self, FunctionError> {
        if self.is_negative() {
            return Err(FunctionError::Domain);
        }
        let least_scale = i64::from(self.scale().div_ceil(2));
        let one = BigUint::from(1_u8);
        Ok(root(
            &self.magnitude(),
            &one,
            i64::from(self.scale()),
            least_scale,
        )?)
    }

    /// Returns e to this power.
    pub fn exp(&self) -> Result<Self, FunctionError> {
        if self.signum() == 0 {
            return Ok(Self::from(1));
        }
        if self.abs().compare(&Self::from(i64::from(MAX_EXPONENT))).is_gt() {
            return Err(FunctionError::OverLimit);
        }
        Ok(until_rounded(|bits| {
            let fine = bits + EXPONENT_BITS + 8;
            Ok(exponential(&self.to_fixed(fine), fine, bits))
        })?)
    }

    /// Returns the natural logarithm.
    pub fn ln(&self) -> Result<Self, FunctionError> {
        if self.signum() <= 0 {
            return Err(FunctionError::Domain);
        }
        if self.compare(&Self::from(1)).is_eq() {
            return Ok(Self::from(0));
        }
        Ok(until_rounded(|bits| Ok(self.logarithm(bits)))?)
    }

    /// Returns the decimal logarithm.
    pub fn log10(&self) -> Result<Self, FunctionError> {
        if self.signum() <= 0 {
            return Err(FunctionError::Domain);
        }
        if let Some(power) = self.power_of_ten() {
            return Ok(Self::from(power));
        }
        Ok(until_rounded(|bits| {
            let logarithm = self.logarithm(bits + 4);
            let of_ten = constants(bits + 8).1;
            Ok(Approximation {
                value: (logarithm.value << (bits + 8)) / of_ten,
                bits: logarithm.bits,
                precise: bits,
            })
        })?)
    }

    /// Returns the power to a decimal exponent.
    pub fn power(&self, exponent: &Self) -> Result<Self, FunctionError> {
        if exponent.is_whole() {
            let whole = exponent.to_whole(RoundingMode::Down);
            return Ok(self.pow(whole.ok_or(FunctionError::OverLimit)?)?);
        }
        match self.signum() {
            -1 => return Err(FunctionError::Domain),
            0 if exponent.is_negative() => return Err(FunctionError::ByZero),
            0 => return Ok(Self::from(0)),
            _ => {}
        }
        if self.compare(&Self::from(1)).is_eq() {
            return Ok(Self::from(1));
        }
        if let Some(exact) = self.rational_power(exponent)? {
            return Ok(exact);
        }
        Ok(until_rounded(|bits| {
            let fine = bits + EXPONENT_BITS + 8;
            let logarithm = self.logarithm(fine + 4);
            let product = logarithm.value * exponent.to_big_coefficient();
            let divisor = BigInt::from(ten_to(u32::from(exponent.scale())));
            // The product is a number of `logarithm.bits` bits after the point, and is cut to `fine`.
            let product = if logarithm.bits > fine {
                product / (divisor << (logarithm.bits - fine))
            } else {
                (product << (fine - logarithm.bits)) / divisor
            };
            if (product.magnitude() >> fine) > BigUint::from(MAX_EXPONENT) {
                return Err(OverLimit);
            }
            Ok(exponential(&product, fine, bits))
        })?)
    }

    /// Returns the power if base and exponent make it rational, and short enough to be exact or a tie.
    fn rational_power(&self, exponent: &Self) -> Result<Option<Self>, FunctionError> {
        let (numerator, degree) = lowest_terms(exponent.magnitude(), ten_to(u32::from(exponent.scale())));
        let Some(degree) = u32::try_from(&degree).ok().filter(|degree| *degree <= MAX_DEGREE) else {
            return Ok(None);
        };
        let (upper, lower) = lowest_terms(self.magnitude(), ten_to(u32::from(self.scale())));
        let (Some(upper), Some(lower)) = (whole_root(&upper, degree), whole_root(&lower, degree)) else {
            return Ok(None);
        };
        // The denominator has no prime factors but 2 and 5, so that the root is `coefficient * 10^-scale`.
        let scale = u32::try_from(lower.bits()).map_err(|_| OverLimit)?;
        let coefficient = upper * ten_to(scale) / lower;
        let zeros = trailing_zeros(&coefficient);
        let coefficient = coefficient / ten_to(zeros);
        let scale = i64::from(scale) - i64::from(zeros);
        let is_ten = coefficient == BigUint::from(1_u8);
        let times = u32::try_from(&numerator).ok();
        let Some(times) = times.filter(|times| is_ten || *times <= MAX_EXACT_POWER) else {
            return if is_ten {
                Err(FunctionError::OverLimit)
            } else {
                Ok(None)
            };
        };
        let scale = scale * i64::from(times);
        if is_ten {
            let scale = if exponent.is_negative() { -scale } else { scale };
            return Ok(Some(write_out(false, coefficient, scale)?));
        }
        let power = coefficient.pow(times);
        let one = BigUint::from(1_u8);
        Ok(Some(if exponent.is_negative() {
            quotient(false, &one, &power, -scale, 0)?
        } else {
            quotient(false, &power, &one, scale, 0)?
        }))
    }

    /// Returns n for 10^n.
    fn power_of_ten(&self) -> Option<i64> {
        let magnitude = self.magnitude();
        let zeros = trailing_zeros(&magnitude);
        (magnitude == ten_to(zeros)).then(|| i64::from(zeros) - i64::from(self.scale()))
    }

    /// Returns the number in fixed point, toward zero.
    fn to_fixed(&self, bits: u64) -> BigInt {
        (self.to_big_coefficient() << bits) / BigInt::from(ten_to(u32::from(self.scale())))
    }

    /// Returns the natural logarithm to this many bits of its magnitude. INVARIANT: the number is positive and not 1.
    fn logarithm(&self, bits: u64) -> Approximation {
        let (upper, lower) = (self.magnitude(), ten_to(u32::from(self.scale())));
        // The number is m * 2^shift with m between 1/2 and 2. Close to 1 the shift is 0, and z below is small.
        let mut shift = i64::try_from(upper.bits()).unwrap_or(0) - i64::try_from(lower.bits()).unwrap_or(0);
        if shift.abs() == 1 {
            shift = 0;
        }
        let (upper, lower) = if shift >= 0 {
            (upper, lower << shift.unsigned_abs())
        } else {
            (upper << shift.unsigned_abs(), lower)
        };
        let (upper, lower) = (BigInt::from(upper), BigInt::from(lower));
        // ln m = 2 atanh z with z = (m - 1) / (m + 1), at most 0.6 in magnitude.
        let (difference, sum) = (&upper - &lower, upper + lower);
        let small = sum.bits().saturating_sub(difference.bits());
        let fine = bits + small + 2 * lb(bits) + 16;
        let z = (difference << fine) / sum;
        let mut value = atanh(&z, fine) << 1_u8;
        if shift != 0 {
            value += constants(fine).0 * shift;
        }
        Approximation {
            value,
            bits: fine,
            precise: bits,
        }
    }
}

/// Returns the binary logarithm, rounded down.
fn lb(number: u64) -> u64 {
    u64::from(number.checked_ilog2().unwrap_or(0))
}

/// Returns the square root of `dividend / divisor * 10^-scale`, exact at a scale of at least `least_scale` or rounded.
/// INVARIANT: the divisor is not zero.
pub(super) fn root(
    dividend: &BigUint,
    divisor: &BigUint,
    scale: i64,
    least_scale: i64,
) -> Result<Decimal, OverLimit> {
    if dividend.bits() == 0 {
        return write_out(false, BigUint::ZERO, least_scale);
    }
    // An even number of places, and enough for 36 digits of the root.
    let lengths = i64::from(digits(divisor)) - i64::from(digits(dividend));
    let more = (i64::from(PRECISION) * 2 + 4 + lengths).max(0);
    let more = more + (scale + more).rem_euclid(2);
    let shifted = dividend * ten_to(u32::try_from(more).map_err(|_| OverLimit)?);
    let whole = &shifted / divisor;
    let found = whole.sqrt();
    let is_exact = &found * &found * divisor == shifted;
    let scale = i64::midpoint(scale, more);
    if is_exact && digits(&found) - trailing_zeros(&found) <= PRECISION {
        return exact(false, found, scale, least_scale);
    }
    let dropped = digits(&found).saturating_sub(PRECISION);
    let cut = divide_whole(&found, &ten_to(dropped));
    let rest = cut
        .1
        .followed_by(if is_exact { Rest::None } else { Rest::BelowHalf });
    round_to_precision(false, cut.0, rest, scale - i64::from(dropped), 0)
}

/// Returns a fraction in lowest terms. INVARIANT: the denominator is a power of ten.
fn lowest_terms(mut numerator: BigUint, mut denominator: BigUint) -> (BigUint, BigUint) {
    let twos = numerator
        .trailing_zeros()
        .unwrap_or(0)
        .min(denominator.trailing_zeros().unwrap_or(0));
    numerator >>= twos;
    denominator >>= twos;
    let five = BigUint::from(5_u8);
    while (&numerator % &five).bits() == 0 && (&denominator % &five).bits() == 0 {
        numerator /= &five;
        denominator /= &five;
    }
    (numerator, denominator)
}

/// Returns the root of a positive whole number if it is whole.
fn whole_root(number: &BigUint, degree: u32) -> Option<BigUint> {
    let root = number.nth_root(degree);
    (root.pow(degree) == *number).then_some(root)
}

/// Returns ln 2 and ln 10 in fixed point, with an error of few units of the last bits.
fn constants(bits: u64) -> (BigInt, BigInt) {
    let fine = bits + 16;
    let [a, b, c] = [31_u32, 49, 161].map(|of| atanh_of_reciprocal(of, fine));
    let two: BigInt = &a * 14 + &b * 10 + &c * 6;
    let ten: BigInt = a * 46 + b * 34 + c * 20;
    (two >> 16_u8, ten >> 16_u8)
}

/// Returns atanh(1 / of) in fixed point.
fn atanh_of_reciprocal(of: u32, bits: u64) -> BigInt {
    let square = of * of;
    let mut power = (BigInt::from(1_u8) << bits) / of;
    let mut sum = power.clone();
    let mut divisor = 1_u32;
    while power.bits() > 0 {
        power /= square;
        divisor += 2;
        sum += &power / divisor;
    }
    sum
}

/// Returns atanh z for a z of at most 0.6 in magnitude, both in fixed point, with an error below a unit for each of
/// the terms, of which there are fewer than `bits`.
fn atanh(z: &BigInt, bits: u64) -> BigInt {
    let square: BigInt = (z * z) >> bits;
    let mut power = z.clone();
    let mut sum = power.clone();
    let mut divisor = 1_u32;
    // The shift of a negative number rounds down, so that it would never become zero.
    while power.bits() > 1 {
        power = (power * &square) >> bits;
        divisor += 2;
        sum += &power / divisor;
    }
    sum
}

/// Returns e^x to `bits` bits of its magnitude. INVARIANT: x is at most `MAX_EXPONENT` and has `fine` bits after the
/// point, of which all but the last few are right.
fn exponential(x: &BigInt, fine: u64, bits: u64) -> Approximation {
    // x = n * ln 2 + r with r between 0 and ln 2; e^r = (e^(r / 2^halvings))^(2^halvings).
    let halvings = bits.isqrt();
    let working = fine + halvings + 2 * lb(bits) + 8;
    let two = constants(working + EXPONENT_BITS).0 >> EXPONENT_BITS;
    let x: BigInt = x << (working - fine);
    let mut whole = &x / &two;
    if x.sign() == Sign::Minus {
        whole -= 1;
    }
    let rest = (x - &whole * two) >> halvings;
    let one = BigInt::from(1_u8) << working;
    let mut sum = one.clone() + &rest;
    let mut term = rest.clone();
    let mut divisor = 1_u32;
    while term.bits() > 0 {
        divisor += 1;
        term = ((term * &rest) >> working) / divisor;
        sum += &term;
    }
    for _ in 0..halvings {
        sum = (&sum * &sum) >> working;
    }
    let shift = i64::try_from(&whole).unwrap_or(0);
    // A value of 2^shift is `working - shift` bits after the point.
    let after = i64::try_from(working).unwrap_or(i64::MAX) - shift;
    match u64::try_from(after) {
        Ok(after) => Approximation {
            value: sum,
            bits: after,
            precise: bits,
        },
        Err(_) => Approximation {
            value: sum << after.unsigned_abs(),
            bits: 0,
            precise: bits,
        },
    }
}
