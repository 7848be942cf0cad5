//! The conversion rules of docs/spec/values.md, apart from the language that the inputs come from.
//!
//! Whoever calls looks at a foreign value, says what it was [`Given`], and gets a value or the kind of the problem.

use std::sync::Arc;

use vesper_ir::decimal::ParseDecimalError;
use vesper_ir::{Decimal, Type, Value};

/// What a caller gave for an input.
#[derive(Debug)]
pub enum Given<'a> {
    Boolean(bool),
    Integer(i64),
    /// An integer outside 64 bits; nothing where it is over the limits of a decimal too.
    WideInteger(Option<Decimal>),
    /// The text of a number of the caller's own decimal type, which may be no number or infinite.
    DecimalText(&'a str),
    Text(&'a str),
    /// A string with a lone surrogate: no Unicode text.
    BrokenText,
    /// Anything else, a float in particular.
    Other,
}

/// What is wrong with an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    Missing,
    Unknown,
    WrongType,
    OutOfRange,
    Malformed,
    NotAMember,
    /// Two members of a set, or two keys of a map, are equal.
    Duplicate,
}

impl ProblemKind {
    /// The name in outcomes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::WrongType => "wrong_type",
            Self::OutOfRange => "out_of_range",
            Self::Malformed => "malformed",
            Self::NotAMember => "not_a_member",
            Self::Duplicate => "duplicate",
        }
    }
}

/// The most code points of a string.
const MAX_TEXT: usize = 10_000_000;

/// The value of a type without parts.
pub fn convert(ty: &Type, given: Given<'_>) -> Result<Value, ProblemKind> {
    match (ty, given) {
        (Type::Boolean, Given::Boolean(value)) => Ok(Value::Boolean(value)),
        (Type::Integer, Given::Integer(value)) => Ok(Value::Integer(value)),
        (Type::Integer, Given::WideInteger(_)) => Err(ProblemKind::OutOfRange),
        (Type::Decimal, Given::Integer(value)) => Ok(Value::Decimal(Decimal::from(value))),
        (Type::Decimal, Given::WideInteger(value)) => {
            value.map(Value::Decimal).ok_or(ProblemKind::OutOfRange)
        }
        (Type::Decimal, Given::DecimalText(text) | Given::Text(text)) => match Decimal::parse(text) {
            Ok(value) => Ok(Value::Decimal(value)),
            Err(ParseDecimalError::OutOfRange) => Err(ProblemKind::OutOfRange),
            Err(ParseDecimalError::Malformed) => Err(ProblemKind::Malformed),
        },
        // No text has more code points than bytes, and counting those is quick.
        (Type::Text, Given::Text(text)) if text.len() > MAX_TEXT && text.chars().count() > MAX_TEXT => {
            Err(ProblemKind::OutOfRange)
        }
        (Type::Text, Given::Text(text)) => Ok(Value::Text(Arc::from(text))),
        (Type::Decimal | Type::Text, Given::BrokenText) => Err(ProblemKind::Malformed),
        (Type::Enum(of), Given::Text(text)) => {
            of.member(text).map(Value::Member).ok_or(ProblemKind::NotAMember)
        }
        (Type::Enum(_), Given::BrokenText) => Err(ProblemKind::NotAMember),
        _ => Err(ProblemKind::WrongType),
    }
}
