//! Values in the forms of Postgres: parameters in text, columns in the binary form of the server.
//!
//! No setting of a session and no type that an application registers can change what a value is.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;

use bytes::BytesMut;
use tokio_postgres::types::{Format, FromSql, IsNull, Kind, ToSql, Type};
use vesper_interp::inputs::ProblemKind;
use vesper_ir::time::{date, date_text, timestamp};
use vesper_ir::{Decimal, float};

use crate::database::values::{Cell, Column, ExactDecimal, hex, moment_text};

/// Days from 1970-01-01 to 2000-01-01, the beginning of Postgres's time.
const DAYS_TO_EPOCH: i64 = 10_957;
const MICROSECONDS_A_DAY: i64 = 86_400_000_000;

/// A parameter in text; None is NULL.
#[derive(Debug)]
pub(super) struct Parameter(Option<String>);

impl Parameter {
    pub(super) fn of(value: &Column) -> Self {
        Self(match value {
            Column::Null => None,
            Column::Boolean(value) => Some(value.to_string()),
            Column::Integer(value) => Some(value.to_string()),
            Column::Decimal(text) => Some(text.clone()),
            Column::Float(value) => Some(float::text(*value)),
            Column::Text(text) => Some(text.to_string()),
            Column::Bytes(bytes) => Some(format!("\\x{}", hex(bytes))),
            Column::Timestamp(value) => Some(moment_text(*value, " ", "+00")),
            Column::Date(value) => Some(date_text(*value)),
            Column::Duration(value) => {
                let (days, rest) = (
                    value.div_euclid(MICROSECONDS_A_DAY),
                    value.rem_euclid(MICROSECONDS_A_DAY),
                );
                let (seconds, microseconds) = (rest / 1_000_000, rest % 1_000_000);
                Some(format!(
                    "{days} days {seconds} seconds {microseconds} microseconds"
                ))
            }
        })
    }
}

/// Returns the type of a parameter. The server finds out that of texts and nulls from the statement.
pub(super) fn type_of(value: &Column) -> Type {
    match value {
        Column::Null | Column::Text(_) => Type::UNKNOWN,
        Column::Boolean(_) => Type::BOOL,
        // A smallint would overflow in the first multiplication.
        Column::Integer(value) if i32::try_from(*value).is_ok() => Type::INT4,
        Column::Integer(_) => Type::INT8,
        Column::Decimal(_) => Type::NUMERIC,
        Column::Float(_) => Type::FLOAT8,
        Column::Bytes(_) => Type::BYTEA,
        Column::Timestamp(_) => Type::TIMESTAMPTZ,
        Column::Date(_) => Type::DATE,
        Column::Duration(_) => Type::INTERVAL,
    }
}

impl ToSql for Parameter {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match &self.0 {
            None => Ok(IsNull::Yes),
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(ty, out)
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }
}

/// Bytes of a column as the server sent them; None is NULL.
#[derive(Debug)]
pub(super) struct Raw<'a>(pub(super) Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Returns whether columns of a type can be read as they are; others are asked for as text.
pub(super) fn is_readable(ty: &Type) -> bool {
    let is_known = matches!(
        *ty,
        Type::BOOL
            | Type::BYTEA
            | Type::INT2
            | Type::INT4
            | Type::INT8
            | Type::JSON
            | Type::JSONB
            | Type::FLOAT4
            | Type::FLOAT8
            | Type::DATE
            | Type::TIMESTAMP
            | Type::TIMESTAMPTZ
            | Type::INTERVAL
            | Type::NUMERIC
            | Type::TEXT
            | Type::VARCHAR
            | Type::BPCHAR
            | Type::NAME
            | Type::UNKNOWN
    );
    is_known || is_array(ty) || matches!(ty.kind(), Kind::Enum(_))
}

/// Returns whether a type is an array of one of the types that columns are read as.
fn is_array(ty: &Type) -> bool {
    matches!(
        *ty,
        Type::BOOL_ARRAY
            | Type::BYTEA_ARRAY
            | Type::INT2_ARRAY
            | Type::INT4_ARRAY
            | Type::INT8_ARRAY
            | Type::JSON_ARRAY
            | Type::FLOAT4_ARRAY
            | Type::FLOAT8_ARRAY
            | Type::TEXT_ARRAY
            | Type::BPCHAR_ARRAY
            | Type::VARCHAR_ARRAY
            | Type::DATE_ARRAY
            | Type::TIMESTAMP_ARRAY
            | Type::TIMESTAMPTZ_ARRAY
            | Type::INTERVAL_ARRAY
            | Type::NUMERIC_ARRAY
            | Type::UUID_ARRAY
            | Type::JSONB_ARRAY
    )
}

