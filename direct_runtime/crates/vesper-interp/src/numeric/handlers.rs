//! The functions of the steps. The operations are the kernels', as everywhere.

use std::hint::select_unpredictable;

use vesper_ir::planted;
use vesper_ir::{BooleanKernels, FloatKernels, IntegerKernels, Value};
use vesper_kernels::{Native, range_length};

use super::bits_of;
use super::run::{Handler, MOST_OPEN, ReadyStep, Signal, Work, go};
use super::slots::Slots;
use super::step::StepCode;
use crate::loops::Range;
use crate::run::class_of;

/// A function that does a step and then the next one; `return` leaves.
macro_rules! does {
    (|$step:ident, $slots:ident| $body:block) => {{
        fn does($step: &ReadyStep, behind: &[ReadyStep], $slots: &mut Slots, work: &mut Work<'_>) -> Signal {
            $body;
            go(behind, $slots, work)
        }
        does
    }};
}

/// The value of a kernel that did not fail; where it did, the round is undone.
macro_rules! done {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(_) => return Signal::IN_ROUND,
        }
    };
}

macro_rules! of_integers {
    ($kernel:ident) => {
        does!(|step, slots| {
            let value = done!(Native.$kernel(slots.integer(step.a), slots.integer(step.b)));
            slots.put(step.out, value.cast_unsigned());
        })
    };
}

macro_rules! total_of_integers {
    ($kernel:ident) => {
        does!(|step, slots| {
            let value = Native.$kernel(slots.integer(step.a), slots.integer(step.b));
            slots.put(step.out, value.cast_unsigned());
        })
    };
}

/// The second operation takes the first result on its left, or, with `from`, on its right.
macro_rules! two_of_integers {
    ($first:ident, $second:ident) => {
        does!(|step, slots| {
            let value = done!(Native.$first(slots.integer(step.a), slots.integer(step.b)));
            let value = done!(Native.$second(value, slots.integer(step.c)));
            slots.put(step.out, value.cast_unsigned());
        })
    };
    ($first:ident, from $second:ident) => {
        does!(|step, slots| {
            let value = done!(Native.$first(slots.integer(step.a), slots.integer(step.b)));
            let value = done!(Native.$second(slots.integer(step.c), value));
            slots.put(step.out, value.cast_unsigned());
        })
    };
    ($first:ident, total $second:ident) => {
        does!(|step, slots| {
            let value = done!(Native.$first(slots.integer(step.a), slots.integer(step.b)));
            let value = Native.$second(value, slots.integer(step.c));
            slots.put(step.out, value.cast_unsigned());
        })
    };
}

/// A product and a sum come first.
macro_rules! three_of_integers {
    (total $third:ident) => {
        does!(|step, slots| {
            let value = done!(Native.integer_multiply(slots.integer(step.a), slots.integer(step.b)));
            let value = done!(Native.integer_add(value, slots.integer(step.c)));
            let value = Native.$third(value, slots.integer(step.d));
            slots.put(step.out, value.cast_unsigned());
        })
    };
    ($third:ident) => {
        does!(|step, slots| {
            let value = done!(Native.integer_multiply(slots.integer(step.a), slots.integer(step.b)));
            let value = done!(Native.integer_add(value, slots.integer(step.c)));
            let value = done!(Native.$third(value, slots.integer(step.d)));
            slots.put(step.out, value.cast_unsigned());
        })
    };
}

macro_rules! integer_of {
    ($read:ident, $kernel:ident) => {
        does!(|step, slots| {
            let value = done!(Native.$kernel(slots.$read(step.a)));
            slots.put(step.out, value.cast_unsigned());
        })
    };
}

macro_rules! total_integer_of {
    ($kernel:ident) => {
        does!(|step, slots| {
            let value = Native.$kernel(slots.integer(step.a));
            slots.put(step.out, value.cast_unsigned());
        })
    };
}

