//! Values of the language in columns, and back.
//!
//! Collections and json become JSON text. Cells are read by the type that the step declares, and nothing is guessed: a
//! column that does not hold such a value is a `bad_response` that names the column and the row, and never the value.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use vesper_interp::inputs::{Given, ProblemKind, convert};
use vesper_interp::json::json_of_text;
use vesper_ir::time::{date_text, duration_text, period_text, split_timestamp, time_text};
use vesper_ir::types::RecordType;
use vesper_ir::{Decimal, JsonKernels as _, RoundingMode, Type, Value};
use vesper_kernels::Native;

use crate::database::forms::value_of_form;
use crate::effect::Failure;

/// A value on its way into a database.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    Null,
    Boolean(bool),
    Integer(i64),
    /// The text of a decimal.
    Decimal(String),
    Float(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    /// Microseconds since 1970.
    Timestamp(i64),
    /// Days since 1970.
    Date(i32),
    /// Microseconds.
    Duration(i64),
}

/// Values of a statement's parameters, by name.
pub type Values = Vec<(Arc<str>, Column)>;

impl Column {
    /// Converts a value of a type. Fails where its JSON would be too large or too deep.
    pub fn of(ty: &Type, value: &Value) -> Option<Self> {
        Some(match (ty, value) {
            (_, Value::Null) => Self::Null,
            (Type::Optional(of), value) => Self::of(of, value)?,
            (_, Value::Boolean(value)) => Self::Boolean(*value),
            (_, Value::Integer(value)) => Self::Integer(*value),
            (_, Value::Decimal(value)) => Self::Decimal(value.to_string()),
            (_, Value::Float(value)) => Self::Float(*value),
            (_, Value::Text(value)) => Self::Text(Arc::clone(value)),
            (_, Value::Bytes(value)) => Self::Bytes(Arc::clone(value)),
            (_, Value::Timestamp(value)) => Self::Timestamp(*value),
            (_, Value::Date(value)) => Self::Date(*value),
            (_, Value::Duration(value)) => Self::Duration(*value),
            (_, Value::TimeOfDay(value)) => Self::Text(Arc::from(time_text(*value))),
            (_, Value::Period(value)) => Self::Text(Arc::from(period_text(*value))),
            (Type::Enum(of), Value::Member(member)) => Self::Text(Arc::clone(of.name(*member)?)),
            (ty, value) => {
                let form = Native.json_from_value(value, ty).ok()?;
                Self::Text(Arc::from(form.literal_text()))
            }
        })
    }
}

impl Column {
    /// Returns the value in the form that SQLite keeps it in: a null, an integer, a float, a text or bytes.
    #[must_use]
    pub fn for_sqlite(&self) -> Self {
        let text = |text: String| Self::Text(Arc::from(text));
        match self {
            Self::Boolean(value) => Self::Integer(i64::from(*value)),
            // SQLite would make it null.
            Self::Float(value) if value.is_nan() => text("NaN".to_owned()),
            Self::Decimal(value) => text(value.clone()),
            Self::Timestamp(value) => text(moment_text(*value, "T", "Z")),
            Self::Date(value) => text(date_text(*value)),
            Self::Duration(value) => text(duration_text(*value)),
            Self::Null | Self::Integer(_) | Self::Float(_) | Self::Text(_) | Self::Bytes(_) => self.clone(),
        }
    }
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}"); // Writing to a string cannot fail.
            text
        })
}

/// Formats a timestamp, always with six places, so that the order of the texts is that of the moments.
pub(crate) fn moment_text(timestamp: i64, separator: &str, zone: &str) -> String {
    let (date, time) = split_timestamp(timestamp);
    let (seconds, fraction) = (time / 1_000_000, time % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!(
        "{}{separator}{hour:02}:{minute:02}:{second:02}.{fraction:06}{zone}",
        date_text(date)
    )
}

/// A value in a database, as a driver read it.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Decimal(ExactDecimal),
    Text(String),
    /// The text of a column of JSON: no string of the language.
    Json(String),
    Bytes(Vec<u8>),
    /// Microseconds since 1970.
    Timestamp(i64),
    /// Days since 1970.
    Date(i32),
    /// Microseconds.
    Duration(i128),
    /// No value at all, with its name for messages.
    Unreadable(Cow<'static, str>),
}

/// A decimal that is compared by its text.
#[derive(Clone, Debug)]
pub struct ExactDecimal(pub Decimal);

impl PartialEq for ExactDecimal {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_identical(&other.0)
    }
}

