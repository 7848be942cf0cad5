//! Exact decimal numbers of docs/spec/numbers.md: a coefficient and a scale. Only rounding operations round, and each
//! rounds once.
//!
//! Nearly every decimal of a business node fits 128 bits, which is the fast form. A longer coefficient is stored behind
//! an `Arc` and uses `num-bigint`. The coefficient alone determines the form.

use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, LazyLock};

use num_bigint::{BigInt, BigUint, Sign};

pub use allocate::{AllocateError, allocate};
pub use irrational::FunctionError;
pub use quotient::DivideError;
pub use statistics::{StatisticsError, deviation, median, percentile, variance};
pub(crate) use text::pieces;

mod allocate;
mod irrational;
mod power;
mod quotient;
mod round;
mod statistics;
mod text;

/// Maximum number of digits of a coefficient.
pub const MAX_DIGITS: usize = 1_000;
/// Maximum number of digits after the point.
pub const MAX_SCALE: u16 = 1_000;

/// Powers of ten that fit in an `i128`: 10^0 to 10^38.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, where a panic is an error"
)]
const SMALL_POWERS: [i128; 39] = {
    let mut powers = [1; 39];
    let mut place = 1;
    while place < powers.len() {
        powers[place] = powers[place - 1] * 10;
        place += 1;
    }
    powers
};

/// Smallest magnitude with more than `MAX_DIGITS` digits.
static COEFFICIENT_BOUND: LazyLock<BigUint> = LazyLock::new(|| BigUint::from(10_u8).pow(1_000));

/// Decimal number within the limits of the specification.
///
/// `==` is deliberately absent: numeric equality is [`Decimal::compare`], equality of text is
/// [`Decimal::is_identical`].
#[derive(Clone)]
pub struct Decimal(Form);

/// Representation of a decimal.
///
/// INVARIANT: `scale <= MAX_SCALE`; `Big` only where the coefficient does not fit `i128`, and then below the bound.
#[derive(Clone)]
enum Form {
    Small { coefficient: i128, scale: u16 },
    Big(Arc<Big>),
}

struct Big {
    coefficient: BigInt,
    scale: u16,
}

/// Error for an exact result beyond the limits of a decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverLimit;

/// Error for a text that is not a decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseDecimalError {
    Malformed,
    OutOfRange,
}

impl Decimal {
    /// Parses the notation of the specification, including exponents, in time linear in the text.
    pub fn parse(text: &str) -> Result<Self, ParseDecimalError> {
        text::parse(text)
    }

    /// Creates a decimal from coefficient and scale. Fails beyond the limits.
    #[inline]
    pub fn new(coefficient: i128, scale: u16) -> Result<Self, OverLimit> {
        if scale > MAX_SCALE {
            return Err(OverLimit);
        }
        Ok(Self(Form::Small { coefficient, scale }))
    }

    /// Creates a decimal without a fraction.
    pub fn whole(coefficient: i128) -> Self {
        Self(Form::Small {
            coefficient,
            scale: 0,
        })
    }

    /// Creates a whole number from bytes in little-endian two's complement.
    pub fn from_signed_bytes_le(bytes: &[u8]) -> Result<Self, OverLimit> {
        Self::from_big(BigInt::from_signed_bytes_le(bytes), 0)
    }

    fn from_big(coefficient: BigInt, scale: u16) -> Result<Self, OverLimit> {
        if scale > MAX_SCALE {
            return Err(OverLimit);
        }
        if let Ok(coefficient) = i128::try_from(&coefficient) {
            return Ok(Self(Form::Small { coefficient, scale }));
        }
        if *coefficient.magnitude() >= *COEFFICIENT_BOUND {
            return Err(OverLimit);
        }
        Ok(Self(Form::Big(Arc::new(Big { coefficient, scale }))))
    }

    /// Returns coefficient and scale if the coefficient fits 128 bits.
    #[inline]
    pub fn as_small(&self) -> Option<(i128, u16)> {
        match self.0 {
            Form::Small { coefficient, scale } => Some((coefficient, scale)),
            Form::Big(_) => None,
        }
    }

    /// Returns the number of digits after the point.
    pub fn scale(&self) -> u16 {
        match &self.0 {
            Form::Small { scale, .. } => *scale,
            Form::Big(big) => big.scale,
        }
    }

    fn to_big_coefficient(&self) -> BigInt {
        match &self.0 {
            Form::Small { coefficient, .. } => BigInt::from(*coefficient),
            Form::Big(big) => big.coefficient.clone(),
        }
    }