macro_rules! of_floats {
    ($kernel:ident) => {
        does!(|step, slots| {
            let value = Native.$kernel(slots.float(step.a), slots.float(step.b));
            slots.put(step.out, value.to_bits());
        })
    };
}

macro_rules! two_of_floats {
    ($first:ident, $second:ident) => {
        does!(|step, slots| {
            let value = Native.$first(slots.float(step.a), slots.float(step.b));
            let value = Native.$second(value, slots.float(step.c));
            slots.put(step.out, value.to_bits());
        })
    };
    ($first:ident, from $second:ident) => {
        does!(|step, slots| {
            let value = Native.$first(slots.float(step.a), slots.float(step.b));
            let value = Native.$second(slots.float(step.c), value);
            slots.put(step.out, value.to_bits());
        })
    };
}

/// Two places of a polynomial.
macro_rules! four_of_floats {
    ($second:ident, $fourth:ident) => {
        does!(|step, slots| {
            let value = Native.float_multiply(slots.float(step.a), slots.float(step.b));
            let value = Native.$second(value, slots.float(step.c));
            let value = Native.float_multiply(value, slots.float(step.d));
            let value = Native.$fourth(value, slots.float(step.e));
            slots.put(step.out, value.to_bits());
        })
    };
}

macro_rules! float_of {
    ($read:ident, $kernel:ident) => {
        does!(|step, slots| {
            let value = Native.$kernel(slots.$read(step.a));
            slots.put(step.out, value.to_bits());
        })
    };
}

macro_rules! to_float_then {
    ($kernel:ident) => {
        does!(|step, slots| {
            let value = Native.integer_to_float(slots.integer(step.a));
            let value = Native.$kernel(value, slots.float(step.b));
            slots.put(step.out, value.to_bits());
        })
    };
}

macro_rules! boolean_of {
    ($read:ident, $kernel:ident) => {
        does!(|step, slots| {
            let holds = Native.$kernel(slots.$read(step.a));
            slots.put(step.out, u64::from(holds));
        })
    };
}

macro_rules! holds {
    ($read:ident, $kernel:ident) => {
        does!(|step, slots| {
            let holds = Native.$kernel(slots.$read(step.a), slots.$read(step.b));
            slots.put(step.out, u64::from(holds));
        })
    };
}

macro_rules! choose {
    ($read:ident, $kernel:ident) => {
        does!(|step, slots| {
            let (chosen, other) = (slots.get(step.c), slots.get(step.d));
            let holds = Native.$kernel(slots.$read(step.a), slots.$read(step.b));
            slots.put(step.out, select_unpredictable(holds, chosen, other));
        })
    };
}

macro_rules! add_if {
    ($read:ident, $kernel:ident, integer) => {
        does!(|step, slots| {
            let holds = Native.$kernel(slots.$read(step.a), slots.$read(step.b));
            let (value, more) = (slots.integer(step.c), slots.get(step.d));
            let more = select_unpredictable(holds, more, 0).cast_signed();
            let value = done!(Native.integer_add(value, more));
            slots.put(step.out, value.cast_unsigned());
        })
    };
    ($read:ident, $kernel:ident, float) => {
        does!(|step, slots| {
            let holds = Native.$kernel(slots.$read(step.a), slots.$read(step.b));
            let value = slots.float(step.c);
            let sum = Native.float_add(value, slots.float(step.d));
            slots.put(
                step.out,
                select_unpredictable(holds, sum.to_bits(), value.to_bits()),
            );
        })
    };
}

macro_rules! jump {
    ($read:ident, $kernel:ident) => {{
        fn jumps(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
            if Native.$kernel(slots.$read(step.a), slots.$read(step.b)) {
                return go_to(step, behind, slots, work);
            }
            go(behind, slots, work)
        }
        jumps
    }};
}

macro_rules! jump_unless {
    ($read:ident, $kernel:ident) => {{
        fn jumps(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
            if !Native.$kernel(slots.$read(step.a), slots.$read(step.b)) {
                return go_to(step, behind, slots, work);
            }
            go(behind, slots, work)
        }
        jumps
    }};
}

