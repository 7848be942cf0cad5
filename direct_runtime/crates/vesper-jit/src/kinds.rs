//! Kinds of values that machine code keeps outside of the frame.

use vesper_interp::Frame;
use vesper_interp::code::Range;
use vesper_interp::words::Form;
use vesper_ir::types::TypePattern;
use vesper_ir::value::Member;
use vesper_ir::{Op, Value};

/// A kind of value with a form in machine registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Boolean,
    Integer,
    Float,
    /// A 64-bit coefficient and a scale; the interpreter computes larger ones.
    Decimal,
    Timestamp,
    Date,
    Duration,
    Member,
    /// The remaining range of a loop: next integer, step and count.
    Range,
    /// A text, as an index into the texts of the run; only without a frame.
    Text,
    /// An array of records in rows: address of the first row and count; only without a frame.
    Rows,
    /// The remaining items of a loop over records: address of the next row, position and count.
    Items,
}

/// The slot contents of one register.
pub(crate) type Bits = [u64; 3];

impl Kind {
    /// Returns the number of slots.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Decimal | Self::Rows => 2,
            Self::Range | Self::Items => 3,
            _ => 1,
        }
    }

    /// Returns the kind of a known value, or `None` if it stays in the frame.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let kind = match value {
            Value::Boolean(_) => Self::Boolean,
            Value::Integer(_) => Self::Integer,
            Value::Float(_) => Self::Float,
            Value::Decimal(_) => Self::Decimal,
            Value::Timestamp(_) => Self::Timestamp,
            Value::Date(_) => Self::Date,
            Value::Duration(_) => Self::Duration,
            Value::Member(_) => Self::Member,
            _ => return None,
        };
        // A large decimal has no form here.
        kind.bits(value).map(|_| kind)
    }

    /// Returns the kind of a form in words.
    pub(crate) fn of_form(form: Form) -> Self {
        match form {
            Form::Boolean => Self::Boolean,
            Form::Integer => Self::Integer,
            Form::Float => Self::Float,
            Form::Decimal => Self::Decimal,
            Form::Timestamp => Self::Timestamp,
            Form::Date => Self::Date,
            Form::Duration => Self::Duration,
            Form::Member => Self::Member,
            Form::Text => Self::Text,
        }
    }

    /// Returns the kind of all values of a type.
    pub(crate) fn of_type(ty: &TypePattern) -> Option<Self> {
        match ty {
            TypePattern::Boolean => Some(Self::Boolean),
            TypePattern::Integer => Some(Self::Integer),
            TypePattern::Float => Some(Self::Float),
            TypePattern::Decimal => Some(Self::Decimal),
            TypePattern::Timestamp => Some(Self::Timestamp),
            TypePattern::Date => Some(Self::Date),
            TypePattern::Duration => Some(Self::Duration),
            TypePattern::EnumOf(_) => Some(Self::Member),
            _ => None,
        }
    }

    /// Returns the bits of a value. Returns `None` if it has another kind or is too large.
    #[inline]
    pub(crate) fn bits(self, value: &Value) -> Option<Bits> {
        let one = |bits: u64| Some([bits, 0, 0]);
        match (self, value) {
            (Self::Boolean, Value::Boolean(value)) => one(u64::from(*value)),
            (Self::Integer, Value::Integer(value))
            | (Self::Timestamp, Value::Timestamp(value))
            | (Self::Duration, Value::Duration(value)) => one(value.cast_unsigned()),
            (Self::Float, Value::Float(value)) => one(value.to_bits()),
            (Self::Date, Value::Date(value)) => one(i64::from(*value).cast_unsigned()),
            (Self::Member, Value::Member(Member(place))) => one(u64::from(*place)),
            (Self::Decimal, Value::Decimal(value)) => {
                let (coefficient, scale) = value.as_small()?;
                let coefficient = i64::try_from(coefficient).ok()?.cast_unsigned();
                Some([coefficient, u64::from(scale), 0])
            }
            _ => None,
        }
    }

    /// Writes bits as a value. Returns false for invalid bits, which compiled code never produces.
    #[inline]
    pub(crate) fn write(self, place: &mut Value, [first, second, _]: Bits) -> bool {
        match self {
            Self::Boolean => place.set_boolean(first != 0),
            Self::Integer => place.set_integer(first.cast_signed()),
            Self::Float => place.set_float(f64::from_bits(first)),
            Self::Timestamp => *place = Value::Timestamp(first.cast_signed()),
            Self::Duration => *place = Value::Duration(first.cast_signed()),
            Self::Date => match i32::try_from(first.cast_signed()) {
                Ok(day) => *place = Value::Date(day),
                Err(_) => return false,
            },
            Self::Member => match u32::try_from(first) {
                Ok(member) => *place = Value::Member(Member(member)),
                Err(_) => return false,
            },
            Self::Decimal => match u16::try_from(second) {
                Ok(scale) => place.set_small_decimal(i128::from(first.cast_signed()), scale),
                Err(_) => return false,
            },
            Self::Range | Self::Items | Self::Text | Self::Rows => return false,
        }
        true
    }
}

