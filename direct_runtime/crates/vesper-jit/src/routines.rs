//! Arithmetic that compiled code of the quick level calls, where the other level has it inline. Nothing here can panic.

use std::cmp::Ordering;

use vesper_ir::planted;

/// The powers of ten that a coefficient may be multiplied by.
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

/// The scale of a result that does not fit: no decimal has it.
pub(crate) const DOES_NOT_FIT: i64 = -1;

/// A small decimal, in two machine registers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Small {
    coefficient: i64,
    scale: i64,
}

/// The coefficient at so many places more; nothing where it does not fit.
fn raised(coefficient: i64, places: i64) -> Option<i64> {
    if coefficient == 0 {
        return Some(0);
    }
    let places = usize::try_from(places).ok()?;
    coefficient.checked_mul(*POWERS.get(places)?)
}

fn sum(left: i64, left_scale: i64, right: i64, right_scale: i64) -> Option<Small> {
    // Scales are at most a thousand.
    let apart = left_scale.wrapping_sub(right_scale);
    let (left, right) = match apart.cmp(&0) {
        Ordering::Equal => (left, right),
        Ordering::Less => (raised(left, apart.wrapping_neg())?, right),
        Ordering::Greater => (left, raised(right, apart)?),
    };
    Some(Small {
        coefficient: planted!(
            "jit.called_sum_wraps",
            left.checked_add(right)?,
            left.wrapping_add(right)
        ),
        scale: planted!(
            "jit.called_sum_has_the_smaller_scale",
            left_scale.max(right_scale),
            left_scale.min(right_scale)
        ),
    })
}

/// The sum of two decimals; its scale is `DOES_NOT_FIT` where it is left to the interpreter.
pub(crate) extern "C" fn decimal_add(left: i64, left_scale: i64, right: i64, right_scale: i64) -> Small {
    let nothing = Small {
        coefficient: 0,
        scale: DOES_NOT_FIT,
    };
    sum(left, left_scale, right, right_scale).unwrap_or(nothing)
}

/// Less than, equal to or greater than zero as the left decimal is less than, equal to or greater than the right one.
pub(crate) extern "C" fn decimal_compare(left: i64, left_scale: i64, right: i64, right_scale: i64) -> i64 {
    let apart = left_scale.wrapping_sub(right_scale);
    // What does not fit is further from zero than anything that does.
    let order = match apart.cmp(&0) {
        Ordering::Equal => left.cmp(&right),
        Ordering::Less => match raised(left, apart.wrapping_neg()) {
            Some(left) => left.cmp(&right),
            None => planted!("jit.called_long_left_is_equal", left.cmp(&0), Ordering::Equal),
        },
        Ordering::Greater => match raised(right, apart) {
            Some(right) => left.cmp(&right),
            None => planted!("jit.called_long_right_is_less", 0.cmp(&right), right.cmp(&0)),
        },
    };
    i64::from(order as i8)
}
