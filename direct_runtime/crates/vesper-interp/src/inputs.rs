//! Conversion of inputs by the rules of docs/spec/values.md, independent of the host language.
//!
//! The caller classifies a foreign value as [`Given`], and receives a value or the kind of the problem.

use std::sync::Arc;

use vesper_ir::decimal::ParseDecimalError;
use vesper_ir::limits::{BYTES_LENGTH, TEXT_LENGTH};
use vesper_ir::time::TimeError;
use vesper_ir::{Decimal, OwnedKey, Type, Value, base64, float, time};

pub(crate) mod parts;
pub mod problems;
pub(crate) mod reads;

/// A foreign value, as classified by the caller.
#[derive(Debug)]
pub enum Given<'a> {
    Boolean(bool),
    Integer(i64),
    /// An integer outside 64 bits; `None` if it also exceeds the limits of a decimal.
    WideInteger(Option<Decimal>),
    /// A number of the host's decimal type, or the reason why it is invalid.
    Decimal(Result<Decimal, ParseDecimalError>),
    Float(f64),
    Text(&'a str),
    /// A string with a lone surrogate, which is no Unicode text.
    BrokenText,
    Bytes(&'a [u8]),
    /// A timestamp in microseconds since 1970 in UTC; it may be out of range.
    Moment(i128),
    /// A timestamp without a time zone.
    NaiveMoment,
    /// A date in days since 1970-01-01; it may be out of range.
    Day(i64),
    /// A duration in microseconds; it may be out of range.
    Length(i128),
    /// A time of day in microseconds since midnight; it may be out of range.
    Clock(i128),
    /// A time with a time zone.
    ZonedTime,
    /// A period in months; it may be out of range.
    Months(i64),
    /// Anything else.
    Other,
}

/// The kind of an input problem, ordered as in docs/spec/values.md. The first of several kinds is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemKind {
    Missing,
    Unknown,
    WrongType,
    OutOfRange,
    Malformed,
    NotAMember,
    /// Two members of a set, or two keys of a map, are equal.
    Duplicate,
    /// A JSON value exceeds the nesting limit.
    TooDeep,
}

impl ProblemKind {
    /// Returns the name in outcomes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::WrongType => "wrong_type",
            Self::OutOfRange => "out_of_range",
            Self::Malformed => "malformed",
            Self::NotAMember => "not_a_member",
            Self::Duplicate => "duplicate",
            Self::TooDeep => "too_deep",
        }
    }
}

/// Returns true for a text with too many code points.
#[inline]
pub fn is_too_long(text: &str) -> bool {
    // A text never has more code points than bytes, and its byte length is known.
    text.len() > TEXT_LENGTH && text.chars().count() > TEXT_LENGTH
}

/// Converts a text of JSON or Arrow, in which an enum has its outside texts, to a value of a scalar type.
pub fn convert_outside_text(ty: &Type, text: &str) -> Result<Value, ProblemKind> {
    match ty {
        Type::Enum(of) => of
            .member_of_text(text)
            .map(Value::Member)
            .ok_or(ProblemKind::NotAMember),
        _ => convert(ty, Given::Text(text)),
    }
}

/// Returns the path of the value of a map for a key, as JSON and Arrow write the key.
pub fn outside_entry<'a>(
    path: &'a problems::Path<'a>,
    key: &'a OwnedKey,
    ty: &'a Type,
) -> problems::Path<'a> {
    match (key, ty) {
        (OwnedKey::Member(member), Type::Enum(of)) => {
            problems::Path::MemberEntry(path, of.text(*member).map_or("", |text| text))
        }
        _ => problems::Path::Entry(path, key, ty),
    }
}