/// Returns the value of a column of a readable type.
pub(super) fn cell_of(ty: &Type, raw: Option<&[u8]>) -> Cell {
    let Some(raw) = raw else {
        return Cell::Null;
    };
    let text = |raw: &[u8]| Cell::of_text(raw.to_vec());
    let found = match *ty {
        Type::BOOL => raw.first().map(|byte| Cell::Boolean(*byte != 0)),
        Type::BYTEA => Some(Cell::Bytes(raw.to_vec())),
        Type::INT2 => array(raw).map(|raw| Cell::Integer(i64::from(i16::from_be_bytes(raw)))),
        Type::INT4 => array(raw).map(|raw| Cell::Integer(i64::from(i32::from_be_bytes(raw)))),
        Type::INT8 => array(raw).map(|raw| Cell::Integer(i64::from_be_bytes(raw))),
        Type::JSON => Some(json(text(raw))),
        // The first byte is the version of the form.
        Type::JSONB => raw.get(1..).map(|raw| json(text(raw))),
        // By its shortest text, as the server writes it: 0.1 is 0.1, and not the nearest float of 64 bits.
        Type::FLOAT4 => array(raw).and_then(|raw| single(f32::from_be_bytes(raw))),
        Type::FLOAT8 => array(raw).map(|raw| Cell::Float(f64::from_be_bytes(raw))),
        Type::DATE => array(raw).map(|raw| day(i32::from_be_bytes(raw))),
        Type::TIMESTAMP => Some(unreadable(
            "a timestamp without a time zone (make the column a timestamptz)",
        )),
        Type::TIMESTAMPTZ => array(raw).map(|raw| moment(i64::from_be_bytes(raw))),
        Type::INTERVAL => interval(raw),
        Type::NUMERIC => numeric(raw),
        _ if is_array(ty) => Some(unreadable("an array of PostgreSQL (select to_jsonb of it)")),
        _ => Some(text(raw)),
    };
    found.unwrap_or(unreadable("a value in a form that this version does not know"))
}

fn unreadable(name: &'static str) -> Cell {
    Cell::Unreadable(Cow::Borrowed(name))
}

fn problem(name: &str, kind: ProblemKind) -> Cell {
    Cell::Unreadable(Cow::Owned(format!("{name} ({})", kind.name())))
}

fn array<const N: usize>(raw: &[u8]) -> Option<[u8; N]> {
    raw.try_into().ok()
}

fn json(cell: Cell) -> Cell {
    match cell {
        Cell::Text(text) => Cell::Json(text),
        other => other,
    }
}

fn single(value: f32) -> Option<Cell> {
    if value.is_finite() {
        return format!("{value:e}").parse().ok().map(Cell::Float);
    }
    Some(Cell::Float(f64::from(value)))
}

/// Years before 1 and after 9999, and infinity, have another form in text than a date.
fn day(days: i32) -> Cell {
    let days = i64::from(days) + DAYS_TO_EPOCH;
    date(days).map_or_else(|_| problem("a date", ProblemKind::Malformed), Cell::Date)
}

fn moment(microseconds: i64) -> Cell {
    let microseconds = i128::from(microseconds) + i128::from(DAYS_TO_EPOCH) * i128::from(MICROSECONDS_A_DAY);
    timestamp(microseconds).map_or_else(
        |_| problem("a timestamp", ProblemKind::Malformed),
        Cell::Timestamp,
    )
}

fn interval(raw: &[u8]) -> Option<Cell> {
    /// Days that Python's intervals hold.
    const MAX_DAYS: i128 = 999_999_999;
    let (microseconds, rest) = raw.split_first_chunk::<8>()?;
    let (days, months) = rest.split_first_chunk::<4>()?;
    if i32::from_be_bytes(array(months)?) != 0 {
        return Some(unreadable("an interval with months, which have no fixed length"));
    }
    let a_day = i128::from(MICROSECONDS_A_DAY);
    let whole = i128::from(i32::from_be_bytes(*days)) * a_day + i128::from(i64::from_be_bytes(*microseconds));
    if whole.abs() / a_day > MAX_DAYS {
        return Some(problem("an interval", ProblemKind::OutOfRange));
    }
    Some(Cell::Duration(whole))
}

/// Reads a numeric: groups of four digits, and the places that it is shown with.
fn numeric(raw: &[u8]) -> Option<Cell> {
    const NAME: &str = "a number that no decimal holds";
    let mut words = raw.chunks_exact(2).filter_map(array).map(i16::from_be_bytes);
    let (_count, weight, sign, places) = (words.next()?, words.next()?, words.next()?, words.next()?);
    if !matches!(sign.cast_unsigned(), 0 | 0x4000) {
        return Some(problem(NAME, ProblemKind::OutOfRange)); // NaN and infinities
    }
    let digits: Vec<i16> = words.collect();
    let group = |place: i32| -> i16 {
        let index = usize::try_from(i32::from(weight) - place);
        index
            .ok()
            .and_then(|index| digits.get(index))
            .copied()
            .unwrap_or(0)
    };
    let mut text = String::from(if sign == 0 { "" } else { "-" });
    for place in (0..=i32::from(weight).max(0)).rev() {
        let _ = write!(text, "{:04}", group(place)); // Writing to a string cannot fail.
    }
    let places = usize::try_from(places).ok()?;
    let mut fraction = String::new();
    for place in 1..=i32::try_from(places.div_ceil(4)).ok()? {
        let _ = write!(fraction, "{:04}", group(-place));
    }
    if places > 0 {
        text.push('.');
        text.push_str(fraction.get(..places)?);
    }
    Some(match Decimal::parse(&text) {
        Ok(number) => Cell::Decimal(ExactDecimal(number)),
        Err(_) => problem(NAME, ProblemKind::OutOfRange),
    })
}