/// Returns the bits of a loop's remaining range.
pub(crate) fn range_bits(frame: &Frame, slot: usize) -> Option<Bits> {
    let range = frame.range(slot)?;
    Some([range.next.cast_unsigned(), range.step.cast_unsigned(), range.left])
}

/// Writes the bits of a range back to its loop.
pub(crate) fn write_range(frame: &mut Frame, slot: usize, [next, step, left]: Bits) -> bool {
    let range = Range {
        next: next.cast_signed(),
        step: step.cast_signed(),
        left,
    };
    frame.set_range(slot, range)
}

/// Writes the position of a loop over an array back.
pub(crate) fn write_position(frame: &mut Frame, slot: usize, [_, next, _]: Bits) -> bool {
    let next = usize::try_from(next);
    next.is_ok_and(|next| frame.set_position(slot, next))
}

/// The operations with inline machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inline {
    Add,
    Subtract,
    Multiply,
    Quot,
    Rem,
    DivFloor,
    Mod,
    And,
    Or,
    Xor,
    Not,
    Negate,
    Abs,
    ToFloat,
    ToDecimal,
    Divide,
    Compare(Comparison),
}

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Returns the inline operation, its operand kind and its result kind.
pub(crate) fn inline(op: Op) -> Option<(Inline, Kind, Kind)> {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let same = |what, kind| Some((what, kind, kind));
    let compare = |comparison, kind| Some((Inline::Compare(comparison), kind, Kind::Boolean));
    match op {
        Op::IntegerAdd => same(Inline::Add, Kind::Integer),
        Op::IntegerSubtract => same(Inline::Subtract, Kind::Integer),
        Op::IntegerMultiply => same(Inline::Multiply, Kind::Integer),
        Op::IntegerQuot => same(Inline::Quot, Kind::Integer),
        Op::IntegerRem => same(Inline::Rem, Kind::Integer),
        Op::IntegerDivFloor => same(Inline::DivFloor, Kind::Integer),
        Op::IntegerMod => same(Inline::Mod, Kind::Integer),
        Op::IntegerBitAnd => same(Inline::And, Kind::Integer),
        Op::IntegerBitOr => same(Inline::Or, Kind::Integer),
        Op::IntegerBitXor => same(Inline::Xor, Kind::Integer),
        Op::IntegerBitNot => same(Inline::Not, Kind::Integer),
        Op::IntegerNegate => same(Inline::Negate, Kind::Integer),
        Op::IntegerAbs => same(Inline::Abs, Kind::Integer),
        Op::IntegerToFloat => Some((Inline::ToFloat, Kind::Integer, Kind::Float)),
        Op::DecimalFromInteger => Some((Inline::ToDecimal, Kind::Integer, Kind::Decimal)),
        Op::FloatAdd => same(Inline::Add, Kind::Float),
        Op::FloatSubtract => same(Inline::Subtract, Kind::Float),
        Op::FloatMultiply => same(Inline::Multiply, Kind::Float),
        Op::FloatDivide => same(Inline::Divide, Kind::Float),
        Op::DecimalAdd => same(Inline::Add, Kind::Decimal),
        Op::DecimalSubtract => same(Inline::Subtract, Kind::Decimal),
        Op::DecimalMultiply => same(Inline::Multiply, Kind::Decimal),
        Op::DecimalNegate => same(Inline::Negate, Kind::Decimal),
        Op::BooleanNot => same(Inline::Not, Kind::Boolean),
        Op::BooleanEqual => compare(Equal, Kind::Boolean),
        Op::BooleanNotEqual => compare(NotEqual, Kind::Boolean),
        Op::EnumEqual => compare(Equal, Kind::Member),
        Op::EnumNotEqual => compare(NotEqual, Kind::Member),
        Op::IntegerEqual => compare(Equal, Kind::Integer),
        Op::IntegerNotEqual => compare(NotEqual, Kind::Integer),
        Op::IntegerLess => compare(Less, Kind::Integer),
        Op::IntegerLessOrEqual => compare(LessOrEqual, Kind::Integer),
        Op::IntegerGreater => compare(Greater, Kind::Integer),
        Op::IntegerGreaterOrEqual => compare(GreaterOrEqual, Kind::Integer),
        Op::FloatEqual => compare(Equal, Kind::Float),
        Op::FloatNotEqual => compare(NotEqual, Kind::Float),
        Op::FloatLess => compare(Less, Kind::Float),
        Op::FloatLessOrEqual => compare(LessOrEqual, Kind::Float),
        Op::FloatGreater => compare(Greater, Kind::Float),
        Op::FloatGreaterOrEqual => compare(GreaterOrEqual, Kind::Float),
        Op::DecimalEqual => compare(Equal, Kind::Decimal),
        Op::DecimalNotEqual => compare(NotEqual, Kind::Decimal),
        Op::DecimalLess => compare(Less, Kind::Decimal),
        Op::DecimalLessOrEqual => compare(LessOrEqual, Kind::Decimal),
        Op::DecimalGreater => compare(Greater, Kind::Decimal),
        Op::DecimalGreaterOrEqual => compare(GreaterOrEqual, Kind::Decimal),
        Op::DateEqual => compare(Equal, Kind::Date),
        Op::DateNotEqual => compare(NotEqual, Kind::Date),
        Op::DateLess => compare(Less, Kind::Date),
        Op::DateLessOrEqual => compare(LessOrEqual, Kind::Date),
        Op::DateGreater => compare(Greater, Kind::Date),
        Op::DateGreaterOrEqual => compare(GreaterOrEqual, Kind::Date),
        Op::TimestampEqual => compare(Equal, Kind::Timestamp),
        Op::TimestampNotEqual => compare(NotEqual, Kind::Timestamp),
        Op::TimestampLess => compare(Less, Kind::Timestamp),
        Op::TimestampLessOrEqual => compare(LessOrEqual, Kind::Timestamp),
        Op::TimestampGreater => compare(Greater, Kind::Timestamp),
        Op::TimestampGreaterOrEqual => compare(GreaterOrEqual, Kind::Timestamp),
        Op::DurationEqual => compare(Equal, Kind::Duration),
        Op::DurationNotEqual => compare(NotEqual, Kind::Duration),
        Op::DurationLess => compare(Less, Kind::Duration),
        Op::DurationLessOrEqual => compare(LessOrEqual, Kind::Duration),
        Op::DurationGreater => compare(Greater, Kind::Duration),
        Op::DurationGreaterOrEqual => compare(GreaterOrEqual, Kind::Duration),
        _ => None,
    }
}