/// Goes where a step jumps to.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "the call of the next step must be the last of this one"
)]
fn go_to(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    let to = work.steps.get(usize::from(step.to)..).unwrap_or(&[]);
    if to.len() > behind.len() {
        return go_back(step, slots, work);
    }
    go(to, slots, work)
}

/// The same for what is not behind the step.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "the call of the next step must be the last of this one"
)]
fn go_back(step: &ReadyStep, slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    let Some(open) = work.open.checked_sub(1) else {
        work.open = MOST_OPEN;
        return Signal::goes_on(step.to);
    };
    work.open = open;
    go(work.steps.get(usize::from(step.to)..).unwrap_or(&[]), slots, work)
}

/// The function that does steps of this code.
#[expect(clippy::too_many_lines, reason = "one arm a code")]
pub(super) fn handler(code: StepCode) -> Handler {
    match code {
        StepCode::AddI => of_integers!(integer_add),
        StepCode::SubtractI => of_integers!(integer_subtract),
        StepCode::MultiplyI => of_integers!(integer_multiply),
        StepCode::QuotI => of_integers!(integer_quot),
        StepCode::RemI => of_integers!(integer_rem),
        StepCode::DivFloorI => of_integers!(integer_div_floor),
        StepCode::ModI => of_integers!(integer_mod),
        StepCode::AndI => total_of_integers!(integer_bit_and),
        StepCode::OrI => total_of_integers!(integer_bit_or),
        StepCode::XorI => total_of_integers!(integer_bit_xor),
        StepCode::ShiftLeftI => of_integers!(integer_shift_left),
        StepCode::ShiftRightI => of_integers!(integer_shift_right),
        StepCode::AddAddI => two_of_integers!(integer_add, integer_add),
        StepCode::AddSubtractI => two_of_integers!(integer_add, integer_subtract),
        StepCode::AddFromI => two_of_integers!(integer_add, from integer_subtract),
        StepCode::AddMultiplyI => two_of_integers!(integer_add, integer_multiply),
        StepCode::AddAndI => two_of_integers!(integer_add, total integer_bit_and),
        StepCode::AddRemI => two_of_integers!(integer_add, integer_rem),
        StepCode::AddModI => two_of_integers!(integer_add, integer_mod),
        StepCode::SubtractAddI => two_of_integers!(integer_subtract, integer_add),
        StepCode::SubtractSubtractI => two_of_integers!(integer_subtract, integer_subtract),
        StepCode::SubtractFromI => two_of_integers!(integer_subtract, from integer_subtract),
        StepCode::SubtractMultiplyI => two_of_integers!(integer_subtract, integer_multiply),
        StepCode::MultiplyAddI => two_of_integers!(integer_multiply, integer_add),
        StepCode::MultiplySubtractI => two_of_integers!(integer_multiply, integer_subtract),
        StepCode::MultiplyFromI => two_of_integers!(integer_multiply, from integer_subtract),
        StepCode::MultiplyMultiplyI => two_of_integers!(integer_multiply, integer_multiply),
        StepCode::MultiplyAndI => two_of_integers!(integer_multiply, total integer_bit_and),
        StepCode::MultiplyRemI => two_of_integers!(integer_multiply, integer_rem),
        StepCode::MultiplyModI => two_of_integers!(integer_multiply, integer_mod),
        StepCode::MultiplyAddAndI => three_of_integers!(total integer_bit_and),
        StepCode::MultiplyAddRemI => three_of_integers!(integer_rem),
        StepCode::MultiplyAddModI => three_of_integers!(integer_mod),
        StepCode::NegateI => integer_of!(integer, integer_negate),
        StepCode::AbsI => integer_of!(integer, integer_abs),
        StepCode::SignI => total_integer_of!(integer_sign),
        StepCode::NotI => total_integer_of!(integer_bit_not),
        StepCode::CountI => total_integer_of!(integer_bit_count),
        StepCode::ToFloat => float_of!(integer, integer_to_float),
        StepCode::ToFloatMultiply => to_float_then!(float_multiply),
        StepCode::ToFloatDivide => to_float_then!(float_divide),
        StepCode::AddF => of_floats!(float_add),
        StepCode::SubtractF => of_floats!(float_subtract),
        StepCode::MultiplyF => of_floats!(float_multiply),
        StepCode::DivideF => of_floats!(float_divide),
        StepCode::AddAddF => two_of_floats!(float_add, float_add),
        StepCode::AddSubtractF => two_of_floats!(float_add, float_subtract),
        StepCode::AddFromF => two_of_floats!(float_add, from float_subtract),
        StepCode::AddMultiplyF => two_of_floats!(float_add, float_multiply),
        StepCode::SubtractAddF => two_of_floats!(float_subtract, float_add),
        StepCode::SubtractSubtractF => two_of_floats!(float_subtract, float_subtract),
        StepCode::SubtractFromF => two_of_floats!(float_subtract, from float_subtract),
        StepCode::SubtractMultiplyF => two_of_floats!(float_subtract, float_multiply),
        StepCode::MultiplyAddF => two_of_floats!(float_multiply, float_add),
        StepCode::MultiplySubtractF => two_of_floats!(float_multiply, float_subtract),
        StepCode::MultiplyFromF => two_of_floats!(float_multiply, from float_subtract),
        StepCode::MultiplyMultiplyF => two_of_floats!(float_multiply, float_multiply),
        StepCode::MultiplyAddMultiplyAddF => four_of_floats!(float_add, float_add),
        StepCode::MultiplyAddMultiplySubtractF => four_of_floats!(float_add, float_subtract),
        StepCode::MultiplySubtractMultiplyAddF => four_of_floats!(float_subtract, float_add),
        StepCode::MultiplySubtractMultiplySubtractF => four_of_floats!(float_subtract, float_subtract),
        StepCode::NegateF => float_of!(float, float_negate),
        StepCode::AbsF => float_of!(float, float_abs),
        StepCode::SqrtF => float_of!(float, float_sqrt),
        StepCode::FloorF => integer_of!(float, float_floor),
        StepCode::CeilF => integer_of!(float, float_ceil),
        StepCode::TruncF => integer_of!(float, float_trunc),
        StepCode::ToIntegerF => integer_of!(float, float_to_integer),
        StepCode::IsNanF => boolean_of!(float, float_is_nan),
        StepCode::IsFiniteF => boolean_of!(float, float_is_finite),
        StepCode::NotB => boolean_of!(boolean, boolean_not),
        StepCode::EqualB => holds!(boolean, boolean_equal),
        StepCode::NotEqualB => holds!(boolean, boolean_not_equal),
        StepCode::EqualI => holds!(integer, integer_equal),
        StepCode::NotEqualI => holds!(integer, integer_not_equal),
        StepCode::LessI => holds!(integer, integer_less),
        StepCode::LessOrEqualI => holds!(integer, integer_less_or_equal),
        StepCode::GreaterI => holds!(integer, integer_greater),
        StepCode::GreaterOrEqualI => holds!(integer, integer_greater_or_equal),
        StepCode::EqualF => holds!(float, float_equal),
        StepCode::NotEqualF => holds!(float, float_not_equal),
        StepCode::LessF => holds!(float, float_less),
        StepCode::LessOrEqualF => holds!(float, float_less_or_equal),
        StepCode::GreaterF => holds!(float, float_greater),
        StepCode::GreaterOrEqualF => holds!(float, float_greater_or_equal),
        StepCode::JumpIfEqualI => jump!(integer, integer_equal),
        StepCode::JumpIfNotEqualI => jump!(integer, integer_not_equal),
        StepCode::JumpIfLessI => jump!(integer, integer_less),
        StepCode::JumpIfLessOrEqualI => jump!(integer, integer_less_or_equal),
        StepCode::JumpIfGreaterI => jump!(integer, integer_greater),
        StepCode::JumpIfGreaterOrEqualI => jump!(integer, integer_greater_or_equal),
        StepCode::JumpIfEqualF => jump!(float, float_equal),
        StepCode::JumpIfNotEqualF => jump!(float, float_not_equal),
        StepCode::JumpIfLessF => jump!(float, float_less),
        StepCode::JumpIfLessOrEqualF => jump!(float, float_less_or_equal),
        StepCode::JumpIfGreaterF => jump!(float, float_greater),
        StepCode::JumpIfGreaterOrEqualF => jump!(float, float_greater_or_equal),
        StepCode::JumpUnlessEqualI => jump_unless!(integer, integer_equal),
        StepCode::JumpUnlessNotEqualI => jump_unless!(integer, integer_not_equal),
        StepCode::JumpUnlessLessI => jump_unless!(integer, integer_less),
        StepCode::JumpUnlessLessOrEqualI => jump_unless!(integer, integer_less_or_equal),
        StepCode::JumpUnlessGreaterI => jump_unless!(integer, integer_greater),
        StepCode::JumpUnlessGreaterOrEqualI => jump_unless!(integer, integer_greater_or_equal),
        StepCode::JumpUnlessEqualF => jump_unless!(float, float_equal),
        StepCode::JumpUnlessNotEqualF => jump_unless!(float, float_not_equal),
        StepCode::JumpUnlessLessF => jump_unless!(float, float_less),
        StepCode::JumpUnlessLessOrEqualF => jump_unless!(float, float_less_or_equal),
        StepCode::JumpUnlessGreaterF => jump_unless!(float, float_greater),
        StepCode::JumpUnlessGreaterOrEqualF => jump_unless!(float, float_greater_or_equal),
        StepCode::ChooseEqualI => choose!(integer, integer_equal),
        StepCode::ChooseNotEqualI => choose!(integer, integer_not_equal),
        StepCode::ChooseLessI => choose!(integer, integer_less),
        StepCode::ChooseLessOrEqualI => choose!(integer, integer_less_or_equal),
        StepCode::ChooseGreaterI => choose!(integer, integer_greater),
        StepCode::ChooseGreaterOrEqualI => choose!(integer, integer_greater_or_equal),
        StepCode::ChooseEqualF => choose!(float, float_equal),
        StepCode::ChooseNotEqualF => choose!(float, float_not_equal),
        StepCode::ChooseLessF => choose!(float, float_less),
        StepCode::ChooseLessOrEqualF => choose!(float, float_less_or_equal),
        StepCode::ChooseGreaterF => choose!(float, float_greater),
        StepCode::ChooseGreaterOrEqualF => choose!(float, float_greater_or_equal),
        StepCode::AddIfEqualII => add_if!(integer, integer_equal, integer),
        StepCode::AddIfEqualIF => add_if!(integer, integer_equal, float),
        StepCode::AddIfNotEqualII => add_if!(integer, integer_not_equal, integer),
        StepCode::AddIfNotEqualIF => add_if!(integer, integer_not_equal, float),
        StepCode::AddIfLessII => add_if!(integer, integer_less, integer),
        StepCode::AddIfLessIF => add_if!(integer, integer_less, float),
        StepCode::AddIfLessOrEqualII => add_if!(integer, integer_less_or_equal, integer),
        StepCode::AddIfLessOrEqualIF => add_if!(integer, integer_less_or_equal, float),
        StepCode::AddIfGreaterII => add_if!(integer, integer_greater, integer),
        StepCode::AddIfGreaterIF => add_if!(integer, integer_greater, float),
        StepCode::AddIfGreaterOrEqualII => add_if!(integer, integer_greater_or_equal, integer),
        StepCode::AddIfGreaterOrEqualIF => add_if!(integer, integer_greater_or_equal, float),
        StepCode::AddIfEqualFI => add_if!(float, float_equal, integer),
        StepCode::AddIfEqualFF => add_if!(float, float_equal, float),
        StepCode::AddIfNotEqualFI => add_if!(float, float_not_equal, integer),
        StepCode::AddIfNotEqualFF => add_if!(float, float_not_equal, float),
        StepCode::AddIfLessFI => add_if!(float, float_less, integer),
        StepCode::AddIfLessFF => add_if!(float, float_less, float),
        StepCode::AddIfLessOrEqualFI => add_if!(float, float_less_or_equal, integer),
        StepCode::AddIfLessOrEqualFF => add_if!(float, float_less_or_equal, float),
        StepCode::AddIfGreaterFI => add_if!(float, float_greater, integer),
        StepCode::AddIfGreaterFF => add_if!(float, float_greater, float),
        StepCode::AddIfGreaterOrEqualFI => add_if!(float, float_greater_or_equal, integer),
        StepCode::AddIfGreaterOrEqualFF => add_if!(float, float_greater_or_equal, float),
        StepCode::Move => moved,
        StepCode::MoveTwo => moved_two,
        StepCode::Jump => jumped,
        StepCode::JumpIfTrue => jumped_if_true,
        StepCode::JumpIfFalse => jumped_if_false,
        StepCode::Class => classed,
        StepCode::Range => ranged,
        StepCode::Next => next_of_inner,
        StepCode::HeadNext => head_next,
        StepCode::HeadNextItem => head_next_item,
        StepCode::Head => head,
        StepCode::AgainNext => again_next,
        StepCode::AgainNextItem => again_next_item,
        StepCode::RoundAgainNext => round_again_next,
        StepCode::RoundAgainNextItem => round_again_next_item,
        StepCode::Round => rounded,
        StepCode::Limit => limited,
        StepCode::Spend => spent,
        StepCode::Require => required,
        StepCode::Undo => undone,
        StepCode::Leave => left,
    }
}