    /// Returns the coefficient at a larger scale. The caller checks the limits.
    fn big_coefficient_at(&self, scale: u16) -> BigInt {
        let shift = scale.saturating_sub(self.scale());
        let coefficient = self.to_big_coefficient();
        if shift == 0 || coefficient.sign() == Sign::NoSign {
            return coefficient;
        }
        coefficient * BigInt::from(10_u8).pow(u32::from(shift))
    }

    fn small_coefficient_at(&self, scale: u16) -> Option<i128> {
        match &self.0 {
            Form::Small {
                coefficient,
                scale: own,
            } if *own == scale => Some(*coefficient),
            Form::Small {
                coefficient,
                scale: own,
            } => coefficient.checked_mul(*SMALL_POWERS.get(usize::from(scale.saturating_sub(*own)))?),
            Form::Big(_) => None,
        }
    }

    /// Returns both coefficients at the larger scale, and that scale, if they fit 128 bits.
    #[inline]
    fn small_pair(&self, other: &Self) -> Option<(i128, i128, u16)> {
        let (left, scale) = self.as_small()?;
        let (right, other_scale) = other.as_small()?;
        Some(match scale.cmp(&other_scale) {
            Ordering::Equal => (left, right, scale),
            Ordering::Less => (shift_small(left, other_scale - scale)?, right, other_scale),
            Ordering::Greater => (left, shift_small(right, scale - other_scale)?, scale),
        })
    }

    /// Returns coefficient and scale of the sum, if every intermediate value fits 128 bits.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "keeps the coefficient in registers")]
    pub fn small_sum(&self, other: &Self) -> Option<(i128, u16)> {
        let (left, right, scale) = self.small_pair(other)?;
        Some((left.checked_add(right)?, scale))
    }

    /// Returns coefficient and scale of the difference, if every intermediate value fits 128 bits.
    #[inline]
    pub fn small_difference(&self, other: &Self) -> Option<(i128, u16)> {
        let (left, right, scale) = self.small_pair(other)?;
        Some((left.checked_sub(right)?, scale))
    }

    /// Returns coefficient and scale of the product, if every intermediate value fits 128 bits.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "keeps the coefficient in registers")]
    pub fn small_product(&self, other: &Self) -> Option<(i128, u16)> {
        let (left, scale) = self.as_small()?;
        let (right, other_scale) = other.as_small()?;
        // Each scale is at most 1,000, so the sum cannot wrap.
        let scale = scale.saturating_add(other_scale);
        if scale > MAX_SCALE {
            return None;
        }
        Some((small_product(left, right)?, scale))
    }

    /// Compares numerically, if every intermediate value fits 128 bits.
    #[inline]
    pub fn small_order(&self, other: &Self) -> Option<Ordering> {
        let (left, right, _) = self.small_pair(other)?;
        Some(left.cmp(&right))
    }

    /// Overwrites the number with this coefficient and scale.
    ///
    /// INVARIANT: the scale is at most `MAX_SCALE`; it comes from the functions above.
    #[inline]
    pub(crate) fn set_small(&mut self, to_coefficient: i128, to_scale: u16) {
        // Fields are written separately: building a form and moving it would write memory twice.
        if let Form::Small { coefficient, scale } = &mut self.0 {
            *coefficient = to_coefficient;
            *scale = to_scale;
        } else {
            *self = Self::small(to_coefficient, to_scale);
        }
    }

    /// Creates a decimal without checks. INVARIANT: as for `set_small`.
    #[inline]
    pub(crate) fn small(coefficient: i128, scale: u16) -> Self {
        debug_assert!(scale <= MAX_SCALE, "no result has a larger scale");
        Self(Form::Small { coefficient, scale })
    }

    /// Returns the exact sum, at the larger of the two scales.
    pub fn add(&self, other: &Self) -> Result<Self, OverLimit> {
        if let Some((coefficient, scale)) = self.small_sum(other) {
            return Ok(Self(Form::Small { coefficient, scale }));
        }
        let scale = self.scale().max(other.scale());
        Self::from_big(
            self.big_coefficient_at(scale) + other.big_coefficient_at(scale),
            scale,
        )
    }

    /// Returns the exact difference, at the larger of the two scales.
    pub fn subtract(&self, other: &Self) -> Result<Self, OverLimit> {
        if let Some((coefficient, scale)) = self.small_difference(other) {
            return Ok(Self(Form::Small { coefficient, scale }));
        }
        let scale = self.scale().max(other.scale());
        Self::from_big(
            self.big_coefficient_at(scale) - other.big_coefficient_at(scale),
            scale,
        )
    }

    /// Returns the exact product, at the sum of the two scales.
    pub fn multiply(&self, other: &Self) -> Result<Self, OverLimit> {
        if let Some((coefficient, scale)) = self.small_product(other) {
            return Ok(Self(Form::Small { coefficient, scale }));
        }
        // Each scale is at most 1,000, so the sum cannot wrap.
        let scale = self.scale().saturating_add(other.scale());
        if scale > MAX_SCALE {
            return Err(OverLimit);
        }
        Self::from_big(self.to_big_coefficient() * other.to_big_coefficient(), scale)
    }

