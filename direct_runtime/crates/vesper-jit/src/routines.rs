//! Arithmetic routines for code of the quick level; the good level inlines them. None of them can panic.
//!
//! Values of the quick level live in slots. A routine receives the slot numbers, so its caller need not load the
//! values.

use std::cmp::Ordering;

use vesper_ir::decimal::MAX_SCALE;

use crate::runtime::{Context, NO_SLOT, answer};

/// The powers of ten that can scale a coefficient.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, where a panic is an error"
)]
pub(crate) static POWERS: [i64; 19] = {
    let mut powers = [1; 19];
    let mut place = 1;
    while place < powers.len() {
        powers[place] = powers[place - 1] * 10;
        place += 1;
    }
    powers
};

/// A decimal whose coefficient fits a machine register.
#[derive(Clone, Copy, Debug)]
struct Small {
    coefficient: i64,
    scale: i64,
}

/// The arguments of an operation on decimals: two operand slots, the result slot, and the exit before it. They are
/// packed into one register, so that a call has two arguments and no lookup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) left: usize,
    pub(crate) right: usize,
    pub(crate) to: usize,
    pub(crate) exit: usize,
}

impl Work {
    /// Packs the work into a word, or returns `None` if a number is too large.
    pub(crate) fn pack(self) -> Option<u64> {
        let Self {
            left,
            right,
            to,
            exit,
        } = self;
        [left, right, to, exit].into_iter().try_fold(0, |all, part| {
            let part = u16::try_from(part).ok()?;
            Some(all << 16 | u64::from(part))
        })
    }

    fn unpack(word: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "only the low 16 bits are wanted")]
        let [left, right, to, exit] = [48, 32, 16, 0].map(|at| usize::from((word >> at) as u16));
        Self {
            left,
            right,
            to,
            exit,
        }
    }
}

/// Multiplies a coefficient by a power of ten, or returns `None` on overflow.
fn raise_scale(coefficient: i64, places: i64) -> Option<i64> {
    if coefficient == 0 {
        return Some(0);
    }
    let places = usize::try_from(places).ok()?;
    coefficient.checked_mul(*POWERS.get(places)?)
}

/// Returns the coefficients of two decimals at the larger scale, and that scale.
fn align(left: Small, right: Small) -> Option<(i64, i64, i64)> {
    // Scales are at most a thousand.
    let apart = left.scale.wrapping_sub(right.scale);
    let (first, second, scale) = match apart {
        0 => (left.coefficient, right.coefficient, left.scale),
        ..0 => (
            raise_scale(left.coefficient, apart.wrapping_neg())?,
            right.coefficient,
            right.scale,
        ),
        _ => (
            left.coefficient,
            raise_scale(right.coefficient, apart)?,
            left.scale,
        ),
    };
    Some((first, second, scale))
}

fn sum(left: Small, right: Small) -> Option<Small> {
    let (left, right, scale) = align(left, right)?;
    let coefficient = left.checked_add(right)?;
    Some(Small { coefficient, scale })
}

fn difference(left: Small, right: Small) -> Option<Small> {
    let (left, right, scale) = align(left, right)?;
    let coefficient = left.checked_sub(right)?;
    Some(Small { coefficient, scale })
}

fn product(left: Small, right: Small) -> Option<Small> {
    let coefficient = left.coefficient.checked_mul(right.coefficient)?;
    let scale = left.scale.wrapping_add(right.scale);
    let is_known = scale <= i64::from(MAX_SCALE);
    is_known.then_some(Small { coefficient, scale })
}

fn order(left: Small, right: Small) -> Ordering {
    let apart = left.scale.wrapping_sub(right.scale);
    let (left, right) = (left.coefficient, right.coefficient);
    // A coefficient that overflows is farther from zero than any that fits.
    match apart {
        0 => left.cmp(&right),
        ..0 => match raise_scale(left, apart.wrapping_neg()) {
            Some(left) => left.cmp(&right),
            None => left.cmp(&0),
        },
        _ => match raise_scale(right, apart) {
            Some(right) => left.cmp(&right),
            None => 0.cmp(&right),
        },
    }
}

fn read(slots: &[u64], at: usize) -> Option<Small> {
    let [coefficient, scale] = *slots.get(at..at + 2)? else {
        return None;
    };
    Some(Small {
        coefficient: coefficient.cast_signed(),
        scale: scale.cast_signed(),
    })
}