fn jumped(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    go_to(step, behind, slots, work)
}

fn jumped_if_true(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    if slots.boolean(step.a) {
        return go_to(step, behind, slots, work);
    }
    go(behind, slots, work)
}

fn jumped_if_false(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    if !slots.boolean(step.a) {
        return go_to(step, behind, slots, work);
    }
    go(behind, slots, work)
}

fn moved(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    slots.put(step.out, slots.get(step.a));
    go(behind, slots, work)
}

fn moved_two(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    slots.put(step.out, slots.get(step.a));
    slots.put(step.b, slots.get(step.c));
    go(behind, slots, work)
}

fn ranged(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    let (start, end, by) = (
        slots.integer(step.b),
        slots.integer(step.c),
        slots.integer(step.d),
    );
    let length = done!(range_length(start, end, by));
    let range = Range {
        next: start,
        step: by,
        left: length as u64,
    };
    slots.put_range(step.a, range);
    go(behind, slots, work)
}

/// The next round of a loop within the one whose form this is.
fn next_of_inner(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    let Some(item) = slots.take(step.a) else {
        return go_to(step, behind, slots, work);
    };
    let Some(left) = work.fuel.checked_sub(1) else {
        return Signal::IN_ROUND;
    };
    work.fuel = left;
    slots.put(step.out, item.cast_unsigned());
    go(behind, slots, work)
}