    /// Returns the number with the opposite sign; zero stays zero.
    #[must_use]
    pub fn negate(&self) -> Self {
        if let Form::Small { coefficient, scale } = self.0
            && let Some(coefficient) = coefficient.checked_neg()
        {
            return Self(Form::Small { coefficient, scale });
        }
        // Only the sign changes, so the limits hold. i128::MIN is the one small coefficient whose opposite is big, and
        // the reverse.
        Self::from_big(-self.to_big_coefficient(), self.scale()).unwrap_or_else(|OverLimit| self.clone())
    }

    /// Returns the absolute value, at the same scale.
    #[must_use]
    pub fn abs(&self) -> Self {
        if self.signum() < 0 {
            self.negate()
        } else {
            self.clone()
        }
    }

    /// Compares numerically: `1.0` and `1.00` are equal.
    pub fn compare(&self, other: &Self) -> Ordering {
        if let Some(order) = self.small_order(other) {
            return order;
        }
        let signs = self.signum().cmp(&other.signum());
        if signs != Ordering::Equal || self.signum() == 0 {
            return signs;
        }
        // Numbers of different magnitude are compared without rescaling either of them.
        let (least, most) = self.size();
        let (other_least, other_most) = other.size();
        if most < other_least || other_most < least {
            let magnitudes = least.cmp(&other_least);
            return if self.signum() < 0 {
                magnitudes.reverse()
            } else {
                magnitudes
            };
        }
        let scale = self.scale().max(other.scale());
        // Each side has at most 2,000 digits.
        self.big_coefficient_at(scale)
            .cmp(&other.big_coefficient_at(scale))
    }

    /// Returns a lower and an upper bound of the number of digits before the point. The bounds are negative for zeros
    /// after the point. INVARIANT: the number is not zero.
    fn size(&self) -> (i64, i64) {
        let (least, most) = match &self.0 {
            Form::Small { coefficient, .. } => {
                let digits = coefficient.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
                (i64::from(digits), i64::from(digits))
            }
            Form::Big(big) => {
                // A number of n bits has between (n - 1) * lg 2 and n * lg 2 digits, and lg 2 is about 0.30103.
                let bits = i64::try_from(big.coefficient.bits()).unwrap_or(i64::MAX / 100_000);
                ((bits - 1) * 30_102 / 100_000, bits * 30_104 / 100_000 + 1)
            }
        };
        let scale = i64::from(self.scale());
        (least - scale, most - scale)
    }

    /// Returns -1, 0 or 1.
    pub fn signum(&self) -> i8 {
        match &self.0 {
            Form::Small { coefficient, .. } => match coefficient.cmp(&0) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            },
            Form::Big(big) if big.coefficient.sign() == Sign::Minus => -1,
            Form::Big(_) => 1,
        }
    }

    /// Converts to the nearest float, ties to even; infinite past the largest.
    pub fn to_float(&self) -> f64 {
        // Rust parses at most 2,000 digits here and rounds once. The text of a decimal is also that of a float.
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// Returns true when both have the same text: number and scale.
    pub fn is_identical(&self, other: &Self) -> bool {
        self.scale() == other.scale() && self.compare(other) == Ordering::Equal
    }
}

/// Multiplies a coefficient by a power of ten.
#[inline]
fn shift_small(coefficient: i128, places: u16) -> Option<i128> {
    small_product(coefficient, *SMALL_POWERS.get(usize::from(places))?)
}

#[inline]
fn small_product(left: i128, right: i128) -> Option<i128> {
    // Two 64-bit numbers multiply in one instruction; longer ones need a function call.
    match (i64::try_from(left), i64::try_from(right)) {
        (Ok(left), Ok(right)) => Some(i128::from(left) * i128::from(right)),
        _ => left.checked_mul(right),
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self(Form::Small {
            coefficient: i128::from(value),
            scale: 0,
        })
    }
}

/// Formats in plain notation with exactly `scale` digits after the point.
impl fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Small {
                coefficient,
                scale: 0,
            } => write!(formatter, "{coefficient}"),
            Form::Small { coefficient, scale } => text::write_plain(
                formatter,
                *coefficient < 0,
                &coefficient.unsigned_abs().to_string(),
                *scale,
            ),
            Form::Big(big) => {
                let is_negative = big.coefficient.sign() == Sign::Minus;
                text::write_plain(
                    formatter,
                    is_negative,
                    &big.coefficient.magnitude().to_string(),
                    big.scale,
                )
            }
        }
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Decimal({self})")
    }
}
