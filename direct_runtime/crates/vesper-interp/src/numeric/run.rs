//! Does the steps of a numeric form. The operations are the kernels', as everywhere.

use vesper_ir::planted;
use vesper_ir::{BooleanKernels, FloatKernels, IntegerKernels, Value};
use vesper_kernels::{Native, range_length};

use super::bits_of;
use super::step::{Step, StepCode};
use crate::loops::Range;

/// The registers of a numeric form. A slot is named by a byte, and there are as many as bytes have values, so that no
/// access needs a check.
pub(super) struct Slots([u64; 256]);

impl Slots {
    #[inline]
    pub(super) fn new() -> Self {
        Self([0; 256])
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "there is a slot for every byte")]
    pub(super) fn get(&self, slot: u8) -> u64 {
        self.0[usize::from(slot)]
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "there is a slot for every byte")]
    pub(super) fn put(&mut self, slot: u8, bits: u64) {
        self.0[usize::from(slot)] = bits;
    }

    #[inline]
    fn integer(&self, slot: u8) -> i64 {
        self.get(slot).cast_signed()
    }

    #[inline]
    fn float(&self, slot: u8) -> f64 {
        f64::from_bits(self.get(slot))
    }

    #[inline]
    fn boolean(&self, slot: u8) -> bool {
        self.get(slot) != 0
    }

    /// The range in the three slots from this one on.
    #[inline]
    pub(super) fn range(&self, slot: u8) -> Range {
        Range {
            next: self.integer(slot),
            step: self.integer(slot.wrapping_add(1)),
            left: self.get(slot.wrapping_add(2)),
        }
    }

    #[inline]
    pub(super) fn put_range(&mut self, slot: u8, range: Range) {
        self.put(slot, range.next.cast_unsigned());
        self.put(slot.wrapping_add(1), range.step.cast_unsigned());
        self.put(slot.wrapping_add(2), range.left);
    }

    /// The next integer of the range at a slot.
    #[inline]
    fn take(&mut self, slot: u8) -> Option<i64> {
        let left = self.get(slot.wrapping_add(2)).checked_sub(1)?;
        self.put(slot.wrapping_add(2), left);
        let item = self.integer(slot);
        let step = self.integer(slot.wrapping_add(1));
        self.put(slot, item.wrapping_add(step).cast_unsigned());
        Some(item)
    }
}

/// How the steps came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The loop was left by this exit.
    Left(u16),
    /// Before a round: all slots are as the round would find them.
    AtHead,
    /// In a round, which is to be undone.
    InRound,
}

