//! Allocation of a total by weights.

use num_bigint::BigUint;

use super::round::ten_to;
use super::{Decimal, Form, OverLimit};

/// Error for a total that cannot be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocateError {
    /// There are no weights, a negative weight, or only zeros.
    Weights,
}

/// Share of a weight before the left-over units are distributed.
struct Part {
    /// Whole units.
    units: BigUint,
    /// Remainder as a fraction of one unit, in 128 bits, rounded down.
    cut: u128,
}

/// Splits the total into one part for each weight. The parts add up to the total exactly.
///
/// A remainder may be as long as the longest weight at the scale of the most precise one. Only its first 128 bits are
/// stored; where these are equal, the remainder is computed again.
pub fn allocate(total: &Decimal, weights: &[&Decimal]) -> Result<Vec<Decimal>, AllocateError> {
    let scale = weights.iter().map(|weight| weight.scale()).max();
    let scale = scale.ok_or(AllocateError::Weights)?;
    if weights.iter().any(|weight| weight.is_negative()) {
        return Err(AllocateError::Weights);
    }
    let shared = Shared::new(total, weights, scale);
    if shared.sum.bits() == 0 {
        return Err(AllocateError::Weights);
    }
    let mut left_over = shared.units.clone();
    let mut parts: Vec<Decimal> = Vec::with_capacity(weights.len());
    let mut cuts: Vec<u128> = Vec::with_capacity(weights.len());
    let mut last: Option<(&Decimal, Part)> = None;
    for weight in weights {
        let part = match last {
            Some((same, part)) if same.is_identical(weight) => part,
            _ => shared.part(weight),
        };
        left_over -= &part.units;
        parts.push(shared.to_decimal(part.units.clone()));
        cuts.push(part.cut);
        last = Some((weight, part));
    }
    // Each remainder is less than one unit, so there are fewer left-over units than parts.
    let left_over = usize::try_from(&left_over).unwrap_or(0);
    for place in shared.first_in_line(weights, &cuts, left_over) {
        if let Some(part) = parts.get_mut(place) {
            *part = shared.to_decimal(part.magnitude() + 1_u8);
        }
    }
    Ok(parts)
}

struct Shared {
    is_negative: bool,
    /// The total in units of its last place.
    units: BigUint,
    /// Scale of the total.
    places: u16,
    /// Common scale of all weights.
    scale: u16,
    /// Sum of the weights at that scale.
    sum: BigUint,
}

impl Shared {
    fn new(total: &Decimal, weights: &[&Decimal], scale: u16) -> Self {
        // Grouping by scale needs one multiplication by each power of ten, not one for each weight.
        let mut by_scale = vec![BigUint::ZERO; usize::from(scale) + 1];
        for weight in weights {
            if let Some(sum) = by_scale.get_mut(usize::from(weight.scale())) {
                match &weight.0 {
                    Form::Small { coefficient, .. } => *sum += coefficient.unsigned_abs(),
                    Form::Big(big) => *sum += big.coefficient.magnitude(),
                }
            }
        }
        let sum = by_scale.into_iter().reduce(|above, own| above * 10_u8 + own);
        Self {
            is_negative: total.is_negative(),
            units: total.magnitude(),
            places: total.scale(),
            scale,
            sum: sum.unwrap_or_default(),
        }
    }

    /// Returns units and remainder of one weight, the remainder in parts of `sum`.
    fn exact(&self, weight: &Decimal) -> (BigUint, BigUint) {
        let power = ten_to(u32::from(self.scale.saturating_sub(weight.scale())));
        let dividend = &self.units * weight.magnitude() * power;
        let units = &dividend / &self.sum;
        let remainder = dividend - &units * &self.sum;
        (units, remainder)
    }

    fn part(&self, weight: &Decimal) -> Part {
        let (units, remainder) = self.exact(weight);
        let cut = u128::try_from((remainder << 128_u8) / &self.sum).unwrap_or(u128::MAX);
        Part { units, cut }
    }

    /// Creates a part. No part is larger than the total, so the limits hold.
    fn to_decimal(&self, units: BigUint) -> Decimal {
        let made = Decimal::from_magnitude(self.is_negative, units, self.places);
        made.unwrap_or_else(|OverLimit| Decimal::from(0))
    }

    /// Returns the indexes of the `count` weights with the largest remainders. Of equal remainders the earlier comes
    /// first.
    fn first_in_line(&self, weights: &[&Decimal], cuts: &[u128], count: usize) -> Vec<usize> {
        let mut line: Vec<(usize, u128)> = cuts.iter().copied().enumerate().collect();
        // The sort is stable: equal remainders keep their order.
        line.sort_by(|(_, left), (_, right)| right.cmp(left));
        let Some((_, last)) = count.checked_sub(1).and_then(|last| line.get(last)).copied() else {
            return Vec::new();
        };
        let sure = line.partition_point(|(_, cut)| *cut > last);
        let end = line.partition_point(|(_, cut)| *cut >= last);
        let mut chosen: Vec<usize> = line.iter().take(sure).map(|(place, _)| *place).collect();
        // Remainders with equal first 128 bits.
        let close: Vec<usize> = line
            .iter()
            .take(end)
            .skip(sure)
            .map(|(place, _)| *place)
            .collect();
        let wanted = count.saturating_sub(sure);
        chosen.extend(self.largest(weights, close, wanted));
        chosen
    }

    fn largest(&self, weights: &[&Decimal], mut close: Vec<usize>, wanted: usize) -> Vec<usize> {
        let weight = |place: &usize| weights.get(*place).copied();
        let mut pairs = close.iter().zip(close.iter().skip(1));
        let are_same = pairs.all(|(left, right)| match (weight(left), weight(right)) {
            (Some(left), Some(right)) => left.is_identical(right),
            _ => true,
        });
        if wanted < close.len() && !are_same {
            let remainder = |place: &usize| weight(place).map(|weight| self.exact(weight).1);
            close.sort_by_cached_key(|place| std::cmp::Reverse(remainder(place)));
        }
        close.truncate(wanted);
        close
    }
}