/// What came of asking for the next round of the loop.
enum Round {
    Begun,
    Done,
    /// There is one, but it is for the bytecode to begin.
    NotOurs,
}

/// Begins the next round: the item is what `item` makes of the next integer of the range.
#[inline]
fn begin(
    step: &ReadyStep,
    slots: &mut Slots,
    work: &mut Work<'_>,
    item: impl Fn(i64, &[Value]) -> Option<u64>,
) -> Round {
    if slots.get(step.a.wrapping_add(2)) == 0 {
        return Round::Done;
    }
    // Looked at before anything is taken, so that nothing has to be put back.
    let (Some(left), Some(bits)) = (work.fuel.checked_sub(1), item(slots.integer(step.a), work.items)) else {
        return Round::NotOurs;
    };
    work.fuel_at_head = work.fuel;
    work.fuel = left;
    slots.take(step.a);
    slots.put(step.out, bits);
    Round::Begun
}

#[inline]
fn begin_next(step: &ReadyStep, slots: &mut Slots, work: &mut Work<'_>) -> Round {
    begin(step, slots, work, |item, _| Some(item.cast_unsigned()))
}

#[inline]
fn begin_next_item(step: &ReadyStep, slots: &mut Slots, work: &mut Work<'_>) -> Round {
    begin(step, slots, work, |place, items| {
        let item = usize::try_from(place).ok().and_then(|place| items.get(place));
        item.and_then(bits_of)
    })
}