/// Does steps until the loop is left or a round is for the bytecode to do. The fuel that is left is what was there before
/// the round where one is undone.
#[expect(
    clippy::too_many_lines,
    reason = "one arm a code, in one place for the compiler to lay out"
)]
pub(super) fn run(steps: &[Step], slots: &mut Slots, items: &[Value], fuel: u64) -> (Ended, u64) {
    let mut fuel = fuel;
    let mut fuel_at_head = fuel;
    let mut next = 0;
    macro_rules! undo {
        () => {
            return (Ended::InRound, fuel_at_head)
        };
    }
    macro_rules! integer {
        ($step:ident, $result:expr) => {
            match $result {
                Ok(value) => slots.put($step.out, value.cast_unsigned()),
                Err(_) => undo!(),
            }
        };
    }
    macro_rules! of_integers {
        ($step:ident, $kernel:ident) => {
            integer!(
                $step,
                Native.$kernel(slots.integer($step.a), slots.integer($step.b))
            )
        };
    }
    macro_rules! total_of_integers {
        ($step:ident, $kernel:ident) => {{
            let value = Native.$kernel(slots.integer($step.a), slots.integer($step.b));
            slots.put($step.out, value.cast_unsigned());
        }};
    }
    // The second operation takes the first result on its left, or, with `from`, on its right.
    macro_rules! two_of_integers {
        ($step:ident, $first:ident, $second:ident) => {
            match Native.$first(slots.integer($step.a), slots.integer($step.b)) {
                Ok(value) => integer!($step, Native.$second(value, slots.integer($step.c))),
                Err(_) => undo!(),
            }
        };
        ($step:ident, $first:ident, from $second:ident) => {
            match Native.$first(slots.integer($step.a), slots.integer($step.b)) {
                Ok(value) => integer!($step, Native.$second(slots.integer($step.c), value)),
                Err(_) => undo!(),
            }
        };
        ($step:ident, $first:ident, total $second:ident) => {
            match Native.$first(slots.integer($step.a), slots.integer($step.b)) {
                Ok(value) => {
                    let value = Native.$second(value, slots.integer($step.c));
                    slots.put($step.out, value.cast_unsigned());
                }
                Err(_) => undo!(),
            }
        };
    }
    macro_rules! float {
        ($step:ident, $result:expr) => {{
            let value = $result;
            slots.put($step.out, value.to_bits());
        }};
    }
    macro_rules! of_floats {
        ($step:ident, $kernel:ident) => {
            float!($step, Native.$kernel(slots.float($step.a), slots.float($step.b)))
        };
    }
    macro_rules! two_of_floats {
        ($step:ident, $first:ident, $second:ident) => {{
            let value = Native.$first(slots.float($step.a), slots.float($step.b));
            float!($step, Native.$second(value, slots.float($step.c)))
        }};
        ($step:ident, $first:ident, from $second:ident) => {{
            let value = Native.$first(slots.float($step.a), slots.float($step.b));
            float!($step, Native.$second(slots.float($step.c), value))
        }};
    }
    macro_rules! holds {
        ($step:ident, $read:ident, $kernel:ident) => {
            Native.$kernel(slots.$read($step.a), slots.$read($step.b))
        };
    }
    macro_rules! boolean {
        ($step:ident, $holds:expr) => {{
            let holds = $holds;
            slots.put($step.out, u64::from(holds));
        }};
    }
    macro_rules! jump_if {
        ($step:ident, $holds:expr) => {
            if $holds {
                next = usize::from($step.to);
            }
        };
    }
    macro_rules! choose {
        ($step:ident, $holds:expr) => {{
            let (chosen, other) = (slots.get($step.c), slots.get($step.d));
            let bits = if $holds { chosen } else { other };
            slots.put($step.out, bits);
        }};
    }
    // The head of a round: `$more` where there is a next item, `$done` where there is none.
    macro_rules! head {
        ($step:ident, $item:expr, $more:expr, $done:expr) => {
            if slots.get($step.a.wrapping_add(2)) == 0 {
                $done
            } else if fuel == 0 {
                return (Ended::AtHead, fuel);
            } else {
                let item: fn(i64, &[Value]) -> Option<u64> = $item;
                match item(slots.integer($step.a), items) {
                    Some(bits) => slots.put($step.out, bits),
                    None => return (Ended::AtHead, fuel),
                }
                fuel_at_head = fuel;
                fuel -= 1;
                slots.take($step.a);
                $more
            }
        };
    }
    const INTEGER: fn(i64, &[Value]) -> Option<u64> = |item, _| Some(item.cast_unsigned());
    const ITEM: fn(i64, &[Value]) -> Option<u64> =
        |place, items| usize::try_from(place).ok().and_then(|place| items.get(place)).and_then(bits_of);
    while let Some(step) = steps.get(next) {
        next += 1;
        match step.code {
            StepCode::AddI => of_integers!(step, integer_add),
            StepCode::SubtractI => of_integers!(step, integer_subtract),
            StepCode::MultiplyI => of_integers!(step, integer_multiply),
            StepCode::QuotI => of_integers!(step, integer_quot),
            StepCode::RemI => of_integers!(step, integer_rem),
            StepCode::DivFloorI => of_integers!(step, integer_div_floor),
            StepCode::ModI => of_integers!(step, integer_mod),
            StepCode::AndI => total_of_integers!(step, integer_bit_and),
            StepCode::OrI => total_of_integers!(step, integer_bit_or),
            StepCode::XorI => total_of_integers!(step, integer_bit_xor),
            StepCode::ShiftLeftI => of_integers!(step, integer_shift_left),
            StepCode::ShiftRightI => of_integers!(step, integer_shift_right),
            StepCode::AddAddI => two_of_integers!(step, integer_add, integer_add),
            StepCode::AddSubtractI => two_of_integers!(step, integer_add, integer_subtract),
            StepCode::AddFromI => two_of_integers!(step, integer_add, from integer_subtract),
            StepCode::AddMultiplyI => two_of_integers!(step, integer_add, integer_multiply),
            StepCode::AddAndI => two_of_integers!(step, integer_add, total integer_bit_and),
            StepCode::AddRemI => two_of_integers!(step, integer_add, integer_rem),
            StepCode::AddModI => two_of_integers!(step, integer_add, integer_mod),
            StepCode::SubtractAddI => two_of_integers!(step, integer_subtract, integer_add),
            StepCode::SubtractSubtractI => two_of_integers!(step, integer_subtract, integer_subtract),
            StepCode::SubtractFromI => two_of_integers!(step, integer_subtract, from integer_subtract),
            StepCode::SubtractMultiplyI => two_of_integers!(step, integer_subtract, integer_multiply),
            StepCode::MultiplyAddI => two_of_integers!(step, integer_multiply, integer_add),
            StepCode::MultiplySubtractI => two_of_integers!(step, integer_multiply, integer_subtract),
            StepCode::MultiplyFromI => two_of_integers!(step, integer_multiply, from integer_subtract),
            StepCode::MultiplyMultiplyI => two_of_integers!(step, integer_multiply, integer_multiply),
            StepCode::MultiplyAndI => two_of_integers!(step, integer_multiply, total integer_bit_and),
            StepCode::MultiplyRemI => two_of_integers!(step, integer_multiply, integer_rem),
            StepCode::MultiplyModI => two_of_integers!(step, integer_multiply, integer_mod),
            StepCode::NegateI => integer!(step, Native.integer_negate(slots.integer(step.a))),
            StepCode::AbsI => integer!(step, Native.integer_abs(slots.integer(step.a))),
            StepCode::SignI => {
                let value = Native.integer_sign(slots.integer(step.a));
                slots.put(step.out, value.cast_unsigned());
            }
            StepCode::NotI => {
                let value = Native.integer_bit_not(slots.integer(step.a));
                slots.put(step.out, value.cast_unsigned());
            }
            StepCode::CountI => {
                let value = Native.integer_bit_count(slots.integer(step.a));
                slots.put(step.out, value.cast_unsigned());
            }
            StepCode::ToFloat => float!(step, Native.integer_to_float(slots.integer(step.a))),
            StepCode::ToFloatMultiply => {
                let value = Native.integer_to_float(slots.integer(step.a));
                float!(step, Native.float_multiply(value, slots.float(step.b)));
            }
            StepCode::ToFloatDivide => {
                let value = Native.integer_to_float(slots.integer(step.a));
                float!(step, Native.float_divide(value, slots.float(step.b)));
            }
            StepCode::AddF => of_floats!(step, float_add),
            StepCode::SubtractF => of_floats!(step, float_subtract),
            StepCode::MultiplyF => of_floats!(step, float_multiply),
            StepCode::DivideF => of_floats!(step, float_divide),
            StepCode::AddAddF => two_of_floats!(step, float_add, float_add),
            StepCode::AddSubtractF => two_of_floats!(step, float_add, float_subtract),
            StepCode::AddFromF => two_of_floats!(step, float_add, from float_subtract),
            StepCode::AddMultiplyF => two_of_floats!(step, float_add, float_multiply),
            StepCode::SubtractAddF => two_of_floats!(step, float_subtract, float_add),
            StepCode::SubtractSubtractF => two_of_floats!(step, float_subtract, float_subtract),
            StepCode::SubtractFromF => two_of_floats!(step, float_subtract, from float_subtract),
            StepCode::SubtractMultiplyF => two_of_floats!(step, float_subtract, float_multiply),
            StepCode::MultiplyAddF => two_of_floats!(step, float_multiply, float_add),
            StepCode::MultiplySubtractF => two_of_floats!(step, float_multiply, float_subtract),
            StepCode::MultiplyFromF => two_of_floats!(step, float_multiply, from float_subtract),
            StepCode::MultiplyMultiplyF => two_of_floats!(step, float_multiply, float_multiply),
            StepCode::NegateF => float!(step, Native.float_negate(slots.float(step.a))),
            StepCode::AbsF => float!(step, Native.float_abs(slots.float(step.a))),
            StepCode::SqrtF => float!(step, Native.float_sqrt(slots.float(step.a))),
            StepCode::FloorF => integer!(step, Native.float_floor(slots.float(step.a))),
            StepCode::CeilF => integer!(step, Native.float_ceil(slots.float(step.a))),
            StepCode::TruncF => integer!(step, Native.float_trunc(slots.float(step.a))),
            StepCode::ToIntegerF => integer!(step, Native.float_to_integer(slots.float(step.a))),
            StepCode::IsNanF => boolean!(step, Native.float_is_nan(slots.float(step.a))),
            StepCode::IsFiniteF => boolean!(step, Native.float_is_finite(slots.float(step.a))),
            StepCode::NotB => boolean!(step, Native.boolean_not(slots.boolean(step.a))),
            StepCode::EqualB => boolean!(step, holds!(step, boolean, boolean_equal)),
            StepCode::NotEqualB => boolean!(step, holds!(step, boolean, boolean_not_equal)),
            StepCode::EqualI => boolean!(step, holds!(step, integer, integer_equal)),
            StepCode::NotEqualI => boolean!(step, holds!(step, integer, integer_not_equal)),
            StepCode::LessI => boolean!(step, holds!(step, integer, integer_less)),
            StepCode::LessOrEqualI => boolean!(step, holds!(step, integer, integer_less_or_equal)),
            StepCode::GreaterI => boolean!(step, holds!(step, integer, integer_greater)),
            StepCode::GreaterOrEqualI => boolean!(step, holds!(step, integer, integer_greater_or_equal)),
            StepCode::EqualF => boolean!(step, holds!(step, float, float_equal)),
            StepCode::NotEqualF => boolean!(step, holds!(step, float, float_not_equal)),
            StepCode::LessF => boolean!(step, holds!(step, float, float_less)),
            StepCode::LessOrEqualF => boolean!(step, holds!(step, float, float_less_or_equal)),
            StepCode::GreaterF => boolean!(step, holds!(step, float, float_greater)),
            StepCode::GreaterOrEqualF => boolean!(step, holds!(step, float, float_greater_or_equal)),
            StepCode::JumpIfEqualI => jump_if!(step, holds!(step, integer, integer_equal)),
            StepCode::JumpIfNotEqualI => jump_if!(step, holds!(step, integer, integer_not_equal)),
            StepCode::JumpIfLessI => jump_if!(step, holds!(step, integer, integer_less)),
            StepCode::JumpIfLessOrEqualI => jump_if!(step, holds!(step, integer, integer_less_or_equal)),
            StepCode::JumpIfGreaterI => jump_if!(step, holds!(step, integer, integer_greater)),
            StepCode::JumpIfGreaterOrEqualI => {
                jump_if!(step, holds!(step, integer, integer_greater_or_equal));
            }
            StepCode::JumpIfEqualF => jump_if!(step, holds!(step, float, float_equal)),
            StepCode::JumpIfNotEqualF => jump_if!(step, holds!(step, float, float_not_equal)),
            StepCode::JumpIfLessF => jump_if!(step, holds!(step, float, float_less)),
            StepCode::JumpIfLessOrEqualF => jump_if!(step, holds!(step, float, float_less_or_equal)),
            StepCode::JumpIfGreaterF => jump_if!(step, holds!(step, float, float_greater)),
            StepCode::JumpIfGreaterOrEqualF => jump_if!(step, holds!(step, float, float_greater_or_equal)),
            StepCode::JumpUnlessEqualI => jump_if!(step, !holds!(step, integer, integer_equal)),
            StepCode::JumpUnlessNotEqualI => jump_if!(step, !holds!(step, integer, integer_not_equal)),
            StepCode::JumpUnlessLessI => jump_if!(step, !holds!(step, integer, integer_less)),
            StepCode::JumpUnlessLessOrEqualI => {
                jump_if!(step, !holds!(step, integer, integer_less_or_equal));
            }
            StepCode::JumpUnlessGreaterI => jump_if!(step, !holds!(step, integer, integer_greater)),
            StepCode::JumpUnlessGreaterOrEqualI => {
                jump_if!(step, !holds!(step, integer, integer_greater_or_equal));
            }
            StepCode::JumpUnlessEqualF => jump_if!(step, !holds!(step, float, float_equal)),
            StepCode::JumpUnlessNotEqualF => jump_if!(step, !holds!(step, float, float_not_equal)),
            StepCode::JumpUnlessLessF => jump_if!(step, !holds!(step, float, float_less)),
            StepCode::JumpUnlessLessOrEqualF => {
                jump_if!(step, !holds!(step, float, float_less_or_equal));
            }
            StepCode::JumpUnlessGreaterF => jump_if!(step, !holds!(step, float, float_greater)),
            StepCode::JumpUnlessGreaterOrEqualF => {
                jump_if!(step, !holds!(step, float, float_greater_or_equal));
            }
            StepCode::ChooseEqualI => choose!(step, holds!(step, integer, integer_equal)),
            StepCode::ChooseNotEqualI => choose!(step, holds!(step, integer, integer_not_equal)),
            StepCode::ChooseLessI => choose!(step, holds!(step, integer, integer_less)),
            StepCode::ChooseLessOrEqualI => choose!(step, holds!(step, integer, integer_less_or_equal)),
            StepCode::ChooseGreaterI => choose!(step, holds!(step, integer, integer_greater)),
            StepCode::ChooseGreaterOrEqualI => {
                choose!(step, holds!(step, integer, integer_greater_or_equal));
            }
            StepCode::ChooseEqualF => choose!(step, holds!(step, float, float_equal)),
            StepCode::ChooseNotEqualF => choose!(step, holds!(step, float, float_not_equal)),
            StepCode::ChooseLessF => choose!(step, holds!(step, float, float_less)),
            StepCode::ChooseLessOrEqualF => choose!(step, holds!(step, float, float_less_or_equal)),
            StepCode::ChooseGreaterF => choose!(step, holds!(step, float, float_greater)),
            StepCode::ChooseGreaterOrEqualF => choose!(step, holds!(step, float, float_greater_or_equal)),
            StepCode::Move => slots.put(step.out, slots.get(step.a)),
            StepCode::MoveTwo => {
                slots.put(step.out, slots.get(step.a));
                slots.put(step.b, slots.get(step.c));
            }
            StepCode::Jump => next = usize::from(step.to),
            StepCode::JumpIfTrue => jump_if!(step, slots.boolean(step.a)),
            StepCode::JumpIfFalse => jump_if!(step, !slots.boolean(step.a)),
            StepCode::Range => {
                let bounds = [step.b, step.c, step.d].map(|slot| slots.integer(slot));
                let [start, end, by] = bounds;
                match range_length(start, end, by) {
                    Ok(length) => slots.put_range(
                        step.a,
                        Range {
                            next: start,
                            step: by,
                            left: length as u64,
                        },
                    ),
                    Err(_) => undo!(),
                }
            }
            StepCode::Next => match slots.take(step.a) {
                None => next = usize::from(step.to),
                Some(item) if fuel > 0 => {
                    fuel -= 1;
                    slots.put(step.out, item.cast_unsigned());
                }
                Some(_) => undo!(),
            },
            StepCode::HeadNext => head!(step, INTEGER, {}, next = usize::from(step.to)),
            StepCode::HeadNextItem => head!(step, ITEM, {}, next = usize::from(step.to)),
            StepCode::Head => fuel_at_head = fuel,
            StepCode::AgainNext => head!(step, INTEGER, next = usize::from(step.to), {}),
            StepCode::AgainNextItem => head!(step, ITEM, next = usize::from(step.to), {}),
            StepCode::RoundAgainNext => {
                slots.put(step.b, slots.get(step.b).wrapping_add(1));
                head!(step, INTEGER, next = usize::from(step.to), {});
            }
            StepCode::RoundAgainNextItem => {
                slots.put(step.b, slots.get(step.b).wrapping_add(1));
                head!(step, ITEM, next = usize::from(step.to), {});
            }
            StepCode::Round => slots.put(step.a, slots.get(step.a).wrapping_add(1)),
            StepCode::Limit => {
                if slots.integer(step.a) >= slots.integer(step.b) {
                    undo!();
                }
            }
            StepCode::Spend => planted!(
                "run.rounds_without_items_cost_nothing",
                match fuel.checked_sub(1) {
                    Some(left) => fuel = left,
                    None => undo!(),
                },
                {}
            ),
            StepCode::Require => {
                if !slots.boolean(step.a) {
                    undo!();
                }
            }
            StepCode::Undo => undo!(),
            StepCode::Leave => return (Ended::Left(step.to), fuel),
        }
    }
    // Every way ends with a step that leaves; where one did not, the bytecode does the round.
    undo!()
}