/// Runs an operation on the slots. On overflow the interpreter continues before it.
#[inline]
fn run_operation(
    context: &mut Context<'_>,
    work: u64,
    operation: impl Fn(Small, Small) -> Option<Small>,
) -> i64 {
    let work = Work::unpack(work);
    let slots = context.all_slots();
    let (Some(left), Some(right)) = (read(slots, work.left), read(slots, work.right)) else {
        return context.fail(NO_SLOT);
    };
    let Some(result) = operation(left, right) else {
        return context.refuse(work.exit);
    };
    match slots.get_mut(work.to..work.to + 2) {
        Some([coefficient, scale]) => {
            *coefficient = result.coefficient.cast_unsigned();
            *scale = result.scale.cast_unsigned();
            answer::DONE
        }
        _ => context.fail(NO_SLOT),
    }
}

/// Adds two decimals. Called by compiled code.
pub(crate) extern "C" fn decimal_add(context: &mut Context<'_>, work: u64) -> i64 {
    run_operation(context, work, sum)
}

/// Subtracts two decimals. Called by compiled code.
pub(crate) extern "C" fn decimal_subtract(context: &mut Context<'_>, work: u64) -> i64 {
    run_operation(context, work, difference)
}

/// Multiplies two decimals. Called by compiled code.
pub(crate) extern "C" fn decimal_multiply(context: &mut Context<'_>, work: u64) -> i64 {
    run_operation(context, work, product)
}

/// Compares two decimals: negative, zero or positive for less, equal or greater. Called by compiled code.
pub(crate) extern "C" fn decimal_compare(context: &mut Context<'_>, work: u64) -> i64 {
    let work = Work::unpack(work);
    let slots = context.all_slots();
    match (read(slots, work.left), read(slots, work.right)) {
        (Some(left), Some(right)) => i64::from(order(left, right) as i8),
        _ => context.fail(NO_SLOT),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn work_in_one_word_is_what_it_was() {
        let most = usize::from(u16::MAX);
        let (left, right, to, exit) = (1, most, 3, 500);
        let work = Work::unpack(
            Work {
                left,
                right,
                to,
                exit,
            }
            .pack()
            .unwrap(),
        );
        assert_eq!(
            (work.left, work.right, work.to, work.exit),
            (left, right, to, exit)
        );
        for place in 0..4 {
            let mut parts = [0; 4];
            *parts.get_mut(place).unwrap() = most + 1;
            let [left, right, to, exit] = parts;
            assert_eq!(
                Work {
                    left,
                    right,
                    to,
                    exit
                }
                .pack(),
                None,
                "{parts:?}"
            );
        }
    }

    #[test]
    fn what_is_just_too_long_is_left_and_what_is_not_is_exact() {
        let small = |coefficient, scale| Small { coefficient, scale };
        let shown = |result: Option<Small>| result.map(|small| (small.coefficient, small.scale));
        let (most, least) = (small(i64::MAX, 0), small(i64::MIN, 0));
        let (one, tenth, none) = (small(1, 0), small(1, 1), small(0, 0));
        assert_eq!(shown(sum(most, none)), Some((i64::MAX, 0)));
        assert_eq!(shown(sum(most, one)), None);
        assert_eq!(
            shown(sum(one, small(1, 18))),
            Some((1_000_000_000_000_000_001, 18))
        );
        assert_eq!(shown(sum(one, small(1, 19))), None);
        assert_eq!(shown(sum(none, small(1, 1000))), Some((1, 1000)));
        assert_eq!(shown(difference(one, tenth)), Some((9, 1)));
        assert_eq!(shown(difference(tenth, one)), Some((-9, 1)));
        // The minimum has no negation, but can be subtracted from a negative number.
        assert_eq!(shown(difference(small(-1, 0), least)), Some((i64::MAX, 0)));
        assert_eq!(shown(difference(none, least)), None);
        assert_eq!(shown(difference(least, one)), None);
        assert_eq!(shown(product(least, one)), Some((i64::MIN, 0)));
        assert_eq!(shown(product(least, small(-1, 0))), None);
        assert_eq!(shown(product(tenth, small(3, 999))), Some((3, 1000)));
        assert_eq!(shown(product(tenth, small(0, 1000))), None);
        assert_eq!(order(most, small(i64::MAX, 1)), Ordering::Greater);
        assert_eq!(order(least, small(i64::MIN, 1)), Ordering::Less);
        assert_eq!(order(small(10, 1), one), Ordering::Equal);
    }
}