fn head_next(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    match begin_next(step, slots, work) {
        Round::Begun => go(behind, slots, work),
        Round::Done => go_to(step, behind, slots, work),
        Round::NotOurs => Signal::AT_HEAD,
    }
}

fn head_next_item(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    match begin_next_item(step, slots, work) {
        Round::Begun => go(behind, slots, work),
        Round::Done => go_to(step, behind, slots, work),
        Round::NotOurs => Signal::AT_HEAD,
    }
}

fn head(_: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    work.fuel_at_head = work.fuel;
    go(behind, slots, work)
}

fn again_next(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    match begin_next(step, slots, work) {
        Round::Begun => go_back(step, slots, work),
        Round::Done => go(behind, slots, work),
        Round::NotOurs => Signal::AT_HEAD,
    }
}

fn again_next_item(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    match begin_next_item(step, slots, work) {
        Round::Begun => go_back(step, slots, work),
        Round::Done => go(behind, slots, work),
        Round::NotOurs => Signal::AT_HEAD,
    }
}

fn round_again_next(
    step: &ReadyStep,
    behind: &[ReadyStep],
    slots: &mut Slots,
    work: &mut Work<'_>,
) -> Signal {
    slots.put(step.b, slots.get(step.b).wrapping_add(1));
    again_next(step, behind, slots, work)
}