/// Converts a value of a scalar type. Callers convert composite types themselves.
pub fn convert(ty: &Type, given: Given<'_>) -> Result<Value, ProblemKind> {
    match (ty, given) {
        (Type::Boolean, Given::Boolean(value)) => Ok(Value::Boolean(value)),
        (Type::Integer, Given::Integer(value)) => Ok(Value::Integer(value)),
        (Type::Integer, Given::WideInteger(_)) => Err(ProblemKind::OutOfRange),
        (Type::Decimal, Given::Integer(value)) => Ok(Value::Decimal(Decimal::from(value))),
        (Type::Decimal, Given::WideInteger(value)) => {
            value.map(Value::Decimal).ok_or(ProblemKind::OutOfRange)
        }
        (Type::Decimal, Given::Decimal(number)) => decimal(number),
        (Type::Decimal, Given::Text(text)) => decimal(Decimal::parse(text)),
        (Type::Float, Given::Float(value)) => Ok(Value::Float(value)),
        // SEMANTICS: an integer without an exact float is rejected, not rounded.
        (Type::Float, Given::Integer(value)) => exact_float(Some(Decimal::from(value))),
        (Type::Float, Given::WideInteger(value)) => exact_float(value),
        (Type::Float, Given::Text(text)) => float::parse_named(text)
            .map(Value::Float)
            .ok_or(ProblemKind::Malformed),
        (Type::Text, Given::Text(text)) if is_too_long(text) => Err(ProblemKind::OutOfRange),
        (Type::Text, Given::Text(text)) => Ok(Value::Text(Arc::from(text))),
        (Type::Bytes, Given::Bytes(bytes)) => to_bytes(Arc::from(bytes)),
        (Type::Bytes, Given::Text(text)) => match base64::parse(text) {
            Some(bytes) => to_bytes(Arc::from(bytes)),
            None => Err(ProblemKind::Malformed),
        },
        (Type::Timestamp, Given::Moment(microseconds)) => time::timestamp(microseconds)
            .map(Value::Timestamp)
            .map_err(time_problem),
        (Type::Timestamp, Given::Text(text)) => time::parse_timestamp(text)
            .map(Value::Timestamp)
            .map_err(time_problem),
        (Type::Date, Given::Day(days)) => time::date(days).map(Value::Date).map_err(time_problem),
        (Type::Date, Given::Text(text)) => time::parse_date(text).map(Value::Date).map_err(time_problem),
        (Type::Duration, Given::Length(microseconds)) => time::duration(microseconds)
            .map(Value::Duration)
            .map_err(time_problem),
        (Type::Duration, Given::Text(text)) => time::parse_duration(text)
            .map(Value::Duration)
            .map_err(time_problem),
        (Type::TimeOfDay, Given::Clock(microseconds)) => time::time_of_day(microseconds)
            .map(Value::TimeOfDay)
            .map_err(time_problem),
        (Type::TimeOfDay, Given::Text(text)) => {
            time::parse_time(text).map(Value::TimeOfDay).map_err(time_problem)
        }
        (Type::Period, Given::Months(months)) => {
            time::period(months).map(Value::Period).map_err(time_problem)
        }
        (Type::Period, Given::Text(text)) => {
            time::parse_period(text).map(Value::Period).map_err(time_problem)
        }
        (
            Type::Decimal
            | Type::Float
            | Type::Text
            | Type::Bytes
            | Type::Timestamp
            | Type::Date
            | Type::Duration
            | Type::TimeOfDay
            | Type::Period,
            Given::BrokenText,
        )
        | (Type::TimeOfDay, Given::ZonedTime)
        | (Type::Timestamp, Given::NaiveMoment) => Err(ProblemKind::Malformed),
        (Type::Enum(of), Given::Text(text)) => {
            of.member(text).map(Value::Member).ok_or(ProblemKind::NotAMember)
        }
        (Type::Enum(_), Given::BrokenText) => Err(ProblemKind::NotAMember),
        _ => Err(ProblemKind::WrongType),
    }
}

fn decimal(number: Result<Decimal, ParseDecimalError>) -> Result<Value, ProblemKind> {
    match number {
        Ok(value) => Ok(Value::Decimal(value)),
        Err(ParseDecimalError::OutOfRange) => Err(ProblemKind::OutOfRange),
        Err(ParseDecimalError::Malformed) => Err(ProblemKind::Malformed),
    }
}

fn exact_float(value: Option<Decimal>) -> Result<Value, ProblemKind> {
    let exact = value.and_then(|value| float::from_whole(&value));
    exact.map(Value::Float).ok_or(ProblemKind::OutOfRange)
}

fn to_bytes(bytes: Arc<[u8]>) -> Result<Value, ProblemKind> {
    if bytes.len() > BYTES_LENGTH {
        return Err(ProblemKind::OutOfRange);
    }
    Ok(Value::Bytes(bytes))
}

fn time_problem(error: TimeError) -> ProblemKind {
    match error {
        TimeError::Malformed => ProblemKind::Malformed,
        TimeError::OutOfRange => ProblemKind::OutOfRange,
    }
}

/// Collects all values, or returns the kind that comes first in the table of problems.
pub fn collect_all<T>(found: impl Iterator<Item = Result<T, ProblemKind>>) -> Result<Vec<T>, ProblemKind> {
    let mut values = Vec::new();
    let mut worst: Option<ProblemKind> = None;
    for each in found {
        match each {
            Ok(value) => values.push(value),
            Err(kind) => worst = Some(worst.map_or(kind, |known| known.min(kind))),
        }
    }
    match worst {
        None => Ok(values),
        Some(kind) => Err(kind),
    }
}