impl Cell {
    /// Returns the cell of a text in UTF-8.
    pub fn of_text(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or(
            Self::Unreadable(Cow::Borrowed("a text that is not UTF-8")),
            Self::Text,
        )
    }

    /// Returns about how many bytes the cell takes; numbers and times count as eight.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Json(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            _ => 8,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Decimal(_) => "a decimal",
            Self::Text(_) => "a text",
            Self::Json(_) => "JSON",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "a timestamp",
            Self::Date(_) => "a date",
            Self::Duration(_) => "an interval",
            Self::Unreadable(name) => name,
        }
    }

    fn given(&self) -> Given<'_> {
        match self {
            Self::Boolean(value) => Given::Boolean(*value),
            Self::Integer(value) => Given::Integer(*value),
            Self::Float(value) => Given::Float(*value),
            Self::Decimal(value) => Given::Decimal(Ok(value.0.clone())),
            Self::Text(text) => Given::Text(text),
            Self::Bytes(bytes) => Given::Bytes(bytes),
            Self::Timestamp(value) => Given::Moment(i128::from(*value)),
            Self::Date(value) => Given::Day(i64::from(*value)),
            Self::Duration(value) => Given::Length(*value),
            Self::Null | Self::Json(_) | Self::Unreadable(_) => Given::Other,
        }
    }
}

/// Returns a type without its optional.
pub(super) fn without_null(ty: &Type) -> &Type {
    match ty {
        Type::Optional(of) => of,
        other => other,
    }
}