fn round_again_next_item(
    step: &ReadyStep,
    behind: &[ReadyStep],
    slots: &mut Slots,
    work: &mut Work<'_>,
) -> Signal {
    slots.put(step.b, slots.get(step.b).wrapping_add(1));
    again_next_item(step, behind, slots, work)
}

fn rounded(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    slots.put(step.a, slots.get(step.a).wrapping_add(1));
    go(behind, slots, work)
}

fn classed(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    let rounds = slots.integer(step.b).wrapping_sub(slots.integer(step.a));
    let bit = slots.get(step.c) << class_of(rounds);
    slots.put(step.out, slots.get(step.d) | bit);
    go(behind, slots, work)
}

fn limited(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    if slots.integer(step.a) >= slots.integer(step.b) {
        return Signal::IN_ROUND;
    }
    go(behind, slots, work)
}

fn spent(_: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    planted!(
        "run.rounds_without_items_cost_nothing",
        match work.fuel.checked_sub(1) {
            Some(left) => work.fuel = left,
            None => return Signal::IN_ROUND,
        },
        {}
    );
    go(behind, slots, work)
}

fn required(step: &ReadyStep, behind: &[ReadyStep], slots: &mut Slots, work: &mut Work<'_>) -> Signal {
    if !slots.boolean(step.a) {
        return Signal::IN_ROUND;
    }
    go(behind, slots, work)
}

fn undone(_: &ReadyStep, _: &[ReadyStep], _: &mut Slots, _: &mut Work<'_>) -> Signal {
    Signal::IN_ROUND
}

fn left(_: &ReadyStep, _: &[ReadyStep], _: &mut Slots, _: &mut Work<'_>) -> Signal {
    Signal::LEFT
}