/// Formats a type as nodes write it.
fn type_text(ty: &Type) -> String {
    match ty {
        Type::Enum(of) => format!("enum[{}]", of.members().join(", ")),
        Type::Set(of) => format!("set<{}>", type_text(of)),
        Type::Array(of) => format!("array<{}>", type_text(of)),
        Type::Optional(of) => format!("optional<{}>", type_text(of)),
        Type::Map(of) => format!("map<{}, {}>", type_text(&of.key), type_text(&of.value)),
        Type::Record(of) => {
            let fields = of
                .fields()
                .iter()
                .map(|field| format!("{}: {}", field.name, type_text(&field.ty)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}

/// Reader of the rows of one result by the type that a step declares.
#[derive(Debug)]
pub struct RowReader<'a> {
    database: &'a str,
    /// True where the database has no booleans of its own.
    booleans_are_integers: bool,
    is_record: bool,
    /// Each field with the place of its column and its type.
    fields: Vec<(String, usize, Type)>,
}

impl<'a> RowReader<'a> {
    pub fn new(
        columns: &[String],
        row: &Type,
        database: &'a str,
        booleans_are_integers: bool,
    ) -> Result<Self, Failure> {
        let (is_record, fields) = match (without_null(row), columns) {
            (Type::Record(record), _) => (true, places(columns, record, row)?),
            (_, [column]) => (false, vec![(column.clone(), 0, row.clone())]),
            _ => {
                let (count, row) = (columns.len(), type_text(row));
                return Err(bad(format!(
                    "the query gives {count} columns, and {row} holds one"
                )));
            }
        };
        Ok(Self {
            database,
            booleans_are_integers,
            is_record,
            fields,
        })
    }

    /// Returns the value of the row with this number, from 1.
    pub fn read(&self, cells: &[Cell], number: usize) -> Result<Value, Failure> {
        let mut found = Vec::with_capacity(self.fields.len());
        for (name, place, ty) in &self.fields {
            let cell = cells.get(*place).unwrap_or(&Cell::Null);
            let value = match (ty, cell) {
                (Type::Optional(_), Cell::Null) => Ok(Value::Null),
                _ => self.value(without_null(ty), cell),
            };
            found.push(value.map_err(|kind| {
                bad(format!(
                    "column `{name}` of row {number} of `{}` holds {}{}, and the step declares {}{}",
                    self.database,
                    cell.name(),
                    reason(cell, kind),
                    type_text(without_null(ty)),
                    advice(without_null(ty), cell)
                ))
            })?);
        }
        match found.pop() {
            Some(only) if !self.is_record => Ok(only),
            last => {
                found.extend(last);
                Ok(Value::Record(Arc::from(found)))
            }
        }
    }

    fn value(&self, ty: &Type, cell: &Cell) -> Result<Value, ProblemKind> {
        match (ty, cell) {
            (
                Type::Array(_) | Type::Set(_) | Type::Map(_) | Type::Record(_) | Type::Json,
                Cell::Text(text) | Cell::Json(text),
            ) => value_of_form(ty, &json_of_text(text)?),
            (Type::Array(_) | Type::Set(_) | Type::Map(_) | Type::Record(_) | Type::Json, _)
            | (_, Cell::Json(_) | Cell::Unreadable(_) | Cell::Null) => Err(ProblemKind::WrongType),
            (Type::Boolean, Cell::Integer(value @ (0 | 1))) if self.booleans_are_integers => {
                Ok(Value::Boolean(*value == 1))
            }
            // PostgreSQL adds up bigints into a numeric.
            (Type::Integer, Cell::Decimal(number)) if number.0.scale() == 0 => {
                let whole = number.0.to_whole(RoundingMode::Down);
                whole.map(Value::Integer).ok_or(ProblemKind::OutOfRange)
            }
            // Base64 and the names of infinities are of JSON alone.
            (Type::Bytes | Type::Float, Cell::Text(text)) if *ty == Type::Bytes || text != "NaN" => {
                Err(ProblemKind::WrongType)
            }
            (ty, cell) => convert(ty, cell.given()),
        }
    }
}

/// Returns each field with the place of its column. Postgres gives names in small letters, whatever the SQL has.
fn places(
    columns: &[String],
    record: &RecordType,
    row: &Type,
) -> Result<Vec<(String, usize, Type)>, Failure> {
    let count = |name: &String| columns.iter().filter(|each| *each == name).count();
    if let Some(twice) = columns.iter().find(|name| count(name) > 1) {
        return Err(bad(format!(
            "the query gives two columns with the name `{twice}`"
        )));
    }
    // Of two columns that differ in case only, the last one counts where no name is exact.
    let exact = |name: &str| columns.iter().position(|each| each == name);
    let folded = |name: &str| {
        columns
            .iter()
            .rposition(|each| each.to_lowercase() == name.to_lowercase())
    };
    let mut found = Vec::with_capacity(columns.len());
    for field in record.fields() {
        let place = exact(&field.name).or_else(|| folded(&field.name));
        let place = place.ok_or_else(|| bad(format!("the query gives no column `{}`", field.name)))?;
        found.push((field.name.to_string(), place, field.ty.clone()));
    }
    let is_used = |place: usize| found.iter().any(|(_, used, _)| *used == place);
    let extra: Vec<String> = (columns.iter().enumerate())
        .filter(|(place, _)| !is_used(*place))
        .map(|(_, name)| format!("`{name}`"))
        .collect();
    if !extra.is_empty() {
        let shown = extra.join(", ");
        return Err(bad(format!(
            "the query gives {shown}, and {} has no such field",
            type_text(row)
        )));
    }
    Ok(found)
}

fn bad(message: String) -> Failure {
    Failure::new("bad_response", message)
}

fn reason(cell: &Cell, kind: ProblemKind) -> &'static str {
    if matches!(cell, Cell::Null | Cell::Unreadable(_)) {
        return "";
    }
    match kind {
        ProblemKind::OutOfRange => " that is out of range",
        ProblemKind::Malformed => " in another form",
        ProblemKind::NotAMember => " that is none of its members",
        ProblemKind::Missing => " that lacks a field",
        ProblemKind::Duplicate => " with something twice",
        ProblemKind::TooDeep => " that is too deep",
        ProblemKind::Unknown | ProblemKind::WrongType => "",
    }
}

fn advice(ty: &Type, cell: &Cell) -> String {
    match (ty, cell) {
        (_, Cell::Null) => format!("; declare optional<{}>, or leave such rows out", type_text(ty)),
        (Type::Decimal, Cell::Float(_)) => {
            "; a float is not exact: keep decimals in a column of type TEXT (SQLite) or numeric (PostgreSQL)"
                .to_owned()
        }
        (Type::Float, Cell::Decimal(_)) => "; CAST it to double precision in the query".to_owned(),
        _ => String::new(),
    }
}
